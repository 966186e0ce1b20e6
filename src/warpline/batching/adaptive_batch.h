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
  std::uint64_t deadline = 0;        ///< longest time that a packet is held back while the engine has room
  std::uint32_t most_in_flight = 1;  ///< batches that the engine takes at a time, 1..AdaptiveBatch::kMostInFlight
  std::uint32_t lanes = 1;           ///< batches that it works on side by side, if it says so; 1: that is measured
};

/// AdaptiveBatch decides when packets that wait are submitted to an engine, and how many. It is told what happens and
/// when; it has no clock, no table and nothing to tune. One thread.
///
/// The rule. Packets that wait are submitted when
///  1. fewer batches are in flight than the engine works on side by side (`depth`), or
///  2. they fill a batch, or
///  3. the oldest one has waited for the deadline,
/// but never more batches than `most_in_flight`. So a packet leaves alone and at once while the engine is idle, and
/// packets gather for as long as the engine is busy, as in IX (Belay et al., OSDI 2014). By rule 3 one batch more is in
/// flight than the engine works on after the deadline, a second one after twice the deadline, and so on: to fill the
/// queue of an engine that is behind with small batches would put it further behind.
///
/// Why it is stable. A batch of n packets takes a + c n. At rate r, with d batches side by side, n = r (a + c n) / d
/// packets arrive between two submissions. The fixed point a r / (d - c r) is the smallest batch that the engine
/// sustains at this rate, and each step comes nearer to it by the factor c r / d, which is below 1 for every rate that
/// the engine can carry at all. Beyond a full batch rule 2 keeps as many of them in the engine as it takes.
///
/// What an engine of several lanes changes. Packets are divided between the lanes that are free, unless the pieces
/// become so small that their fixed cost counts. Submissions keep a distance, the longer the more lanes are busy, so
/// that lanes become free one after another and not all at once. And batches stay even: one takes no more than a
/// twentieth longer than batches lately did, unless what waits, divided between all lanes, is more. Batches are told
/// in order, so those behind a large one seem to be in flight until it has finished; what gathers meanwhile would make
/// the next ones as large, and the engine would stay there, with a few large batches on its way and lanes without work.
///
/// An engine that says how many lanes it has is not measured, and two batches for each are in flight: one that takes
/// long holds up the word of those behind it, whose lanes would have nothing to do meanwhile.
///
/// What the thread costs that submits. It receives, too, and what comes while it submits has to be received: at a rate
/// r of packets that take p each, it has caught up b / (1 - p r) after a submission that takes b, by a geometric series
/// of turns. Until then nothing is submitted but full batches, and no batch is smaller than what comes in that time.
/// The first two turns are measured; a thread that is busier than half counts as half, since the sum is uncertain
/// there.
///
/// How `depth` is measured. The cost a + c n is learned from batches that were alone in the engine (CostLine). A batch
/// behind others was delayed by them if it took over a quarter longer than that, and gained less than a quarter of it
/// over being submitted when the oldest of the others was finished. A batch that was not delayed beside `depth` others
/// raises it, four in a row that were delayed beside fewer lower it. To find out, a batch is submitted beyond `depth`
/// now and then: at once again after one that was not delayed, else after twice as many batches as before, up to 64. A
/// serial engine has depth 1, k lanes have depth k, a pipeline as many as it has stages of equal length.
class AdaptiveBatch {
 public:
  static constexpr std::uint32_t kMostInFlight = 64;
  static constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();

  /// Decision is what to do now. If it is nothing, the answer stays so until the time `look_again`, until `enough`
  /// packets wait, or until a batch finishes, whichever comes first.
  struct Decision {
    std::uint32_t count = 0;  ///< packets to submit now, the oldest first; 0: none yet
    std::uint64_t look_again = kNever;
    std::uint32_t enough = 1;
  };

  explicit AdaptiveBatch(const AdaptiveBatchSettings& settings)
      : largest_(std::max(settings.largest, 1U)),
        most_(std::clamp(settings.most_in_flight, 1U, kMostInFlight)),
        deadline_(std::min(settings.deadline, kNever / (2 * kMostInFlight))),
        told_(settings.lanes > 1),
        depth_(std::clamp(settings.lanes, 1U, most_)),
        starting_(!told_) {}

