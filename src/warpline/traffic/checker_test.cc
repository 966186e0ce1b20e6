// SPDX-License-Identifier: Apache-2.0
#include "warpline/traffic/checker.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <vector>

#include "warpline/base/property_testing.h"
#include "warpline/base/random.h"
#include "warpline/packet/headers/ethernet.h"
#include "warpline/runtime/eal_environment.h"
#include "warpline/traffic/generator.h"
#include "warpline/traffic/pool_testing.h"

namespace warpline::traffic {
namespace {

const auto* const kEal = testing::AddGlobalTestEnvironment(new runtime::EalEnvironment(0, Bytes{64 << 20}));

constexpr std::uint32_t kBuffers = 1023;

/// A generator and a checker with nothing between them but the test.
struct Bench {
  Bench(const TrafficSettings& settings, std::uint32_t data_room, const Checker::Options& options = {})
      : pool(make_test_pool(kBuffers, data_room)),
        plan(*TrafficPlan::make(settings, 1)),
        generator(plan, 0, *pool.get()),
        checker(plan, options) {}

  rte_mbuf* next() {
    rte_mbuf* mbuf = nullptr;
    EXPECT_EQ(generator.fill(&mbuf, 1, 100).packets, 1);
    return mbuf;
  }

  Verdict check(const rte_mbuf* mbuf) { return checker.check(mbuf, 200); }

