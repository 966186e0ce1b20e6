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

/// What puts payload into the frames of `stream send`.
struct PayloadChoice {
  EngineKind engine = EngineKind::inline_;                ///< inline: the queues' own threads; thread; or launch
  memory::MemoryKind rings = memory::MemoryKind::device;  ///< of an engine on a GPU: pinned or device
  int gpu = 0;                                            ///< CUDA ordinal
  std::uint64_t window = 0;                               ///< bytes of a connection that are on their way, at most
  Nanos patience{5'000'000'000};                          ///< as of stream_port::PayloadStage
  std::vector<handoff::LanePlacement> threads{};          ///< of the thread engine: where that of each queue runs
};

/// Returns how a SendPort fills frames with bytes of `payload`, which outlives it. Errors: environment, if there is no
/// such GPU.
[[nodiscard]] Result<stream_port::PayloadSetup> payload_setup(PayloadChoice choice,
                                                              const stream::SeededPayload& payload);

}  // namespace warpline::service
