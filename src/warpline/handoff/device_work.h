// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "warpline/handoff/engine.h"
#include "warpline/handoff/ring_layout.h"

namespace warpline::handoff {

/// LaneCounters as kernels keep and write them. What a burst costs on its lane is taken from the device's clock.
struct LaneWords {
  std::uint64_t bursts;
  std::uint64_t packets;
  std::uint64_t sampled_packets;
  std::uint64_t sampled_ticks;
};
static_assert(std::is_standard_layout_v<LaneCounters> && sizeof(Counter) == sizeof(std::uint64_t));
static_assert(offsetof(LaneCounters, packets) == offsetof(LaneWords, packets));
static_assert(offsetof(LaneCounters, sampled_packets) == offsetof(LaneWords, sampled_packets));
static_assert(offsetof(LaneCounters, sampled_ticks) == offsetof(LaneWords, sampled_ticks));

/// What a kernel of a GPU engine is given; passed by value.
struct DeviceLanes {
  EngineView view;
  LaneCounters* counters;  ///< one a lane, in memory that host and device see; kernels only write them
  LaneWords* kept;         ///< one a lane, in device memory: from one kernel to the next
  std::uint32_t* began;    ///< one a lane, in memory that host and device see: 1 once a persistent kernel's CTA runs
  double ticks_per_nano;   ///< of the host's time-stamp counter
  std::ptrdiff_t pull;     ///< bytes from where a burst's packets are to be to where they lie; 0: they are there
};

/// The kernels that do one PacketWork. Defined by WARPLINE_DEVICE_WORK(W) in one .cu file (handoff/device_work.cuh).
/// States are `lanes` x `threads` copies of the work in device memory, written only if kKeepsState<W>.
template <PacketWork W>
struct DeviceWork {
  /// (DeviceLanes, W prototype, W* states): stays until told to stop. CTA i of C is lane i of C.
  [[nodiscard]] static const void* persistent_kernel();
  /// (DeviceLanes, W prototype, W* states, std::uint64_t* next): each CTA takes the next sequence of the counter in
  /// device memory, which must be published, and ends. The slot of the ring is the lane.
  [[nodiscard]] static const void* next_kernel();
};

}  // namespace warpline::handoff
