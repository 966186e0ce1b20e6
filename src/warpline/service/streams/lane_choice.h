// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "warpline/base/kinds.h"
#include "warpline/base/result.h"
#include "warpline/handoff/lanes/host_lane.h"
#include "warpline/memory/pool_settings.h"
#include "warpline/stream_port/lane_setup.h"

namespace warpline::service {

/// What takes the segments of `stream receive`.
struct LaneChoice {
  EngineKind engine = EngineKind::inline_;                ///< inline: the queues' own threads; not graph
  memory::MemoryKind rings = memory::MemoryKind::device;  ///< of an engine on a GPU: pinned or device
  int gpu = 0;                                            ///< CUDA ordinal
  bool populate = false;                          ///< of the thread engine: take the memory of all rings at once
  bool queues = false;                            ///< it takes frames by itself: GPU-driven I/O
  std::vector<handoff::LanePlacement> threads{};  ///< of the thread engine: where that of each queue runs
};

/// Returns how a StreamPort makes such lanes. Errors: environment, if there is no such GPU.
[[nodiscard]] Result<stream_port::LaneSetup> lane_setup(LaneChoice choice);

}  // namespace warpline::service
