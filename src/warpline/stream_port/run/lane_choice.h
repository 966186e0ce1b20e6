// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "warpline/base/kinds.h"
#include "warpline/base/result.h"
#include "warpline/base/units.h"
#include "warpline/handoff/lanes/host_lane.h"
#include "warpline/memory/pool_settings.h"
#include "warpline/stream/seeded_payload.h"
#include "warpline/stream_port/lane_setup.h"
#include "warpline/stream_port/payload/payload_setup.h"

namespace warpline::stream_port {

/// What takes the segments of connections that are received.
struct LaneChoice {
  EngineKind engine = EngineKind::inline_;                ///< inline: the queues' own threads; not graph
  memory::MemoryKind rings = memory::MemoryKind::device;  ///< of an engine on a GPU: pinned or device
  int gpu = 0;                                            ///< CUDA ordinal
  bool populate = false;                          ///< of the thread engine: take the memory of all rings at once
  bool queues = false;                            ///< it takes frames by itself: GPU-driven I/O
  std::vector<handoff::LanePlacement> threads{};  ///< of the thread engine: where that of each queue runs
};

/// Returns how a StreamPort makes such lanes. Errors: environment, if there is no such GPU.
[[nodiscard]] Result<LaneSetup> lane_setup(LaneChoice choice);

/// What puts payload into the frames of connections that are sent.
struct PayloadChoice {
  EngineKind engine = EngineKind::inline_;                ///< inline: the queues' own threads; thread; or launch
  memory::MemoryKind rings = memory::MemoryKind::device;  ///< of an engine on a GPU: pinned or device
  int gpu = 0;                                            ///< CUDA ordinal
  std::uint64_t window = 0;                               ///< bytes of a connection that are on their way, at most
  Nanos patience{5'000'000'000};                          ///< as of PayloadStage
  const stream::SeededPayload* bytes = nullptr;   ///< what an engine other than inline writes; outlives the port
  std::vector<handoff::LanePlacement> threads{};  ///< of the thread engine: where that of each queue runs
};

/// Returns how a SendPort fills frames. Errors: usage, without bytes for an engine other than inline; environment, if
/// there is no such GPU.
[[nodiscard]] Result<PayloadSetup> payload_setup(PayloadChoice choice);

}  // namespace warpline::stream_port
