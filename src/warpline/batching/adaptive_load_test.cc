// SPDX-License-Identifier: Apache-2.0
// AdaptiveBatch beside every fixed batch, in simulation.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <ostream>
#include <vector>

#include "warpline/batching/adaptive_batch.h"
#include "warpline/batching/batching_testing.h"

namespace warpline::batching {
namespace {

using namespace testing;

constexpr std::uint32_t kLargest = 4096;
constexpr Time kDeadline = 20'000'000;
constexpr double kMostPackets = 150;  ///< per microsecond: more than any port brings

struct LoadCase {
  SimEngine engine;
  Arrivals arrivals;
  double load;
};

std::ostream& operator<<(std::ostream& out, const LoadCase& load) {
  const SimEngine& engine = load.engine;
  return out << "a " << engine.fixed << " us, c " << engine.per_packet << " us, " << engine.slots << " slots, "
             << engine.lanes << " lanes, latency " << engine.latency << " us, arrivals "
             << static_cast<int>(load.arrivals) << ", load " << load.load;
}

/// What a case is measured by: its throughput as a share of what was offered, and its 99th percentile.
struct Score {
  double delivered;
  double p99;
};

template <typename Policy>
Score score(const LoadCase& load, const std::vector<Time>& packets, const SimSettings& settings, Policy& policy) {
  const auto result = std::make_unique<SimResult>();
  simulate(load.engine, packets, policy, settings, 7, *result);
  return {result->delivered(), static_cast<double>(result->latency.quantile(0.99))};
}

/// The goal: 95 % of the best fixed batch's throughput, and 1.5 times the least 99th percentile of those that have
/// that.
void expect_near_the_best(const LoadCase& load) {
  const double most = load.engine.rate(kLargest);
  const double rate = most * load.load;
  if (rate > kMostPackets) return;
  const double round =
      (load.engine.fixed + load.engine.latency + load.engine.per_packet * kLargest) * load.engine.slots;
  const auto count = static_cast<std::size_t>(
      std::clamp(rate * std::max(2 * round / load.engine.lanes, 150 * load.engine.fixed), 8'000.0, 120'000.0));
  Random random(1);
  const std::vector<Time> packets = arrivals(load.arrivals, rate, count, random);
  const SimSettings settings{.queue = 32'768, .from = packets[count / 2]};
  AdaptiveBatch adaptive({kLargest, kDeadline, load.engine.slots});
  const Score ours = score(load, packets, settings, adaptive);
  std::vector<Score> fixed;
  for (std::uint32_t burst = 1; burst <= kLargest; burst *= 2) {
    if (load.engine.rate(burst) < 0.9 * rate) continue;  // it loses a tenth, so it is not the best
    FixedBatch batch(burst, kDeadline);
    fixed.push_back(score(load, packets, settings, batch));
    if (batch.full() == 0) break;  // larger ones do the same
  }
  const double delivered = std::ranges::max(fixed, {}, &Score::delivered).delivered;
  std::erase_if(fixed, [delivered](const Score& other) { return other.delivered < 0.95 * delivered; });
  const double p99 = std::ranges::min(fixed, {}, &Score::p99).p99;
  EXPECT_GE(ours.delivered, 0.95 * delivered) << load;
  EXPECT_LE(ours.p99, 1.5 * p99) << load;
}

constexpr double kLoads[] = {0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 1.0};
constexpr Arrivals kArrivals[] = {Arrivals::constant, Arrivals::poisson, Arrivals::bursts};

TEST(AdaptiveLoad, IsNearTheBestFixedBatchOfASerialEngine) {
  for (const double fixed : {0.3, 2.5, 16.5}) {
    for (const double per_packet : {0.002, 0.01, 0.07}) {
      for (const std::uint32_t slots : {1U, 4U, 16U}) {
        for (const Arrivals kind : kArrivals) {
          for (const double load : kLoads) {
            expect_near_the_best({{.fixed = fixed, .per_packet = per_packet, .slots = slots}, kind, load});
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace warpline::batching
