// SPDX-License-Identifier: Apache-2.0
#include "frame/run_frame.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <utility>

#include "config/reload.h"
#include "frame/run_needs.h"
#include "warpline/metrics/exposition.h"
#include "warpline/port/link_wait.h"
#include "warpline/port/removal.h"
#include "warpline/report/facts.h"
#include "warpline/report/recycle_totals.h"
#include "warpline/report/run_end.h"
#include "warpline/runtime/dpdk_log.h"
#include "warpline/runtime/iova_mode.h"

namespace warpline {
namespace {

Nanos monotonic_now() { return {static_cast<std::int64_t>(report::monotonic_seconds() * 1e9)}; }

}  // namespace

Result<void> RunFrame::place(const std::vector<runtime::WorkerRequest>& workers) {
  WARPLINE_TRY(lcores_, runtime::place_workers(config_.runtime, workers));
  return {};
}

Result<void> RunFrame::start_eal(const std::vector<std::string>& port_specs, Bytes memory) {
  WARPLINE_TRY(runtime::Eal eal, runtime::Eal::start_planned(config_.runtime, lcores_, port_specs, memory));
  eal_.emplace(std::move(eal));
  return {};
}

Result<void> RunFrame::answer_metrics(const std::function<void(metrics::Snapshot&)>& add) {
  const nlohmann::ordered_json facts = report::build_facts();
  const metrics::Labels build = {{"version", facts.at("version").get<std::string>()},
                                 {"dpdk", facts.at("dpdk").get<std::string>()},
                                 {"command", std::string(name(config_.command))}};
  counted_ = [=] {
    metrics::Snapshot snapshot;
    metrics::add_process(snapshot, build);
    add(snapshot);
    return snapshot;
  };
  WARPLINE_TRY(exporter_, exporter::Exporter::open(config_.metrics, !config_.runtime.telemetry.empty(), counted_,
                                                   [this] { return reload(); }));
  return keep_crash_report(build);
}

Result<void> RunFrame::keep_crash_report(const metrics::Labels& build) {
  if (config_.crash_report.empty()) return {};
  std::string head = "warpline crashed\n";
  for (const auto& [name, value] : build) head += fmt::format("{}: {}\n", name, value);
  head +=
      fmt::format("build id: {}\nprocess: {}\nsettings: {}\n", runtime::build_id(), getpid(), loaded_.to_json().dump());
  WARPLINE_TRY(crash_report_, runtime::CrashReport::open(config_.crash_report, std::move(head)));
  return {};
}

Result<void> RunFrame::end_set_up() {
  const bool physical = eal_.has_value() && runtime::uses_physical_addresses();
  if (config_.keep_privileges || config_.forward.nvtx) {
    restrictions_ = sandbox::read_restrictions();
    if (!config_.keep_privileges)
      restrictions_.notes.emplace_back("nothing is given up: --nvtx is for a profiler in here");
  } else {
    WARPLINE_TRY(restrictions_, sandbox::restrict_process(needs_of(config_, loaded_.file, physical)));
  }
  service_manager_.ready();
  return {};
}

nlohmann::ordered_json RunFrame::restrictions_json(const sandbox::Restrictions& restrictions) {
  return {{"capabilities", restrictions.capabilities},
          {"no_new_privs", restrictions.no_new_privs},
          {"seccomp", restrictions.seccomp},
          {"landlock", restrictions.landlock},
          {"core_dumps", restrictions.core_dumps}};
}

Result<std::vector<std::string>> RunFrame::read_again() {
  config::Reloaded reloaded{.next = loaded_, .changed = {}, .fixed = {}};
  if (!loaded_.file.empty()) {
    auto read = config::reload(loaded_, config::read_text_file);
    if (!read) {
      Error error = std::move(read).error();
      error.what = "the configuration stays as it was: " + error.what;
      return error;
    }
    reloaded = *std::move(read);
  }
  std::vector<std::string> said;
  if (take_over_) {
    WARPLINE_TRY(std::string line, take_over_(reloaded.next.config));
    if (!line.empty()) said.push_back(std::move(line));
  }
  config_.run.interval = reloaded.next.config.run.interval;
  const runtime::LogLevel level = reloaded.next.config.runtime.log_level;
  if (level != loaded_.config.runtime.log_level) runtime::set_log_level(level);
  loaded_ = std::move(reloaded.next);
  if (exporter_) exporter_->allow(loaded_.config.metrics.allowed);
  if (!reloaded.changed.empty()) said.push_back(fmt::format("changed {}", fmt::join(reloaded.changed, ", ")));
  if (!reloaded.fixed.empty())
    said.push_back(fmt::format("unchanged until the next start: {}", fmt::join(reloaded.fixed, ", ")));
  if (said.empty()) said.emplace_back("nothing has changed");
  return said;
}

std::string RunFrame::reload() {
  const Result<std::vector<std::string>> said = read_again();
  if (!said) {
    spdlog::error("{}", said.error().message());
    return "refused: " + said.error().message();
  }
  for (const std::string& line : *said) spdlog::info("{}", line);
  return fmt::format("{}", fmt::join(*said, "\n"));
}

void RunFrame::tend() {
  if (runtime::ReloadOnSignal::take()) reload();
  if (exporter_) exporter_->poll();
  constexpr double kNotePeriodS = 1;
  if (crash_report_ && report::monotonic_seconds() - counters_noted_s_ >= kNotePeriodS) {
    counters_noted_s_ = report::monotonic_seconds();
    crash_report_->note_counters(metrics::write(counted_(), metrics::Exposition::text));
  }
  for (const auto& announcer : announcers_) {
    for (const std::string& line : announcer->tend(monotonic_now())) spdlog::warn("{}", line);
  }
  service_manager_.alive();
}

port::Announcer& RunFrame::announce_by(std::unique_ptr<port::Announcer> announcer) {
  announcer->begin(monotonic_now());
  return *announcers_.emplace_back(std::move(announcer));
}

void RunFrame::begin_end() {
  leaving_.emplace("giving back ports and memory", runtime::SetupStep::Of::clean_up);
  runtime::Eal::begin_end();
}

void RunFrame::note_down_links(std::vector<std::string> names) {
  down_links_ = report::notes_of_down_links(std::move(names));
}

void RunFrame::announce(std::span<const port::Port> ports, const memory::Recycling* recycling) {
  report::announce(report::notes_of(lcores_, *eal_, ports));
  if (recycling != nullptr) report::announce(recycling_notes(*recycling));
  if (!down_links_) note_down_links(port::wait_for_links(ports, runtime::StopOnSignal::requested()));
  report::announce(*down_links_);
}

Result<void> RunFrame::launch(std::optional<runtime::Workers>& workers, const std::function<void(std::size_t)>& run) {
  WARPLINE_CHECK(end_set_up());
  workers.emplace(lcores_);
  started_s_ = report::monotonic_seconds();
  for (std::size_t worker = 0; worker < lcores_.workers.size(); ++worker) {
    WARPLINE_CHECK(workers->launch(worker, [run, worker] { run(worker); }));
  }
  return {};
}

report::RunReport RunFrame::begin_report(const report::LiveResult& live, std::span<const port::Port> ports) const {
  report::RunReport report;
  report.command = name(config_.command);
  report.config = loaded_.to_json();
  report.duration_s = live.duration_s;
  report.rate = live.rate;
  for (const port::Port& port : ports) report::add_port(report, port);
  report::add_plan(report, lcores_);
  report.notes = notes(ports);
  return report;
}

std::vector<std::string> RunFrame::notes(std::span<const port::Port> ports) const {
  std::vector<std::string> notes = report::notes_of(lcores_, *eal_, ports);
  notes.insert(notes.end(), plan_notes_.begin(), plan_notes_.end());
  if (down_links_) notes.insert(notes.end(), down_links_->begin(), down_links_->end());
  notes.insert(notes.end(), restrictions_.notes.begin(), restrictions_.notes.end());
  std::ranges::move(port::removal_notes(), std::back_inserter(notes));
  return notes;
}

std::vector<std::string> RunFrame::lcore_lines() const {
  std::vector<std::string> lines;
  for (const runtime::PlacedWorker& worker : lcores_.workers) {
    lines.push_back(fmt::format("{}: lcore {} on cpu {}", worker.request.name, worker.lcore, worker.cpu.id));
  }
  return lines;
}

std::vector<std::string> RunFrame::recycling_notes(const memory::Recycling& recycling) const {
  return loaded_.is_given("forward.recycle") ? recycling.notes : std::vector<std::string>{};
}

void RunFrame::add_recycling(report::RunReport& report, const memory::Recycling& recycling,
                             std::span<const port::Port> ports) const {
  const memory::RecycleWay way = config_.forward.recycle;
  report.recycle = report::recycle_totals(way, recycling, ports);
  for (const std::string& note : recycling_notes(recycling)) report.notes.push_back(note);
  auto nothing = report::nothing_recycled(way, *report.recycle, report.totals.rx.packets);
  if (nothing && loaded_.is_given("forward.recycle")) report.notes.push_back(*std::move(nothing));
}

}  // namespace warpline
