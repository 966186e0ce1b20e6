// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <span>
#include <vector>

#include "warpline/base/random.h"
#include "warpline/base/statistics/histogram.h"
#include "warpline/batching/adaptive_batch.h"

// A queue of packets, an engine, and a policy between them, in virtual time: picoseconds, seeded.

namespace warpline::batching::testing {

using Time = std::uint64_t;  ///< picoseconds
inline constexpr Time kNever = AdaptiveBatch::kNever;
inline constexpr double kPicosPerMicro = 1e6;
inline constexpr Time kPoll = 50'000;  ///< of a thread that finds nothing

/// An engine that takes `slots` batches at a time and works on `lanes` of them side by side. A batch of n packets keeps
/// a lane for a + c n, and then goes a way of `latency` on which batches do not delay each other. They are given back
/// in the order in which they came.
struct SimEngine {
  double fixed = 0;       ///< a, microseconds
  double per_packet = 0;  ///< c, microseconds
  std::uint32_t slots = 1;
  std::uint32_t lanes = 1;
  double latency = 0;   ///< microseconds
  double noise = 0;     ///< the time of a batch is up to so much of itself longer or shorter
  double stalls = 0;    ///< share of batches that take `stall` longer
  double stall = 50;    ///< microseconds
  double overhead = 0;  ///< microseconds of the submitting thread per submission
  double receive = 0;   ///< microseconds of that thread per packet that it takes from the port
  double told = 0;      ///< microseconds of that thread per batch that it takes back

  /// Returns packets per microsecond with batches of `packets`.
  [[nodiscard]] double rate(double packets) const {
    const double time = fixed + per_packet * packets;
    double rate = std::min(lanes * packets / time, slots * packets / (time + latency));
    const double thread = overhead + told + receive * packets;
    if (thread > 0) rate = std::min(rate, packets / thread);
    return rate;
  }
};

enum class Arrivals : std::uint8_t { constant, poisson, bursts };

/// Returns the arrival times of `count` packets, at `rate` packets per microsecond on average. Bursts are of 1 to 511
/// packets at ten times that rate.
inline std::vector<Time> arrivals(Arrivals kind, double rate, std::size_t count, Random& random, double start = 0) {
  const double gap = kPicosPerMicro / rate;
  const auto exponential = [&random](double mean) {
    return -mean * std::log((static_cast<double>(random.next() >> 11) + 1) * 0x1p-53);
  };
  std::vector<Time> times;
  times.reserve(count);
  double now = start;
  std::uint64_t left = 0;
  while (times.size() < count) {
    switch (kind) {
      case Arrivals::constant:
        now += gap;
        break;
      case Arrivals::poisson:
        now += exponential(gap);
        break;
      case Arrivals::bursts:
        if (left == 0) {
          left = 1 + random.below(511);
          now += exponential(gap * 0.9 * 256);
        }
        --left;
        now += gap * 0.1;
        break;
    }
    times.push_back(static_cast<Time>(now));
  }
  return times;
}

/// Submits when `burst` packets wait or the oldest one has waited for the deadline, as long as the engine takes them.
class FixedBatch {
 public:
  FixedBatch(std::uint32_t burst, Time deadline) : burst_(burst), deadline_(deadline) {}
  [[nodiscard]] AdaptiveBatch::Decision decide(Time now, std::uint32_t waiting, Time oldest) {
    if (waiting >= burst_) {
      ++full_;
      return {burst_, 0};
    }
    if (waiting == 0) return {};
    if (now - oldest >= deadline_) return {waiting, 0};
    return {0, oldest + deadline_, burst_};
  }
  void submitted(Time, std::uint32_t) {}
  void finished(Time) {}
  [[nodiscard]] std::uint64_t full() const { return full_; }

