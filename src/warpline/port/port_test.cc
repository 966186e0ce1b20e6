// SPDX-License-Identifier: Apache-2.0
#include "warpline/port/port.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>

#include <rte_mbuf.h>

#include "warpline/base/give_way.h"
#include "warpline/base/scratch_folder_testing.h"
#include "warpline/port/ring_pair.h"
#include "warpline/port/send_limits.h"
#include "warpline/runtime/eal_environment.h"
#include "warpline/runtime/port_spec.h"
#include "warpline/runtime/workers.h"

namespace warpline::port {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

const auto* const kEal = testing::AddGlobalTestEnvironment(new runtime::EalEnvironment(3));

class PortTest : public testing::Test {
 protected:
  void SetUp() override {
    pool_ = rte_pktmbuf_pool_create("port_test", 4095, 64, 0, RTE_MBUF_DEFAULT_BUF_SIZE, SOCKET_ID_ANY);
    ASSERT_NE(pool_, nullptr);
  }
  void TearDown() override {
    EXPECT_EQ(rte_mempool_in_use_count(pool_), 0U);
    rte_mempool_free(pool_);
  }

  static PortSettings settings(const std::string& spec) {
    PortSettings made;
    made.spec = spec;
    return made;
  }

  Result<Port> started(const PortSettings& wanted, const PortQueues& queues = {}) {
    WARPLINE_TRY(Port port, Port::open(wanted.spec));
    WARPLINE_CHECK(port.configure(wanted, queues));
    WARPLINE_CHECK(port.attach(pool_));
    WARPLINE_CHECK(port.start());
    return port;
  }

  rte_mempool* pool_ = nullptr;
};

void expect_port_error(const Result<void>& result, ErrorKind kind, const std::string& text) {
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().kind, kind);
  EXPECT_THAT(result.error().message(), HasSubstr(text));
  EXPECT_EQ(result.error().message().find('\n'), std::string::npos);
  EXPECT_FALSE(result.error().fix.empty());
}

Result<void> without_value(const Result<Port>& port) { return port.ok() ? Result<void>() : port.error(); }

TEST_F(PortTest, NullPortReceivesAndSends) {
  auto port = started(settings("net_null0,size=64"), {.rx = 2, .tx = 2});
  ASSERT_TRUE(port.ok()) << port.error().message();
  EXPECT_EQ(port->name(), "net_null0");
  EXPECT_EQ(port->driver(), "net_null");
  EXPECT_EQ(port->setup().rx_queues, 2);
  rte_mbuf* burst[32];
  ASSERT_EQ(rte_eth_rx_burst(port->id(), 1, burst, 32), 32);
  EXPECT_EQ(rte_eth_tx_burst(port->id(), 1, burst, 32), 32);
  const PortCounters counters = port->counters();
  EXPECT_EQ(counters.rx_packets, 32U);
  EXPECT_EQ(counters.tx_packets, 32U);
  EXPECT_EQ(counters.rx_missed + counters.rx_no_mbuf, 0U);
  EXPECT_EQ(port->extended_counters().at("rx_good_packets"), 32U);
  // Who stops and goes on counts on.
  port->stop();
  ASSERT_TRUE(port->start().ok());
  EXPECT_EQ(port->counters().rx_packets, 32U);
}