  /// `waiting` packets are not yet submitted; the oldest one arrived at `oldest_arrival`, which is not read if none
  /// waits. What is submitted then has to be told to submitted(). It may be less than what waits: ask again.
  [[nodiscard]] Decision decide(std::uint64_t now, std::uint32_t waiting, std::uint64_t oldest_arrival) {
    if (told_ && turns_ < 2) learn_turn(now);
    const std::uint32_t flying = in_flight();
    if (waiting == 0 || flying >= most_) return {};
    const std::uint64_t waited = now > oldest_arrival ? now - oldest_arrival : 0;
    const std::uint32_t queued = told_ ? depth_ : 0;  ///< behind those that are worked on
    if (flying < depth_ + queued) {
      const std::uint64_t ready = last_at_ + rest_;
      const std::uint64_t next = std::max(ready, last_at_ + gap_ * flying);
      const bool crowd = waiting >= kCrowd * last_ && now >= ready;
      if (now >= next || crowd || waiting >= largest_ || waited >= deadline_) {
        return {share(waiting, flying < depth_ ? depth_ - flying : 1, arrivals(now, waiting))};
      }
      return {0, std::min(next, later(oldest_arrival, deadline_)),
              now >= ready ? std::min(kCrowd * last_, largest_) : largest_};
    }
    const std::uint64_t patience = deadline_ * (flying - depth_ - queued + 1);
    const bool trial = !told_ && flying == depth_ && until_trial_ == 0;
    const std::uint32_t enough = trial ? trial_size_ : largest_;
    if (waiting >= enough || waited >= patience) return {whole(waiting, arrivals(now, waiting))};
    return {0, later(oldest_arrival, patience), enough};
  }

  /// A batch of `count` packets, at least one and at most `largest`, is submitted at `now`, which is before the work of
  /// submitting it. Fewer than `most_in_flight` are in flight before.
  void submitted(std::uint64_t now, std::uint32_t count) {
    left_ = waiting_ > count ? waiting_ - count : 0;
    turns_ = 0;
    assert(count > 0 && count <= largest_ && in_flight() < most_);
    const std::uint32_t others = in_flight();
    if (others >= depth_) {
      until_trial_ = trial_gap_;
    } else if (until_trial_ > 0) {
      --until_trial_;
    }
    const double alone = cost_.at(count);
    usual_ += (alone - usual_) / depth_;
    even_ = packets_for(kEven * usual_ - cost_.fixed());
    last_ = count;
    last_at_ = now;
    gap_ = depth_ > 1 ? static_cast<std::uint64_t>(alone / (depth_ * (depth_ - 1))) : 0;
    trial_size_ = packets_for(kTrial * alone - cost_.fixed());
    flights_[next_++ % kRemembered] = {now, 0, count, others};
  }

  /// The oldest batch in flight has finished at `now`. Batches finish in the order in which they were submitted; one
  /// that is done earlier is told when all before it are.
  void finished(std::uint64_t now);

  /// Whether decide() is to be called at the thread's next turn, whatever it said: the time of a turn is learned.
  [[nodiscard]] bool is_learning() const { return told_ && turns_ < 2; }
  [[nodiscard]] std::uint32_t in_flight() const { return static_cast<std::uint32_t>(next_ - oldest_); }
  /// Returns how many batches the engine works on side by side, as far as is known: 1..most_in_flight.
  [[nodiscard]] std::uint32_t depth() const { return depth_; }
  /// Returns the cost of a batch that is alone, from its submission until it is told to have finished.
  [[nodiscard]] const CostLine& cost() const { return cost_; }

 private:
  static constexpr std::uint32_t kRemembered = 2 * kMostInFlight;
  static constexpr std::uint32_t kCrowd = 4;  ///< so many times the last batch is not kept at a distance from it
  static constexpr double kEven = 1.05;       ///< of the usual time is what an even batch takes at most
  static constexpr double kTrial = 0.6;       ///< of the batch before: then about as long is left of that

