// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cassert>
#include <cstdint>
#include <limits>

#include "warpline/batching/cost_line.h"

namespace warpline::batching {

/// The bounds of an AdaptiveBatch. Times are in any unit, the same one in all calls: ticks of the processor's clock or
/// nanoseconds.
struct AdaptiveBatchSettings {
  std::uint32_t largest = 512;       ///< packets per batch at most, at least 1
  std::uint64_t deadline = 0;        ///< longest time that a packet waits while the engine takes further batches
  std::uint32_t most_in_flight = 1;  ///< batches that the engine takes at a time, 1..AdaptiveBatch::kMostInFlight
};

/// AdaptiveBatch decides when packets that wait are submitted to an engine, and how many. It is told what happens and
/// when; it has no clock, no table and nothing to tune. One thread.
///
/// The rule. Packets that wait are submitted
///  1. when fewer batches are in flight than the engine works on side by side (`depth`),
///  2. when they fill a batch,
///  3. when the oldest one has waited for the deadline,
/// but never more batches than `most_in_flight`. So while the engine is idle a packet leaves alone, at once; while it
/// is busy, packets gather for as long as the engine is busy, as in IX (Belay et al., OSDI 2014).
///
/// Why that is stable. A batch of n packets takes a + c n. At rate r, with d batches side by side, the packets that
/// arrive between two submissions are n = r (a + c n) / d. The fixed point n = a r / (d - c r) is the smallest batch
/// that the engine sustains at this rate; a larger one waits longer than it must. For r < d / c each step comes nearer
/// to it by the factor c r / d, and beyond a full batch rule 2 keeps `most_in_flight` of them in the engine.
///
/// What the engine does side by side is measured. The cost a + c n is learned from batches that were alone (CostLine).
/// A batch that was submitted behind others and still took no longer than a + c n was not delayed by them; one that
/// took over a quarter longer was. Four batches in a row that were not delayed beside `depth` others raise it, four
/// that were delayed beside fewer lower it. To find out, a batch is submitted beyond `depth` now and then: at once
/// again when it was not delayed, else after twice as many batches as before, up to 64. A serial engine has depth 1, k
/// lanes have depth k, a pipeline as many as it has stages of equal length.
class AdaptiveBatch {
 public:
  static constexpr std::uint32_t kMostInFlight = 64;
  static constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();

  /// What to do now.
  struct Decision {
    std::uint32_t count = 0;            ///< packets to submit now, the oldest first; 0: none yet
    std::uint64_t look_again = kNever;  ///< if none: the answer stays so until this time, a finished batch,
                                        ///< an arrival when nothing waited, or `enough`, whichever is first
    std::uint32_t enough = 1;           ///< packets waiting
  };

  explicit AdaptiveBatch(const AdaptiveBatchSettings& settings)
      : largest_(std::max(settings.largest, 1U)),
        most_(std::clamp(settings.most_in_flight, 1U, kMostInFlight)),
        deadline_(std::min(settings.deadline, kNever / (2 * kMostInFlight))) {}

  /// `waiting` packets are not yet submitted, and the oldest one arrived at `oldest_arrival`, which is not read when
  /// none waits. What it answers is to be told to submitted(), and may be less than what waits: then ask again.
  [[nodiscard]] Decision decide(std::uint64_t now, std::uint32_t waiting, std::uint64_t oldest_arrival) const {
    const std::uint32_t flying = in_flight();
    if (waiting == 0 || flying >= most_) return {};
    const std::uint64_t waited = now > oldest_arrival ? now - oldest_arrival : 0;
    if (flying < depth_) {
      const std::uint64_t next = last_at_ + gap_ * flying;
      if (now >= next || waiting >= last_ || waited >= deadline_) return {share(waiting, depth_ - flying)};
      return {0, std::min(next, later(oldest_arrival, deadline_)), last_};
    }
    if (waiting >= largest_) return {largest_};
    const std::uint64_t patience = deadline_ * (flying - depth_ + 1);
    if (waited >= patience) return {waiting};
    const bool trial = flying == depth_ && until_trial_ == 0;
    if (trial && waiting >= trial_size_) return {waiting};
    return {0, later(oldest_arrival, patience), trial ? trial_size_ : largest_};
  }

  /// A batch of `count` packets, at least one, is submitted at `now`: before the work of submitting it. Fewer than
  /// `most_in_flight` may be in flight before.
  void submitted(std::uint64_t now, std::uint32_t count) {
    assert(count > 0 && in_flight() < most_);
    const std::uint32_t others = in_flight();
    if (others >= depth_) {
      until_trial_ = trial_gap_;
    } else if (until_trial_ > 0) {
      --until_trial_;
    }
    last_ = count;
    last_at_ = now;
    gap_ = static_cast<std::uint64_t>(cost_.at(count) / (depth_ * std::max(depth_ - 1, 1U)));
    // A batch that takes about as long as is left of this one when it comes.
    const double wanted = kTrial * cost_.at(count) - cost_.fixed();
    trial_size_ = wanted > 0 ? static_cast<std::uint32_t>(wanted / cost_.per_packet()) + 1 : 1;
    trial_size_ = std::min(trial_size_, largest_);
    flights_[next_++ % kRemembered] = {now, 0, count, others};
  }

