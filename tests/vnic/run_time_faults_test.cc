// SPDX-License-Identifier: Apache-2.0
// Faults that begin, change and end while a port runs.

#include <gtest/gtest.h>

#include "port.h"
#include "vnic/api/set_faults.h"

namespace warpline::vnic {
namespace {

TEST(FaultsAtRunTime, AreChangedAndEnded) {
  const QuietLog quiet;
  const Pool pool;
  Port port("net_vnic0", "loss=1");
  port.bring_up(simple(pool));
  const auto arrive = [&] {
    for (std::uint32_t i = 0; i < 10; ++i) port.send(pool, numbered(i));
    return port.receive_all().size();
  };
  EXPECT_EQ(arrive(), 0U);
  EXPECT_EQ(rte_net_vnic_set_faults(port.id(), "loss=0,duplicate=1"), 0);
  EXPECT_EQ(arrive(), 20U);
  EXPECT_EQ(rte_net_vnic_set_faults(port.id(), "loss=2"), -EINVAL);
  EXPECT_EQ(rte_net_vnic_set_faults(port.id(), "loss"), -EINVAL);
  EXPECT_EQ(rte_net_vnic_set_faults(port.id(), "wire=sink"), -EINVAL);
  EXPECT_EQ(rte_net_vnic_set_faults(port.id(), "rate=0"), -EINVAL);
  EXPECT_EQ(arrive(), 20U) << "what is refused changes nothing";
  EXPECT_EQ(rte_net_vnic_set_faults(port.id(), ""), 0);
  EXPECT_EQ(arrive(), 10U);
  EXPECT_EQ(rte_net_vnic_set_faults(31, ""), -ENODEV);
}

/// A fault as set at run time, and the counter that tells of it.
struct RunTimeFault {
  const char* text;
  Count counter;
};

class EveryFault : public testing::TestWithParam<RunTimeFault> {};

TEST_P(EveryFault, BeginsAndEndsAtRunTime) {
  const Pool pool;
  Port port("net_vnic0");
  port.bring_up(simple(pool));
  packet::FrameBytes frame = numbered(1);
  frame[15] = 2;  // ECT(0), RFC 3168
  frame = packet::with_checksums(frame);
  const auto struck = [&] {
    const std::uint64_t before = port.count(GetParam().counter);
    for (int i = 0; i < 100; ++i) {
      port.send(pool, frame);
      for (rte_mbuf* const mbuf : port.receive()) rte_pktmbuf_free(mbuf);
    }
    return port.count(GetParam().counter) - before;
  };
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(struck(), 0U);
    ASSERT_EQ(rte_net_vnic_set_faults(port.id(), GetParam().text), 0);
    EXPECT_GT(struck(), 0U);
    ASSERT_EQ(rte_net_vnic_set_faults(port.id(), ""), 0);
  }
  expect_accounted(pool, {&port});
}

INSTANTIATE_TEST_SUITE_P(Kinds, EveryFault,
                         testing::Values(RunTimeFault{"loss=0.5", Count::fault_loss},
                                         RunTimeFault{"burst_loss_enter=0.5,burst_loss_leave=0.5", Count::fault_loss},
                                         RunTimeFault{"duplicate=0.5", Count::fault_duplicate},
                                         RunTimeFault{"reorder=0.5,reorder_depth=2", Count::fault_reorder},
                                         RunTimeFault{"corrupt=0.5", Count::fault_corrupt},
                                         RunTimeFault{"truncate=0.5", Count::fault_truncate},
                                         RunTimeFault{"rate=1kbit,queue_bytes=500", Count::tx_queue_full},
                                         RunTimeFault{"rate=1kbit,queue_bytes=64Ki,ecn_bytes=1",
                                                      Count::fault_ecn_marked},
                                         RunTimeFault{"stall=0.5", Count::fault_stall_polls},
                                         RunTimeFault{"rx_out=0.5", Count::fault_rx_out_polls},
                                         RunTimeFault{"tx_full=0.5", Count::fault_tx_full_polls},
                                         RunTimeFault{"flap_frames=3,flap_lost=2", Count::fault_flap}));

TEST(FaultsAtRunTime, DelayFromTheNextFrameOn) {
  const Pool pool;
  Port port("net_vnic0");
  port.bring_up(simple(pool));
  port.send(pool, numbered(1));
  EXPECT_EQ(port.receive_all().size(), 1U);
  for (const char* const late : {"delay=1000s", "delay=0us,jitter=3600s"}) {
    ASSERT_EQ(rte_net_vnic_set_faults(port.id(), late), 0);
    for (std::uint32_t i = 0; i < 10; ++i) port.send(pool, numbered(i));
    EXPECT_EQ(port.receive_all().size(), 0U);
  }
  ASSERT_EQ(rte_eth_dev_stop(port.id()), 0);
  EXPECT_EQ(port.count(Count::rx_stopped), 20U);
  EXPECT_EQ(pool.in_use(), 0U);
}

}  // namespace
}  // namespace warpline::vnic
