// SPDX-License-Identifier: Apache-2.0
#include "stream_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <thread>
#include <utility>

#include "stream_layout.h"
#include "warpline/gpu/device.h"
#include "warpline/gpu/stream_tickets.h"
#include "warpline/report/run_end.h"
#include "warpline/runtime/eal.h"
#include "warpline/runtime/lcore_plan.h"
#include "warpline/runtime/port_spec.h"
#include "warpline/runtime/workers.h"
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

service::StreamReport report_of(const config::LoadedConfig& loaded, stream_port::StreamPort& port,
                                const runtime::LcorePlan& plan, const runtime::Eal& eal) {
  service::StreamReport report;
  report.config = loaded.to_json();
  const config::StreamConfig& stream = loaded.config.stream;
  if (stream.engine != EngineKind::inline_) {
    const auto gpu = runs_on_gpu(stream.engine) ? gpu::find_gpu(stream.gpu) : Result<gpu::GpuFacts>(gpu::GpuFacts{});
    report.engine = service::StreamReport::Engine::of(port, stream.engine, stream.rings(), gpu ? gpu->name : "");
  }
  for (const runtime::PlacedWorker& worker : plan.workers) {
    report.lcores.push_back(fmt::format("{}: lcore {} on cpu {}", worker.request.name, worker.lcore, worker.cpu.id));
  }
  report.notes = report::notes_of(plan, eal, {&port.port(), 1});
  report.device = port.port().counters();
  port.close();
  report.totals = service::StreamTotals::of(port);
  report.leaked = port.leaked();
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
  const config::Config& config = loaded_.config;
  const port::PortSettings& settings = config.ports.front();
  const std::uint16_t count = config.stream.pipelines;
  WARPLINE_CHECK(runtime::check_port_spec(settings.spec));
  WARPLINE_TRY(const runtime::LcorePlan plan,
               runtime::place_workers(config.runtime, stream_requests(runtime::port_node(settings.spec), count,
                                                                      config.stream.engine == EngineKind::thread)));
  WARPLINE_TRY(const stream::ReceiverSettings receiver, config.stream.receiver());
  WARPLINE_TRY(const stream_port::LaneSetup lanes, stream_port::lane_setup(stream_lanes(config.stream, plan)));
  WARPLINE_TRY(const runtime::Eal eal,
               runtime::Eal::start_planned(config.runtime, plan, {settings.spec},
                                           stream_port::StreamPort::memory(settings, config.pool, count, lanes)));
  WARPLINE_TRY(const auto port, stream_port::StreamPort::open(settings, config.pool, receiver, clock_.now(),
                                                              std::nullopt, count, config.stream.vlan, lanes));
  std::vector<Queue> queues(count);
  for (std::uint16_t i = 0; i < count; ++i) {
    WARPLINE_TRY(auto gpu, gpu_of(config.stream));
    queues[i].connections = std::make_unique<service::KeptStreams>(port->queue(i).receiver(), receiver,
                                                                   config.stream.chunk, inbox_, std::move(gpu));
    queues[i].worker = std::make_unique<stream_port::StreamWorker>(port->queue(i), *queues[i].connections, clock_,
                                                                   stop_, plan.workers[i].gives_way);
  }
  started_ = clock_.now();
  {
    runtime::Workers workers(plan);
    for (std::size_t i = 0; i < queues.size(); ++i) {
      const Result<void> launched = workers.launch(i, [&worker = *queues[i].worker] { worker.run(); });
      if (!launched) stop_.store(true, std::memory_order_relaxed);
      WARPLINE_CHECK(launched);
    }
    thread_.say_started();
    supervise(*port, queues);
    stop_.store(true, std::memory_order_relaxed);
  }
  service::StreamReport report = report_of(loaded_, *port, plan, eal);
  report.duration_s = seconds();
  std::uint64_t first = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t last = 0;
  for (const Queue& queue : queues) {
    if (queue.worker->last_byte() == 0) continue;
    first = std::min(first, queue.worker->first_byte());
    last = std::max(last, queue.worker->last_byte());
  }
  report.receiving_s = last == 0 ? 0 : static_cast<double>(last - first) / 1e9;
  report_ = report.to_json().dump();
  if (!report.conserved()) exit_code_ = static_cast<int>(ErrorKind::verification);
  for (const Queue& queue : queues) {
    if (queue.worker->failure()) return *queue.worker->failure();
  }
  return {};
}

void StreamSession::supervise(stream_port::StreamPort& port, const std::vector<Queue>& queues) {
  constexpr std::chrono::milliseconds kPeriod{2};
  const report::RunSettings& settings = loaded_.config.run;
  const double interval = static_cast<double>(settings.interval.value) / 1e9;
  const double end = static_cast<double>(settings.seconds.value) / 1e9;
  double last = 0;
  service::StreamTotals before;
  while (!thread_.stopping().load(std::memory_order_relaxed) &&
         std::ranges::none_of(queues, [](const Queue& queue) { return queue.worker->done(); })) {
    std::this_thread::sleep_for(kPeriod);
    const double now = seconds();
    if (end != 0 && now >= end) return;
    if (!tells_progress_ || now - last < interval) continue;
    const service::StreamTotals totals = service::StreamTotals::of(port);
    const service::StreamInterval line{.time_s = now,
                                       .seconds = now - std::exchange(last, now),
                                       .before = std::exchange(before, totals),
                                       .now = totals};
    thread_.say(line.json() + "\n");
  }
}

}  // namespace warpline::python
