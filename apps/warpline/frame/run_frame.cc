// SPDX-License-Identifier: Apache-2.0
#include "frame/run_frame.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "warpline/machine/topology.h"
#include "warpline/report/recycle_totals.h"
#include "warpline/report/run_end.h"

namespace warpline {

bool is_given(const config::LoadedConfig& loaded, std::string_view setting) {
  return std::ranges::any_of(loaded.settings, [&](const config::Setting& known) {
    return known.name == setting && known.origin.source != config::Source::built_in;
  });
}

Result<void> RunFrame::place(const std::vector<runtime::WorkerRequest>& workers) {
  WARPLINE_TRY(const machine::Topology topology, machine::Topology::of_machine());
  WARPLINE_TRY(lcores_, runtime::place_workers(config_.runtime, topology, workers));
  return {};
}

Result<void> RunFrame::start_eal(const std::vector<std::string>& port_specs, Bytes memory) {
  WARPLINE_TRY(runtime::Eal eal, runtime::Eal::start(config_.runtime, lcores_, port_specs, memory));
  eal_.emplace(std::move(eal));
  return {};
}

void RunFrame::begin_end() {
  leaving_.emplace("giving back ports and memory", runtime::SetupStep::Of::clean_up);
  runtime::Eal::begin_end();
}

void RunFrame::await_links(std::span<const port::Port> ports) { down_links_ = report::await_links(ports); }

void RunFrame::announce(std::span<const port::Port> ports, const memory::Recycling* recycling) {
  report::announce(report::notes_of(lcores_, *eal_, ports));
  if (recycling != nullptr) report::announce(recycling_notes(*recycling));
  if (!down_links_) await_links(ports);
  report::announce(*down_links_);
}

Result<void> RunFrame::launch(std::optional<runtime::Workers>& workers, const std::function<void(std::size_t)>& run) {
  workers.emplace(lcores_);
  started_s_ = report::monotonic_seconds();
  for (std::size_t worker = 0; worker < lcores_.workers.size(); ++worker) {
    WARPLINE_CHECK(workers->launch(worker, [run, worker] { run(worker); }));
  }
  return {};
}

report::RunReport RunFrame::begin_report(const report::LiveResult& live, std::span<const port::Port> ports) const {
  report::RunReport report;
  report.command = config_.command;
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
  if (down_links_) notes.insert(notes.end(), down_links_->begin(), down_links_->end());
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
  return is_given(loaded_, "forward.recycle") ? recycling.notes : std::vector<std::string>{};
}

void RunFrame::add_recycling(report::RunReport& report, const memory::Recycling& recycling,
                             std::span<const port::Port> ports) const {
  const memory::RecycleWay way = config_.forward.recycle;
  report.recycle = report::recycle_totals(way, recycling, ports);
  for (const std::string& note : recycling_notes(recycling)) report.notes.push_back(note);
  auto nothing = report::nothing_recycled(way, *report.recycle, report.totals.rx.packets);
  if (nothing && is_given(loaded_, "forward.recycle")) report.notes.push_back(*std::move(nothing));
}

}  // namespace warpline
