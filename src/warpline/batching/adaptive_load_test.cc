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

constexpr Time kDeadline = 20'000'000;
constexpr double kMostPackets = 150;  ///< per microsecond: more than any port brings

struct LoadCase {
  SimEngine engine;
  Arrivals arrivals;
  double load;  ///< by the most that the engine carries
  std::uint32_t largest;
};

std::ostream& operator<<(std::ostream& out, const LoadCase& load) {
  const SimEngine& engine = load.engine;
  return out << "a " << engine.fixed << " us, c " << engine.per_packet << " us, " << engine.slots << " slots, "
             << engine.lanes << " lanes, latency " << engine.latency << " us, arrivals "
             << static_cast<int>(load.arrivals) << ", load " << load.load;
}

/// Score is what a policy is measured by: its throughput as a share of what was offered, and its 99th percentile in
/// nanoseconds.
struct Score {
  double delivered;
  double p99;
};

template <typename Policy>
Score score(const SimEngine& engine, const std::vector<Time>& packets, const SimSettings& settings, Policy& policy) {
  const auto result = std::make_unique<SimResult>();
  simulate(engine, packets, policy, settings, 7, *result);
  return {result->delivered(), static_cast<double>(result->latency.quantile(0.99))};
}

/// Returns the throughput of the best fixed batch, and the least 99th percentile of those that have 95 % of that.
Score best_fixed(const SimEngine& engine, const std::vector<Time>& packets, double rate, std::uint32_t largest,
                 const SimSettings& settings) {
  std::vector<Score> fixed;
  for (std::uint32_t burst = 1; burst <= largest; burst *= 2) {
    if (engine.rate(burst) < 0.9 * rate && burst != largest) continue;  // it loses a tenth, so it is not the best
    FixedBatch batch(burst, kDeadline);
    fixed.push_back(score(engine, packets, settings, batch));
    if (batch.full() == 0) break;  // larger ones do the same
  }
  const double delivered = std::ranges::max(fixed, {}, &Score::delivered).delivered;
  std::erase_if(fixed, [delivered](const Score& other) { return other.delivered < 0.95 * delivered; });
  return {delivered, std::ranges::min(fixed, {}, &Score::p99).p99};
}

