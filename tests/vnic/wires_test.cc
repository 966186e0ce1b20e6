// SPDX-License-Identifier: Apache-2.0
// What may be at the other end of the wire, and the engine on a thread of its own.

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <map>
#include <string>
#include <thread>

#include "port.h"

namespace warpline::vnic {
namespace {

constexpr int kWirePatience = 100'000'000;

TEST(Source, MakesFramesOfSoManyFlows) {
  const Pool pool;
  Port port("net_vnic0", "wire=source,size=128,flows=5");
  port.bring_up(simple(pool));
  std::map<std::string, int> flows;
  for (int i = 0; i < 1000; ++i) {
    rte_mbuf* const mbuf = port.receive_one();
    ASSERT_NE(mbuf, nullptr);
    EXPECT_EQ(mbuf->pkt_len, 128U);
    const packet::FrameBytes frame = taken(mbuf);
    EXPECT_EQ(packet::with_checksums(frame), frame);
    ++flows[std::string(frame.begin(), frame.end())];
  }
  EXPECT_EQ(flows.size(), 5U);
  for (const auto& [frame, times] : flows) EXPECT_EQ(times, 200);
  port.send(pool, numbered(1));
  EXPECT_EQ(port.count(Count::tx_packets), 1U) << "swallowed";
  expect_accounted(pool, {&port});
}

TEST(Source, MeetsTheFaultsOfItsOwnPort) {
  const Pool pool;
  Port port("net_vnic0", "wire=source,loss=0.5,seed=3");
  port.bring_up(simple(pool));
  for (int polls = 0; polls < 100; ++polls) {
    for (rte_mbuf* const mbuf : port.receive()) rte_pktmbuf_free(mbuf);
  }
  EXPECT_GT(port.count(Count::fault_loss), 1000U);
  EXPECT_GT(port.count(Count::rx_packets), 1000U);
  expect_accounted(pool, {&port});
}

/// A capture file, gone with this object.
class Capture {
 public:
  explicit Capture(const Frames& frames, std::uint32_t linktype = 1, std::size_t cut = 0) {
    std::FILE* const file = fdopen(mkstemp(path_), "wb");
    const std::uint32_t head[] = {0xa1b2c3d4, 2 | 4 << 16, 0, 0, 65535, linktype};
    std::fwrite(head, sizeof head, 1, file);
    for (const packet::FrameBytes& frame : frames) {
      const auto length = static_cast<std::uint32_t>(frame.size());
      const std::uint32_t record[] = {0, 0, length, length};
      std::fwrite(record, sizeof record, 1, file);
      std::fwrite(frame.data(), frame.size(), 1, file);
    }
    const long size = std::ftell(file);
    std::fflush(file);
    EXPECT_EQ(ftruncate(fileno(file), size - static_cast<long>(cut)), 0);
    std::fclose(file);
  }
  ~Capture() { unlink(path_); }
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;
  [[nodiscard]] std::string path() const { return path_; }

