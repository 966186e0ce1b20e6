// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <sys/random.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "commands.h"
#include "stream_layout.h"
#include "warpline/base/output.h"
#include "warpline/machine/topology.h"
#include "warpline/report/run_end.h"
#include "warpline/runtime/eal.h"
#include "warpline/runtime/port_spec.h"
#include "warpline/runtime/setup_step.h"
#include "warpline/runtime/stop.h"
#include "warpline/runtime/workers.h"
#include "warpline/service/streams/send_report.h"
#include "warpline/service/streams/send_worker.h"
#include "warpline/stream_port/send_port.h"
#include "warpline/transport/nano_clock.h"

namespace warpline {
namespace {

constexpr std::chrono::milliseconds kLook{2};  ///< the control loop's period

Result<stream::SenderSettings> sender_settings(const config::StreamConfig& config) {
  stream::SenderSettings settings;
  settings.connections = config.parallel;
  settings.window_bytes = config.window;
  settings.congestion = config.congestion;
  if (::getrandom(settings.secret.data(), settings.secret.size(), 0) != static_cast<ssize_t>(settings.secret.size())) {
    return environment_error("cannot make a secret", "the kernel gives no random numbers", "check `man getrandom`");
  }
  return settings;
}

/// One run of `stream send`. Members are destroyed in reverse: the lcore ends before what it works on, the port before
/// what it sends and its EAL.
class SendRun {
 public:
  explicit SendRun(const config::LoadedConfig& loaded)
      : loaded_(loaded),
        config_(loaded.config),
        next_hop_(config_.stream.gateway ? *config_.stream.gateway : config_.stream.connect->address),
        source_(config_.run.seed, config_.stream.parallel) {}

  Result<int> run() {
    WARPLINE_CHECK(open_port());
    const config::StreamConfig& stream = config_.stream;
    const service::SendPlan plan{.peer = *stream.connect,
                                 .connections = stream.parallel,
                                 .bytes = stream.bytes,
                                 .chunk = stream.chunk,
                                 .ahead = 2 * stream.window};
    worker_.emplace(port_->queue(), source_, plan, clock_, stop_, lcores_.workers.front().gives_way);
    started_ = clock_.now();
    lcore_.emplace(lcores_);
    WARPLINE_CHECK(lcore_->launch(0, [this] { worker_->run(); }));
    put_line(stderr, "warpline: sending to " + to_string(*stream.connect));
    watch();
    if (interrupted_ || !worker_->done()) stop_.store(true, std::memory_order_relaxed);
    lcore_->wait();
    return report();
  }

 private:
  Result<void> open_port() {
    const port::PortSettings& port = config_.ports.front();
    WARPLINE_CHECK(runtime::check_port_spec(port.spec));
    WARPLINE_TRY(const machine::Topology topology, machine::Topology::of_machine());
    WARPLINE_TRY(lcores_,
                 runtime::place_workers(config_.runtime, topology, stream_requests(runtime::port_node(port.spec), 1)));
    WARPLINE_TRY(const stream::SenderSettings settings, sender_settings(config_.stream));
    WARPLINE_TRY(runtime::Eal eal, runtime::Eal::start(config_.runtime, lcores_, {port.spec},
                                                       stream_port::SendPort::memory(port, config_.pool)));
    eal_.emplace(std::move(eal));
    WARPLINE_TRY(port_, stream_port::SendPort::open(port, config_.pool, settings, source_, next_hop_, clock_.now()));
    report::announce(report::notes_of(lcores_, *eal_, ports()));
    link_notes_ = report::await_links(ports());
    report::announce(link_notes_);
    return {};
  }

  [[nodiscard]] std::span<const port::Port> ports() const { return {&port_->port(), 1}; }
  [[nodiscard]] double seconds() const { return static_cast<double>(clock_.now().value - started_.value) / 1e9; }

