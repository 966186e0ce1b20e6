// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "commands.h"
#include "frame/interval_loop.h"
#include "frame/run_frame.h"
#include "warpline/base/output.h"
#include "warpline/base/secrets/draw_secret.h"
#include "warpline/gpu/device.h"
#include "warpline/port/removal.h"
#include "warpline/report/run_end.h"
#include "warpline/report/run_metrics.h"
#include "warpline/runtime/setup_step.h"
#include "warpline/service/streams/send/seeded_source.h"
#include "warpline/service/streams/send/send_report.h"
#include "warpline/service/streams/stream_metrics.h"
#include "warpline/stream_port/run/stream_run.h"

namespace warpline {
namespace {

/// One run of `stream send`. Members are destroyed in reverse: the run ends before the bytes that it sends.
class SendCommand : RunFrame {
 public:
  explicit SendCommand(const config::LoadedConfig& loaded) : RunFrame(loaded) {}

  Result<int> run() {
    WARPLINE_CHECK(open_run());
    WARPLINE_CHECK(answer_metrics([this](metrics::Snapshot& snapshot) {
      service::add(snapshot, service::SendTotals::of(port()));
      report::add(snapshot, ports());
    }));
    WARPLINE_CHECK(end_set_up());
    WARPLINE_CHECK(run_->launch());
    put_line(stderr, "warpline: sending to " + to_string(*config_.stream.connect));
    watch();
    run_->end();
    return report();
  }

 private:
  Result<void> open_run() {
    WARPLINE_TRY(stream_port::SendSettings sending, sending_settings());
    if (runs_on_gpu(config_.stream.engine)) {
      WARPLINE_TRY(gpu_, gpu::find_gpu(config_.stream.gpu));
    }
    WARPLINE_TRY(run_, stream_port::StreamRun::open(
                           {.runtime = config_.runtime, .pool = config_.pool, .send = std::move(sending)}));
    lcores_ = run_->plan();
    eal_.emplace(run_->take_eal());
    announce(ports());
    port().queue(0).set_announcer(&announce_by(std::make_unique<port::Announcer>(
        port().port(), port().port().mac(), config_.ports.front().addresses, *port().pool(), config_.stream.vlan)));
    return {};
  }

  Result<stream_port::SendSettings> sending_settings() {
    const config::StreamConfig& stream = config_.stream;
    stream_port::SendSettings settings;
    settings.port = config_.ports.front();
    settings.sender.connections = (stream.parallel + stream.pipelines - 1) / stream.pipelines;
    settings.sender.window_bytes = stream.window;
    settings.sender.congestion = stream.congestion;
    WARPLINE_CHECK(draw_secret(settings.sender.secret));
    settings.plan = {.peer = *stream.connect,
                     .connections = stream.parallel,
                     .bytes = stream.bytes,
                     .chunk = stream.chunk,
                     .ahead = 2 * stream.window};
    for (std::uint16_t i = 0; i < stream.pipelines; ++i) {
      sources_.push_back(std::make_unique<service::SeededSource>(config_.run.seed, settings.sender.connections));
      settings.sources.push_back(sources_.back().get());
    }
    settings.next_hop = stream.gateway ? *stream.gateway : stream.connect->address;
    settings.vlan = stream.vlan;
    settings.payload = {.engine = stream.engine,
                        .rings = stream.rings(),
                        .gpu = stream.gpu,
                        .window = stream.window,
                        .patience = stream.watchdog,
                        .bytes = &sources_.front()->payload()};
    return settings;
  }

  [[nodiscard]] stream_port::SendPort& port() const { return run_->sending(); }
  [[nodiscard]] std::span<const port::Port> ports() const { return {&port().port(), 1}; }

  /// Prints a line an interval until all is sent, or the end is asked for. When its time is over what was offered is
  /// still sent.
  void watch() {
    const double end = static_cast<double>(config_.run.seconds.value) / 1e9;
    report::RunSettings settings = config_.run;
    settings.seconds = Nanos{0};
    service::SendTotals before;
    const IntervalLoop loop{.seconds = [this] { return run_->seconds(); },
                            .done = [this] { return run_->over(); },
                            .look =
                                [&](double now) {
                                  tend();
                                  settings.interval = config_.run.interval;
                                  if (end != 0 && now >= end) run_->finish_sending();
                                }};
    interrupted_ = loop.run(settings, [&](double now, double since_last) {
      const service::SendTotals totals = service::SendTotals::of(port());
      return service::SendInterval{
          .time_s = now, .seconds = since_last, .before = std::exchange(before, totals), .now = totals};
    });
  }

  Result<int> report() {
    service::SendReport report;
    report.config = loaded_.to_json();
    report.payload = {.engine = name(config_.stream.engine),
                      .memory = name(config_.stream.rings()),
                      .gpu = gpu_ ? gpu_->name : std::string(),
                      .lane = config_.stream.engine != EngineKind::inline_};
    report.duration_s = run_->seconds();
    report.sending_s = run_->sending_s();
    Histogram round_trips;
    Histogram chunks;
    for (std::uint16_t i = 0; i < port().queues(); ++i) {
      round_trips.merge(port().queue(i).sender().counters().round_trips);
      chunks.merge(run_->senders()[i]->chunk_times());
    }
    report.round_trips = LatencyTotals::of(round_trips);
    report.chunks = LatencyTotals::of(chunks);
    report.lcores = lcore_lines();
    report.notes = notes(ports());
    for (const std::string& refused : port().port().setup().refused) report.notes.push_back(refused);
    std::optional<Error> failure = run_->failure();
    report.device = port().port().counters();
    {
      const runtime::SetupStep step("closing the port", runtime::SetupStep::Of::clean_up);
      port().close();
    }
    report.totals = service::SendTotals::of(port());  // also of frames that waited for another queue
    report.leaked = port().leaked();
    print(report);
    if (!report.conserved()) return static_cast<int>(ErrorKind::verification);
    if (port::any_removed()) return static_cast<int>(ErrorKind::peer);
    if (interrupted_) return kInterrupted;
    if (failure) return *std::move(failure);
    const service::SendTotals& totals = report.totals;
    if (const std::uint64_t failed = totals.ended() - totals.finished; failed != 0) {
      return Error{ErrorKind::peer, fmt::format("{} of {} connections did not finish", failed, totals.started),
                   fmt::format("{} refused, {} reset, {} timed out, {} left when the time was over", totals.refused,
                               totals.reset, totals.timed_out, totals.aborted),
                   fmt::format("see what listens on {}", to_string(*config_.stream.connect))};
    }
    return 0;
  }

  std::vector<std::unique_ptr<service::SeededSource>> sources_;  ///< by queue
  std::optional<gpu::GpuFacts> gpu_;                             ///< of the engine
  std::unique_ptr<stream_port::StreamRun> run_;
  bool interrupted_ = false;
};

}  // namespace

Result<int> run_stream_send(const config::LoadedConfig& loaded) { return SendCommand(loaded).run(); }

}  // namespace warpline
