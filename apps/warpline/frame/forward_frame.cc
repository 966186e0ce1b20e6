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

Result<void> PathsFrame::open_captures(std::span<const port::Port> captured,
                                       std::span<const std::unique_ptr<datapath::QueuePath>> paths,
                                       std::vector<const TurnCount*> threads) {
  const bool captures = config_.command == config::Command::forward || config_.command == config::Command::l3forward;
  if (!captures || config_.pool.memory == memory::MemoryKind::device) return {};
  const bool traces = config_.command == config::Command::forward && config_.forward.io == ProcessorKind::cpu;
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

void PathsFrame::announce_ports(const forward::ForwardPorts& ports,
                                std::span<const std::unique_ptr<datapath::QueuePath>> paths) {
  for (std::size_t i = 0; i < config_.ports.size(); ++i) {
    if (config_.ports[i].addresses.empty()) continue;
    const port::Port& port = ports.ports()[i];
    port::Announcer& announcer = announce_by(
        std::make_unique<port::Announcer>(port, port.mac(), config_.ports[i].addresses, ports.sending_pool(i)));
    const port::PortQueue first{port.id(), 0};
    const auto path = std::ranges::find(paths, first, [](const auto& any) { return any->rx; });
    if (path != paths.end()) (*path)->announcer = &announcer;
  }
}

Result<void> ForwarderFrame::plan_forwarding(bool makes_traffic,
                                             const std::function<void(forward::LoopbackSettings&)>& change_far) {
  if (makes_traffic) {
    WARPLINE_TRY(traffic::TrafficPlan traffic, traffic::TrafficPlan::make(config_.traffic, config_.run.seed));
    traffic_.emplace(std::move(traffic));
  }
  WARPLINE_CHECK(name_gpus());
  std::optional<forward::LoopbackSettings> loopback;
  if (config_.forward.loopback) {
    loopback.emplace(forward::LoopbackSettings{.plan = *traffic_,
                                               .rate = config_.traffic.rate,
                                               .burst = config_.traffic.burst,
                                               .warmup = config_.run.warmup,
                                               .drain = config_.traffic.drain});
    if (change_far) change_far(*loopback);
  }
  WARPLINE_TRY(run_, forward::ForwardRun::plan(config_.datapath(), config_.runtime, std::move(loopback)));
  config_.run.packets = run_->settings().packets;
  lcores_ = run_->plan();
  return {};
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

Result<void> ForwarderFrame::open() {
  if (config_.forward.nvtx) WARPLINE_CHECK(gpu::start_tracing());
  WARPLINE_CHECK(run_->open());
  eal_.emplace(run_->take_eal());
  return {};
}

Result<void> ForwarderFrame::prepare(const forward::StageMaker& make_stages) {
  reload_by([this](const config::Config& next) -> Result<std::string> {
    WARPLINE_TRY(NextCapture capture, open_next_capture(next));
    WARPLINE_CHECK(begin_next_capture(std::move(capture), next.capture));
    config_.traffic.rate = next.traffic.rate;
    if (run_->far()) run_->far()->set_rate(config_.traffic.rate);
    return std::string();
  });
  WARPLINE_CHECK(run_->prepare(make_stages));
  note_down_links(run_->down_links());
  return open_captures(near_ports(), forwarder().paths(), forwarder().turns());
}

Result<void> ForwarderFrame::launch_forwarding(const std::function<Result<void>()>& before) {
  WARPLINE_CHECK(run_->start_engines());
  if (!config_.forward.loopback) announce_ports(opened_ports(), forwarder().paths());
  if (before) WARPLINE_CHECK(before());
  WARPLINE_CHECK(end_set_up());
  if (capture_) capture_->start();
  started_s_ = report::monotonic_seconds();
  return run_->launch();
}

report::LiveResult ForwarderFrame::supervise(const Shown& shown) {
  const auto done = [&] {
    tend();
    if (runtime::StopOnSignal::requested()) run_->stop(true);
    if (shown.look) shown.look();
    return !run_->look();
  };
  const report::LiveResult live = report::run_live(config_.run,
                                                   {.started_s = started_s_,
                                                    .sample = shown.totals,
                                                    .progress = shown.through,
                                                    .done = done,
                                                    .stop = [this] { run_->stop(); }},
                                                   runtime::StopOnSignal::requested());
  (void)run_->finish();  // the report names the engines' error
  finish_captures();
  return live;
}

std::vector<traffic::QueueTotals> ForwarderFrame::far_queues() const {
  std::vector<traffic::QueueTotals> queues;
  if (far() == nullptr || std::holds_alternative<std::monostate>(config_.traffic.rate)) return queues;
  for (std::uint16_t i = 0; i < far()->options().workers; ++i) {
    traffic::QueueTotals& queue = queues.emplace_back(far()->queue_totals(i));
    queue.port = opened_ports().far().name();
    queue.queue = i;
  }
  return queues;
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
  if (run_) run_->end();
  finish_captures();
  door_.reset();
  capture_.reset();
  taps_.reset();
  run_.reset();
}

}  // namespace warpline
