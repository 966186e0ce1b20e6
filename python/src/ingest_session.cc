// SPDX-License-Identifier: Apache-2.0
#include "ingest_session.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <utility>

#include "ingest_totals/ingest_totals.h"
#include "warpline/report/report.h"
#include "warpline/report/run_end.h"

namespace warpline::python {
namespace {

/// Refuses what `ingest` can do and a consumer of frames in this process cannot, and decides what `ingest` decides.
Result<void> settle(config::LoadedConfig& loaded) {
  config::Config& config = loaded.config;
  ingest::IngestSettings& ingest = config.ingest;
  if (ingest.frame.empty()) {
    return usage_error("Ingest", "it gives frames, and nothing says which",
                       "give frame=\"packets=N,seq=OFFSET:BITS,payload=OFFSET:LEN\"");
  }
  datapath::ForwardSettings& forward = config.forward;
  forward.engine = ingest.engine.value_or(EngineKind::inline_);
  // A packet is copied once, into its frame.
  if (!runs_on_gpu(forward.engine) && !loaded.is_given("ingest.path")) ingest.path = ingest::IngestPath::zerocopy;
  config.runtime.keep = true;
  datapath::DatapathSettings settings = config.datapath();
  WARPLINE_CHECK(ingest::resolve(ingest, settings));
  forward = settings.forward;
  config.pool = settings.pool;
  return {};
}

}  // namespace

Result<std::shared_ptr<IngestSession>> IngestSession::begin(const std::vector<std::string>& arguments,
                                                            bool tells_progress) {
  WARPLINE_TRY(config::LoadedConfig loaded, load_command(arguments));
  WARPLINE_CHECK(settle(loaded));
  WARPLINE_TRY(auto inbox, ingest::FrameInbox::make());
  std::shared_ptr<IngestSession> session(new IngestSession(std::move(loaded), std::move(inbox), tells_progress));
  IngestSession& run = *session;
  WARPLINE_CHECK(run.thread_.start("Ingest", [&run] { return run.control(); }, [&run] { run.inbox_->end(); }));
  return session;
}

IngestSession::~IngestSession() {
  if (thread_.is_here()) close();
}

void IngestSession::close() {
  closing_.store(true, std::memory_order_relaxed);
  stop();
  inbox_->close();
  join();
}

ssize_t IngestSession::take_line(void* self, const char* text, std::size_t size) {
  auto* const session = static_cast<IngestSession*>(self);
  if (session->tells_progress_) session->thread_.say({text, size});
  return static_cast<ssize_t>(size);
}

Result<void> IngestSession::control() {
  Result<void> done = run();
  if (!done) exit_code_ = static_cast<int>(done.error().kind);
  return done;
}

Result<void> IngestSession::run() {
  const config::Config& config = loaded_.config;
  std::optional<forward::LoopbackSettings> loopback;
  if (config.forward.loopback) {
    WARPLINE_TRY(traffic::TrafficPlan plan, traffic::TrafficPlan::make(config.traffic, config.run.seed));
    loopback.emplace(forward::LoopbackSettings{.plan = std::move(plan),
                                               .rate = config.traffic.rate,
                                               .burst = config.traffic.burst,
                                               .warmup = config.run.warmup,
                                               .drain = config.traffic.drain});
  }
  WARPLINE_TRY(const auto run, ingest::IngestRun::start_kept_frames(config.datapath(), config.ingest, inbox_,
                                                                    config.runtime, std::move(loopback)));
  thread_.say_started();
  const report::LiveResult live = supervise(*run);
  const Result<void> done = run->finish();
  make_report(*run, live);
  return done;
}

report::LiveResult IngestSession::supervise(ingest::IngestRun& run) {
  report::RunSettings settings = loaded_.config.run;
  settings.json_stream = true;
  if (!tells_progress_) settings.interval = Nanos{std::uint64_t{3600} * 1'000'000'000};
  std::FILE* const lines = fopencookie(this, "w", {nullptr, take_line, nullptr, nullptr});
  const report::LiveResult live = report::run_live(settings,
                                                   {.started_s = report::monotonic_seconds(),
                                                    .sample = [&] { return totals(run); },
                                                    .progress = [&] { return run.paths().delivered(); },
                                                    .done =
                                                        [&] {
                                                          if (closing_.load(std::memory_order_relaxed)) run.stop(true);
                                                          return !run.look();
                                                        },
                                                    .stop = [&] { run.stop(); }},
                                                   thread_.stopping(), lines, stderr);
  std::fclose(lines);
  return live;
}

RunTotals IngestSession::totals(const ingest::IngestRun& run) const {
  return ingest_run_totals({.forwarder = run.forwarding().forwarder(),
                            .paths = run.paths(),
                            .far = run.far(),
                            .near_port = run.forwarding().ports().front(),
                            .transmits = loaded_.config.ingest.transmit,
                            .verifies = false});
}

void IngestSession::make_report(const ingest::IngestRun& run, const report::LiveResult& live) {
  const forward::ForwardRun& forwarding = run.forwarding();
  const std::span<const port::Port> all = forwarding.ports();
  report::RunReport made;
  made.command = name(loaded_.config.command);
  made.config = loaded_.to_json();
  made.duration_s = live.duration_s;
  made.rate = live.rate;
  for (const port::Port& port : all) report::add_port(made, port);
  report::add_plan(made, forwarding.plan());
  made.notes = report::notes_of(forwarding.plan(), forwarding.eal(), all);
  made.totals = totals(run);
  made.ingest = ingest_report(forwarding.forwarder(), run.paths(), loaded_.config.forward.loopback ? all.first(1) : all,
                              made.totals);
  made.ingest->consumer = "frames";
  made.ingest->engine = name(loaded_.config.forward.engine);
  if (run.frame_totals()) add_frames(*made.ingest, *run.frame_totals());
  for (const port::Port& port : all) {
    for (const auto& [counter, value] : port.extended_counters()) {
      if (counter.starts_with("fault_") && value != 0) made.ingest->faults.emplace_back(counter, value);
    }
  }
  report_ = made.to_json().dump();
  exit_code_ = report::exit_code(made, false);
}

}  // namespace warpline::python