 private:
  char path_[32] = "/var/tmp/vnic-XXXXXX";
};

TEST(Source, ReplaysACaptureOverAndOver) {
  const Frames frames{numbered(1, 60), numbered(2, 1514), numbered(3, 77)};
  const Capture capture(frames);
  const Pool pool;
  Port port("net_vnic0", "wire=source,pcap=" + capture.path());
  port.bring_up(simple(pool));
  for (int i = 0; i < 300; ++i) {
    rte_mbuf* const mbuf = port.receive_one();
    ASSERT_NE(mbuf, nullptr);
    ASSERT_EQ(taken(mbuf), frames[i % 3]);
  }
}

TEST(Source, RefusesACaptureThatItCannotRead) {
  const QuietLog quiet;
  const auto probed = [](const Capture& capture) {
    return Port("net_vnic0", "wire=source,pcap=" + capture.path()).probed();
  };
  EXPECT_LT(probed(Capture({})), 0) << "empty";
  EXPECT_LT(probed(Capture({numbered(1)}, 101)), 0) << "not Ethernet";
  EXPECT_LT(probed(Capture({numbered(1)}, 1, 10)), 0) << "cut";
  EXPECT_LT(probed(Capture({}, 1, 4)), 0) << "half a header";
  EXPECT_EQ(probed(Capture({numbered(1)})), 0);
}

TEST(Static, SuppliesAndSwallowsWithoutEnd) {
  const Pool pool;
  Port port("net_vnic0", "wire=static,size=100");
  PortSetup setup = simple(pool);
  setup.conf.txmode.offloads = RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE;
  port.bring_up(setup);
  for (int i = 0; i < 1000; ++i) {
    rte_mbuf* mbufs[32];
    ASSERT_EQ(rte_eth_rx_burst(port.id(), 0, mbufs, 32), 32);
    for (const rte_mbuf* mbuf : mbufs) EXPECT_EQ(mbuf->pkt_len, 100U);
    ASSERT_EQ(rte_eth_tx_burst(port.id(), 0, mbufs, 32), 32);
  }
  EXPECT_EQ(port.stats().ipackets, 32000U);
  EXPECT_EQ(port.stats().opackets, 32000U);
  EXPECT_EQ(port.stats().obytes, 3200000U);
  expect_accounted(pool, {&port});
}

TEST(Sink, SwallowsAndNothingComes) {
  const Pool pool;
  Port port("net_vnic0", "wire=sink");
  port.bring_up(simple(pool));
  for (std::uint32_t i = 0; i < 1000; ++i) port.send(pool, numbered(i));
  EXPECT_EQ(port.stats().opackets, 1000U);
  EXPECT_EQ(port.receive_all().size(), 0U);
  expect_accounted(pool, {&port});
}

TEST(Held, FramesGoOnWhenTheSenderIsIdle) {
  const Pool pool;
  Port port("net_vnic0", "reorder=1,reorder_depth=8");
  port.bring_up(simple(pool));
  for (std::uint32_t i = 0; i < 4; ++i) port.send(pool, numbered(i));
  std::size_t received = 0;
  for (int polls = 0; polls < 1000; ++polls) received += port.receive_all().size();
  EXPECT_EQ(received, 4U);
}

TEST(Held, FramesGoOnWhenThePortStops) {
  const Pool pool;
  Port a("net_vnic0", "wire=net_vnic1,reorder=1,reorder_depth=8");
  Port b("net_vnic1", "wire=net_vnic0");
  a.bring_up(simple(pool));
  b.bring_up(simple(pool));
  for (std::uint32_t i = 0; i < 4; ++i) a.send(pool, numbered(i));
  ASSERT_EQ(rte_eth_dev_stop(a.id()), 0);
  EXPECT_EQ(b.receive_all().size(), 4U);
}

/// One lcore's side of a pair: sends `frames` and receives until `frames` have come.
void exchange(const Port& port, const Pool& pool, std::uint16_t queue, std::uint32_t frames) {
  std::uint32_t sent = 0;
  std::uint32_t received = 0;
  rte_mbuf* pending = nullptr;
  for (int calls = 0; calls < kWirePatience && (received < frames || pending != nullptr || sent < frames); ++calls) {
    // Never further ahead than what the other side's packet buffer holds.
    if (pending == nullptr && sent < frames && sent < received + 200) {
      pending = pool.chain(numbered(sent, 60 + sent % 400));
      ++sent;
    }
    if (pending != nullptr && rte_eth_tx_burst(port.id(), queue, &pending, 1) == 1) pending = nullptr;
    for (rte_mbuf* const mbuf : port.receive(queue)) {
      const std::uint32_t number = received++;
      ASSERT_EQ(taken(mbuf), numbered(number, 60 + number % 400));
    }
    std::this_thread::yield();
  }
  EXPECT_EQ(sent, frames);
  EXPECT_EQ(received, frames);
}

class Engines : public testing::TestWithParam<const char*> {};

TEST_P(Engines, CarryAPairThatTwoThreadsUse) {
  const Pool left(2047, 2048, 0);
  const Pool right(2047, 2048, 0);
  const std::string engine = GetParam();
  Port a("net_vnic0", "wire=net_vnic1," + engine);
  Port b("net_vnic1", "wire=net_vnic0," + engine);
  for (int round = 0; round < 3; ++round) {
    a.bring_up(simple(left));
    b.bring_up(simple(right));
    std::thread other([&] { exchange(b, right, 0, 3000); });
    exchange(a, left, 0, 3000);
    other.join();
    ASSERT_EQ(rte_eth_dev_stop(a.id()), 0);
    ASSERT_EQ(rte_eth_dev_stop(b.id()), 0);
    EXPECT_EQ(left.in_use(), 0U);
    EXPECT_EQ(right.in_use(), 0U);
  }
}

TEST_P(Engines, LoopBackAllQueuesToTheFirst) {
  const Pool pool(8191);
  Port port("net_vnic0", GetParam());
  port.bring_up(simple(pool, 4));
  std::uint32_t received = 0;
  for (std::uint32_t sent = 0; sent < 2000; ++sent) {
    port.send(pool, numbered(sent), static_cast<std::uint16_t>(sent % 4));
    received += static_cast<std::uint32_t>(port.receive_all().size());
  }
  for (int calls = 0; calls < kWirePatience && received < 2000; ++calls) {
    received += static_cast<std::uint32_t>(port.receive_all().size());
    std::this_thread::yield();
  }
  EXPECT_EQ(received, 2000U);
}

TEST_P(Engines, StopAndStartUnderTraffic) {
  const Pool pool(4095);
  Port port("net_vnic0", GetParam());
  for (int round = 0; round < 30; ++round) {
    port.bring_up(simple(pool, 2));
    for (std::uint32_t i = 0; i < 50; ++i) port.send(pool, numbered(i), static_cast<std::uint16_t>(i % 2));
    if (round % 3 == 0) {
      ASSERT_EQ(rte_eth_dev_rx_queue_stop(port.id(), 0), 0);
      ASSERT_EQ(rte_eth_dev_tx_queue_stop(port.id(), 1), 0);
    }
    static_cast<void>(port.receive_all());
    ASSERT_EQ(rte_eth_dev_stop(port.id()), 0);
    EXPECT_EQ(pool.in_use(), 0U);
  }
  EXPECT_EQ(port.count(Count::tx_packets),
            port.count(Count::rx_packets) + port.count(Count::rx_stopped) + port.count(Count::rx_link_down));
}

INSTANTIATE_TEST_SUITE_P(Kinds, Engines, testing::Values("engine=inline", "engine=thread"),
                         [](const auto& param) { return std::string(param.param).substr(7); });

TEST(ThreadEngine, RunsWhereItIsTold) {
  const QuietLog quiet;
  const Pool pool;
  Port port("net_vnic0", "engine=thread,cpu=0");
  port.bring_up(simple(pool));
  Port nowhere("net_vnic1", "engine=thread,cpu=4000");
  ASSERT_EQ(nowhere.configure(simple(pool)), 0);
  EXPECT_LT(rte_eth_dev_start(nowhere.id()), 0);
}

}  // namespace
}  // namespace warpline::vnic
