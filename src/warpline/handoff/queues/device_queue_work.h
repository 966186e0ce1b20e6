// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "warpline/handoff/device_work.h"
#include "warpline/queues/queue_layout.h"

namespace warpline::handoff {

/// Threads of the CTA that consumes a queue pair at most, and so the slots that it takes at a time.
inline constexpr unsigned kQueueThreads = 512;

/// What the kernel that consumes a queue pair is given; passed by value.
struct DeviceQueues {
  queues::QueuePairView queues;
  LaneCounters* counters;  ///< in memory that host and device see; the kernel only writes them
  std::uint32_t* began;    ///< in memory that host and device see: 1 once the kernel runs
  double ticks_per_nano;   ///< of the host's time-stamp counter
};

/// The kernel that does one PacketWork for a queue pair: one CTA of up to kQueueThreads. Defined by
/// WARPLINE_DEVICE_QUEUE_WORK(W) in one .cu file (handoff/queues/queue_work.cuh).
template <PacketWork W>
struct DeviceQueueWork {
  /// (DeviceQueues, W prototype, W* states): stays until told to stop. States are a copy of the work a thread in device
  /// memory, written only if kKeepsState<W>.
  [[nodiscard]] static const void* kernel();
};

}  // namespace warpline::handoff