  /// The oldest batch in flight has finished at `now`. Batches finish in the order of submission, or are told so.
  void finished(std::uint64_t now) {
    assert(in_flight() > 0);
    Flight& flight = flights_[oldest_ % kRemembered];
    flight.finished = now;
    const double packets = flight.count;
    const auto begin = static_cast<double>(flight.submitted);
    const double took = now > flight.submitted ? static_cast<double>(now - flight.submitted) : 0;
    const double alone = cost_.at(packets);
    // What it would have taken without waiting for the engine: not less than until those before it are due.
    const double fair = std::max(alone, fair_finish_ - begin);
    fair_finish_ = begin + fair;
    const std::uint64_t index = oldest_++;
    if (flight.others == 0 || !cost_.known() || took * kDelayed < alone) return learn(packets, took);
    // By how much it was submitted before the oldest of those before it finished, and what it gained by that.
    const double early = static_cast<double>(flights_[(index - flight.others) % kRemembered].finished) - begin;
    const double gained = early + alone - took;
    const bool delayed = took > kDelayed * fair && gained < kGain * alone;
    if (flight.others >= depth_) {
      if (delayed) return fail_trial();
      if (2 * early * flight.others >= alone) confirm(flight.others);
    } else if (flight.others + 1 == depth_) {
      if (!delayed) {
        delays_ = 0;
      } else {
        least_delay_ = delays_ == 0 ? took / fair : std::min(least_delay_, took / fair);
        if (++delays_ == kVotes) lower();
      }
    }
  }

  [[nodiscard]] std::uint32_t in_flight() const { return static_cast<std::uint32_t>(next_ - oldest_); }
  /// Returns how many batches the engine works on side by side, as far as is known: 1..most_in_flight.
  [[nodiscard]] std::uint32_t depth() const { return depth_; }
  /// Returns the cost of a batch that is alone: from its submission until it is told to have finished.
  [[nodiscard]] const CostLine& cost() const { return cost_; }

 private:
  static constexpr double kDelayed = 1.25;
  static constexpr double kGain = 0.25;
  static constexpr std::uint32_t kRemembered = 2 * kMostInFlight;
  static constexpr double kTrial = 0.6;
  static constexpr std::uint32_t kVotes = 4;
  static constexpr std::uint32_t kLongestGap = 64;
  /// Packets are not divided between lanes into pieces whose fixed cost is more than four times the packets' own.
  static constexpr double kPiece = 0.25;

  struct Flight {
    std::uint64_t submitted;
    std::uint64_t finished;
    std::uint32_t count;
    std::uint32_t others;  ///< batches in flight before it
  };

  [[nodiscard]] static std::uint64_t later(std::uint64_t time, std::uint64_t by) {
    return by > kNever - time ? kNever : time + by;
  }

  /// Returns the share of one of `free` lanes in what waits.
  [[nodiscard]] std::uint32_t share(std::uint32_t waiting, std::uint32_t free) const {
    if (free > 1) waiting = std::min(waiting, std::max((waiting + free - 1) / free, piece_));
    return std::min(waiting, largest_);
  }

  void learn(double packets, double took) {
    cost_.add(packets, took);
    const double piece = kPiece * cost_.fixed();
    const double whole = cost_.per_packet() * largest_;
    piece_ = piece >= whole ? largest_ : static_cast<std::uint32_t>(piece / cost_.per_packet()) + 1;
  }

  void fail_trial() {
    starting_ = false;
    trial_gap_ = std::min(2 * trial_gap_ + 1, kLongestGap);
    until_trial_ = std::max(until_trial_, trial_gap_);
  }
  void confirm(std::uint32_t others) {
    trial_gap_ = 0;
    until_trial_ = 0;
    delays_ = 0;
    depth_ = std::min(starting_ ? 2 * depth_ : std::max(depth_, others + 1), most_);
  }
  void lower() {
    starting_ = false;
    delays_ = 0;
    // With d in flight where there is place for k each takes d / k of its time.
    depth_ = std::clamp(static_cast<std::uint32_t>(depth_ / least_delay_ + 0.5), 1U, depth_ - 1);
  }

  std::uint32_t largest_;
  std::uint32_t most_;
  std::uint64_t deadline_;
  std::uint32_t depth_ = 1;
  std::uint32_t piece_ = 1;
  bool starting_ = true;
  std::uint32_t delays_ = 0;       ///< batches in a row that were delayed beside one less
  std::uint32_t trial_gap_ = 0;    ///< submissions between two trials
  std::uint32_t until_trial_ = 0;  ///< submissions until the next trial may be
  std::uint64_t next_ = 0;         ///< batches submitted
  std::uint64_t oldest_ = 0;       ///< batches finished
  std::uint32_t trial_size_ = 1;   ///< packets that make a trial tell something
  double least_delay_ = 0;         ///< of these, as a multiple of what it would have taken
  std::uint32_t last_ = 0;
  std::uint64_t last_at_ = 0;
  std::uint64_t gap_ = 0;
  double fair_finish_ = 0;  ///< when the last one would have finished without waiting
  CostLine cost_;
  std::array<Flight, kRemembered> flights_{};
};

}  // namespace warpline::batching
