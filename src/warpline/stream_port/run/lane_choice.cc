// SPDX-License-Identifier: Apache-2.0
#include "warpline/stream_port/run/lane_choice.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <functional>
#include <string>
#include <utility>

#include "warpline/gpu/device.h"
#include "warpline/stream/lanes/thread_lane.h"
#include "warpline/stream/payload/thread_payload_lane.h"
#include "warpline/stream_port/gpu_lane.h"
#include "warpline/stream_port/payload/gpu_payload_lane.h"

namespace warpline::stream_port {
namespace {

constexpr std::uint32_t kQueueSlots = 2048;

/// Starts the thread of a lane where that queue's is to run.
stream::ThreadLaneSetup on_thread(const std::vector<handoff::LanePlacement>& threads, std::uint16_t queue,
                                  bool populate) {
  const handoff::LanePlacement place = queue < threads.size() ? threads[queue] : handoff::LanePlacement{};
  const auto start = [name = fmt::format("lane {}", queue), cpu = place.cpu](std::function<void()> body) {
    return handoff::start_lane_thread(name, cpu, std::move(body));
  };
  return {.start = start, .yield = place.yield, .populate = populate};
}

}  // namespace

Result<LaneSetup> lane_setup(LaneChoice choice) {
  LaneSetup lanes;
  if (choice.engine == EngineKind::inline_) return lanes;
  if (choice.queues) {
    lanes.burst = stream::LaneShape::kMostBurst;
    lanes.queue_slots = kQueueSlots;
  }
  if (runs_on_gpu(choice.engine)) {
    WARPLINE_TRY(const gpu::GpuFacts facts, gpu::find_gpu(choice.gpu));
    lanes.gpu = facts.ordinal;
    lanes.make = [choice = std::move(choice)](const stream::LaneShape& shape, std::uint16_t) {
      return make_gpu_stream_lane(shape, {.engine = choice.engine, .gpu = choice.gpu, .rings = choice.rings});
    };
    return lanes;
  }
  lanes.make = [choice = std::move(choice)](const stream::LaneShape& shape, std::uint16_t queue) {
    return stream::make_thread_lane(shape, on_thread(choice.threads, queue, choice.populate));
  };
  return lanes;
}

Result<PayloadSetup> payload_setup(PayloadChoice choice) {
  constexpr std::uint64_t kLeastRing = 2 << 20;  // a GPU's page
  PayloadSetup setup;
  if (choice.engine == EngineKind::inline_) return setup;
  if (choice.bytes == nullptr) {
    return usage_error(fmt::format("payload by the engine {}", name(choice.engine)), "it has no bytes to write",
                       "set PayloadChoice::bytes");
  }
  setup.ring_bytes = std::bit_ceil(std::max(2 * choice.window, kLeastRing));
  setup.patience = choice.patience;
  if (runs_on_gpu(choice.engine)) {
    WARPLINE_TRY(const gpu::GpuFacts facts, gpu::find_gpu(choice.gpu));
    setup.gpu = facts.ordinal;
    setup.make = [gpu = choice.gpu, rings = choice.rings, bytes = choice.bytes](const stream::PayloadShape& shape,
                                                                                std::uint16_t) {
      return make_gpu_payload_lane(shape, *bytes, gpu, rings);
    };
    return setup;
  }
  setup.make = [threads = std::move(choice.threads), bytes = choice.bytes](const stream::PayloadShape& shape,
                                                                           std::uint16_t queue) {
    return stream::make_thread_payload_lane(shape, *bytes, on_thread(threads, queue, false));
  };
  return setup;
}

}  // namespace warpline::stream_port
