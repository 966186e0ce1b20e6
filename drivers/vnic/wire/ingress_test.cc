// SPDX-License-Identifier: Apache-2.0
#include "vnic/wire/ingress.h"

#include <gtest/gtest.h>

#include <mutex>
#include <thread>

#include "vnic/rings/descriptor.h"
#include "warpline/packet/frame_testing.h"

namespace warpline::vnic {
namespace {

/// An Ingress with its port up and promiscuous.
struct Port {
  explicit Port(std::uint16_t queues = 1, std::size_t buffer_bytes = 1 << 16) {
    EXPECT_EQ(ingress.configure(queues, buffer_bytes), 0);
    const Ingress::Change change(ingress);
    ingress.macs.promiscuous = true;
    ingress.started = true;
    ingress.rss.reset_table(queues);
    for (std::uint16_t i = 0; i < queues; ++i) ingress.queue_started[i] = true;
  }

  /// Applies `change` as a control thread does.
  template <typename Change>
  void set(Change change) {
    const Ingress::Change guard(ingress);
    change();
  }

  void deliver(const packet::FrameBytes& frame, std::uint64_t release_nanos = 0) {
    const std::scoped_lock burst(gate);
    ingress.deliver(frame.data(), static_cast<std::uint32_t>(frame.size()), release_nanos);
  }

  struct Received {
    std::uint16_t queue;
    FrameInfo info;
    packet::FrameBytes bytes;
  };
  /// The oldest frame of the lowest queue that has one. Queue kMaxQueues: there is none.
  Received receive() {
    for (std::uint16_t i = 0; i < ingress.queues(); ++i) {
      const PacketBuffer::Front front = ingress.buffer(i).front();
      if (front.info == nullptr) continue;
      Received received{i, *front.info, {front.frame, front.frame + front.info->length}};
      ingress.buffer(i).pop();
      return received;
    }
    return {kMaxQueues, {}, {}};
  }
  /// What becomes of one frame.
  Received pass(const packet::FrameBytes& frame) {
    deliver(frame);
    return receive();
  }
  [[nodiscard]] bool has_none() { return receive().queue == kMaxQueues; }

