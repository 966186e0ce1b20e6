// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <vector>

#include "sim/bulk_run.h"
#include "sim/reports.h"

namespace warpline::sim {
namespace {

constexpr std::uint32_t kSenders = 100;
constexpr std::int64_t kWarmUp = 20'000'000;
constexpr std::int64_t kMeasured = 50'000'000;

}  // namespace

EndpointConfig compatibility_mode() {
  EndpointConfig config;
  config.reliability = Reliability::go_back_n;
  config.cc.kind = CcKind::timely;
  config.credits = 32;
  config.fixed_rto = Nanos{5'000'000};
  return config;
}

IncastFigures incast(const EndpointConfig& config, std::uint32_t at_once) {
  NetworkConfig network{.hosts = kSenders + 1};
  network.downlink.capacity_bytes = 12'000'000;
  if (config.cc.kind == CcKind::dctcp) network.downlink.mark_above_bytes = 100'000;
  network.seed = 1;
  std::vector<BulkPlan> plans(kSenders + 1);
  for (std::uint32_t i = 1; i <= kSenders; ++i) plans[i] = {.server = 0, .request_bytes = 16 << 10, .at_once = at_once};
  HostConfig host;
  host.endpoint = config;
  host.endpoint.max_sent_packets = 1 << 14;
  host.endpoint.max_messages = 1 << 13;
  host.receive_ring = 1 << 14;
  BulkRun run(network, host, plans);
  run.run_for(kWarmUp);
  run.forget_statistics();
  run.run_for(kMeasured);

  IncastFigures figures;
  double sum = 0;
  double squares = 0;
  for (std::uint32_t i = 1; i <= kSenders; ++i) {
    const double bytes = run.application(i).goodput_bytes();
    sum += bytes;
    squares += bytes * bytes;
  }
  const std::uint32_t fragment_bytes = run.host(1).endpoint().facts(run.application(1).session()).fragment_bytes;
  const Port& bottleneck = run.network().downlink(0);
  const double full_packets = network.downlink.bits_per_second / 8 / bottleneck.counters().longest_wire_bytes;
  figures.link_share = sum / (full_packets * fragment_bytes * kMeasured / 1e9);
  figures.jain = squares > 0 ? sum * sum / (kSenders * squares) : 0;
  figures.p50_wait_us = static_cast<double>(bottleneck.waits().quantile(0.5)) / 1e3;
  figures.p99_wait_us = static_cast<double>(bottleneck.waits().quantile(0.99)) / 1e3;
  figures.dropped = bottleneck.counters().dropped;
  figures.failed = run.failed();
  return figures;
}

int print_incast() {
  fmt::print("100 senders to one, 25 Gbit/s; the queue's waits in us\n");
  fmt::print("{:<28}{:>8}{:>10}{:>8}{:>10}{:>10}{:>10}{:>8}\n", "", "at once", "link", "Jain", "p50 wait", "p99 wait",
             "drops", "failed");
  const auto line = [](std::string_view name, const EndpointConfig& config, std::uint32_t at_once) {
    const IncastFigures f = incast(config, at_once);
    fmt::print("{:<28}{:>8}{:>9.1f}%{:>8.3f}{:>10.1f}{:>10.1f}{:>10}{:>8}\n", name, at_once, 100 * f.link_share, f.jain,
               f.p50_wait_us, f.p99_wait_us, f.dropped, f.failed);
  };
  EndpointConfig config;
  for (const std::uint32_t at_once : {1U, 4U}) {
    config.cc.kind = CcKind::swift;
    line("swift", config, at_once);
    config.cc.kind = CcKind::timely;
    line("timely", config, at_once);
    config.cc.kind = CcKind::dctcp;
    line("dctcp, marks above 100 kB", config, at_once);
    config.cc.kind = CcKind::none;
    line("none", config, at_once);
    line("compatibility mode", compatibility_mode(), at_once);
  }
  return 0;
}

}  // namespace warpline::sim
