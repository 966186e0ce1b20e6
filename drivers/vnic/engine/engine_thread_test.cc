// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cerrno>
#include <thread>

#include "vnic/api/driver_testing.h"
#include "vnic/api/set_faults.h"
#include "vnic/engine/engine_testing.h"

namespace warpline::vnic {
namespace {

Bytes first_segment(const rte_mbuf* mbuf) {
  const auto* const data = rte_pktmbuf_mtod(mbuf, const std::uint8_t*);
  return {data, data + mbuf->data_len};
}

std::uint64_t sent_packets(const Port& port) {
  rte_eth_stats stats;
  (void)rte_eth_stats_get(port.id, &stats);
  return stats.opackets;
}

TEST(EngineThread, CarriesFramesWhileOthersPoll) {
  const Pool pool(4096);
  {
    Port port("net_vnic0", "wire=loopback,engine=thread");
    ASSERT_EQ(port.start(pool.get()), 0);
    constexpr std::uint64_t kFrames = 2000;
    std::uint64_t sent = 0;
    std::uint64_t received = 0;
    while (received < kFrames) {
      if (sent < kFrames && sent - received < 200) {
        rte_mbuf* const mbuf = pool.make(numbered_frame(sent, 60 + sent % 900));
        if (port.send(mbuf) == 1) {
          ++sent;
        } else {
          rte_pktmbuf_free(mbuf);
        }
      }
      const std::vector<rte_mbuf*> frames = port.receive(0, 1);
      for (rte_mbuf* const mbuf : frames) {
        EXPECT_EQ(first_segment(mbuf), numbered_frame(received, 60 + received % 900));
        rte_pktmbuf_free(mbuf);
        ++received;
      }
      if (frames.empty()) std::this_thread::yield();
    }
  }
  EXPECT_EQ(pool.free(), pool.size());
}

TEST(EngineThread, StopSendsWhatWasPosted) {
  const Pool pool(4096);
  {
    Port sender("net_vnic0", "wire=net_vnic1,engine=thread");
    Port receiver("net_vnic1", "wire=net_vnic0");
    ASSERT_EQ(sender.start(pool.get()), 0);
    ASSERT_EQ(receiver.start(pool.get()), 0);
    for (std::uint64_t round = 0; round < 20; ++round) {
      std::uint64_t posted = 0;
      for (std::uint64_t i = 0; i < 50; ++i) {
        rte_mbuf* const mbuf = pool.make(numbered_frame(i, 100));
        if (sender.send(mbuf) == 1) {
          ++posted;
        } else {
          rte_pktmbuf_free(mbuf);
        }
      }
      ASSERT_EQ(rte_eth_dev_stop(sender.id), 0);
      std::uint64_t received = 0;
      for (rte_mbuf* const mbuf : receiver.receive()) {
        ++received;
        rte_pktmbuf_free(mbuf);
      }
      EXPECT_EQ(received, posted);
      ASSERT_EQ(rte_eth_dev_start(sender.id), 0);
    }
    EXPECT_EQ(sent_packets(sender), 20U * 50);
  }
  EXPECT_EQ(pool.free(), pool.size());
}

TEST(EngineThread, QueuesStopAndStartBesideIt) {
  const Pool pool(4096);
  {
    Port port("net_vnic0", "wire=loopback,engine=thread");
    ASSERT_EQ(port.start(pool.get(), {.queues = 2}), 0);
    for (int round = 0; round < 50; ++round) {
      port.send(pool.make(numbered_frame(1, 60)), 1);
      ASSERT_EQ(rte_eth_dev_tx_queue_stop(port.id, 1), 0);
      ASSERT_EQ(rte_eth_dev_rx_queue_stop(port.id, 0), 0);
      ASSERT_EQ(rte_eth_dev_tx_queue_start(port.id, 1), 0);
      ASSERT_EQ(rte_eth_dev_rx_queue_start(port.id, 0), 0);
    }
    EXPECT_EQ(sent_packets(port), 50U);
  }
  EXPECT_EQ(pool.free(), pool.size());
}

TEST(EngineThread, NeedsAProcessorThatIsThere) {
  const Pool pool(4096);
  Port port("net_vnic0", "wire=loopback,engine=thread,cpu=1000");
  EXPECT_EQ(port.start(pool.get()), -EINVAL);
}

TEST(SetFaults, ChangesWhatGoesWrongAtRunTime) {
  const Pool pool(4096);
  Port port("net_vnic0", "wire=loopback");
  ASSERT_EQ(port.start(pool.get()), 0);
  const auto comes_back = [&] {
    port.send(pool.make(numbered_frame(1, 60)));
    const std::vector<rte_mbuf*> frames = port.receive();
    for (rte_mbuf* const mbuf : frames) rte_pktmbuf_free(mbuf);
    return frames.size();
  };
  EXPECT_EQ(comes_back(), 1U);
  ASSERT_EQ(rte_net_vnic_set_faults(port.id, "loss=1"), 0);
  EXPECT_EQ(comes_back(), 0U);
  ASSERT_EQ(rte_net_vnic_set_faults(port.id, "loss=0,duplicate=1"), 0);
  EXPECT_EQ(comes_back(), 2U);
  for (const char* const wrong : {"loss", "loss=2", "=", ",", "lost=0.1", "duplicate=0,delay=x"}) {
    EXPECT_EQ(rte_net_vnic_set_faults(port.id, wrong), -EINVAL) << wrong;
  }
  EXPECT_EQ(comes_back(), 2U);
  ASSERT_EQ(rte_net_vnic_set_faults(port.id, ""), 0);
  EXPECT_EQ(comes_back(), 1U);
  EXPECT_EQ(rte_net_vnic_set_faults(static_cast<std::uint16_t>(port.id + 1), "loss=1"), -ENODEV);
}

}  // namespace
}  // namespace warpline::vnic