  struct Gate {
    Ingress& ingress;
    void lock() { ingress.begin(); }
    void unlock() { ingress.end(); }
  };
  Ingress ingress;
  Gate gate{ingress};
};

const packet::FrameBytes kUdp4 =
    packet::with_checksums(packet::ipv4_frame(packet::kProtocolUdp, packet::udp_datagram(packet::counting(30))));
const packet::FrameBytes kTcp4 =
    packet::with_checksums(packet::ipv4_frame(packet::kProtocolTcp, packet::tcp_segment(packet::counting(30))));
const packet::FrameBytes kUdp6 =
    packet::with_checksums(packet::ipv6_frame(packet::kProtocolUdp, packet::udp_datagram(packet::counting(30))));

TEST(Ingress, WithNothingConfiguredFramesGoToQueueZero) {
  Port port(4);
  port.deliver(kUdp4, 123);
  const Port::Received received = port.receive();
  EXPECT_EQ(received.queue, 0);
  EXPECT_EQ(received.bytes, kUdp4);
  EXPECT_EQ(received.info.release_nanos, 123U);
  EXPECT_EQ(received.info.length, kUdp4.size());
  EXPECT_EQ(received.info.rx_flags, 0U);
}

TEST(Ingress, EveryLossIsCounted) {
  Port port(2, 1024);
  const auto lost = [&port](Count reason, const packet::FrameBytes& frame) {
    const std::uint64_t before = port.ingress.counts.get(reason);
    EXPECT_TRUE(port.pass(frame).queue == kMaxQueues);
    EXPECT_EQ(port.ingress.counts.get(reason), before + 1);
  };
  lost(Count::rx_runt, packet::counting(13));
  EXPECT_EQ(port.pass(packet::counting(14)).bytes, packet::counting(14));
  lost(Count::rx_giant, packet::counting(1519));
  port.set([&] { port.ingress.link_up = false; });
  lost(Count::rx_link_down, kUdp4);
  port.set([&] {
    port.ingress.link_up = true;
    port.ingress.started = false;
  });
  lost(Count::rx_stopped, kUdp4);
  port.set([&] {
    port.ingress.started = true;
    port.ingress.queue_started[0] = false;
  });
  lost(Count::rx_stopped, kUdp4);
  port.set([&] {
    port.ingress.queue_started[0] = true;
    port.ingress.macs.promiscuous = false;
  });
  lost(Count::rx_filtered, kUdp4);
  port.set([&] {
    port.ingress.macs.promiscuous = true;
    auto rule = std::make_unique<FlowRule>();
    rule->l3 = packet::L3Kind::ipv6;
    rule->action.drop = true;
    port.ingress.flows.add(std::move(rule));
    auto beyond = std::make_unique<FlowRule>();
    beyond->l4 = packet::L4Kind::tcp;
    beyond->action.has_queue = true;
    beyond->action.queue = 2;  // there was one when it was made
    port.ingress.flows.add(std::move(beyond));
  });
  lost(Count::rx_flow_dropped, kUdp6);
  lost(Count::rx_stopped, kTcp4);
  while (port.ingress.counts.get(Count::rx_no_descriptor) == 0) port.deliver(kUdp4);
  EXPECT_EQ(port.receive().bytes, kUdp4);
}

TEST(Ingress, TheMacFilterTakesItsOwn) {
  Port port;
  const auto to = [](std::initializer_list<std::uint8_t> mac) {
    packet::FrameBytes frame = kUdp4;
    std::copy(mac.begin(), mac.end(), frame.begin());
    return frame;
  };
  const packet::FrameBytes own = to({2, 0, 0, 0, 0, 7});
  const packet::FrameBytes other = to({2, 0, 0, 0, 0, 8});
  const packet::FrameBytes broadcast = to({0xff, 0xff, 0xff, 0xff, 0xff, 0xff});
  const packet::FrameBytes group = to({1, 0, 0x5e, 0, 0, 1});
  const packet::FrameBytes foreign_group = to({1, 0, 0x5e, 0, 0, 2});
  const auto taken = [&port](const packet::FrameBytes& frame) { return port.pass(frame).queue == 0; };
  port.set([&] {
    port.ingress.macs.promiscuous = false;
    port.ingress.macs.unicast = {{{2, 0, 0, 0, 0, 9}}, {{2, 0, 0, 0, 0, 7}}};
    port.ingress.macs.multicast = {{{1, 0, 0x5e, 0, 0, 1}}};
  });
  EXPECT_TRUE(taken(own) && taken(broadcast) && taken(group));
  EXPECT_FALSE(taken(other) || taken(foreign_group));
  port.set([&] { port.ingress.macs.all_multicast = true; });
  EXPECT_TRUE(taken(foreign_group));
  EXPECT_FALSE(taken(other));
  port.set([&] { port.ingress.macs.promiscuous = true; });
  EXPECT_TRUE(taken(other));
}

TEST(Ingress, ChecksumsAreVerifiedWhenAskedFor) {
  Port port;
  const auto flags = [&port](packet::FrameBytes frame, std::size_t wrong_byte = 0) {
    if (wrong_byte != 0) frame[wrong_byte] ^= 1;
    return port.pass(frame).info.rx_flags;
  };
  constexpr std::size_t kTtl = 22;
  constexpr std::size_t kPayload = 70;
  const packet::FrameBytes no_sum =
      packet::ipv4_frame(packet::kProtocolUdp, packet::udp_datagram(packet::counting(30)));
  packet::Ipv4Header header;
  header.more_fragments = true;
  const packet::FrameBytes fragment = packet::ipv4_frame(packet::kProtocolUdp, packet::counting(32), header);
  packet::FrameBytes bad_length = no_sum;
  packet::store_be16(bad_length.data() + 38, 7);

  EXPECT_EQ(flags(kUdp4), 0U);
  port.set([&] { port.ingress.checksum_offloads = RTE_ETH_RX_OFFLOAD_IPV4_CKSUM; });
  EXPECT_EQ(flags(kUdp4), kRxIpGood);
  EXPECT_EQ(flags(kUdp4, kPayload), kRxIpGood);
  EXPECT_EQ(flags(kUdp4, kTtl), kRxIpBad);
  EXPECT_EQ(flags(bad_length), kRxIpGood);
  EXPECT_EQ(flags(kUdp6), 0U);
  port.set([&] { port.ingress.checksum_offloads = RTE_ETH_RX_OFFLOAD_CHECKSUM; });
  EXPECT_EQ(flags(kUdp4), kRxIpGood | kRxL4Good);
  EXPECT_EQ(flags(kTcp4), kRxIpGood | kRxL4Good);
  EXPECT_EQ(flags(kUdp4, kPayload), kRxIpGood | kRxL4Bad);
  EXPECT_EQ(flags(kTcp4, kPayload), kRxIpGood | kRxL4Bad);
  EXPECT_EQ(flags(kUdp4, kTtl), kRxIpBad);
  EXPECT_EQ(flags(kUdp6), kRxL4Good);
  EXPECT_EQ(flags(kUdp6, kPayload), kRxL4Bad);
  EXPECT_EQ(flags(no_sum), kRxIpGood);  // nothing to verify
  EXPECT_EQ(flags(fragment), kRxIpGood);
  EXPECT_EQ(flags(packet::arp_frame({})), 0U);
  port.set([&] { port.ingress.checksum_offloads = RTE_ETH_RX_OFFLOAD_TCP_CKSUM; });
  EXPECT_EQ(flags(kTcp4), kRxL4Good);
  EXPECT_EQ(flags(kTcp4, kTtl), 0U);
  EXPECT_EQ(flags(kUdp4, kPayload), 0U);
  EXPECT_EQ(port.ingress.counts.get(Count::rx_bad_ip_checksum), 2U);
  EXPECT_EQ(port.ingress.counts.get(Count::rx_bad_l4_checksum), 3U);
}

TEST(Ingress, RssSteersAndReportsItsHash) {
  Port port(4);
  port.set([&] { port.ingress.rss.set_fields(Rss::supported_fields()); });
  std::array<int, 4> hits{};
  for (std::uint16_t source = 0; source < 256; ++source) {
    packet::FrameBytes frame = kUdp4;
    packet::store_be16(frame.data() + 34, source);
    const Port::Received received = port.pass(frame);
    EXPECT_EQ(received.info.rx_flags, kRxHash);
    EXPECT_EQ(received.queue, received.info.hash % Rss::kTableSize % 4);
    ++hits[received.queue];
  }
  for (const int n : hits) EXPECT_GT(n, 32);
  const Port::Received arp = port.pass(packet::arp_frame({}));
  EXPECT_EQ(arp.queue, 0);
  EXPECT_EQ(arp.info.rx_flags, 0U);
}

TEST(Ingress, OneQueueReportsAHashWhereItIsWanted) {
  Port port;
  port.set([&] { port.ingress.rss.set_fields(Rss::supported_fields()); });
  EXPECT_EQ(port.pass(kUdp4).info.rx_flags, kRxHash);
  port.set([&] { port.ingress.reports_hash = false; });
  EXPECT_EQ(port.pass(kUdp4).info.rx_flags, 0U);
}

TEST(Ingress, FlowRulesComeBeforeRss) {
  Port port(4);
  port.set([&] {
    port.ingress.rss.set_fields(Rss::supported_fields());
    port.ingress.rss.table.fill(1);
    auto to_three = std::make_unique<FlowRule>();
    to_three->l4 = packet::L4Kind::tcp;
    to_three->action.has_queue = to_three->action.has_mark = true;
    to_three->action.queue = 3;
    to_three->action.mark = 99;
    port.ingress.flows.add(std::move(to_three));
    auto marked = std::make_unique<FlowRule>();
    marked->l3 = packet::L3Kind::ipv6;
    marked->action.has_mark = true;
    marked->action.mark = 6;
    port.ingress.flows.add(std::move(marked));
  });
  const Port::Received tcp = port.pass(kTcp4);
  EXPECT_EQ(tcp.queue, 3);
  EXPECT_EQ(tcp.info.mark, 99U);
  EXPECT_EQ(tcp.info.rx_flags, kRxMark);
  const Port::Received udp6 = port.pass(kUdp6);
  EXPECT_EQ(udp6.queue, 1);
  EXPECT_EQ(udp6.info.mark, 6U);
  EXPECT_EQ(udp6.info.rx_flags, kRxMark | kRxHash);
  EXPECT_EQ(port.pass(kUdp4).info.rx_flags, kRxHash);
}

TEST(Ingress, HeaderLengthsAreToldWhenSomeoneSplits) {
  Port port;
  EXPECT_EQ(port.pass(kUdp4).info.header_length, 0U);
  port.set([&] { port.ingress.needs_header_length = true; });
  EXPECT_EQ(port.pass(kUdp4).info.header_length, 42U);
  EXPECT_EQ(port.pass(packet::tagged(kTcp4, 0x8100, 1)).info.header_length, 58U);
  EXPECT_EQ(port.pass(kUdp6).info.header_length, 62U);
  EXPECT_EQ(port.pass(packet::ethernet_frame(0x88b5, packet::counting(50))).info.header_length, 14U);
  EXPECT_EQ(port.pass(packet::tagged(packet::counting(14), 0x8100, 1)).info.header_length, 18U);
}

TEST(Ingress, ConfiguredAnewItIsEmptyAndStopped) {
  Port port(2);
  port.deliver(kUdp4);
  ASSERT_EQ(port.ingress.configure(3, 4096), 0);
  EXPECT_TRUE(port.has_none());
  EXPECT_TRUE(port.pass(kUdp4).queue == kMaxQueues);
  EXPECT_EQ(port.ingress.counts.get(Count::rx_stopped), 1U);
}

/// For the thread sanitizer: two senders, a receiver and the control thread.
TEST(Ingress, ManySendersAndAChangeAtATime) {
  constexpr int kBursts = 2000;
  Port port(2, 1 << 14);
  const auto send = [&port] {
    for (int i = 0; i < kBursts; ++i) {
      port.ingress.begin();
      port.ingress.deliver(kUdp4.data(), static_cast<std::uint32_t>(kUdp4.size()), 0);
      port.ingress.deliver(kUdp6.data(), static_cast<std::uint32_t>(kUdp6.size()), 0);
      port.ingress.end();
    }
  };
  std::thread first(send);
  std::thread second(send);
  std::atomic<bool> sent{false};
  std::uint64_t received = 0;
  std::thread receiver([&] {
    while (true) {
      const bool last = sent.load();
      bool none = true;
      for (; !port.has_none(); ++received) none = false;
      if (last && none) return;
    }
  });
  for (std::uint16_t i = 0; i < 200; ++i) {
    port.set([&] {
      port.ingress.rss.set_fields(i % 2 == 0 ? Rss::supported_fields() : 0);
      port.ingress.queue_started[1] = i % 3 != 0;
      port.ingress.flows.clear();
      if (i % 5 == 0) port.ingress.flows.add(std::make_unique<FlowRule>());
    });
  }
  first.join();
  second.join();
  sent.store(true);
  receiver.join();
  const Counters& counts = port.ingress.counts;
  EXPECT_EQ(received + counts.get(Count::rx_no_descriptor) + counts.get(Count::rx_stopped), 4U * kBursts);
}

}  // namespace
}  // namespace warpline::vnic
