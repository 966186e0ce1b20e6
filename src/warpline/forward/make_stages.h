// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "warpline/base/result.h"
#include "warpline/datapath/forward_settings.h"
#include "warpline/datapath/layout.h"
#include "warpline/datapath/path_stages.h"
#include "warpline/datapath/queue_path.h"
#include "warpline/datapath/queues/queue_stages.h"
#include "warpline/handoff/gpu_attendant.h"
#include "warpline/handoff/queues/thread_queue_engine.h"
#include "warpline/queues/packet_queues.h"
#include "warpline/workload/frame_limits.h"
#include "warpline/workload/workload.h"

namespace warpline::forward {

/// What the stages of one path are made from.
struct StageParts {
  const datapath::DatapathSettings& settings;  ///< of the run
  const datapath::ForwardLayout& layout;       ///< outlives the stages
  std::uint16_t index;                         ///< of the path, in layout.paths
  datapath::QueuePath& path;                   ///< where the packets come from and go to; outlives the stages
  datapath::PacketBudget& budget;              ///< packets that all paths may receive together; outlives the stages
  std::uint16_t mtu;                           ///< of the port that the path receives from
  std::vector<handoff::LanePlacement> lanes;   ///< of the engine's host threads
};

/// Makes the stages of one path.
using StageMaker = std::function<Result<std::unique_ptr<datapath::PathStages>>(const StageParts& parts)>;

/// How long a packet waits for its batch to fill where the settings do not say, if anything is won by waiting.
inline constexpr Nanos kDefaultDeadline{20'000};

/// A GPU engine for the path, as its settings say.
[[nodiscard]] inline handoff::GpuEngineSetup gpu_engine_setup(const StageParts& parts) {
  const datapath::ForwardSettings& forward = parts.settings.forward;
  return {.kind = forward.engine,
          .gpu = forward.gpu_of(parts.layout.paths[parts.index].queue),
          .ctas = forward.ctas,
          .burst = forward.burst,
          .deadline = forward.deadline.value_or(kDefaultDeadline),
          .watchdog = forward.watchdog,
          .failover = forward.on_gpu_failure == datapath::GpuFailure::failover,
          .attendant = parts.lanes.empty() ? handoff::LanePlacement{} : parts.lanes.front(),
          .name = fmt::format("engine{}", parts.index)};
}

/// The burst ring between the stages of a path.
[[nodiscard]] inline Result<std::unique_ptr<handoff::BurstRing>> make_ring(const StageParts& parts) {
  const std::uint16_t burst = parts.settings.forward.burst;
  return handoff::BurstRing::create({.slots = parts.settings.forward.ring_slots,
                                     .packets = burst,
                                     .segments = static_cast<std::uint16_t>(burst * kMaxSegments)});
}

/// The queues between the proxy of a path and what consumes them. Pools are made for most_held() packets.
[[nodiscard]] inline Result<std::unique_ptr<queues::PacketQueues>> make_queues(const StageParts& parts) {
  const std::uint32_t most = parts.settings.forward.most_held();
  return queues::PacketQueues::create({.slots = std::bit_ceil(std::max<std::uint32_t>(most, kMaxSegments))});
}

/// The stages of a path with GPU-driven I/O, whose consumer is an engine of type `E`.
template <typename E, handoff::PacketWork Work, typename... EngineArguments>
[[nodiscard]] Result<std::unique_ptr<datapath::PathStages>> make_queue_stages(const StageParts& parts, const Work& work,
                                                                              EngineArguments&&... arguments) {
  WARPLINE_TRY(auto queues, make_queues(parts));
  return {std::make_unique<datapath::QueueStages<E, Work>>(parts.path, parts.budget, std::move(queues),
                                                           parts.settings.forward.most_held(), work,
                                                           std::forward<EngineArguments>(arguments)...)};
}

/// The stages of a path whose work the CPU does: on the receiving lcore, or on threads beside it.
template <handoff::PacketWork Work>
[[nodiscard]] Result<std::unique_ptr<datapath::PathStages>> make_host_stages(const StageParts& parts,
                                                                             const Work& work) {
  const EngineKind engine = parts.settings.forward.engine;
  if (runs_on_gpu(engine)) {
    return usage_error(fmt::format("the {} engine", name(engine)), "this work was compiled for the CPU alone",
                       "use the engine inline or thread");
  }
  if (parts.settings.forward.io == ProcessorKind::gpu) {
    if (engine != EngineKind::thread || parts.lanes.size() != 1) {
      return usage_error(fmt::format("GPU-driven I/O with {} lanes of the {} engine", parts.lanes.size(), name(engine)),
                         "one consumer takes what is in a pair of queues", "use one lane of thread or persistent");
    }
    return make_queue_stages<handoff::ThreadQueueEngine<Work>>(
        parts, work, parts.settings.forward.burst, parts.lanes.front(), fmt::format("engine{}", parts.index));
  }
  if (parts.layout.model == datapath::ModelKind::run_to_completion && engine == EngineKind::inline_) {
    return {std::make_unique<datapath::DirectStages<Work>>(parts.path, parts.budget, work)};
  }
  WARPLINE_TRY(auto ring, make_ring(parts));
  if (engine == EngineKind::inline_) {
    return {std::make_unique<datapath::RingStages<handoff::InlineEngine<Work>, Work>>(parts.path, parts.budget,
                                                                                      std::move(ring), work)};
  }
  return {std::make_unique<datapath::RingStages<handoff::ThreadEngine<Work>, Work>>(
      parts.path, parts.budget, std::move(ring), work, parts.lanes, fmt::format("engine{}", parts.index))};
}

/// For Forwarder::create(): every frame that is no longer than its port's MTU is given to a copy of `work`; longer ones
/// are dropped as giants. An engine that is not of the CPU is a usage error.
template <workload::Workload Work>
[[nodiscard]] StageMaker stages_with(Work work) {
  return [work](const StageParts& parts) { return make_host_stages(parts, workload::FrameLimits(work, parts.mtu)); };
}

}  // namespace warpline::forward
