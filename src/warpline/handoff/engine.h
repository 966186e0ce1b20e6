// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string_view>

#include "warpline/base/frame.h"
#include "warpline/base/result.h"
#include "warpline/base/statistics/counter.h"
#include "warpline/base/statistics/turn_count.h"
#include "warpline/base/units.h"
#include "warpline/handoff/ring_layout.h"

namespace warpline::handoff {

/// Work on one packet. Each lane of an engine has its own copy.
template <typename W>
concept PacketWork = std::copy_constructible<W> && requires(W work, FrameRef frame) {
  { work(frame) } -> std::same_as<Verdict>;
};

/// Work that has something to do while there are no packets, such as what a time limit asks for. Engines on host
/// threads call idle() again and again then, by the thread that does the work.
template <typename W>
concept WorkBetweenBursts = requires(W work) { work.idle(); };

/// Whether a copy of the work is worth keeping from burst to burst: it counts something. Works that do not say
/// `static constexpr bool kStateless = true;` are taken to.
template <PacketWork W>
inline constexpr bool kKeepsState = true;
template <PacketWork W>
  requires W::kStateless
inline constexpr bool kKeepsState<W> = false;

/// What one lane has done. The lane writes, any thread reads. Time is taken of one burst in kLaneSampling only.
struct alignas(kRingLine) LaneCounters {
  Counter bursts;
  Counter packets;          ///< those that the work was called with
  Counter sampled_packets;  ///< packets of the bursts that were timed
  Counter sampled_ticks;    ///< from taking a burst to handing it on, of the host's time-stamp counter
  TurnCount turns;          ///< of the lane's thread, where it has one
};
inline constexpr std::uint64_t kLaneSampling = 64;

/// What stop() left undone.
struct EngineLeft {
  std::uint64_t bursts = 0;  ///< published, but not done: BurstRing::reclaim() has them
};

/// Works through the bursts of one ring with copies of one PacketWork, marking each frame with its verdict.
///
/// Life: constructed with the ring and the work; prepare(); start(); then the ring's producer calls on_published()
/// after each publish(); when the producer has ended, stop() from any one thread; then the worker states may be looked
/// at. All engines of a process prepare before the first of them starts: what a GPU engine takes from CUDA may wait for
/// every kernel on the GPU. An engine that runs beside no other may leave prepare() to start().
template <typename E>
concept Engine = requires(E engine, const E constant, Nanos timeout, std::uint32_t lane) {
  { engine.prepare() } -> std::same_as<Result<void>>;  // by who set it up: takes memory and what else it needs
  { engine.start() } -> std::same_as<Result<void>>;    // by the same thread: begins to work
  { engine.on_published() } -> std::same_as<void>;     // by the producer's thread
  // Works on until all published bursts are complete or the timeout has passed, ends after the burst in hand.
  { engine.stop(timeout) } -> std::same_as<EngineLeft>;
  { constant.name() } -> std::same_as<std::string_view>;
  { constant.lanes() } -> std::same_as<std::uint32_t>;               // who count
  { constant.batches_at_once() } -> std::same_as<std::uint32_t>;     // side by side; 1: or it is not known
  { constant.counters(lane) } -> std::same_as<const LaneCounters&>;  // any thread, any time
  { constant.failure() } -> std::same_as<std::optional<Error>>;      // any thread: why it works no more
  constant.for_each_worker_state([](const auto&) {});                // after stop()
};

}  // namespace warpline::handoff
