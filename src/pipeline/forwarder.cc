// SPDX-License-Identifier: Apache-2.0
#include "pipeline/forwarder.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/clock.h"
#include "gpu/cuda_error.h"
#include "handoff/gpu_engine.h"
#include "pipeline/recycle_plan.h"
#include "runtime/setup_step.h"
#include "workload/workload.h"

namespace warpline {
namespace {

constexpr Nanos kDefaultDeadline{20'000};

std::unique_ptr<Stream> make_stream(const Config& config, const ForwardLayout& layout, const StreamRoute& route,
                                    const std::vector<ForwardPort>& ports) {
  auto stream = std::make_unique<Stream>();
  const ForwardPort& rx = ports[route.rx_port];
  const auto reply_queue =
      static_cast<std::uint16_t>(route.rx_port == route.tx_port ? route.queue : config.forward.pipelines + route.queue);
  stream->rx = {rx.id, route.queue};
  stream->tx = {ports[route.tx_port].id, route.queue};
  stream->reply = {rx.id, reply_queue};
  stream->burst = config.forward.burst;
  const bool waits = layout.model == ModelKind::pipeline || config.forward.engine != EngineKind::inline_;
  stream->deadline_ticks = nanos_to_ticks(config.forward.deadline.value_or(waits ? kDefaultDeadline : Nanos{0}));
  stream->tx_retries = config.forward.tx_retries;
  // Packets that nobody looks at cost two cycles each to be weighed; most devices do it anyway.
  stream->counts_bytes = config.forward.loopback || config.forward.workload != WorkloadKind::none ||
                         std::ranges::any_of(ports, [](const ForwardPort& port) { return port.address.has_value(); });
  if (rx.address) stream->responder.emplace(rx.mac, *rx.address);
  return stream;
}

/// The places that the plan gives to the lanes of `stream`'s engine.
std::vector<LanePlacement> lane_placements(const ForwardLayout& layout, const LcorePlan& plan, std::uint16_t stream) {
  std::vector<LanePlacement> lanes;
  for (std::size_t i = 0; i < layout.roles.size(); ++i) {
    const Role& role = layout.roles[i];
    if (role.kind != RoleKind::engine || role.streams.front() != stream) continue;
    lanes.push_back({static_cast<unsigned>(plan.workers[i].cpu.id), plan.workers[i].gives_way});
  }
  return lanes;
}

/// What the way of one stream is made from.
struct WayParts {
  const Config& config;
  const ForwardLayout& layout;
  std::uint16_t index;
  Stream& stream;
  PacketBudget& budget;
  std::vector<LanePlacement> lanes;  ///< of the engine's host threads
};

[[maybe_unused]] GpuEngineSetup gpu_setup(const WayParts& parts) {
  const ForwardConfig& forward = parts.config.forward;
  return {.kind = forward.engine,
          .gpu = forward.gpu_of(parts.layout.streams[parts.index].queue),
          .ctas = forward.ctas,
          .burst = forward.burst,
          .deadline = forward.deadline.value_or(kDefaultDeadline),
          .watchdog = forward.watchdog,
          .failover = forward.on_gpu_failure == GpuFailure::failover,
          .attendant = parts.lanes.empty() ? LanePlacement{} : parts.lanes.front(),
          .name = fmt::format("engine{}", parts.index)};
}

template <PacketWork Work>
Result<std::unique_ptr<StreamWay>> make_way(const WayParts& parts, const Work& work) {
  const EngineKind engine = parts.config.forward.engine;
  if (parts.layout.model == ModelKind::run_to_completion && engine == EngineKind::inline_) {
    return {std::make_unique<DirectWay<Work>>(parts.stream, parts.budget, work)};
  }
  const std::uint16_t burst = parts.config.forward.burst;
  WARPLINE_TRY(auto ring, BurstRing::create({.slots = parts.config.forward.ring_slots,
                                             .packets = burst,
                                             .segments = static_cast<std::uint16_t>(burst * kMaxSegments)}));
  if (engine == EngineKind::inline_) {
    return {std::make_unique<RingWay<InlineEngine<Work>, Work>>(parts.stream, parts.budget, std::move(ring), work)};
  }
  if (engine == EngineKind::thread) {
    return {std::make_unique<RingWay<ThreadEngine<Work>, Work>>(parts.stream, parts.budget, std::move(ring), work,
                                                                parts.lanes, fmt::format("engine{}", parts.index))};
  }
#if WARPLINE_DEVICE_CODE
  return {std::make_unique<RingWay<GpuEngine<Work>, Work>>(parts.stream, parts.budget, std::move(ring), work,
                                                           gpu_setup(parts))};
#else
  return built_without_cuda(fmt::format("the {} engine", name(engine)));
#endif
}

}  // namespace

Forwarder::Forwarder(const Config& config, const ForwardLayout& layout, const LcorePlan& plan)
    : layout_(layout), plan_(plan), budget_(config.forward.loopback ? 0 : config.run.packets) {}

Result<std::unique_ptr<Forwarder>> Forwarder::create(const Config& config, const ForwardLayout& layout,
                                                     const LcorePlan& plan, const std::vector<ForwardPort>& ports) {
  const SetupStep step("making the engines");
  std::unique_ptr<Forwarder> forwarder(new Forwarder(config, layout, plan));
  for (std::uint16_t i = 0; i < layout.streams.size(); ++i) {
    const StreamRoute& route = layout.streams[i];
    forwarder->streams_.push_back(make_stream(config, layout, route, ports));
    Stream& stream = *forwarder->streams_.back();
    const WayParts parts{config, layout, i, stream, forwarder->budget_, lane_placements(layout, plan, i)};
    WARPLINE_TRY(auto way, with_workload(config.forward.workload, config.forward.packet_time, ports[route.rx_port].mtu,
                                         [&parts](const auto& work) { return make_way(parts, work); }));
    forwarder->ways_.push_back(std::move(way));
  }
  for (std::size_t i = 0; i < layout.roles.size(); ++i) {
    if (layout.roles[i].kind == RoleKind::engine || layout.roles[i].kind == RoleKind::far_side) continue;
    for (const std::uint16_t stream : layout.roles[i].streams) {
      forwarder->streams_[stream]->yields |= plan.workers[i].gives_way;
    }
  }
  return forwarder;
}

void Forwarder::recycle_with(const Recycling& recycling) {
  recycling_ = &recycling;
  give_recyclers(recycling, layout_, streams_);
}

std::optional<std::uint64_t> Forwarder::recycled() const {
  return recycling_ != nullptr ? recycling_->recycled() : std::nullopt;
}

Result<void> Forwarder::prepare() {
  const SetupStep step("preparing the engines");
  for (const auto& way : ways_) WARPLINE_CHECK(way->prepare());
  return {};
}

Result<void> Forwarder::start() {
  const SetupStep step("starting the engines");
  for (const auto& way : ways_) WARPLINE_CHECK(way->start());
  return {};
}

std::optional<Error> Forwarder::failure() const {
  for (const auto& way : ways_) {
    if (std::optional<Error> error = way->failure()) return error;
  }
  return std::nullopt;
}

void Forwarder::run(std::size_t role) {
  const auto [kind, streams, lane] = layout_.roles[role];
  std::vector<Stage*> stages;
  for (const std::uint16_t stream : streams) {
    if (kind == RoleKind::run_to_completion || kind == RoleKind::receive) stages.push_back(ways_[stream]->receiving());
    Stage* transmitting = ways_[stream]->transmitting();
    if (kind == RoleKind::transmit || (kind == RoleKind::run_to_completion && transmitting != nullptr)) {
      stages.push_back(transmitting);
    }
  }
  if (!stages.empty()) run_stages(stages, control_, plan_.workers[role].gives_way);
}

Forwarder::~Forwarder() { finish(); }

void Forwarder::finish() {
  const SetupStep step("stopping the engines", SetupStep::Of::clean_up);
  for (const auto& way : ways_) way->finish();
}

std::uint64_t Forwarder::received() const {
  std::uint64_t packets = 0;
  for (const auto& stream : streams_) packets += stream->received.packets.get();
  return packets;
}

}  // namespace warpline
