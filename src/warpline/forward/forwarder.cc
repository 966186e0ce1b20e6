// SPDX-License-Identifier: Apache-2.0
#include "warpline/forward/forwarder.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include <rte_ethdev.h>

#include "warpline/base/time/clock.h"
#include "warpline/datapath/recycle_plan.h"
#include "warpline/gpu/cuda_error.h"
#include "warpline/handoff/gpu_engine.h"
#include "warpline/handoff/queues/gpu_queue_engine.h"
#include "warpline/runtime/setup_step.h"
#include "warpline/workload/with_workload.h"

namespace warpline::forward {
namespace {

constexpr Nanos kAdaptiveDeadline{100'000};  // a packet waits so long only if the engine is behind

std::unique_ptr<datapath::QueuePath> make_path(const datapath::DatapathSettings& settings,
                                               const datapath::ForwardLayout& layout, const datapath::PathRoute& route,
                                               const std::vector<ForwardPort>& ports) {
  auto path = std::make_unique<datapath::QueuePath>();
  const ForwardPort& rx = ports[route.rx_port];
  path->rx = {rx.id, route.queue};
  path->tx = {ports[route.tx_port].id, route.queue};
  path->tx_limits = port::send_limits(path->tx.port);
  path->reply = {rx.id, layout.reply_queue(settings, route)};
  path->burst = settings.forward.burst;
  if (settings.forward.adaptive_burst && route.rx_port < settings.ports.size()) {
    path->burst = std::min(path->burst, settings.ports[route.rx_port].rx_ring);
  }
  const bool waits = layout.model == datapath::ModelKind::pipeline || settings.forward.engine != EngineKind::inline_;
  const bool adapts = settings.forward.adaptive_burst;
  const Nanos automatic = adapts ? kAdaptiveDeadline : kDefaultDeadline;
  path->deadline_ticks = nanos_to_ticks(settings.forward.deadline.value_or(waits ? automatic : Nanos{0}));
  path->adapts = adapts;
  if (adapts) path->most_held = settings.forward.most_held();
  path->tx_retries = settings.forward.tx_retries;
  // Packets that nobody looks at cost two cycles each to be weighed; most devices do it anyway, some (gve) tell
  // nothing.
  const auto does_not_count = [](const ForwardPort& port) {
    rte_eth_stats stats;
    return rte_eth_stats_get(port.id, &stats) != 0;
  };
  path->counts_bytes = settings.forward.loopback ||
                       workload::traits_of(settings.forward.workload).access != workload::FrameAccess::nothing ||
                       std::ranges::any_of(ports, does_not_count) ||
                       std::ranges::any_of(ports, [](const ForwardPort& port) { return port.address.has_value(); });
  if (rx.address) {
    // A query that is to leave by another port is for the hosts there, too: the watch has it answered.
    path->responder.emplace(
        rx.mac, *rx.address,
        packet::ResponderSettings{.queries = route.rx_port == route.tx_port, .reporter = {}, .watch = rx.watch});
  }
  return path;
}

/// The places that the plan gives to the lanes of `path`'s engine.
std::vector<handoff::LanePlacement> lane_placements(const datapath::ForwardLayout& layout,
                                                    const runtime::LcorePlan& plan, std::uint16_t path) {
  std::vector<handoff::LanePlacement> lanes;
  for (std::size_t i = 0; i < layout.roles.size(); ++i) {
    const datapath::Role& role = layout.roles[i];
    if (role.kind != datapath::RoleKind::engine || role.paths.front() != path) continue;
    lanes.push_back({static_cast<unsigned>(plan.workers[i].cpu.id), plan.workers[i].gives_way});
  }
  return lanes;
}

/// The stages of one of the built-in workloads, with any engine.
template <handoff::PacketWork Work>
Result<std::unique_ptr<datapath::PathStages>> make_stages(const StageParts& parts, const Work& work) {
  const EngineKind engine = parts.settings.forward.engine;
  if (!runs_on_gpu(engine)) return make_host_stages(parts, work);
#if WARPLINE_DEVICE_CODE
  if (parts.settings.forward.io == ProcessorKind::gpu) {
    handoff::GpuEngineSetup setup = gpu_engine_setup(parts);
    setup.threads = handoff::kQueueThreads;
    return make_queue_stages<handoff::GpuQueueEngine<Work>>(parts, work, std::move(setup));
  }
  WARPLINE_TRY(auto ring, make_ring(parts));
  return {std::make_unique<datapath::RingStages<handoff::GpuEngine<Work>, Work>>(
      parts.path, parts.budget, std::move(ring), work, gpu_engine_setup(parts))};
#else
  return gpu::built_without_cuda(fmt::format("the {} engine", name(engine)));
#endif
}

Result<std::unique_ptr<datapath::PathStages>> make_built_in_stages(const StageParts& parts) {
  const datapath::ForwardSettings& forward = parts.settings.forward;
  return workload::with_workload(forward.workload, forward.packet_time, parts.mtu,
                                 [&parts](const auto& work) { return make_stages(parts, work); });
}

}  // namespace

Forwarder::Forwarder(const datapath::DatapathSettings& settings, const datapath::ForwardLayout& layout,
                     const runtime::LcorePlan& plan)
    : layout_(layout),
      plan_(plan),
      budget_(settings.forward.loopback ? 0 : settings.packets),
      turns_(layout.roles.size()) {}

Result<std::unique_ptr<Forwarder>> Forwarder::create(const datapath::DatapathSettings& settings,
                                                     const datapath::ForwardLayout& layout,
                                                     const runtime::LcorePlan& plan,
                                                     const std::vector<ForwardPort>& ports,
                                                     const StageMaker& make_stages) {
  const runtime::SetupStep step("making the engines");
  std::unique_ptr<Forwarder> forwarder(new Forwarder(settings, layout, plan));
  for (std::uint16_t i = 0; i < layout.paths.size(); ++i) {
    const datapath::PathRoute& route = layout.paths[i];
    forwarder->paths_.push_back(make_path(settings, layout, route, ports));
    datapath::QueuePath& path = *forwarder->paths_.back();
    const StageParts parts{
        settings, layout, i, path, forwarder->budget_, ports[route.rx_port].mtu, lane_placements(layout, plan, i)};
    WARPLINE_TRY(auto stages, make_stages ? make_stages(parts) : make_built_in_stages(parts));
    forwarder->stages_.push_back(std::move(stages));
  }
  for (std::size_t i = 0; i < layout.roles.size(); ++i) {
    if (layout.roles[i].kind == datapath::RoleKind::engine || layout.roles[i].kind == datapath::RoleKind::far_side)
      continue;
    for (const std::uint16_t path : layout.roles[i].paths) {
      forwarder->paths_[path]->yields |= plan.workers[i].gives_way;
    }
  }
  return forwarder;
}

void Forwarder::recycle_with(const memory::Recycling& recycling) {
  recycling_ = &recycling;
  datapath::give_recyclers(recycling, layout_, paths_);
}

std::optional<std::uint64_t> Forwarder::recycled() const {
  return recycling_ != nullptr ? recycling_->recycled() : std::nullopt;
}

Result<void> Forwarder::prepare() {
  const runtime::SetupStep step("preparing the engines");
  for (const auto& stages : stages_) WARPLINE_CHECK(stages->prepare());
  return {};
}

Result<void> Forwarder::start() {
  const runtime::SetupStep step("starting the engines");
  for (const auto& stages : stages_) WARPLINE_CHECK(stages->start());
  for (std::size_t role = 0; role < turns_.size(); ++role) {
    if (!stages_of(role).empty()) turns_[role].count.begin();
  }
  return {};
}

std::optional<Error> Forwarder::failure() const {
  for (const auto& stages : stages_) {
    if (std::optional<Error> error = stages->failure()) return error;
  }
  return std::nullopt;
}

std::vector<datapath::Stage*> Forwarder::stages_of(std::size_t role) const {
  const auto [kind, paths, lane] = layout_.roles[role];
  std::vector<datapath::Stage*> stages;
  for (const std::uint16_t path : paths) {
    if (kind == datapath::RoleKind::run_to_completion || kind == datapath::RoleKind::receive)
      stages.push_back(stages_[path]->receiving());
    datapath::Stage* transmitting = stages_[path]->transmitting();
    if (kind == datapath::RoleKind::transmit ||
        (kind == datapath::RoleKind::run_to_completion && transmitting != nullptr)) {
      stages.push_back(transmitting);
    }
  }
  return stages;
}

void Forwarder::run(std::size_t role) {
  const std::vector<datapath::Stage*> stages = stages_of(role);
  if (!stages.empty()) datapath::run_stages(stages, control_, plan_.workers[role].gives_way, turns_[role].count);
}

Forwarder::~Forwarder() { finish(); }

void Forwarder::finish() {
  const runtime::SetupStep step("stopping the engines", runtime::SetupStep::Of::clean_up);
  for (const auto& stages : stages_) stages->finish();
}

std::vector<const TurnCount*> Forwarder::turns() const {
  std::vector<const TurnCount*> all;
  for (const RoleTurns& role : turns_) all.push_back(&role.count);
  for (const auto& stages : stages_) {
    std::ranges::copy(stages->turns(), std::back_inserter(all));
  }
  return all;
}

std::uint64_t Forwarder::received() const {
  std::uint64_t packets = 0;
  for (const auto& path : paths_) packets += path->received.packets.get();
  return packets;
}

}  // namespace warpline::forward
