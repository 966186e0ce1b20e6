// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstdint>
#include <string_view>

#include "base/counter.h"
#include "base/frame.h"
#include "base/result.h"
#include "base/units.h"
#include "handoff/ring_layout.h"

namespace warpline {

/// Work on one packet. Each lane of an engine has its own copy.
template <typename W>
concept PacketWork = std::copy_constructible<W> && requires(W work, FrameRef frame) {
  { work(frame) } -> std::same_as<Verdict>;
};

/// What one lane has done. The lane writes, any thread reads. Time is taken of one burst in kLaneSampling only.
struct alignas(kRingLine) LaneCounters {
  Counter bursts;
  Counter packets;
  Counter sampled_packets;  ///< packets of the bursts that were timed
  Counter sampled_ticks;    ///< from taking a burst to handing it on
};
inline constexpr std::uint64_t kLaneSampling = 64;

/// What stop() left undone.
struct EngineLeft {
  std::uint64_t bursts = 0;  ///< published, but not worked on: BurstRing::reclaim() has them
};

/// Works through the bursts of one ring with copies of one PacketWork, marking each frame with its verdict.
///
/// Life: constructed with the ring and the work; start(); then the ring's producer calls on_published() after each
/// publish(); when the producer has ended, stop() from any one thread; then the worker states may be looked at.
template <typename E>
concept Engine = requires(E engine, const E constant, Nanos timeout, std::uint32_t lane) {
  { engine.start() } -> std::same_as<Result<void>>;  // by who set it up
  { engine.on_published() } -> std::same_as<void>;   // by the producer's thread
  // Works on until all published bursts are complete or the timeout has passed, ends after the burst in hand.
  { engine.stop(timeout) } -> std::same_as<EngineLeft>;
  { constant.name() } -> std::same_as<std::string_view>;
  { constant.lanes() } -> std::same_as<std::uint32_t>;
  { constant.counters(lane) } -> std::same_as<const LaneCounters&>;  // any thread, any time
  constant.for_each_worker_state([](const auto&) {});                // after stop()
};

}  // namespace warpline