TEST_F(PortTest, WhatADeviceHasCountedBeforeIsNotThisRunS) {
  constexpr std::uint16_t kCount = 8;
  const auto ids = make_ring_pair(1, 64, runtime::kAnyNode);
  ASSERT_TRUE(ids.ok()) << ids.error().message();
  const std::uint16_t id = ids->first;
  const rte_eth_conf any = {};
  ASSERT_EQ(rte_eth_dev_configure(id, 1, 1, &any), 0);
  ASSERT_EQ(rte_eth_rx_queue_setup(id, 0, 64, SOCKET_ID_ANY, nullptr, pool_), 0);
  ASSERT_EQ(rte_eth_tx_queue_setup(id, 0, 64, SOCKET_ID_ANY, nullptr), 0);
  ASSERT_EQ(rte_eth_dev_start(id), 0);
  rte_mbuf* burst[kCount];
  ASSERT_EQ(rte_pktmbuf_alloc_bulk(pool_, burst, kCount), 0);
  ASSERT_EQ(rte_eth_tx_burst(id, 0, burst, kCount), kCount);
  ASSERT_EQ(rte_eth_dev_stop(id), 0);

  auto port = Port::adopt(id);
  ASSERT_TRUE(port.ok()) << port.error().message();
  EXPECT_EQ(port->counters().tx_packets, kCount);
  ASSERT_TRUE(port->configure({}, {}).ok());
  ASSERT_TRUE(port->attach(pool_).ok());
  ASSERT_TRUE(port->start().ok());
  EXPECT_EQ(port->counters().tx_packets, 0U);
  auto far = Port::adopt(ids->second);
  ASSERT_TRUE(far.ok());
  ASSERT_TRUE(far->configure({}, {}).ok());
  ASSERT_TRUE(far->attach(pool_).ok());
  ASSERT_TRUE(far->start().ok());
  ASSERT_EQ(rte_eth_rx_burst(far->id(), 0, burst, kCount), kCount);
  rte_pktmbuf_free_bulk(burst, kCount);
}

TEST_F(PortTest, ANameCanBeUsedAgainOnceItsPortIsGone) {
  for (int i = 0; i < 3; ++i) {
    auto port = started(settings("net_null0"));
    ASSERT_TRUE(port.ok()) << port.error().message();
    expect_port_error(without_value(Port::open("net_null0")), ErrorKind::usage, "open already");
  }
}

TEST_F(PortTest, MovesAndIsClosedOnce) {
  auto first = started(settings("net_null0"));
  ASSERT_TRUE(first.ok());
  auto second = started(settings("net_null1"));
  ASSERT_TRUE(second.ok());
  const std::uint16_t id = second->id();
  *first = *std::move(second);
  EXPECT_EQ(first->id(), id);
  EXPECT_TRUE(Port::open("net_null0").ok());
}

TEST_F(PortTest, MoreQueuesThanTheDeviceHasIsAUsageErrorThatSaysHowMany) {
  ScratchFolder folder;
  const std::string in = folder.write("in.pcap", pcap_bytes({std::string(60, 'a')}));
  auto port = Port::open("net_pcap0,rx_pcap=" + in + ",tx_pcap=" + (folder.path() / "out.pcap").string());
  ASSERT_TRUE(port.ok()) << port.error().message();
  expect_port_error(port->configure(settings("net_pcap0"), {.rx = 2, .tx = 1}), ErrorKind::usage, "the device has 1");
  expect_port_error(port->configure(settings("net_pcap0"), {.rx = 1, .tx = 5}), ErrorKind::usage, "the device has 1");
  // No half-written output of a port that never started.
  EXPECT_TRUE(std::filesystem::exists(folder.path() / "out.pcap"));
  {
    const Port closed = *std::move(port);
  }
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "out.pcap"));
}

TEST_F(PortTest, APortThatDoesNotExistIsAUsageError) {
  expect_port_error(without_value(Port::open("net_nul0")), ErrorKind::usage, "did you mean net_null0?");
  expect_port_error(without_value(Port::open("net_af_packet0,iface=nonesuch")), ErrorKind::usage, "there are:");
  expect_port_error(without_value(Port::open("ffff:ff:1f.7")), ErrorKind::usage, "no such PCI device");
  expect_port_error(without_value(Port::open("net_pcap0,rx_pcap=/nonexistent")), ErrorKind::usage, "No such file");
  expect_port_error(without_value(Port::open("net_null0,sise=64")), ErrorKind::usage, "net_null");
  expect_port_error(without_value(Port::adopt(77)), ErrorKind::usage, "no such ethdev");
}