  struct Flight {
    std::uint64_t submitted;
    std::uint64_t finished;
    std::uint32_t count;
    std::uint32_t others;  ///< batches in flight before it
  };

  [[nodiscard]] static std::uint64_t later(std::uint64_t time, std::uint64_t by) {
    return by > kNever - time ? kNever : time + by;
  }
  /// Returns how many packets cost `time` beyond the fixed cost: 1..largest.
  [[nodiscard]] std::uint32_t packets_for(double time) const {
    if (time <= 0) return 1;
    if (time >= cost_.per_packet() * largest_) return largest_;
    return std::min(static_cast<std::uint32_t>(time / cost_.per_packet()) + 1, largest_);
  }
  /// Returns how much of what waits one lane takes, `least` at least.
  [[nodiscard]] std::uint32_t whole(std::uint32_t waiting, std::uint32_t least) const {
    const bool serial = depth_ == 1 && !starting_;
    return std::min({waiting, largest_, serial ? largest_ : std::max({even_, least, (waiting + depth_ - 1) / depth_})});
  }
  /// Returns how much of it one of `free` lanes takes.
  [[nodiscard]] std::uint32_t share(std::uint32_t waiting, std::uint32_t free, std::uint32_t least) const {
    const std::uint32_t most = whole(waiting, least);
    return free > 1 ? std::min(most, std::max({(waiting + free - 1) / free, piece_, least})) : most;
  }

  /// Returns how many packets come in the time that the thread takes to catch up, going by those since the last
  /// submission.
  [[nodiscard]] std::uint32_t arrivals(std::uint64_t now, std::uint32_t waiting) {
    waiting_ = waiting;
    if (rest_ == 0 || now <= last_at_ || waiting <= left_) return 1;
    const std::uint64_t came = (waiting - left_) * rest_ / (now - last_at_);
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(came, largest_));
  }
  void learn_turn(std::uint64_t now);
  void learn(double packets, double took);
  void raise(std::uint32_t others);
  void lower();

  std::uint32_t largest_;
  std::uint32_t most_;
  std::uint64_t deadline_;
  bool told_;  ///< how many lanes the engine has

  // What is known of the engine.
  CostLine cost_;
  std::uint32_t depth_;
  std::uint32_t piece_ = 1;  ///< packets below which a batch is not divided between lanes
  bool starting_;            ///< no batch has been delayed by others so far

  // Trials.
  std::uint32_t trial_gap_ = 0;    ///< submissions between two
  std::uint32_t until_trial_ = 0;  ///< submissions until the next one
  std::uint32_t trial_size_ = 1;   ///< packets of the next one
  std::uint32_t delays_ = 0;       ///< batches in a row that were delayed beside less than `depth_` others
  double least_delay_ = 0;         ///< time that these took at least, by that without others

  // The thread that submits.
  double first_turn_ = 0;      ///< time until it has received again after a submission
  double second_turn_ = 0;     ///< and what came meanwhile
  std::uint64_t rest_ = 0;     ///< time until it has caught up: the sum of a geometric series that begins so
  std::uint64_t turn_at_ = 0;  ///< end of the first
  std::uint32_t turns_ = 2;    ///< since the last submission, up to 2
  std::uint32_t waiting_ = 0;  ///< packets before the last submission
  std::uint32_t left_ = 0;     ///< of these, that it left

  // Batches.
  std::uint32_t last_ = 0;      ///< packets of the last one
  std::uint64_t last_at_ = 0;   ///< its submission
  double usual_ = 0;            ///< time that batches take alone, a mean over about as many as there are lanes
  std::uint32_t even_ = 1;      ///< packets of which a lane takes more only if all lanes have so many
  std::uint64_t gap_ = 0;       ///< distance that the next one keeps from it for each batch in flight
  std::uint64_t next_ = 0;      ///< number of batches submitted
  std::uint64_t oldest_ = 0;    ///< number of batches finished
  std::uint64_t fair_end_ = 0;  ///< end of the last finished one, had it and those before it not waited for the engine
  std::array<Flight, kRemembered> flights_{};
};

}  // namespace warpline::batching