/// Compares in the second half of a run that begins with nothing known. `times` is how many times the best fixed
/// batch's 99th percentile may be.
void expect_near_the_best(const LoadCase& load, double times) {
  const SimEngine& engine = load.engine;
  const double rate = engine.rate(load.largest) * load.load;
  if (rate > kMostPackets) return;
  const double round = 2 * (engine.fixed + engine.latency + engine.per_packet * load.largest) * engine.slots;
  const auto count = static_cast<std::size_t>(
      std::clamp(rate * std::max(round / engine.lanes, 150 * engine.fixed), 8'000.0, 120'000.0));
  Random random(1);
  const std::vector<Time> packets = arrivals(load.arrivals, rate, count, random);
  const SimSettings settings{.queue = 32'768, .from = packets[count / 2]};
  AdaptiveBatch adaptive({load.largest, kDeadline, engine.slots});
  const Score ours = score(engine, packets, settings, adaptive);
  const Score best = best_fixed(engine, packets, rate, load.largest, settings);
  EXPECT_GE(ours.delivered, 0.95 * best.delivered) << load;
  EXPECT_LE(ours.p99, times * best.p99) << load;
}

constexpr double kLoads[] = {0.01, 0.1, 0.3, 0.5, 0.7, 0.9, 0.95, 1.0};
constexpr Arrivals kArrivals[] = {Arrivals::constant, Arrivals::poisson, Arrivals::bursts};

void expect_near_the_best_at_all_loads(const SimEngine& engine, std::uint32_t largest, double times) {
  for (const Arrivals kind : kArrivals) {
    for (const double load : kLoads) expect_near_the_best({engine, kind, load, largest}, times);
  }
}

constexpr double kFixedCosts[] = {0.3, 2.5, 16.5};
constexpr double kPacketCosts[] = {0.002, 0.01, 0.07};

TEST(AdaptiveLoad, IsNearTheBestFixedBatchOfASerialEngine) {
  for (const double fixed : kFixedCosts) {
    for (const double per_packet : kPacketCosts) {
      for (const std::uint32_t slots : {1U, 4U, 16U}) {
        expect_near_the_best_at_all_loads({.fixed = fixed, .per_packet = per_packet, .slots = slots}, 4096, 1.5);
      }
    }
  }
}

TEST(AdaptiveLoad, StaysNearTheBestFixedBatchWhenTimesScatter) {
  for (const double fixed : kFixedCosts) {
    for (const double per_packet : kPacketCosts) {
      for (const std::uint32_t slots : {1U, 16U}) {
        const SimEngine engine{.fixed = fixed, .per_packet = per_packet, .slots = slots, .noise = 0.2};
        expect_near_the_best_at_all_loads(engine, 512, 2);
      }
    }
  }
}

/// No fixed batch keeps lanes apart, but the one that happens to suit the rate does when arrivals are even. What is
/// promised beside that one is less.
TEST(AdaptiveLoad, FindsTheLanesOfAnEngine) {
  for (const double fixed : kFixedCosts) {
    for (const std::uint32_t lanes : {4U, 16U}) {
      const SimEngine engine{.fixed = fixed, .slots = lanes, .lanes = lanes};
      for (const double per_packet : kPacketCosts) {
        SimEngine with = engine;
        with.per_packet = per_packet;
        expect_near_the_best_at_all_loads(with, 512, per_packet < 0.05 ? 2 : 8);
      }
    }
  }
}

/// Once a run is long enough that what gathered before the lanes were found is gone.
TEST(AdaptiveLoad, LanesSettleNearTheBestFixedBatch) {
  for (const double fixed : kFixedCosts) {
    for (const std::uint32_t lanes : {4U, 16U}) {
      const SimEngine engine{.fixed = fixed, .per_packet = 0.07, .slots = lanes, .lanes = lanes};
      for (const double load : {0.3, 0.5, 0.7, 0.9}) {
        for (const Arrivals kind : kArrivals) {
          const double rate = engine.rate(512) * load;
          if (rate > kMostPackets) continue;
          const auto count = static_cast<std::size_t>(std::max(80'000.0, rate * 1200 * fixed));
          Random random(1);
          const std::vector<Time> packets = arrivals(kind, rate, count, random);
          const SimSettings settings{.queue = 32'768, .from = packets[count / 4 * 3]};
          AdaptiveBatch adaptive({512, kDeadline, engine.slots});
          const Score ours = score(engine, packets, settings, adaptive);
          const Score best = best_fixed(engine, packets, rate, 512, settings);
          EXPECT_GE(ours.delivered, 0.95 * best.delivered) << LoadCase{engine, kind, load, 512};
          EXPECT_LE(ours.p99, (kind == Arrivals::bursts ? 2.5 : 1.6) * best.p99) << LoadCase{engine, kind, load, 512};
        }
      }
    }
  }
}

/// Lanes as an H100 has them whose CTAs compare every byte of packets of 64 bytes, and a thread that takes its time:
/// what that thread takes for a batch has to be counted, and the lanes to be told, which it seems to have more of than
/// there are.
TEST(AdaptiveLoad, LanesOfAGpuStayNearTheBestWhenTheReceiverTakesItsTime) {
  for (const double receive : {0.018, 0.025}) {
    for (const double overhead : {0.05, 0.1, 0.4}) {
      const SimEngine engine{.fixed = 11,
                             .per_packet = 0.13,
                             .slots = 64,
                             .lanes = 16,
                             .noise = 0.1,
                             .overhead = overhead,
                             .receive = receive,
                             .told = overhead};
      const double most = std::max(engine.rate(128), engine.rate(512));
      for (const Arrivals kind : {Arrivals::constant, Arrivals::poisson}) {
        for (const double load : {0.1, 0.5, 0.9}) {
          const double rate = load * most;
          const auto count = static_cast<std::size_t>(rate * 8000);
          Random random(1);
          const std::vector<Time> packets = arrivals(kind, rate, count, random);
          const SimSettings settings{.queue = 4096, .from = packets[count / 4]};
          const Score best = best_fixed(engine, packets, rate, 512, settings);
          AdaptiveBatch adaptive({512, kDeadline, engine.slots, engine.lanes});
          const Score ours = score(engine, packets, settings, adaptive);
          EXPECT_GE(ours.delivered, 0.999) << LoadCase{engine, kind, load, 512};
          EXPECT_LE(ours.p99, 1.9 * best.p99) << LoadCase{engine, kind, load, 512};
          if (load < 0.8 || overhead < 0.2) continue;
          AdaptiveBatch unaware({512, kDeadline, engine.slots});
          EXPECT_LT(score(engine, packets, settings, unaware).delivered, 0.995) << LoadCase{engine, kind, load, 512};
        }
      }
    }
  }
}

TEST(AdaptiveLoad, FindsTheStagesOfAPipeline) {
  for (const double fixed : kFixedCosts) {
    for (const double per_packet : kPacketCosts) {
      const SimEngine engine{.fixed = fixed, .per_packet = per_packet, .slots = 16, .latency = 4 * fixed};
      expect_near_the_best_at_all_loads(engine, 512, 3);
    }
  }
}

/// Ten times the load, at once: nothing is lost, and a millisecond later it is as near to the best as ever.
TEST(AdaptiveLoad, AbsorbsAStepInLoad) {
  for (const double fixed : kFixedCosts) {
    for (const double per_packet : kPacketCosts) {
      for (const std::uint32_t slots : {1U, 16U}) {
        const SimEngine engine{.fixed = fixed, .per_packet = per_packet, .slots = slots};
        const double rate = std::min(engine.rate(512) * 0.9, kMostPackets);
        Random random(1);
        std::vector<Time> packets =
            arrivals(Arrivals::poisson, rate / 10, static_cast<std::size_t>(rate * 200), random);
        const Time step = packets.back();
        const std::vector<Time> after =
            arrivals(Arrivals::poisson, rate, static_cast<std::size_t>(rate * 2000), random, static_cast<double>(step));
        packets.insert(packets.end(), after.begin(), after.end());
        const SimSettings all{.queue = 4096};
        AdaptiveBatch first({512, kDeadline, slots});
        EXPECT_EQ(score(engine, packets, all, first).delivered, 1) << fixed << " " << per_packet << " " << slots;
        const SimSettings later{.queue = 4096, .from = step + 1'000'000'000};
        AdaptiveBatch second({512, kDeadline, slots});
        const double p99 = score(engine, packets, later, second).p99;
        EXPECT_LE(p99, 1.5 * best_fixed(engine, packets, rate, 512, later).p99)
            << fixed << " " << per_packet << " " << slots;
      }
    }
  }
}

/// A batch in two hundred takes 50 us longer, as when a thread loses its processor.
TEST(AdaptiveLoad, LosesNothingToStalls) {
  for (const std::uint32_t lanes : {1U, 16U}) {
    const SimEngine engine{.fixed = 2.5, .per_packet = 0.01, .slots = 16, .lanes = lanes, .stalls = 0.005};
    Random random(1);
    const std::vector<Time> packets = arrivals(Arrivals::poisson, 30, 60'000, random);
    AdaptiveBatch adaptive({512, kDeadline, engine.slots});
    EXPECT_EQ(score(engine, packets, {.queue = 4096}, adaptive).delivered, 1);
    EXPECT_NEAR(adaptive.cost().fixed(), 2.55e6, 1e6);
  }
}

/// The longest that a packet is kept while the engine has a free slot.
TEST(AdaptiveLoad, HoldsNoPacketPastItsDeadlineWhileTheEngineHasRoom) {
  const SimEngine engine{.fixed = 16.5, .per_packet = 0.01, .slots = 2};
  Random random(1);
  const std::vector<Time> packets = arrivals(Arrivals::poisson, 1, 20'000, random);
  AdaptiveBatch adaptive({4096, 5'000'000, engine.slots});
  const auto result = std::make_unique<SimResult>();
  simulate(engine, packets, adaptive, {}, 7, *result);
  EXPECT_LE(result->longest_wait, 5'000'000);
}

}  // namespace
}  // namespace warpline::batching