/// Unit tests of modules are programs without the software NIC.
TEST_F(PortTest, APortOfADriverThatWasNotBuiltInSaysWhatWouldBuildIt) {
  expect_port_error(
      without_value(Port::open("net_vnic0,wire=sink")), ErrorKind::environment,
      "port net_vnic0,wire=sink: the program was built without net_vnic, for want of DPDK's driver headers; run "
      "setup/driver_headers, then make build");
}

TEST_F(PortTest, WhatTheDeviceCannotDoIsReported) {
  PortSettings wanted = settings("net_null0");
  wanted.rx_offloads = {"ipv4_cksum"};
  wanted.tx_offloads = {"tcp_tso"};
  wanted.rx_ring = 777;
  auto port = started(wanted, {.rx = 2, .tx = 1, .one_pool = true});
  ASSERT_TRUE(port.ok()) << port.error().message();
  EXPECT_THAT(port->setup().refused, Contains("receive offload ipv4_cksum"));
  EXPECT_THAT(port->setup().refused, Contains("transmit offload tcp_tso"));
  EXPECT_THAT(port->setup().rx_offloads, IsEmpty());
  EXPECT_EQ(port->setup().rx_ring, 777);
}

TEST_F(PortTest, UnknownNamesAndWrongKeysAreUsageErrors) {
  auto port = Port::open("net_null0");
  ASSERT_TRUE(port.ok());
  PortSettings wanted = settings("net_null0");
  wanted.rx_offloads = {"scater"};
  expect_port_error(port->configure(wanted, {}), ErrorKind::usage, "scatter");
  wanted = settings("net_null0");
  wanted.rss_fields = {"tpc"};
  expect_port_error(port->configure(wanted, {}), ErrorKind::usage, "tcp");
}

TEST_F(PortTest, AnRssKeyHasTheDevicesLength) {
  if (!runtime::check_port_spec("net_tap0").ok()) GTEST_SKIP() << "needs /dev/net/tun and the right to use it";
  auto port = Port::open("net_tap0,iface=wlk" + std::to_string(getpid()));
  ASSERT_TRUE(port.ok()) << port.error().message();
  PortSettings wanted = settings("net_tap0");
  wanted.rss_key = std::vector<std::uint8_t>(3);
  expect_port_error(port->configure(wanted, {.rx = 2, .tx = 2}), ErrorKind::usage, "the device takes 40");
  wanted.rss_key.resize(40);
  EXPECT_TRUE(port->configure(wanted, {.rx = 2, .tx = 2}).ok());
}

/// net_null takes keys in newer DPDKs; net_ring has no RSS in any.
TEST_F(PortTest, AnRssKeyThatTheDeviceCannotTakeIsReported) {
  auto port = Port::open("net_ring0");
  ASSERT_TRUE(port.ok());
  PortSettings wanted = settings("net_ring0");
  wanted.rss_key.resize(40);
  ASSERT_TRUE(port->configure(wanted, {}).ok());
  EXPECT_THAT(port->setup().refused, Contains("RSS key"));
}

TEST_F(PortTest, JumboFramesPassDriversThatCannotSetAnMtu) {
  ScratchFolder folder;
  const std::string in = folder.write("in.pcap", pcap_bytes({std::string(9014, 'a')}));
  PortSettings wanted = settings("net_pcap0,rx_pcap=" + in);
  wanted.mtu = 9000;
  auto port = started(wanted);
  ASSERT_TRUE(port.ok()) << port.error().message();
  EXPECT_EQ(port->setup().mtu, 9000);
  rte_mbuf* frame = nullptr;
  ASSERT_EQ(rte_eth_rx_burst(port->id(), 0, &frame, 1), 1);
  EXPECT_EQ(frame->pkt_len, 9014U);
  EXPECT_GT(frame->nb_segs, 1);
  rte_pktmbuf_free(frame);
}