 private:
  std::uint32_t burst_;
  Time deadline_;
  std::uint64_t full_ = 0;
};

struct SimSettings {
  std::uint32_t queue = 16'384;  ///< packets that wait at most; those that find it full are lost
  Time notice = 50'000;          ///< from a batch's end until the submitting thread has seen it
  Time from = 0;                 ///< packets that arrive before are not counted
  Time until = kNever;           ///< nor those that arrive from then on
};

struct SimResult {
  std::uint64_t offered = 0;
  std::uint64_t lost = 0;
  std::uint64_t submissions = 0;  ///< of all packets, counted or not
  std::uint64_t largest = 0;      ///< packets in a batch
  Time longest_wait = 0;          ///< of a packet while the engine had a free slot, beyond the thread's own work
  Histogram latency;              ///< nanoseconds from arrival until its batch was given back
  [[nodiscard]] double delivered() const {
    return static_cast<double>(offered - lost) / static_cast<double>(std::max<std::uint64_t>(offered, 1));
  }
};

template <typename Policy>
void simulate(const SimEngine& engine, std::span<const Time> arrivals, Policy& policy, const SimSettings& settings,
              std::uint64_t seed, SimResult& result) {
  Random random(seed);
  const auto uniform = [&random] { return static_cast<double>(random.next() >> 11) * 0x1p-53; };
  struct Flight {
    Time seen;
  };
  std::deque<Flight> flights;
  std::vector<Time> lanes(engine.lanes, 0);
  std::vector<Time> queue(settings.queue);
  std::size_t head = 0, waiting = 0, next = 0, received = 0;
  Time now = 0, last_finish = 0, room_since = 0;
  const auto counted = [&settings](Time arrival) { return arrival >= settings.from && arrival < settings.until; };
  for (;;) {
    for (; next < arrivals.size() && arrivals[next] <= now; ++next) {
      result.offered += counted(arrivals[next]);
      if (waiting == settings.queue) {
        result.lost += counted(arrivals[next]);
        continue;
      }
      queue[(head + waiting++) % settings.queue] = arrivals[next];
      ++received;
    }
    now += static_cast<Time>(engine.receive * kPicosPerMicro * static_cast<double>(received));
    received = 0;
    while (!flights.empty() && flights.front().seen <= now) {
      flights.pop_front();
      policy.finished(now);
      now += static_cast<Time>(engine.told * kPicosPerMicro);
      if (flights.size() + 1 == engine.slots) room_since = now;
    }
    const bool room = flights.size() < engine.slots;
    AdaptiveBatch::Decision decision;
    if (room) decision = policy.decide(now, static_cast<std::uint32_t>(waiting), waiting ? queue[head] : 0);
    if (decision.count != 0) {
      const std::uint32_t count = decision.count;
      policy.submitted(now, count);
      now += static_cast<Time>(engine.overhead * kPicosPerMicro);
      double time = engine.fixed + engine.per_packet * count;
      if (engine.noise > 0) time *= 1 + engine.noise * (2 * uniform() - 1);
      if (engine.stalls > 0 && uniform() < engine.stalls) time += engine.stall;
      Time& lane = *std::ranges::min_element(lanes);
      lane = std::max(lane, now) + static_cast<Time>(time * kPicosPerMicro);
      last_finish = std::max(last_finish, lane + static_cast<Time>(engine.latency * kPicosPerMicro));
      flights.push_back({last_finish + settings.notice});
      result.longest_wait = std::max(result.longest_wait, now - std::max(queue[head], room_since));
      for (std::uint32_t i = 0; i < count; ++i) {
        const Time arrival = queue[head];
        head = (head + 1) % settings.queue;
        if (counted(arrival)) result.latency.record((last_finish - arrival) / 1000);
      }
      waiting -= count;
      ++result.submissions;
      result.largest = std::max<std::uint64_t>(result.largest, count);
      continue;
    }
    Time then = flights.empty() ? kNever : flights.front().seen;
    const std::size_t wanted = waiting == 0 ? 1 : decision.enough - waiting;
    if (room && waiting != 0) then = std::min(then, decision.look_again);
    if ((room || waiting == 0) && next + wanted <= arrivals.size()) then = std::min(then, arrivals[next + wanted - 1]);
    // A thread whose time counts asks again and again.
    const bool polls = engine.receive > 0 && (waiting != 0 || !flights.empty() || next < arrivals.size());
    if (polls) then = std::min(then, now + kPoll);
    if (then == kNever) break;
    now = std::max(now, then);
  }
  result.lost += waiting;  // never submitted
}

}  // namespace warpline::batching::testing
