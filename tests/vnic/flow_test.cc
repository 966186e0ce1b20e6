// SPDX-License-Identifier: Apache-2.0
// Flow rules as applications make them.

#include <gtest/gtest.h>

#include <rte_flow.h>

#include "port.h"
#include "warpline/packet/byte_order.h"

namespace warpline::vnic {
namespace {

struct FlowPort {
  FlowPort() {
    PortSetup setup;
    setup.pool = pool.get();
    setup.rx_queues = 4;
    port.bring_up(setup);
  }
  /// Lives until the end of the full expression only.
  rte_flow* create(const std::vector<rte_flow_item>& items, const std::vector<rte_flow_action>& actions,
                   std::uint32_t priority = 0) {
    rte_flow_attr attr{};
    attr.ingress = 1;
    attr.priority = priority;
    std::vector<rte_flow_item> pattern = items;
    pattern.push_back({RTE_FLOW_ITEM_TYPE_END, nullptr, nullptr, nullptr});
    std::vector<rte_flow_action> list = actions;
    list.push_back({RTE_FLOW_ACTION_TYPE_END, nullptr});
    const int valid = rte_flow_validate(port.id(), &attr, pattern.data(), list.data(), &error);
    rte_flow* const flow = rte_flow_create(port.id(), &attr, pattern.data(), list.data(), &error);
    EXPECT_EQ(valid == 0, flow != nullptr) << "validate and create disagree";
    return flow;
  }
  std::uint64_t hits(rte_flow* flow) {
    const rte_flow_action action{RTE_FLOW_ACTION_TYPE_COUNT, nullptr};
    rte_flow_query_count count{};
    EXPECT_EQ(rte_flow_query(port.id(), flow, &action, &count, &error), 0);
    EXPECT_EQ(count.hits_set, 1U);
    return count.hits;
  }
  /// The queue that the frame comes to, or -1; its mbuf's mark.
  int queue_of(const packet::FrameBytes& frame) {
    port.send(pool, frame);
    int where = -1;
    mark = 0;
    for (std::uint16_t queue = 0; queue < 4; ++queue) {
      rte_mbuf* const mbuf = port.receive_one(queue);
      if (mbuf == nullptr) continue;
      where = queue;
      if ((mbuf->ol_flags & RTE_MBUF_F_RX_FDIR_ID) != 0) mark = mbuf->hash.fdir.hi;
      EXPECT_EQ(taken(mbuf), frame);
    }
    return where;
  }