TEST_F(PortTest, AnMtuBeyondTheDevicesIsAUsageErrorThatSaysItsLimit) {
  auto port = Port::open("net_null0");
  ASSERT_TRUE(port.ok());
  PortSettings wanted = settings("net_null0");
  wanted.mtu = 10;
  expect_port_error(port->configure(wanted, {}), ErrorKind::usage, "the device takes ");
}

/// DPDK's net_pcap puts the pieces of a frame together in a buffer of RTE_ETHER_MAX_JUMBO_FRAME_LEN bytes.
TEST_F(PortTest, LimitsOfWhatADriverSendsWhole) {
  ScratchFolder folder;
  const auto limits = [&](const std::string& spec) {
    auto port = started(settings(spec));
    EXPECT_TRUE(port.ok()) << port.error().message();
    return send_limits(port->id());
  };
  EXPECT_FALSE(limits("net_null0").any());
  const SendLimits pcap = limits("net_pcap0,tx_pcap=" + (folder.path() / "out.pcap").string());
  EXPECT_EQ(pcap.frame, UINT32_MAX);
  EXPECT_EQ(pcap.chained, 0x3f00U);
  rte_mbuf one{};
  one.nb_segs = 1;
  one.pkt_len = 0x3f01;
  EXPECT_TRUE(pcap.allow(&one));
  one.nb_segs = 2;
  EXPECT_FALSE(pcap.allow(&one));
  one.pkt_len = 0x3f00;
  EXPECT_TRUE(pcap.allow(&one));
}

TEST_F(PortTest, EachFileToReceiveFromNeedsAQueue) {
  ScratchFolder folder;
  const std::string files = ",rx_pcap=" + folder.write("a.pcap", pcap_bytes({std::string(60, 'a')})) +
                            ",rx_pcap=" + folder.write("b.pcap", pcap_bytes({std::string(60, 'b')}));
  auto port = Port::open("net_pcap0" + files);
  ASSERT_TRUE(port.ok()) << port.error().message();
  expect_port_error(port->configure(settings("net_pcap0" + files), {.rx = 1, .tx = 0}), ErrorKind::usage,
                    "2 files or interfaces to receive from: each needs a receive queue, and the port has 1");
  EXPECT_TRUE(port->configure(settings("net_pcap0" + files), {.rx = 2, .tx = 0}).ok());
}

TEST_F(PortTest, RingPairCarriesEachQueueAcross) {
  constexpr std::uint16_t kQueues = 3;
  const auto ids = make_ring_pair(kQueues, 256, runtime::kAnyNode);
  ASSERT_TRUE(ids.ok()) << ids.error().message();
  auto near = Port::adopt(ids->first);
  auto far = Port::adopt(ids->second);
  ASSERT_TRUE(near.ok());
  ASSERT_TRUE(far.ok());
  for (Port* port : {&*near, &*far}) {
    PortSettings wanted;
    wanted.mtu = 9000;
    ASSERT_TRUE(port->configure(wanted, {.rx = kQueues, .tx = kQueues}).ok());
    ASSERT_TRUE(port->attach(pool_).ok());
    ASSERT_TRUE(port->start().ok());
    EXPECT_THAT(port->setup().refused, IsEmpty());
  }
  for (std::uint16_t q = 0; q < kQueues; ++q) {
    for (const auto& [from, to] : {std::pair(&*near, &*far), std::pair(&*far, &*near)}) {
      std::vector<rte_mbuf*> sent(256);
      ASSERT_EQ(rte_pktmbuf_alloc_bulk(pool_, sent.data(), 256), 0);
      // Exactly as many as descriptors were asked for.
      ASSERT_EQ(rte_eth_tx_burst(from->id(), q, sent.data(), 256), 256);
      std::vector<rte_mbuf*> got(256);
      EXPECT_EQ(rte_eth_rx_burst(to->id(), (q + 1) % kQueues, got.data(), 256), 0);
      ASSERT_EQ(rte_eth_rx_burst(to->id(), q, got.data(), 256), 256);
      EXPECT_EQ(sent, got);
      rte_pktmbuf_free_bulk(got.data(), 256);
    }
  }
}

