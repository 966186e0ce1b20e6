// SPDX-License-Identifier: Apache-2.0
#include "warpline/base/statistics/run_totals.h"

#include <numeric>

#include "warpline/base/units.h"

namespace warpline {
namespace {

constexpr std::uint64_t kFcsBytes = 4;

double per_nano(double amount, double seconds) { return seconds > 0 ? amount / seconds / 1e9 : 0; }

}  // namespace

double StageTotals::cycles_per_packet() const {
  return sampled_packets == 0 ? 0 : static_cast<double>(sampled_ticks) / static_cast<double>(sampled_packets);
}

double StageTotals::batch_mean() const {
  return calls == 0 ? 0 : static_cast<double>(packets) / static_cast<double>(calls);
}

LatencyTotals LatencyTotals::of(const Histogram& histogram) {
  return {histogram.count(),         histogram.quantile(0.5),     histogram.quantile(0.9), histogram.quantile(0.99),
          histogram.quantile(0.999), histogram.quantile(0.99999), histogram.max()};
}

std::uint64_t RunTotals::dropped() const { return std::accumulate(drops.begin(), drops.end(), std::uint64_t{0}); }

bool RunTotals::conserved() const {
  const std::uint64_t in = rx.packets + (generated ? generated->packets : 0);
  const std::uint64_t out = tx.packets + (delivered ? delivered->packets : 0) + dropped() + in_flight;
  return in == out;
}

double Throughput::mpps() const { return 1e3 * per_nano(static_cast<double>(tally.packets), seconds); }

double Throughput::gbps_l1() const {
  return per_nano(8.0 * static_cast<double>(tally.bytes + kLayer1Overhead * tally.packets), seconds);
}

double Throughput::gbps_l2() const {
  return per_nano(8.0 * static_cast<double>(tally.bytes + kFcsBytes * tally.packets), seconds);
}

}  // namespace warpline