  memory::PacketPool pool;
  TrafficPlan plan;
  Generator generator;
  Checker checker;
};

void send_through(Bench& bench, std::uint32_t length) {
  std::array<rte_mbuf*, 3> mbufs;
  const Generator::Filled filled = bench.generator.fill(mbufs.data(), mbufs.size(), 100);
  ASSERT_EQ(filled.packets, mbufs.size());
  EXPECT_EQ(filled.bytes, mbufs.size() * length);
  for (rte_mbuf* mbuf : mbufs) {
    EXPECT_EQ(mbuf->pkt_len, length);
    EXPECT_EQ(rte_mbuf_check(mbuf, 1, nullptr), 0);
    EXPECT_EQ(bench.check(mbuf), Verdict::forward) << length;
    rte_pktmbuf_free(mbuf);
  }
}

TEST(Checker, AcceptsEverySize) {
  const memory::PacketPool pool = make_test_pool(kBuffers, 9216);
  for (std::uint32_t size = kMinFrameBytes; size <= kMaxFrameBytes; ++size) {
    const auto plan = TrafficPlan::make(traffic_of_size(std::to_string(size), 1), 1);
    ASSERT_TRUE(plan.ok());
    Generator generator(*plan, 0, *pool.get());
    Checker checker(*plan, {.window = 64});
    rte_mbuf* mbuf = nullptr;
    ASSERT_EQ(generator.fill(&mbuf, 1, 100).bytes, size);
    ASSERT_EQ(checker.check(mbuf, 200), Verdict::forward) << size;
    rte_pktmbuf_free(mbuf);
  }
  EXPECT_EQ(pool.in_use(), 0U);
}

TEST(Checker, AcceptsFramesInManySegments) {
  for (const std::uint32_t size : {60U, 640U, 641U, 1279U, 1280U, 1281U, 1514U, 8999U, 9000U, 9014U}) {
    Bench bench(traffic_of_size(std::to_string(size)), 640);
    send_through(bench, size);
    EXPECT_EQ(bench.pool.in_use(), 0U);
  }
}

TEST(Checker, AcceptsImixAndIpv6) {
  Bench imix(traffic_of_size("imix"), 2048);
  for (int i = 0; i < 240; ++i) {
    rte_mbuf* mbuf = imix.next();
    EXPECT_EQ(imix.check(mbuf), Verdict::forward);
    rte_pktmbuf_free(mbuf);
  }
  Bench ipv6(ipv6_traffic_of_size("80"), 2048);
  send_through(ipv6, 80);
}

/// Every single byte changed, in every way that a bit can be, is seen.
void expect_every_byte_checked(const TrafficSettings& settings, std::uint32_t data_room) {
  Bench bench(settings, data_room, {.macs = MacRule::unchanged});
  rte_mbuf* mbuf = bench.next();
  std::uint64_t corrupt = 0;
  for (std::uint32_t at = 0; at < mbuf->pkt_len; ++at) {
    for (int bit = 0; bit < 8; ++bit) {
      byte_at(mbuf, at) ^= static_cast<std::uint8_t>(1 << bit);
      const Verdict verdict = bench.check(mbuf);
      EXPECT_TRUE(verdict == Verdict::corrupt || verdict == Verdict::unstamped) << at << " bit " << bit;
      corrupt += verdict == Verdict::corrupt ? 1 : 0;
      byte_at(mbuf, at) ^= static_cast<std::uint8_t>(1 << bit);
    }
  }
  EXPECT_EQ(bench.checker.counters().bad.get(), corrupt);
  EXPECT_GT(corrupt, 8U * (mbuf->pkt_len - 42));
  EXPECT_EQ(bench.checker.counters().distinct.get(), 0U);
  EXPECT_EQ(bench.check(mbuf), Verdict::forward);
  rte_pktmbuf_free(mbuf);
}

TEST(Checker, SeesEveryChangedBit) {
  expect_every_byte_checked(traffic_of_size("60"), 2048);
  expect_every_byte_checked(traffic_of_size("64"), 2048);
  expect_every_byte_checked(traffic_of_size("1501"), 2048);
  expect_every_byte_checked(traffic_of_size("1501"), 640);
  expect_every_byte_checked(ipv6_traffic_of_size("101"), 2048);
}

TEST(Checker, HoldsMacAddressesToTheRule) {
  // Verdicts for a frame with its addresses unchanged, and for one with them swapped.
  const std::map<MacRule, std::array<Verdict, 2>> expected = {
      {MacRule::unchanged, {Verdict::forward, Verdict::corrupt}},
      {MacRule::swapped, {Verdict::corrupt, Verdict::forward}},
      {MacRule::either, {Verdict::forward, Verdict::forward}}};
  for (const auto& [rule, verdicts] : expected) {
    Bench bench(traffic_of_size("64"), 2048, {.macs = rule});
    rte_mbuf* mbuf = bench.next();
    EXPECT_EQ(bench.check(mbuf), verdicts[0]);
    rte_pktmbuf_free(mbuf);
    mbuf = bench.next();
    packet::swap_macs(rte_pktmbuf_mtod(mbuf, std::uint8_t*));
    EXPECT_EQ(bench.check(mbuf), verdicts[1]);
    rte_pktmbuf_free(mbuf);
  }
}

TEST(Checker, TellsForeignFramesFromCorruptOnes) {
  Bench bench(traffic_of_size("200"), 2048, {.started = 100});
  rte_mbuf* mbuf = bench.next();
  byte_at(mbuf, 45) ^= 1;  // the stamp's stream
  EXPECT_EQ(bench.check(mbuf), Verdict::corrupt);
  byte_at(mbuf, 36) ^= 1;  // and the destination port
  EXPECT_EQ(bench.check(mbuf), Verdict::unstamped);
  rte_pktmbuf_free(mbuf);

  mbuf = bench.next();
  ASSERT_EQ(rte_pktmbuf_trim(mbuf, 141), 0);
  EXPECT_EQ(bench.check(mbuf), Verdict::unstamped);  // 59 bytes: not even a stamp
  rte_pktmbuf_free(mbuf);

  mbuf = bench.next();
  ASSERT_EQ(rte_pktmbuf_trim(mbuf, 1), 0);
  EXPECT_EQ(bench.check(mbuf), Verdict::corrupt);
  rte_pktmbuf_append(mbuf, 2);
  EXPECT_EQ(bench.check(mbuf), Verdict::corrupt);
  rte_pktmbuf_free(mbuf);
}

TEST(Checker, RefusesOtherStreamsAndEarlierRuns) {
  Bench bench(traffic_of_size("64"), 2048, {.streams = 2, .started = 100});
  rte_mbuf* mbuf = nullptr;
  Generator third(bench.plan, 2, *bench.pool.get());
  ASSERT_EQ(third.fill(&mbuf, 1, 100).packets, 1);
  EXPECT_EQ(bench.check(mbuf), Verdict::unstamped);
  rte_pktmbuf_free(mbuf);
  Generator second(bench.plan, 1, *bench.pool.get());
  ASSERT_EQ(second.fill(&mbuf, 1, 99).packets, 1);
  EXPECT_EQ(bench.check(mbuf), Verdict::unstamped);
  rte_pktmbuf_free(mbuf);
  ASSERT_EQ(second.fill(&mbuf, 1, 100).packets, 1);
  EXPECT_EQ(bench.check(mbuf), Verdict::forward);
  EXPECT_EQ(bench.checker.distinct_of(0), 0U);
  EXPECT_EQ(bench.checker.distinct_of(1), 1U);
  rte_pktmbuf_free(mbuf);
}

TEST(Checker, LatencyLeavesTheWarmUpOut) {
  Bench bench(traffic_of_size("64"), 2048, {.latency_from = 2});
  for (int i = 0; i < 5; ++i) {
    rte_mbuf* mbuf = bench.next();
    EXPECT_EQ(bench.check(mbuf), Verdict::forward);
    rte_pktmbuf_free(mbuf);
  }
  EXPECT_EQ(bench.checker.latency().count(), 3U);
  EXPECT_GT(bench.checker.latency().max(), 0U);
}

/// What the checker counts, kept in sets.
struct Reference {
  explicit Reference(std::uint64_t window_size, std::uint32_t flow_count) : window(window_size), flows(flow_count) {}

