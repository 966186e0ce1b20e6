// SPDX-License-Identifier: Apache-2.0
#include "stream_session.h"

#include <fmt/format.h>

#include <chrono>
#include <thread>
#include <utility>

#include "stream_settings.h"
#include "warpline/gpu/device.h"
#include "warpline/gpu/stream_tickets.h"
#include "warpline/report/run_end.h"
#include "warpline/service/streams/stream_report.h"

namespace warpline::python {
namespace {

/// Refuses what `stream receive` can do with bytes beside handing them to this process.
Result<void> check(const config::LoadedConfig& loaded) {
  const config::StreamConfig& stream = loaded.config.stream;
  const auto refuse = [](std::string_view option, const char* why) {
    return usage_error(fmt::format("option {}", option), why, "leave it away");
  };
  if (stream.engine == EngineKind::persistent) {
    return usage_error("option engine", "beside a kernel that stays the GPU never comes to rest for other libraries",
                       "use launch");
  }
  if (!stream.output.empty()) return refuse("output", "bytes come as arrays");
  if (loaded.config.run.verify) return refuse("verify", "bytes come as arrays, to be compared there");
  if (!stream.processing) return refuse("processing", "without it there are no bytes");
  return {};
}

/// The GPU in whose memory the rings are, if they are in one's.
Result<std::optional<service::StreamHome::Gpu>> gpu_of(const config::StreamConfig& stream) {
  if (stream.rings() != memory::MemoryKind::device) return std::optional<service::StreamHome::Gpu>();
  WARPLINE_CHECK(gpu::use_gpu(stream.gpu));
  WARPLINE_TRY(auto tickets, gpu::StreamTickets::create());
  return std::optional(service::StreamHome::Gpu{stream.gpu, std::move(tickets)});
}

service::StreamReport report_of(const config::LoadedConfig& loaded, const stream_port::StreamRun& run) {
  service::StreamReport report;
  stream_port::StreamPort& port = run.receiving();
  const runtime::LcorePlan& plan = run.plan();
  report.config = loaded.to_json();
  const config::StreamConfig& stream = loaded.config.stream;
  if (stream.engine != EngineKind::inline_) {
    const auto gpu = runs_on_gpu(stream.engine) ? gpu::find_gpu(stream.gpu) : Result<gpu::GpuFacts>(gpu::GpuFacts{});
    report.engine = service::StreamReport::Engine::of(port, stream.engine, stream.rings(), gpu ? gpu->name : "");
  }
  for (const runtime::PlacedWorker& worker : plan.workers) {
    report.lcores.push_back(fmt::format("{}: lcore {} on cpu {}", worker.request.name, worker.lcore, worker.cpu.id));
  }
  report.notes = report::notes_of(plan, run.eal(), {&port.port(), 1});
  report.device = port.port().counters();
  port.close();
  report.totals = service::StreamTotals::of(port);
  report.leaked = port.leaked();
  report.duration_s = run.seconds();
  report.receiving_s = run.receiving_s();
  return report;
}

}  // namespace

Result<std::shared_ptr<StreamSession>> StreamSession::begin(const std::vector<std::string>& arguments,
                                                            bool tells_progress) {
  WARPLINE_TRY(config::LoadedConfig loaded, load_command(arguments));
  WARPLINE_CHECK(check(loaded));
  loaded.config.runtime.keep = true;
  WARPLINE_TRY(auto inbox, service::StreamInbox::make());
  std::shared_ptr<StreamSession> session(new StreamSession(std::move(loaded), std::move(inbox), tells_progress));
  StreamSession& run = *session;
  WARPLINE_CHECK(run.thread_.start("Streams", [&run] { return run.control(); }, [&run] { run.inbox_->end(); }));
  return session;
}

StreamSession::~StreamSession() {
  if (thread_.is_here()) close();
}

void StreamSession::close() {
  thread_.stop();
  join();
}

Result<void> StreamSession::control() {
  Result<void> done = run();
  if (!done) exit_code_ = static_cast<int>(done.error().kind);
  return done;
}

Result<void> StreamSession::run() {
  WARPLINE_TRY(const stream_port::StreamRunSettings settings, receiving_run(loaded_.config));
  WARPLINE_TRY(const auto run, stream_port::StreamRun::open(settings));
  std::vector<std::unique_ptr<service::KeptStreams>> connections;  // by queue
  std::vector<stream_port::StreamApplication*> applications;
  for (std::size_t i = 0; i < run->receiving().queues(); ++i) {
    WARPLINE_TRY(auto gpu, gpu_of(loaded_.config.stream));
    connections.push_back(std::make_unique<service::KeptStreams>(run->receiving().queue(i).receiver(),
                                                                 settings.receive->receiver,
                                                                 loaded_.config.stream.chunk, inbox_, std::move(gpu)));
    applications.push_back(connections.back().get());
  }
  WARPLINE_CHECK(run->launch(applications));
  thread_.say_started();
  supervise(*run);
  run->end();
  const service::StreamReport report = report_of(loaded_, *run);
  report_ = report.to_json().dump();
  if (!report.conserved()) exit_code_ = static_cast<int>(ErrorKind::verification);
  if (auto failure = run->failure()) return *std::move(failure);
  return {};
}

void StreamSession::supervise(const stream_port::StreamRun& run) {
  constexpr std::chrono::milliseconds kPeriod{2};
  const report::RunSettings& settings = loaded_.config.run;
  const double interval = static_cast<double>(settings.interval.value) / 1e9;
  const double end = static_cast<double>(settings.seconds.value) / 1e9;
  double last = 0;
  service::StreamTotals before;
  while (!thread_.stopping().load(std::memory_order_relaxed) && !run.over()) {
    std::this_thread::sleep_for(kPeriod);
    const double now = run.seconds();
    if (end != 0 && now >= end) return;
    if (!tells_progress_ || now - last < interval) continue;
    const service::StreamTotals totals = service::StreamTotals::of(run.receiving());
    const service::StreamInterval line{.time_s = now,
                                       .seconds = now - std::exchange(last, now),
                                       .before = std::exchange(before, totals),
                                       .now = totals};
    thread_.say(line.json() + "\n");
  }
}

}  // namespace warpline::python
