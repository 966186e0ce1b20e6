// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

#include "warpline/handoff/gpu_engine.h"
#include "warpline/ingest/ingest_stages.h"

namespace warpline::ingest {

/// Makes the engine on a GPU that a path's settings and parts want.
[[nodiscard]] inline handoff::GpuEngineSetup gpu_consumer_setup(const forward::StageParts& parts,
                                                                const IngestParts& made) {
  handoff::GpuEngineSetup setup = forward::gpu_engine_setup(parts);
  // Several threads share a frame.
  setup.burst = std::max(setup.burst, static_cast<std::uint16_t>(setup.threads));
  if (made.slots != nullptr) {
    setup.ready = made.slots->ready_words();
    setup.pull = made.slots->pull();
  }
  return setup;
}

/// Does what consume_on_host() does, or the same on a GPU, for a consumer whose kernels some .cu file defines by
/// WARPLINE_DEVICE_WORK (handoff/device_work.cuh).
template <Consumer Work>
[[nodiscard]] Result<std::unique_ptr<IngestStages>> consume_anywhere(const forward::StageParts& parts,
                                                                     const IngestSettings& settings, const Work& work) {
  if (!runs_on_gpu(parts.settings.forward.engine)) return consume_on_host(parts, settings, work);
  WARPLINE_TRY(IngestParts made, make_ingest_parts(parts, settings));
  handoff::GpuEngineSetup setup = gpu_consumer_setup(parts, made);
  return make_consuming<handoff::GpuEngine<Work>>(std::move(made), work, std::move(setup));
}

}  // namespace warpline::ingest
