// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>

#include "warpline/base/result.h"
#include "warpline/base/units.h"
#include "warpline/handoff/engine.h"

namespace warpline::handoff {

/// `QueueEngine` is what consumes a queue pair by copies of one PacketWork. Its life is that of an Engine: prepare(),
/// start(), then stop() from any one thread when the poster has ended.
template <typename E>
concept QueueEngine = requires(E engine, const E constant, Nanos timeout, std::uint32_t lane) {
  { engine.prepare() } -> std::same_as<Result<void>>;
  { engine.start() } -> std::same_as<Result<void>>;
  // Works on until all that was posted is released or the timeout has passed, ends after the frames in hand.
  { engine.stop(timeout) } -> std::same_as<void>;
  { constant.lanes() } -> std::same_as<std::uint32_t>;
  { constant.counters(lane) } -> std::same_as<const LaneCounters&>;
  { constant.failure() } -> std::same_as<std::optional<Error>>;
  constant.for_each_worker_state([](const auto&) {});  // after stop()
};

}  // namespace warpline::handoff
