// SPDX-License-Identifier: Apache-2.0
// What a GPU pipeline can get wrong without a word: it leaves out the packets of a burst that its block has no thread
// for, and it takes a ring that has wrapped for one that is new. The checker notices each.
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <span>

#include "warpline/packet/headers/ethernet.h"
#include "warpline/traffic/checker.h"
#include "warpline/traffic/generator.h"
#include "warpline/traffic/pool_testing.h"

namespace warpline::traffic {
namespace {

constexpr std::size_t kThreads = 256;  ///< of a CTA
constexpr std::size_t kSilentBurst = 2 * kThreads;

/// One burst on its way from generator to checker, which expects swapped addresses.
class SilentFailures : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(generator_.fill(burst_.data(), kSilentBurst, 100).packets, kSilentBurst); }
  void TearDown() override {
    rte_pktmbuf_free_bulk(burst_.data(), kSilentBurst);
    EXPECT_EQ(pool_.in_use(), 0U);
  }

  static void work_on(std::span<rte_mbuf*> mbufs) {
    for (rte_mbuf* mbuf : mbufs) packet::swap_macs(rte_pktmbuf_mtod(mbuf, std::uint8_t*));
  }

  const VerifyCounters& check_all() {
    for (const rte_mbuf* mbuf : burst_) static_cast<void>(checker_.check(mbuf, 200));
    return checker_.counters();
  }

  memory::PacketPool pool_ = make_test_pool(2047, 2048);
  TrafficPlan plan_ = *TrafficPlan::make(traffic_of_size("64"), 1);
  Generator generator_{plan_, 0, *pool_.get()};
  Checker checker_{plan_, {.macs = MacRule::swapped}};
  std::array<rte_mbuf*, kSilentBurst> burst_{};
};

TEST_F(SilentFailures, AWholeBurstIsGood) {
  work_on(burst_);
  const VerifyCounters& counters = check_all();
  EXPECT_EQ(counters.bad.get(), 0U);
  EXPECT_EQ(counters.distinct.get(), kSilentBurst);
}

TEST_F(SilentFailures, PacketsThatHadNoThread) {
  work_on(std::span(burst_).first(kThreads));
  const VerifyCounters& counters = check_all();
  EXPECT_EQ(counters.bad.get(), kSilentBurst - kThreads);
  EXPECT_EQ(counters.distinct.get(), kThreads);
}

TEST_F(SilentFailures, ABurstTakenForDoneBeforeAnyWork) {
  EXPECT_EQ(check_all().bad.get(), kSilentBurst);
  EXPECT_EQ(checker_.counters().distinct.get(), 0U);
}

TEST_F(SilentFailures, ABurstWorkedOnASecondTime) {
  work_on(burst_);
  work_on(std::span(burst_).last(kThreads));
  EXPECT_EQ(check_all().bad.get(), kThreads);
}

TEST_F(SilentFailures, ABurstHandedOverASecondTime) {
  work_on(burst_);
  check_all();
  EXPECT_EQ(check_all().duplicated.get(), kSilentBurst);
  EXPECT_EQ(checker_.counters().bad.get(), 0U);
}

}  // namespace
}  // namespace warpline::traffic
