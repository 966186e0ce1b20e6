// SPDX-License-Identifier: Apache-2.0
#include "warpline/report/run_end.h"

#include <fmt/format.h>

#include <cstdio>

#include "warpline/base/output.h"
#include "warpline/port/removal.h"

namespace warpline::report {

void add_plan(RunReport& report, const runtime::LcorePlan& plan) {
  for (const runtime::PlacedWorker& worker : plan.workers) {
    report.lcores.push_back(fmt::format("{}: lcore {} on cpu {}{}{}{}", worker.request.name, worker.lcore,
                                        worker.cpu.id, worker.shares_cpu ? " (shared)" : "",
                                        worker.request.queues.empty() ? "" : ", ", worker.request.queues));
  }
}

std::vector<std::string> notes_of(const runtime::LcorePlan& plan, const runtime::Eal& eal,
                                  std::span<const port::Port> ports) {
  std::vector<std::string> notes = plan.notes;
  notes.insert(notes.end(), eal.notes().begin(), eal.notes().end());
  for (const port::Port& port : ports) {
    if (!port.setup().rings.empty()) notes.push_back(port.setup().rings);
  }
  return notes;
}

std::vector<std::string> notes_of_down_links(std::vector<std::string> ports) {
  for (std::string& port : ports) {
    port = fmt::format("port {}: its link is down: what is sent there is lost until it comes up", port);
  }
  return ports;
}

void announce(const std::vector<std::string>& notes) {
  for (const std::string& note : notes) put_line(stderr, "warpline: note: " + note);
}

void add_port(RunReport& report, const port::Port& port) {
  const port::PortCounters counters = port.counters();
  report.ports.push_back({.name = port.name(),
                          .rx = {counters.rx_packets, counters.rx_bytes},
                          .tx = {counters.tx_packets, counters.tx_bytes},
                          .missed = counters.rx_missed,
                          .no_mbuf = counters.rx_no_mbuf,
                          .errors = counters.rx_errors + counters.tx_errors,
                          .mac = to_string(port.mac()),
                          .address_conflicts = counters.address_conflicts});
  for (const std::string& refused : port.setup().refused) {
    report.refused_offloads.push_back(fmt::format("{}: {}", port.name(), refused));
  }
}

int exit_code(const RunReport& report, bool interrupted) {
  constexpr int kInterrupted = 130;
  const std::optional<VerifyTotals>& verify = report.totals.verify;
  const bool clean = !verify || verify->clean() || (report.injected && report.injected->explain(*verify));
  if (!report.totals.conserved()) return static_cast<int>(ErrorKind::verification);
  if (port::any_removed()) return static_cast<int>(ErrorKind::peer);  // what is missing went with it
  if (!clean) return static_cast<int>(ErrorKind::verification);
  return interrupted ? kInterrupted : 0;
}

}  // namespace warpline::report
