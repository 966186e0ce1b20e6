// SPDX-License-Identifier: Apache-2.0
#include "frame/forward_frame.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <numeric>
#include <thread>
#include <utility>
#include <variant>

#include "warpline/gpu/device.h"
#include "warpline/gpu/trace.h"
#include "warpline/machine/topology.h"
#include "warpline/port/announce/announce.h"
#include "warpline/report/facts.h"
#include "warpline/report/live.h"
#include "warpline/runtime/telemetry/telemetry_folder.h"
#include "warpline/traffic/generator.h"

namespace warpline {
namespace {

/// What files of captures say wrote them.
std::string application() { return "warpline " + report::build_facts().at("version").get<std::string>(); }

}  // namespace

Result<void> PathsFrame::plan_paths(LayOut& lay_out) {
  WARPLINE_TRY(inputs_, datapath::look_at_inputs(config_.ports, config_.datapath().pool.memory));
  config_.run.packets = inputs_.bound(config_.run.packets);
  WARPLINE_TRY(const machine::Topology topology, machine::Topology::of_machine());
  const datapath::DatapathSettings settings = config_.datapath();
  layout_ = lay_out(settings, settings.near_nodes(inputs_.nodes), topology.cpus.size());
  WARPLINE_TRY(lcores_, runtime::place_workers(config_.runtime, layout_.requests));
  return {};
}

Result<void> PathsFrame::open_ports(const forward::FarTraffic& far_traffic, Bytes beside) {
  ports_.emplace(config_.datapath(), layout_, far_traffic);
  WARPLINE_CHECK(start_eal(inputs_.specs, Bytes{ports_->host_memory().value + beside.value}));
  return ports_->open();
}

Result<void> PathsFrame::open_captures(std::span<const port::Port> captured,
                                       std::span<const std::unique_ptr<datapath::QueuePath>> paths,
                                       std::vector<const TurnCount*> threads) {
  const bool captures = config_.command == "forward" || config_.command == "l3forward";
  if (!captures || config_.pool.memory == memory::MemoryKind::device) return {};
  const bool traces = config_.command == "forward" && config_.forward.io == ProcessorKind::cpu;
  taps_ = std::make_unique<datapath::PathTaps>(captured, paths, std::move(threads), traces);
  if (!config_.capture.file.empty()) {
    WARPLINE_TRY(capture_, datapath::PathCapture::open(config_.capture, *taps_, application()));
  }
  if (const std::string& name = config_.runtime.telemetry; !name.empty()) {
    const std::filesystem::path folder = runtime::telemetry_folder(name);
    WARPLINE_TRY(door_, datapath::CaptureDoor::open(runtime::capture_socket(folder), *taps_));
  }
  return {};
}

Result<PathsFrame::NextCapture> PathsFrame::open_next_capture(const config::Config& next) {
  const auto refuse = [](const char* why, const char* fix) {
    return usage_error("the capture stays as it was", why, fix);
  };
  if (!taps_ || next.capture == config_.capture) return NextCapture{};
  const bool captures = !config_.capture.file.empty();
  if (!captures && !taps_->is_free()) return refuse("who has attached captures or traces", "end that first");
  if (captures && next.capture.file == config_.capture.file)
    return refuse("its file would be replaced", "name another --capture beside what changes");
  NextCapture capture{.changes = true};
  if (next.capture.file.empty()) return capture;
  WARPLINE_TRY(capture.opened, capture::Capture::open(next.capture, taps_->interfaces(),
                                                      taps_->sources(!next.capture.what.dropped_only), application()));
  return capture;
}

Result<void> PathsFrame::begin_next_capture(NextCapture next, const capture::CaptureSettings& settings) {
  if (!next.changes) return {};
  config_.capture = settings;
  taps_->detach();
  constexpr int kLooks = 10'000;
  constexpr std::chrono::microseconds kNap{200};
  for (int look = 0; !taps_->is_free(); ++look) {
    if (look == kLooks)
      return environment_error("the capture has ended, and none begins", "an lcore is stuck", "look at its stage");
    std::this_thread::sleep_for(kNap);
  }
  if (capture_) capture_->finish();
  if (!next.opened) return {};
  WARPLINE_TRY(capture_, datapath::PathCapture::attach(std::move(next.opened), !settings.what.dropped_only, *taps_));
  capture_->start();
  return {};
}

void PathsFrame::finish_captures() {
  if (capture_) capture_->finish();
  if (door_) door_->end();
}

void PathsFrame::tend() {
  RunFrame::tend();
  if (door_) door_->poll();
}

Result<void> ForwarderFrame::plan_forwarding(bool makes_traffic) {
  if (makes_traffic) {
    WARPLINE_TRY(traffic::TrafficPlan traffic, traffic::TrafficPlan::make(config_.traffic, config_.run.seed));
    traffic_.emplace(std::move(traffic));
  }
  WARPLINE_CHECK(name_gpus());
  return plan_paths(datapath::lay_out_forward);
}

/// Puts the GPUs of this machine in the place of "all", no more than there are pipelines.
Result<void> ForwarderFrame::name_gpus() {
  datapath::ForwardSettings& forward = config_.forward;
  if (!forward.gpus.empty()) return {};
  WARPLINE_TRY(const std::vector<gpu::GpuFacts> found, gpu::list_gpus());
  forward.gpus.resize(std::min<std::size_t>(found.size(), forward.pipelines));
  std::iota(forward.gpus.begin(), forward.gpus.end(), std::uint16_t{0});
  if (found.size() > forward.gpus.size()) {
    plan_notes_.push_back(fmt::format("{} of {} GPUs are used: a pipeline uses one; add --pipelines {}",
                                      forward.gpus.size(), found.size(), found.size()));
  }
  return {};
}

Result<void> ForwarderFrame::open(bool closed_loop) {
  if (config_.forward.nvtx) WARPLINE_CHECK(gpu::start_tracing());
  return open_ports({.max_frame = traffic_ ? traffic_->max_frame_bytes() : 0,
                     .burst = config_.traffic.burst,
                     .closed_loop = closed_loop});
}

Result<void> ForwarderFrame::prepare(const forward::StageMaker& make_stages,
                                     const std::function<void(FarOptions&)>& change_far) {
  reload_by([this](const config::Config& next) -> Result<std::string> {
    WARPLINE_TRY(NextCapture capture, open_next_capture(next));
    WARPLINE_CHECK(begin_next_capture(std::move(capture), next.capture));
    config_.traffic.rate = next.traffic.rate;
    if (far_) far_->set_rate(far_options().rate);
    return std::string();
  });
  await_links(ports());
  if (config_.forward.loopback) WARPLINE_CHECK(traffic::Generator::check_pool(*traffic_, ports_->sending_pool(1)));
  WARPLINE_TRY(forwarder_,
               forward::Forwarder::create(config_.datapath(), layout_, lcores_, ports_->near(), make_stages));
  forwarder_->recycle_with(ports_->recycling());
  if (config_.forward.loopback) {
    FarOptions options = far_options();
    change_far(options);
    far_ = std::make_unique<traffic::TrafficGroup>(*traffic_, options);
    make_far_workers();
  }
  const std::span<const port::Port> all = ports();
  WARPLINE_CHECK(
      open_captures(config_.forward.loopback ? all.first(1) : all, forwarder_->paths(), forwarder_->turns()));
  return forwarder_->prepare();
}

traffic::TrafficGroup::Options ForwarderFrame::far_options() const {
  return {.workers = config_.forward.pipelines,
          .macs = traffic::MacRule::unchanged,
          .packets = config_.run.packets,
          .warmup = config_.run.warmup,
          .window = ports_->window(),
          .passed = forwarder_->turns(),
          .burst = config_.traffic.burst,
          .rate = traffic::share_of(config_.traffic.rate, config_.forward.pipelines),
          // The last packets may wait so long for their batch to fill.
          .drain = {config_.traffic.drain.value + config_.forward.deadline.value_or(Nanos{0}).value}};
}

void ForwarderFrame::make_far_workers() {
  for (std::size_t role = 0; role < layout_.roles.size(); ++role) {
    if (layout_.roles[role].kind != datapath::RoleKind::far_side) continue;
    const std::uint16_t queue = layout_.roles[role].paths.front();
    far_workers_.push_back(std::make_unique<traffic::TrafficWorker>(
        *far_,
        traffic::TrafficWorker::Place{
            .number = queue, .port = ports_->far().id(), .queue = queue, .yields = lcores_.workers[role].gives_way},
        ports_->sending_pool(1)));
  }
}

void PathsFrame::announce_ports(std::span<const port::Port> ports,
                                std::span<const std::unique_ptr<datapath::QueuePath>> paths) {
  for (std::size_t i = 0; i < config_.ports.size(); ++i) {
    if (config_.ports[i].addresses.empty()) continue;
    port::Announcer& announcer = announce_by(std::make_unique<port::Announcer>(
        ports[i], ports[i].mac(), config_.ports[i].addresses, ports_->sending_pool(i)));
    const port::PortQueue first{ports[i].id(), 0};
    const auto path = std::ranges::find(paths, first, [](const auto& any) { return any->rx; });
    if (path != paths.end()) (*path)->announcer = &announcer;
  }
}

Result<void> ForwarderFrame::launch_forwarding(const std::function<Result<void>()>& before) {
  {
    const runtime::SetupStep step("starting the GPU's copies");
    WARPLINE_CHECK(ports_->start_copies());
  }
  WARPLINE_CHECK(forwarder_->start());
  if (!config_.forward.loopback) announce_ports(ports(), forwarder_->paths());
  if (before) WARPLINE_CHECK(before());
  WARPLINE_CHECK(end_set_up());
  if (capture_) capture_->start();
  workers_.emplace(lcores_);
  started_s_ = report::monotonic_seconds();
  return launch_roles();
}

Result<void> ForwarderFrame::launch_roles() {
  for (std::size_t role = 0; role < layout_.roles.size(); ++role) {
    if (layout_.roles[role].kind == datapath::RoleKind::engine) continue;
    if (layout_.roles[role].kind == datapath::RoleKind::far_side) {
      traffic::TrafficWorker& worker = *far_workers_[layout_.roles[role].paths.front()];
      WARPLINE_CHECK(workers_->launch(role, [&worker] { worker.run(); }));
    } else {
      WARPLINE_CHECK(workers_->launch(role, [this, role] { forwarder_->run(role); }));
    }
  }
  return {};
}

report::LiveResult ForwarderFrame::supervise(const Shown& shown) {
  const auto done = [&] {
    tend();
    stop_if_done();
    if (far_ && runtime::StopOnSignal::requested()) far_->interrupt();
    if (shown.look) shown.look();
    return !workers_->running();
  };
  const report::LiveResult live = report::run_live(config_.run,
                                                   {.started_s = started_s_,
                                                    .sample = shown.totals,
                                                    .progress = shown.through,
                                                    .done = done,
                                                    .stop = [this] { far_ ? far_->stop() : forwarder_->stop(); }},
                                                   runtime::StopOnSignal::requested());
  workers_->wait();
  return live;
}

void ForwarderFrame::stop_if_done() {
  const bool done = far_ ? far_->done() : inputs_.used_up(config_.run.packets, forwarder_->received(), ports());
  if (done) forwarder_->stop();
}

void ForwarderFrame::stop() {
  if (far_) far_->stop();
  if (forwarder_) forwarder_->stop();
}

std::vector<traffic::QueueTotals> ForwarderFrame::far_queues() const {
  std::vector<traffic::QueueTotals> queues;
  if (!far_ || std::holds_alternative<std::monostate>(config_.traffic.rate)) return queues;
  for (std::uint16_t i = 0; i < far_->options().workers; ++i) {
    traffic::QueueTotals& queue = queues.emplace_back(far_->queue_totals(i));
    queue.port = ports_->far().name();
    queue.queue = i;
  }
  return queues;
}

void ForwarderFrame::finish_forwarding() {
  forwarder_->finish();
  finish_captures();
}

void ForwarderFrame::give_up() {
  stop();
  forwarder_->abandon();
}

report::GpuTotals ForwarderFrame::gpu_totals(std::uint64_t memory_bytes) const {
  const datapath::ForwardSettings& forward = config_.forward;
  report::GpuTotals totals;
  totals.engine = name(forward.engine);
  for (const std::uint16_t ordinal : forward.gpus) {
    const Result<gpu::GpuFacts> gpu = gpu::find_gpu(ordinal);
    totals.name += fmt::format("{}{}", totals.name.empty() ? "" : ", ", gpu ? gpu->name : "a GPU that failed");
  }
  if (forward.engine == EngineKind::persistent) totals.ctas = std::min(forward.ctas, forward.ring_slots);
  totals.memory_bytes = memory_bytes;
  return totals;
}

void ForwarderFrame::end() {
  if (leaving_) return;
  begin_end();
  stop();
  workers_.reset();
  if (forwarder_) finish_forwarding();
  if (ports_) ports_->stop();
  far_workers_.clear();
  far_.reset();
  forwarder_.reset();
}

}  // namespace warpline
