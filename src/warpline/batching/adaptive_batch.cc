// SPDX-License-Identifier: Apache-2.0
#include "warpline/batching/adaptive_batch.h"

#include <cmath>

namespace warpline::batching {
namespace {

constexpr double kDelayed = 1.25;          // of the time without others
constexpr double kGain = 0.25;             // of the time alone
constexpr std::uint32_t kDelays = 4;       // in a row
constexpr std::uint32_t kLongestGap = 64;  // submissions
constexpr double kTurnWeight = 1.0 / 32;
constexpr double kBusiest = 0.5;  // as which a thread counts that is busier with receiving
constexpr double kPiece = 0.1;    // packets' cost by the fixed one, of a piece that is worth a lane

/// Returns `end - begin`, which may be negative.
double span(std::uint64_t begin, std::uint64_t end) {
  return end >= begin ? static_cast<double>(end - begin) : -static_cast<double>(begin - end);
}

}  // namespace

void AdaptiveBatch::finished(std::uint64_t now) {
  assert(in_flight() > 0);
  const std::uint64_t index = oldest_++;
  Flight& flight = flights_[index % kRemembered];
  flight.finished = now;
  const double took = std::max(span(flight.submitted, now), 0.0);
  const double alone = cost_.at(flight.count);
  // Told in order, it ends no earlier than those before it, even if it did not wait for the engine.
  const double fair = std::max(alone, span(flight.submitted, fair_end_));
  fair_end_ = flight.submitted + static_cast<std::uint64_t>(fair);
  if (flight.others == 0 || !cost_.known() || took * kDelayed < alone) return learn(flight.count, took);
  // It began by the end of the one before it, so it cost no less than from there on.
  const std::uint64_t before = flights_[(index - 1) % kRemembered].finished;
  const double least = std::min(took, span(before, now));
  if (least > kDelayed * alone) return learn(flight.count, least);
  if (told_) return;

  // So much earlier than in an engine that takes no more than the others it was submitted, and given back.
  const std::uint64_t oldest_end = flights_[(index - flight.others) % kRemembered].finished;
  const double early = span(flight.submitted, oldest_end);
  const double gained = early + alone - took;
  const bool delayed = took > kDelayed * fair && gained < kGain * alone;
  if (flight.others >= depth_) {
    if (delayed) {
      starting_ = false;
      trial_gap_ = std::min(2 * trial_gap_ + 1, kLongestGap);
      until_trial_ = std::max(until_trial_, trial_gap_);
    } else if (2 * early * flight.others >= alone) {  // else there was nothing that would have delayed it
      raise(flight.others);
    }
  } else if (flight.others + 1 == depth_) {
    if (!delayed) {
      delays_ = 0;
    } else {
      least_delay_ = delays_ == 0 ? took / fair : std::min(least_delay_, took / fair);
      if (++delays_ == kDelays) lower();
    }
  }
}

void AdaptiveBatch::learn(double packets, double took) {
  cost_.add(packets, took);
  piece_ = packets_for(kPiece * cost_.fixed());
}

/// The thread asks once a turn. A turn of more than twice what they usually take is an accident, and counts as twice.
void AdaptiveBatch::learn_turn(std::uint64_t now) {
  const bool first = ++turns_ == 1;
  double& usual = first ? first_turn_ : second_turn_;
  const double took = span(first ? last_at_ : turn_at_, now);
  turn_at_ = now;
  usual = usual == 0 ? took : usual + (std::min(took, 2 * usual) - usual) * kTurnWeight;
  if (!first) rest_ = static_cast<std::uint64_t>(first_turn_ / (1 - std::min(second_turn_ / first_turn_, kBusiest)));
}

/// A batch beside `others`, at least `depth_`, was not delayed. Until the first delay it doubles, to be there soon.
void AdaptiveBatch::raise(std::uint32_t others) {
  trial_gap_ = 0;
  until_trial_ = 0;
  delays_ = 0;
  depth_ = std::min(starting_ ? 2 * depth_ : others + 1, most_);
}

/// With d batches in flight where there is place for k, each takes d / k of its time.
void AdaptiveBatch::lower() {
  starting_ = false;
  delays_ = 0;
  if (depth_ > 1) depth_ = std::clamp(static_cast<std::uint32_t>(std::lround(depth_ / least_delay_)), 1U, depth_ - 1);
}

}  // namespace warpline::batching
