// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "commands.h"
#include "frame/interval_loop.h"
#include "frame/run_frame.h"
#include "stream_layout.h"
#include "warpline/base/output.h"
#include "warpline/base/secrets/draw_secret.h"
#include "warpline/gpu/device.h"
#include "warpline/port/removal.h"
#include "warpline/report/run_end.h"
#include "warpline/report/run_metrics.h"
#include "warpline/runtime/port_spec.h"
#include "warpline/runtime/setup_step.h"
#include "warpline/runtime/workers.h"
#include "warpline/service/streams/send/seeded_source.h"
#include "warpline/service/streams/send/send_report.h"
#include "warpline/service/streams/stream_metrics.h"
#include "warpline/stream_port/run/lane_choice.h"
#include "warpline/stream_port/run/send_worker.h"
#include "warpline/stream_port/send_port.h"
#include "warpline/transport/nano_clock.h"

namespace warpline {
namespace {

Result<stream::SenderSettings> sender_settings(const config::StreamConfig& config) {
  stream::SenderSettings settings;
  settings.connections = (config.parallel + config.pipelines - 1) / config.pipelines;
  settings.window_bytes = config.window;
  settings.congestion = config.congestion;
  WARPLINE_CHECK(draw_secret(settings.secret));
  return settings;
}

/// One run of `stream send`. Members are destroyed in reverse: lcores end before what they work on, the port before
/// what it sends.
class SendRun : RunFrame {
 public:
  explicit SendRun(const config::LoadedConfig& loaded)
      : RunFrame(loaded),
        next_hop_(config_.stream.gateway ? *config_.stream.gateway : config_.stream.connect->address) {}

  Result<int> run() {
    WARPLINE_CHECK(open_port());
    const config::StreamConfig& stream = config_.stream;
    for (std::uint16_t i = 0; i < stream.pipelines; ++i) {
      // The first queues have what is left over.
      const stream_port::SendPlan plan{
          .peer = *stream.connect,
          .connections = stream.parallel / stream.pipelines + (i < stream.parallel % stream.pipelines ? 1 : 0),
          .bytes = stream.bytes,
          .chunk = stream.chunk,
          .ahead = 2 * stream.window};
      workers_.push_back(std::make_unique<stream_port::SendWorker>(port_->queue(i), *sources_[i], plan, clock_, stop_,
                                                                   lcores_.workers[i].gives_way));
    }
    WARPLINE_CHECK(answer_metrics([this](metrics::Snapshot& snapshot) {
      service::add(snapshot, service::SendTotals::of(*port_));
      report::add(snapshot, ports());
    }));
    started_ = clock_.now();
    WARPLINE_CHECK(launch(lcore_, [this](std::size_t i) {
      if (i < workers_.size()) workers_[i]->run();
    }));
    put_line(stderr, "warpline: sending to " + to_string(*stream.connect));
    watch();
    if (interrupted_ || !done()) stop_.store(true, std::memory_order_relaxed);
    lcore_->wait();
    return report();
  }

 private:
  Result<void> open_port() {
    const port::PortSettings& port = config_.ports.front();
    WARPLINE_CHECK(runtime::check_port_spec(port.spec));
    const bool threads = config_.stream.engine == EngineKind::thread;
    WARPLINE_CHECK(place(stream_requests(runtime::port_node(port.spec), config_.stream.pipelines, threads)));
    WARPLINE_TRY(const stream::SenderSettings settings, sender_settings(config_.stream));
    std::vector<const stream::PayloadSource*> sources;
    for (std::uint16_t i = 0; i < config_.stream.pipelines; ++i) {
      sources_.push_back(std::make_unique<service::SeededSource>(config_.run.seed, settings.connections));
      sources.push_back(sources_.back().get());
    }
    WARPLINE_TRY(const stream_port::PayloadSetup payload, choose_payload());
    WARPLINE_CHECK(
        start_eal({port.spec}, stream_port::SendPort::memory(port, config_.pool, payload, config_.stream.pipelines)));
    WARPLINE_TRY(port_, stream_port::SendPort::open(port, config_.pool, settings, sources, next_hop_, clock_.now(),
                                                    std::nullopt, config_.stream.vlan, payload));
    announce(ports());
    port_->queue(0).set_announcer(&announce_by(std::make_unique<port::Announcer>(
        port_->port(), port_->port().mac(), port.addresses, *port_->pool(), config_.stream.vlan)));
    return {};
  }

  Result<stream_port::PayloadSetup> choose_payload() {
    const config::StreamConfig& stream = config_.stream;
    stream_port::PayloadChoice choice{.engine = stream.engine,
                                      .rings = stream.rings(),
                                      .gpu = stream.gpu,
                                      .window = stream.window,
                                      .patience = stream.watchdog,
                                      .bytes = &sources_.front()->payload(),
                                      .threads = {}};
    for (std::size_t i = stream.pipelines; i < lcores_.workers.size(); ++i) {
      choice.threads.push_back({static_cast<unsigned>(lcores_.workers[i].cpu.id), lcores_.workers[i].gives_way});
    }
    if (runs_on_gpu(stream.engine)) {
      WARPLINE_TRY(gpu_, gpu::find_gpu(stream.gpu));
    }
    return stream_port::payload_setup(std::move(choice));
  }