  Verdict check(std::uint64_t sequence, bool corrupted) {
    ++checked;
    if (corrupted) {
      ++bad;
      return Verdict::corrupt;
    }
    if (!seen.empty() && sequence + window <= *seen.rbegin()) {
      ++late;
      return Verdict::forward;
    }
    if (!seen.insert(sequence).second) {
      ++duplicated;
      return Verdict::duplicate;
    }
    const auto same_flow = [&](std::uint64_t other) { return other > sequence && other % flows == sequence % flows; };
    if (std::ranges::any_of(seen, same_flow)) ++reordered;
    return Verdict::forward;
  }

  std::uint64_t window;
  std::uint32_t flows;
  std::set<std::uint64_t> seen;
  std::uint64_t checked = 0, bad = 0, duplicated = 0, reordered = 0, late = 0;
};

WARPLINE_PROPERTY(Checker, CountsWhatSetsCount, ()) {
  constexpr std::uint64_t kWindow = 64;
  constexpr int kFrames = 300;
  Random random(*rc::gen::arbitrary<std::uint64_t>());
  const auto flows = static_cast<std::uint32_t>(1 + random.below(9));
  Bench bench(traffic_of_size(random.below(2) == 0 ? "61" : "imix", flows), 640, {.window = kWindow});
  Reference reference(kWindow, flows);

  // The order in which frames arrive: some lost, some twice, some far or near from their place.
  std::vector<std::pair<double, std::uint64_t>> arrivals;
  const std::uint64_t spread = 1 + random.below(100);
  for (std::uint64_t i = 0; i < kFrames; ++i) {
    if (random.below(10) == 0) continue;
    const std::uint64_t copies = random.below(10) == 0 ? 2 : 1;
    for (std::uint64_t copy = 0; copy < copies; ++copy) {
      const bool moved = random.below(4) == 0;
      arrivals.emplace_back(static_cast<double>(i) + (moved ? static_cast<double>(random.below(spread)) : 0), i);
    }
  }
  std::ranges::sort(arrivals);

  std::array<rte_mbuf*, kFrames> mbufs;
  RC_ASSERT(bench.generator.fill(mbufs.data(), kFrames, 100).packets == kFrames);
  for (const auto& [when, sequence] : arrivals) {
    rte_mbuf* mbuf = mbufs[sequence];
    const bool corrupt = random.below(8) == 0;
    // Not the addresses, ports and EtherType by which a frame is known to be ours.
    const auto at = static_cast<std::uint32_t>(42 + random.below(mbuf->pkt_len - 42));
    if (corrupt) byte_at(mbuf, at) ^= 0x40;
    RC_ASSERT(bench.check(mbuf) == reference.check(sequence, corrupt));
    if (corrupt) byte_at(mbuf, at) ^= 0x40;
  }
  rte_pktmbuf_free_bulk(mbufs.data(), kFrames);

  const VerifyCounters& counters = bench.checker.counters();
  RC_ASSERT(counters.checked.get() == reference.checked);
  RC_ASSERT(counters.bad.get() == reference.bad);
  RC_ASSERT(counters.distinct.get() == reference.seen.size());
  RC_ASSERT(counters.duplicated.get() == reference.duplicated);
  RC_ASSERT(counters.reordered.get() == reference.reordered);
  RC_ASSERT(counters.late.get() == reference.late);
}

TEST(Generator, KeepsCountingWhereAnEmptyPoolStoppedIt) {
  const memory::PacketPool pool = make_test_pool(7, 640);
  const auto plan = TrafficPlan::make(traffic_of_size("1500"), 1);
  Generator generator(*plan, 0, *pool.get());
  Checker checker(*plan, {});
  std::array<rte_mbuf*, 8> mbufs;
  const Generator::Filled filled = generator.fill(mbufs.data(), mbufs.size(), 1);
  EXPECT_LT(filled.packets, 3);  // three buffers each
  EXPECT_EQ(generator.next().sequence, filled.packets);
  rte_pktmbuf_free_bulk(mbufs.data(), filled.packets);
  EXPECT_EQ(pool.in_use(), 0U);
  ASSERT_EQ(generator.fill(mbufs.data(), 1, 1).packets, 1);
  EXPECT_EQ(checker.check(mbufs[0], 2), Verdict::forward);
  EXPECT_EQ(generator.next().sequence, filled.packets + 1U);
  rte_pktmbuf_free(mbufs[0]);
}

TEST(Generator, RefusesPoolsThatHoldNoFrame) {
  const memory::PacketPool pool = make_test_pool(63, 512);
  EXPECT_TRUE(Generator::check_pool(*TrafficPlan::make(traffic_of_size("8192"), 1), *pool.get()).ok());
  const auto refused = Generator::check_pool(*TrafficPlan::make(traffic_of_size("8193"), 1), *pool.get());
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, ErrorKind::usage);
}

}  // namespace
}  // namespace warpline::traffic