TEST_F(PortTest, RingPairRefusesWhatRingsCannotBe) {
  const auto refused = [](std::uint16_t queues, std::uint16_t descriptors) {
    const auto ids = make_ring_pair(queues, descriptors, runtime::kAnyNode);
    return ids.ok() ? Result<void>() : Result<void>(ids.error());
  };
  expect_port_error(refused(0, 256), ErrorKind::usage, "at least one queue");
  expect_port_error(refused(1, 1000), ErrorKind::usage, "power of two");
}

TEST_F(PortTest, PcapInPcapOut) {
  ScratchFolder folder;
  std::vector<std::string> frames;
  for (int i = 0; i < 100; ++i) frames.emplace_back(60 + i * 90, static_cast<char>(i));
  const std::string in = folder.write("in.pcap", pcap_bytes(frames));
  const std::string out = folder.path() / "out.pcap";
  {
    auto port = started(settings("net_pcap0,rx_pcap=" + in + ",tx_pcap=" + out));
    ASSERT_TRUE(port.ok()) << port.error().message();
    rte_mbuf* burst[128];
    std::uint16_t received = 0;
    while (const std::uint16_t n = rte_eth_rx_burst(port->id(), 0, burst, 128)) {
      received = static_cast<std::uint16_t>(received + n);
      EXPECT_EQ(rte_eth_tx_burst(port->id(), 0, burst, n), n);
    }
    EXPECT_EQ(received, 100);
  }
  const auto whole = [](const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  const std::string written = whole(out);
  ASSERT_GT(written.size(), 24U);
  std::size_t at = 24;
  for (const std::string& frame : frames) {
    ASSERT_EQ(written.substr(at + 16, frame.size()), frame);
    at += 16 + frame.size();
  }
  EXPECT_EQ(at, written.size());
}

TEST(PortCounters, BytesAreWithoutFcsWhateverTheDeviceCounts) {
  const PortCounters raw{.rx_packets = 10, .rx_bytes = 640, .tx_packets = 3, .tx_bytes = 1518 * 3};
  const PortCounters em = without_fcs("net_e1000_em", raw);
  EXPECT_EQ(em.rx_bytes, 600U);
  EXPECT_EQ(em.tx_bytes, 1514U * 3);
  EXPECT_EQ(em.rx_packets, 10U);
  EXPECT_EQ(without_fcs("net_e1000_igb_vf", raw).rx_bytes, 600U);
  const PortCounters igb = without_fcs("net_e1000_igb", raw);
  EXPECT_EQ(igb.rx_bytes, 640U);
  EXPECT_EQ(igb.tx_bytes, 1518U * 3);
}

TEST(WorkersTest, RunOnTheirLcoresAndAreWaitedFor) {
  const runtime::LcorePlan& plan = runtime::EalEnvironment::plan();
  std::atomic<unsigned> seen[3] = {};
  std::atomic<int> arrived{0};
  runtime::Workers workers(plan);
  for (std::size_t w = 0; w < plan.workers.size(); ++w) {
    ASSERT_TRUE(workers
                    .launch(w,
                            [&, w] {
                              seen[w] = rte_lcore_id();
                              ++arrived;
                              while (arrived < 3) idle(plan.workers[w].gives_way);
                            })
                    .ok());
  }
  workers.wait();
  EXPECT_FALSE(workers.running());
  for (std::size_t w = 0; w < plan.workers.size(); ++w) EXPECT_EQ(seen[w], plan.workers[w].lcore);
}

TEST(WorkersTest, AnLcoreThatEalDoesNotHaveIsAnError) {
  runtime::LcorePlan plan = runtime::EalEnvironment::plan();
  plan.workers[0].lcore = 99;
  runtime::Workers workers(plan);
  EXPECT_EQ(workers.launch(0, [] {}).error().kind, ErrorKind::environment);
  plan.workers[0].lcore = 1;
}

}  // namespace
}  // namespace warpline::port