  Pool pool;
  Port port{"net_vnic0"};
  rte_flow_error error{};
  std::uint32_t mark = 0;
};

const packet::FrameBytes kUdp = packet::ipv4_frame(packet::kProtocolUdp, packet::udp_datagram(packet::counting(30)));
const packet::FrameBytes kTcp = packet::ipv4_frame(packet::kProtocolTcp, packet::tcp_segment(packet::counting(30)));
const rte_flow_action_queue kQueue2{2};
const rte_flow_action_queue kQueue3{3};
const rte_flow_action_mark kMark{77};
const rte_flow_item kEth{RTE_FLOW_ITEM_TYPE_ETH, nullptr, nullptr, nullptr};
const rte_flow_item kIpv4{RTE_FLOW_ITEM_TYPE_IPV4, nullptr, nullptr, nullptr};
const rte_flow_item kUdpItem{RTE_FLOW_ITEM_TYPE_UDP, nullptr, nullptr, nullptr};

TEST(FlowRulesOfAPort, SteerMarkAndCount) {
  FlowPort flows;
  EXPECT_EQ(flows.queue_of(kUdp), 0);
  rte_flow_item_udp spec{};
  spec.hdr.dst_port = rte_cpu_to_be_16(9);
  rte_flow_item_udp mask{};
  mask.hdr.dst_port = 0xffff;
  rte_flow* const rule = flows.create({kEth, kIpv4, {RTE_FLOW_ITEM_TYPE_UDP, &spec, nullptr, &mask}},
                                      {{RTE_FLOW_ACTION_TYPE_QUEUE, &kQueue2},
                                       {RTE_FLOW_ACTION_TYPE_MARK, &kMark},
                                       {RTE_FLOW_ACTION_TYPE_COUNT, nullptr}});
  ASSERT_NE(rule, nullptr) << flows.error.message;
  EXPECT_EQ(flows.queue_of(kUdp), 2);
  EXPECT_EQ(flows.mark, 77U);
  EXPECT_EQ(flows.queue_of(kTcp), 0);
  EXPECT_EQ(flows.mark, 0U);
  EXPECT_EQ(flows.queue_of(kUdp), 2);
  EXPECT_EQ(flows.hits(rule), 2U);
  ASSERT_EQ(rte_flow_destroy(flows.port.id(), rule, &flows.error), 0);
  EXPECT_EQ(flows.queue_of(kUdp), 0);
}

TEST(FlowRulesOfAPort, Drop) {
  FlowPort flows;
  ASSERT_NE(flows.create({kEth, kIpv4, kUdpItem}, {{RTE_FLOW_ACTION_TYPE_DROP, nullptr}}), nullptr);
  EXPECT_EQ(flows.queue_of(kUdp), -1);
  EXPECT_EQ(flows.queue_of(kTcp), 0);
  EXPECT_EQ(flows.port.count(Count::rx_flow_dropped), 1U);
  ASSERT_EQ(rte_flow_flush(flows.port.id(), &flows.error), 0);
  EXPECT_EQ(flows.queue_of(kUdp), 0);
}

TEST(FlowRulesOfAPort, MatchEthertypeAndVlan) {
  FlowPort flows;
  rte_flow_item_eth eth{};
  eth.type = rte_cpu_to_be_16(0x88b5);
  rte_flow_item_eth eth_mask{};
  eth_mask.type = 0xffff;
  rte_flow_item_vlan vlan{};
  vlan.tci = rte_cpu_to_be_16(42);
  rte_flow_item_vlan vlan_mask{};
  vlan_mask.tci = rte_cpu_to_be_16(0x0fff);
  ASSERT_NE(
      flows.create({{RTE_FLOW_ITEM_TYPE_ETH, &eth, nullptr, &eth_mask}}, {{RTE_FLOW_ACTION_TYPE_QUEUE, &kQueue2}}),
      nullptr);
  ASSERT_NE(flows.create({kEth, {RTE_FLOW_ITEM_TYPE_VLAN, &vlan, nullptr, &vlan_mask}},
                         {{RTE_FLOW_ACTION_TYPE_QUEUE, &kQueue3}}),
            nullptr);
  EXPECT_EQ(flows.queue_of(packet::ethernet_frame(0x88b5, packet::counting(46))), 2);
  EXPECT_EQ(flows.queue_of(packet::tagged(kUdp, packet::kEtherTypeVlan, 42)), 3);
  EXPECT_EQ(flows.queue_of(packet::tagged(kUdp, packet::kEtherTypeVlan, 43)), 0);
  EXPECT_EQ(flows.queue_of(kUdp), 0);
}

TEST(FlowRulesOfAPort, OfTheHighestPriorityWins) {
  FlowPort flows;
  ASSERT_NE(flows.create({kEth, kIpv4}, {{RTE_FLOW_ACTION_TYPE_QUEUE, &kQueue3}}, 5), nullptr);
  ASSERT_NE(flows.create({kEth, kIpv4, kUdpItem}, {{RTE_FLOW_ACTION_TYPE_QUEUE, &kQueue2}}, 1), nullptr);
  EXPECT_EQ(flows.queue_of(kUdp), 2);
  EXPECT_EQ(flows.queue_of(kTcp), 3);
}

TEST(FlowRulesOfAPort, ThatTheDeviceHasNotAreRefused) {
  FlowPort flows;
  const rte_flow_action_queue queue9{9};
  EXPECT_EQ(flows.create({kEth, kIpv4}, {{RTE_FLOW_ACTION_TYPE_QUEUE, &queue9}}), nullptr);
  EXPECT_NE(flows.error.message, nullptr);
  EXPECT_EQ(
      flows.create({{RTE_FLOW_ITEM_TYPE_GTPU, nullptr, nullptr, nullptr}}, {{RTE_FLOW_ACTION_TYPE_QUEUE, &kQueue2}}),
      nullptr);
  EXPECT_EQ(flows.create({kEth}, {{RTE_FLOW_ACTION_TYPE_RAW_ENCAP, nullptr}}), nullptr);
  EXPECT_EQ(flows.queue_of(kUdp), 0);
}

TEST(FlowRulesOfAPort, StayWhenItStopsAndGoWhenItCloses) {
  FlowPort flows;
  rte_flow* const rule = flows.create({kEth, kIpv4, kUdpItem}, {{RTE_FLOW_ACTION_TYPE_QUEUE, &kQueue2}});
  ASSERT_NE(rule, nullptr);
  ASSERT_EQ(rte_eth_dev_stop(flows.port.id()), 0);
  ASSERT_EQ(rte_eth_dev_start(flows.port.id()), 0);
  EXPECT_EQ(flows.queue_of(kUdp), 2);
  flows.port.close();
}

}  // namespace
}  // namespace warpline::vnic
