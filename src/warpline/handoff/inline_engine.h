// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "warpline/handoff/burst_ring.h"
#include "warpline/handoff/engine.h"
#include "warpline/handoff/work_burst.h"

namespace warpline::handoff {

/// Works on each burst on the producer's own thread, as it is published.
template <PacketWork W>
class InlineEngine {
 public:
  InlineEngine(const BurstRing& ring, W work)
      : view_(ring.engine_view()), next_(view_.first_sequence), work_(std::move(work)) {}

  [[nodiscard]] Result<void> prepare() { return {}; }
  [[nodiscard]] Result<void> start() { return {}; }

  void on_published() {
    serve_burst(view_, next_, view_.take(next_), work_, counters_);
    ++next_;
  }

  /// The producer's thread, when no packet has come.
  void on_idle()
    requires WorkBetweenBursts<W>
  {
    work_.idle();
  }

  /// Nothing is ever left: a burst is complete when on_published() returns.
  EngineLeft stop(Nanos /*timeout*/) { return {}; }

  [[nodiscard]] std::string_view name() const { return "inline"; }
  [[nodiscard]] std::uint32_t lanes() const { return 1; }
  [[nodiscard]] std::uint32_t batches_at_once() const { return 1; }
  [[nodiscard]] const LaneCounters& counters(std::uint32_t /*lane*/) const { return counters_; }
  [[nodiscard]] std::optional<Error> failure() const { return std::nullopt; }
  template <typename F>
  void for_each_worker_state(F&& f) const {
    f(work_);
  }

 private:
  EngineView view_;
  std::uint64_t next_;
  W work_;
  LaneCounters counters_;
};

}  // namespace warpline::handoff