  [[nodiscard]] std::span<const port::Port> ports() const { return {&port_->port(), 1}; }
  [[nodiscard]] bool done() const {
    return std::ranges::all_of(workers_, [](const auto& worker) { return worker->done(); });
  }
  /// True if all is sent, or it does not go on: a worker that failed ends the run of all.
  [[nodiscard]] bool over() const {
    const auto stuck = [](const auto& worker) { return worker->done() && (worker->unresolved() || worker->failed()); };
    return done() || std::ranges::any_of(workers_, stuck);
  }
  [[nodiscard]] double seconds() const { return static_cast<double>(clock_.now().value - started_.value) / 1e9; }

  /// Prints a line an interval until all is sent, or the end is asked for. When its time is over what was offered is
  /// still sent.
  void watch() {
    const double end = static_cast<double>(config_.run.seconds.value) / 1e9;
    report::RunSettings settings = config_.run;
    settings.seconds = Nanos{0};
    service::SendTotals before;
    const IntervalLoop loop{.seconds = [this] { return seconds(); },
                            .done = [this] { return over(); },
                            .look =
                                [&](double now) {
                                  tend();
                                  settings.interval = config_.run.interval;
                                  if (end == 0 || now < end) return;
                                  for (const auto& worker : workers_) worker->finish();
                                }};
    interrupted_ = loop.run(settings, [&](double now, double since_last) {
      const service::SendTotals totals = service::SendTotals::of(*port_);
      return service::SendInterval{
          .time_s = now, .seconds = since_last, .before = std::exchange(before, totals), .now = totals};
    });
  }

  /// Returns the seconds from the first SYN to the last acknowledgement, of whichever queues.
  [[nodiscard]] double sending_s() const {
    std::uint64_t first = std::numeric_limits<std::uint64_t>::max();
    std::uint64_t last = 0;
    for (const auto& worker : workers_) {
      if (worker->first_syn() == 0) continue;
      first = std::min(first, worker->first_syn());
      last = std::max(last, worker->last_acknowledgement());
    }
    return last == 0 ? 0 : static_cast<double>(last - first) / 1e9;
  }

  Result<int> report() {
    service::SendReport report;
    report.config = loaded_.to_json();
    report.payload = {.engine = name(config_.stream.engine),
                      .memory = name(config_.stream.rings()),
                      .gpu = gpu_ ? gpu_->name : std::string(),
                      .lane = config_.stream.engine != EngineKind::inline_};
    report.duration_s = seconds();
    report.sending_s = sending_s();
    Histogram round_trips;
    Histogram chunks;
    for (std::uint16_t i = 0; i < port_->queues(); ++i) {
      round_trips.merge(port_->queue(i).sender().counters().round_trips);
      chunks.merge(workers_[i]->chunk_times());
    }
    report.round_trips = LatencyTotals::of(round_trips);
    report.chunks = LatencyTotals::of(chunks);
    report.lcores = lcore_lines();
    report.notes = notes(ports());
    for (const std::string& refused : port_->port().setup().refused) report.notes.push_back(refused);
    std::optional<Error> failure;
    bool unresolved = false;
    for (const auto& worker : workers_) {
      if (!failure) failure = worker->failure();
      unresolved = unresolved || worker->unresolved();
    }
    report.device = port_->port().counters();
    {
      const runtime::SetupStep step("closing the port", runtime::SetupStep::Of::clean_up);
      port_->close();
    }
    report.totals = service::SendTotals::of(*port_);  // also of frames that waited for another queue
    report.leaked = port_->leaked();
    print(report);
    if (!report.conserved()) return static_cast<int>(ErrorKind::verification);
    if (port::any_removed()) return static_cast<int>(ErrorKind::peer);
    if (interrupted_) return kInterrupted;
    if (failure) return *failure;
    if (unresolved) {
      return Error{ErrorKind::peer, fmt::format("cannot reach {}", to_string(next_hop_)), "it does not say where it is",
                   "check the address, the cable, and --gateway"};
    }
    const service::SendTotals& totals = report.totals;
    if (const std::uint64_t failed = totals.ended() - totals.finished; failed != 0) {
      return Error{ErrorKind::peer, fmt::format("{} of {} connections did not finish", failed, totals.started),
                   fmt::format("{} refused, {} reset, {} timed out, {} left when the time was over", totals.refused,
                               totals.reset, totals.timed_out, totals.aborted),
                   fmt::format("see what listens on {}", to_string(*config_.stream.connect))};
    }
    return 0;
  }

  IpAddress next_hop_;
  transport::NanoClock clock_;
  std::vector<std::unique_ptr<service::SeededSource>> sources_;  ///< by queue
  std::optional<gpu::GpuFacts> gpu_;                             ///< of the engine
  std::unique_ptr<stream_port::SendPort> port_;
  std::atomic<bool> stop_{false};
  std::vector<std::unique_ptr<stream_port::SendWorker>> workers_;  ///< likewise
  std::optional<runtime::Workers> lcore_;
  Nanos started_;
  bool interrupted_ = false;
};

}  // namespace

Result<int> run_stream_send(const config::LoadedConfig& loaded) { return SendRun(loaded).run(); }

}  // namespace warpline
