// SPDX-License-Identifier: Apache-2.0
#include "warpline/service/streams/lane_choice.h"

#include <fmt/format.h>

#include <cstddef>
#include <functional>
#include <string>
#include <utility>

#include "warpline/gpu/device.h"
#include "warpline/stream/lanes/thread_lane.h"
#include "warpline/stream_port/gpu_lane.h"

namespace warpline::service {
namespace {

constexpr std::uint32_t kQueueSlots = 2048;

}  // namespace

Result<stream_port::LaneSetup> lane_setup(LaneChoice choice) {
  stream_port::LaneSetup lanes;
  if (choice.engine == EngineKind::inline_) return lanes;
  if (choice.queues) {
    lanes.burst = stream::LaneShape::kMostBurst;
    lanes.queue_slots = kQueueSlots;
  }
  if (runs_on_gpu(choice.engine)) {
    WARPLINE_TRY(const gpu::GpuFacts facts, gpu::find_gpu(choice.gpu));
    lanes.gpu = facts.ordinal;
    lanes.make = [choice = std::move(choice)](const stream::LaneShape& shape, std::uint16_t) {
      return stream_port::make_gpu_stream_lane(shape,
                                               {.engine = choice.engine, .gpu = choice.gpu, .rings = choice.rings});
    };
    return lanes;
  }
  lanes.make = [choice = std::move(choice)](const stream::LaneShape& shape, std::uint16_t queue) {
    const handoff::LanePlacement place =
        queue < choice.threads.size() ? choice.threads[queue] : handoff::LanePlacement{};
    const auto start = [name = fmt::format("lane {}", queue), cpu = place.cpu](std::function<void()> body) {
      return handoff::start_lane_thread(name, cpu, std::move(body));
    };
    return stream::make_thread_lane(shape, {.start = start, .yield = place.yield, .populate = choice.populate});
  };
  return lanes;
}

}  // namespace warpline::service
