// SPDX-License-Identifier: Apache-2.0
#include "warpline/handoff/gpu_engine.h"
#include "warpline/handoff/lanes/copy_pieces.h"
#include "warpline/handoff/lanes/engine_lane.h"
#include "warpline/handoff/lanes/gpu_lane.h"
#include "warpline/handoff/lanes/hash_pieces.h"

namespace warpline::handoff {
namespace {

/// Each CTA has a batch in hand; of copies each warp a piece, of hashes each thread.
constexpr std::uint32_t kCtas = 8;

template <typename Work>
Result<std::unique_ptr<PieceLane>> make(int gpu, const char* name) {
  return EngineLane<GpuEngine<Work>>::create([&](BurstRing& ring) {
    return std::make_unique<GpuEngine<Work>>(
        ring, Work{},
        GpuEngineSetup{.gpu = gpu, .ctas = kCtas, .burst = kCopyThreads, .threads = kCopyThreads, .name = name});
  });
}

}  // namespace

Result<std::unique_ptr<PieceLane>> make_gpu_lane(GpuLaneWork work, int gpu) {
  return work == GpuLaneWork::copy ? make<CopyPieces>(gpu, "copies") : make<HashPieces>(gpu, "hashes");
}

}  // namespace warpline::handoff
