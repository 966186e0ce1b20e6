// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "sim/bulk_run.h"
#include "sim/reports.h"

namespace warpline::sim {
namespace {

constexpr std::int64_t kFirstMillisecond = 1'000'000;
constexpr std::int64_t kAlone = 20'000'000;
constexpr std::int64_t kLeastFairWindow = 500'000;  // in which each should have had its share
constexpr double kFair = 0.95;
constexpr double kFairRequests = 4;  // that this is at least
constexpr std::int64_t kFairAtLast = 20'000'000;
constexpr std::int64_t kFairMeasured = 10'000'000;
constexpr std::uint32_t kRequestBytes = 8 << 10;

/// Jain, Chiu, Hawe, 1984.
double jain(const std::vector<double>& shares) {
  double sum = 0;
  double squares = 0;
  for (const double share : shares) {
    sum += share;
    squares += share * share;
  }
  return squares > 0 ? sum * sum / (static_cast<double>(shares.size()) * squares) : 0;
}

/// Requests completed by each session so far.
std::vector<std::uint64_t> completed(BulkRun& run, std::uint32_t sessions) {
  std::vector<std::uint64_t> counts(sessions);
  for (std::uint32_t i = 0; i < sessions; ++i) counts[i] = run.application(0).completed_by(1 + i);
  return counts;
}

}  // namespace

SharingFigures sharing(const message::EndpointConfig& config, std::uint32_t sessions, bool late) {
  NetworkConfig network{.hosts = 2};
  network.uplink.bits_per_second = 100e9;
  network.downlink.bits_per_second = 10e9;
  network.uplink.delay = network.downlink.delay = 5'000;
  network.downlink.capacity_bytes = 64 << 10;
  network.seed = 1;
  HostConfig host;
  host.endpoint = config;
  host.receive_ring = 1 << 14;
  std::vector<BulkPlan> plans(2);
  plans[0] = {.server = 1,
              .servers = sessions,
              .one_server = true,
              .last_at = late ? kAlone : 0,
              .request_bytes = kRequestBytes,
              .at_once = 32 * sessions};
  BulkRun run(network, host, plans);
  const Port& bottleneck = run.network().downlink(1);
  if (late) run.run_for(kAlone);
  const std::uint64_t before = bottleneck.counters().dropped;
  SharingFigures figures;
  // In a window that slides by a tenth of itself.
  const double bytes_a_nanosecond = network.downlink.bits_per_second / 8e9;
  const auto fair_window = std::max(
      kLeastFairWindow, static_cast<std::int64_t>(kFairRequests * kRequestBytes * sessions / bytes_a_nanosecond));
  const double fair = bytes_a_nanosecond * static_cast<double>(fair_window) / kRequestBytes / sessions;
  std::vector<std::vector<std::uint64_t>> history = {completed(run, sessions)};
  const std::int64_t slide = fair_window / 10;
  for (std::int64_t at = slide; at <= kFairAtLast; at += slide) {
    run.run_for(slide);
    if (at - slide < kFirstMillisecond) figures.dropped = bottleneck.counters().dropped - before;
    history.push_back(completed(run, sessions));
    if (figures.fair_after_us != 0 || at < fair_window) continue;
    const std::vector<std::uint64_t>& then = history[history.size() - 11];
    std::vector<double> shares(sessions);
    for (std::uint32_t i = 0; i < sessions; ++i) shares[i] = static_cast<double>(history.back()[i] - then[i]);
    const bool is_fair = late ? shares.back() >= fair / 2 : jain(shares) >= kFair;
    if (is_fair) figures.fair_after_us = static_cast<double>(at) / 1e3;
  }
  run.forget_statistics();
  run.run_for(kFairMeasured);
  const std::vector<std::uint64_t> counts = completed(run, sessions);
  figures.jain = jain({counts.begin(), counts.end()});
  const double sum =
      static_cast<double>(std::accumulate(counts.begin(), counts.end(), std::uint64_t{0})) * kRequestBytes;
  const std::uint32_t fragment = run.host(0).endpoint().facts(run.application(0).session()).fragment_bytes;
  const double full_packets = network.downlink.bits_per_second / 8 / bottleneck.counters().longest_wire_bytes;
  figures.link_share = sum / (full_packets * fragment * kFairMeasured / 1e9);
  figures.failed = run.failed();
  return figures;
}

int print_sharing() {
  for (const bool late : {false, true}) {
    fmt::print("{}\n{:>10}{:>20}{:>24}{:>18}{:>18}\n",
               late ? "the last begins 20 ms after the others" : "all begin at once", "sessions", "drops in 1 ms",
               "fair after, us", "Jain", "link");
    for (const std::uint32_t sessions : {1U, 2U, 4U, 8U, 16U, 32U, 64U}) {
      if (late && sessions == 1) continue;
      message::EndpointConfig config;
      const SharingFigures shared = sharing(config, sessions, late);
      config.shares_paths = false;
      const SharingFigures apart = sharing(config, sessions, late);
      fmt::print("{:>10}{:>10} / {:<7}{:>12.0f} / {:<9.0f}{:>9.3f} / {:<6.3f}{:>9.3f} / {:<6.3f}\n", sessions,
                 shared.dropped, apart.dropped, shared.fair_after_us, apart.fair_after_us, shared.jain, apart.jain,
                 shared.link_share, apart.link_share);
    }
  }
  fmt::print("shared / each by itself\n");
  return 0;
}

}  // namespace warpline::sim