  /// Prints a line an interval until all is sent, or the end is asked for. When its time is over what was offered is
  /// still sent.
  void watch() {
    const double interval = static_cast<double>(config_.run.interval.value) / 1e9;
    const double end = static_cast<double>(config_.run.seconds.value) / 1e9;
    service::SendInterval line;
    bool header = false;
    while (!worker_->done()) {
      std::this_thread::sleep_for(kLook);
      const double now = seconds();
      interrupted_ = runtime::StopOnSignal::requested().load(std::memory_order_relaxed);
      if (interrupted_) break;
      if (end != 0 && now >= end) worker_->finish();
      if (now - line.time_s < interval) continue;
      line.seconds = now - line.time_s;
      line.time_s = now;
      line.before = std::exchange(line.now, service::SendTotals::of(port_->queue()));
      if (config_.run.json_stream) {
        put_line(stdout, line.json());
        if (std::ferror(stdout) != 0) break;  // nobody reads on
      } else {
        if (!std::exchange(header, true)) put_line(stderr, service::SendInterval::header());
        put_line(stderr, line.row());
      }
    }
  }

  Result<int> report() {
    service::SendReport report;
    report.config = loaded_.to_json();
    report.duration_s = seconds();
    report.sending_s = worker_->sending_s();
    report.totals = service::SendTotals::of(port_->queue());
    report.round_trips = LatencyTotals::of(port_->queue().sender().counters().round_trips);
    report.chunks = LatencyTotals::of(worker_->chunk_times());
    for (const runtime::PlacedWorker& worker : lcores_.workers) {
      report.lcores.push_back(fmt::format("{}: lcore {} on cpu {}", worker.request.name, worker.lcore, worker.cpu.id));
    }
    report.notes = report::notes_of(lcores_, *eal_, ports());
    report.notes.insert(report.notes.end(), link_notes_.begin(), link_notes_.end());
    for (const std::string& refused : port_->port().setup().refused) report.notes.push_back(refused);
    report.device = port_->port().counters();
    {
      const runtime::SetupStep step("closing the port", runtime::SetupStep::Of::clean_up);
      port_->close();
    }
    report.leaked = port_->leaked();
    if (config_.run.json) {
      fmt::print("{}\n", report.to_json().dump());
    } else if (!config_.run.json_stream) {
      fmt::print("{}", report.to_text());
    }
    std::fflush(stdout);
    if (!report.conserved()) return static_cast<int>(ErrorKind::verification);
    if (interrupted_) return kInterrupted;
    if (worker_->unresolved()) {
      return Error{ErrorKind::peer, fmt::format("cannot reach {}", to_string(next_hop_)), "it does not say where it is",
                   "check the address, the cable, and --gateway"};
    }
    const service::SendTotals& totals = report.totals;
    if (const std::uint64_t failed = totals.refused + totals.reset + totals.timed_out; failed != 0) {
      return Error{ErrorKind::peer, fmt::format("{} of {} connections did not finish", failed, totals.started),
                   fmt::format("{} refused, {} reset, {} timed out", totals.refused, totals.reset, totals.timed_out),
                   fmt::format("see what listens on {}", to_string(*config_.stream.connect))};
    }
    return 0;
  }

  runtime::StopOnSignal on_signal_;  ///< goes last: an interrupt cuts short neither set-up nor clean-up
  const config::LoadedConfig& loaded_;
  const config::Config& config_;
  IpAddress next_hop_;
  transport::NanoClock clock_;
  runtime::LcorePlan lcores_;
  std::vector<std::string> link_notes_;  ///< of a link that was down when the run began
  std::optional<runtime::Eal> eal_;
  service::SeededSource source_;
  std::unique_ptr<stream_port::SendPort> port_;
  std::atomic<bool> stop_{false};
  std::optional<service::SendWorker> worker_;
  std::optional<runtime::Workers> lcore_;
  Nanos started_;
  bool interrupted_ = false;
};

}  // namespace

Result<int> run_stream_send(const config::LoadedConfig& loaded) { return SendRun(loaded).run(); }

}  // namespace warpline
