// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "warpline/base/units.h"
#include "warpline/message/config.h"
#include "warpline/message/counters.h"
#include "warpline/message/internal/parts/inner_clock.h"

namespace warpline::message {

/// What all parts of an endpoint go by: its configuration, the time of the call that it is in, its counters.
///
/// A peer's silence counts only while somebody listens: attended() is the time less that in which the endpoint's owner
/// was away, stopped or without a processor.
class EndpointContext {
 public:
  EndpointContext(const EndpointConfig& c, Nanos outer) : config(c), clock_(outer, c.max_clock_step) {}

  const EndpointConfig config;
  EndpointCounters counters;

  /// A call begins, at this time of the caller's clock. False: it jumped, and nobody was away for that.
  bool enter(Nanos outer) {
    const Nanos before = now();
    if (clock_.update(outer)) return true;
    counters.clock_jumps.add(1);
    away_ += now().value - before.value;
    steady_since_ = now();
    return false;
  }
  [[nodiscard]] Nanos now() const { return clock_.now(); }
  /// When the datagram arrived that is being received.
  [[nodiscard]] Nanos arrival() const { return arrival_; }
  /// A datagram is received that arrived at this time of the caller's clock; kNever: now.
  void set_arrival(Nanos outer) { arrival_ = outer == kNever ? now() : std::min(inner(outer), now()); }

  /// The clock has not jumped since this time of now(): no time is measured from before it.
  [[nodiscard]] Nanos steady_since() const { return steady_since_; }

  [[nodiscard]] Nanos attended() const { return {now().value - away_}; }
  /// The time of now() at which attended() will be `attended`, if the owner stays.
  [[nodiscard]] Nanos when_attended(Nanos attended) const { return {attended.value + away_}; }
  /// The owner called last at `before`, and is `late` nanoseconds late. Who is as late all the time is slow, not away.
  void note_late(Nanos before, std::int64_t late) {
    if (late <= kUnnoticed) return;
    if ((before.value - here_since_.value) * kMostlyHere >= late) away_ += late;
    here_since_ = now();
  }

  /// Returns the time of now() that is so long after it, in nanoseconds.
  [[nodiscard]] Nanos in(std::int64_t wait) const { return {now().value + wait}; }
  [[nodiscard]] Nanos in(Nanos wait) const { return in(wait.value); }
  [[nodiscard]] Nanos inner(Nanos outer) const { return clock_.inner(outer); }
  [[nodiscard]] Nanos outer(Nanos inner) const { return clock_.outer(inner); }

  void drop(MessageDrop reason) { counters.drops[static_cast<std::size_t>(reason)].add(1); }
  [[nodiscard]] bool is_protected() const { return config.protection != nullptr; }

  bool draining = false;
  Nanos drain_until = kNever;  ///< then sessions that peers opened are closed

  /// So late one may be without having been away.
  static constexpr std::int64_t kUnnoticed = 1'000'000;

 private:
  /// An absence is one if it lasted at most so many times as long as the presence before it.
  static constexpr std::int64_t kMostlyHere = 16;

  InnerClock clock_;
  Nanos arrival_;
  Nanos here_since_;
  Nanos steady_since_;
  std::int64_t away_ = 0;  ///< nanoseconds in all
};

}  // namespace warpline::message
