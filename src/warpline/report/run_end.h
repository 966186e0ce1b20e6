// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <cstdio>
#include <span>
#include <string>
#include <vector>

#include "warpline/base/output.h"
#include "warpline/port/port.h"
#include "warpline/report/report.h"
#include "warpline/report/run_settings.h"
#include "warpline/runtime/eal.h"
#include "warpline/runtime/lcore_plan.h"

namespace warpline::report {

/// Adds what runs where.
void add_plan(RunReport& report, const runtime::LcorePlan& plan);

/// What costs rate or latency, by the plan, by the EAL and by the ports' devices, each one line.
[[nodiscard]] std::vector<std::string> notes_of(const runtime::LcorePlan& plan, const runtime::Eal& eal,
                                                std::span<const port::Port> ports);
/// Returns a line for each of the ports, named as port::wait_for_links() names those whose links are down.
[[nodiscard]] std::vector<std::string> notes_of_down_links(std::vector<std::string> ports);
/// Says them on stderr: loudly, before the run begins.
void announce(const std::vector<std::string>& notes);

/// Adds what the device counted and what it refused to be set up to.
void add_port(RunReport& report, const port::Port& port);

/// Prints a report, of packets or of something else, on stdout: one JSON object with --json, a table for people
/// otherwise; with --json-stream alone nothing, since stdout then holds interval lines only.
template <typename Report>
void print(const Report& report, const RunSettings& settings) {
  if (settings.json) {
    fmt::print("{}\n", report.to_json().dump());
  } else if (!settings.json_stream) {
    fmt::print("{}", report.to_text());
  }
  flush_output(stdout);
}

/// The exit code of a run that came to its report: 4 if packets are unaccounted for or wrong and the faults that the
/// command was asked for do not explain it, 5 if a port lost its device, 130 if it was interrupted, 0 otherwise.
[[nodiscard]] int exit_code(const RunReport& report, bool interrupted);

}  // namespace warpline::report
