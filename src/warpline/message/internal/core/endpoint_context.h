// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "warpline/base/units.h"
#include "warpline/message/config.h"
#include "warpline/message/counters.h"
#include "warpline/message/internal/parts/inner_clock.h"

namespace warpline::message {

/// What all parts of an endpoint go by: its configuration, the time of the call that it is in, its counters.
class EndpointContext {
 public:
  EndpointContext(const EndpointConfig& c, Nanos outer) : config(c), clock_(outer, c.max_clock_step) {}

  const EndpointConfig config;
  EndpointCounters counters;

  /// A call begins, at this time of the caller's clock.
  void enter(Nanos outer) {
    if (!clock_.update(outer)) counters.clock_jumps.add(1);
  }
  [[nodiscard]] Nanos now() const { return clock_.now(); }
  /// Returns the time of now() that is so long after it, in nanoseconds.
  [[nodiscard]] Nanos in(std::int64_t wait) const { return {now().value + wait}; }
  [[nodiscard]] Nanos in(Nanos wait) const { return in(wait.value); }
  [[nodiscard]] Nanos inner(Nanos outer) const { return clock_.inner(outer); }
  [[nodiscard]] Nanos outer(Nanos inner) const { return clock_.outer(inner); }

  void drop(MessageDrop reason) { counters.drops[static_cast<std::size_t>(reason)].add(1); }
  [[nodiscard]] bool is_protected() const { return config.protection != nullptr; }

 private:
  InnerClock clock_;
};

}  // namespace warpline::message
