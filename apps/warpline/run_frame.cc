// SPDX-License-Identifier: Apache-2.0
#include "run_frame.h"

#include <algorithm>
#include <utility>

#include "warpline/report/recycle_totals.h"
#include "warpline/report/run_end.h"

namespace warpline {

bool is_given(const config::LoadedConfig& loaded, std::string_view setting) {
  return std::ranges::any_of(loaded.settings, [&](const config::Setting& known) {
    return known.name == setting && known.origin.source != config::Source::built_in;
  });
}

report::RunReport report_of(const config::LoadedConfig& loaded, const report::LiveResult& live,
                            const runtime::LcorePlan& plan, const runtime::Eal& eal,
                            std::span<const port::Port> ports) {
  report::RunReport report;
  report.command = loaded.config.command;
  report.config = loaded.to_json();
  report.duration_s = live.duration_s;
  report.rate = live.rate;
  for (const port::Port& port : ports) report::add_port(report, port);
  report::add_plan(report, plan);
  report.notes = report::notes_of(plan, eal, ports);
  return report;
}

std::vector<std::string> recycling_notes(const config::LoadedConfig& loaded, const memory::Recycling& recycling) {
  return is_given(loaded, "forward.recycle") ? recycling.notes : std::vector<std::string>{};
}

void add_recycling(report::RunReport& report, const config::LoadedConfig& loaded, const memory::Recycling& recycling,
                   std::span<const port::Port> ports) {
  const memory::RecycleWay way = loaded.config.forward.recycle;
  report.recycle = report::recycle_totals(way, recycling, ports);
  for (const std::string& note : recycling_notes(loaded, recycling)) report.notes.push_back(note);
  auto nothing = report::nothing_recycled(way, *report.recycle, report.totals.rx.packets);
  if (nothing && is_given(loaded, "forward.recycle")) report.notes.push_back(*std::move(nothing));
}

}  // namespace warpline
