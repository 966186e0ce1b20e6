// SPDX-License-Identifier: Apache-2.0
#include "vnic/device/flow_ops.h"

#include <gtest/gtest.h>

#include <cerrno>

#include <rte_flow.h>

#include "vnic/api/driver_testing.h"
#include "warpline/packet/frame_testing.h"

namespace warpline::vnic {
namespace {

const packet::FrameBytes kPortUdp4 =
    packet::with_checksums(packet::ipv4_frame(packet::kProtocolUdp, packet::udp_datagram(packet::counting(30))));
const packet::FrameBytes kPortTcp4 =
    packet::with_checksums(packet::ipv4_frame(packet::kProtocolTcp, packet::tcp_segment(packet::counting(30))));

/// A port whose wire comes back to it, with four queues, and rules for UDP over IPv4 on it.
class FlowOps : public testing::Test {
 protected:
  FlowOps() {
    PortSetup setup;
    setup.queues = 4;
    EXPECT_EQ(port_.start(pool_.get(), setup), 0);
    attr_.ingress = 1;
  }

  rte_flow* create(std::vector<rte_flow_action> actions) {
    const rte_flow_item items[] = {{RTE_FLOW_ITEM_TYPE_ETH, nullptr, nullptr, nullptr},
                                   {RTE_FLOW_ITEM_TYPE_IPV4, nullptr, nullptr, nullptr},
                                   {RTE_FLOW_ITEM_TYPE_UDP, nullptr, nullptr, nullptr},
                                   {RTE_FLOW_ITEM_TYPE_END, nullptr, nullptr, nullptr}};
    actions.push_back({RTE_FLOW_ACTION_TYPE_END, nullptr});
    const int valid = rte_flow_validate(port_.id, &attr_, items, actions.data(), &error_);
    rte_flow* flow = rte_flow_create(port_.id, &attr_, items, actions.data(), &error_);
    EXPECT_EQ(valid == 0, flow != nullptr);
    return flow;
  }

  /// The queue in which the frame comes in, and its mark; 4: in none.
  struct Arrival {
    std::uint16_t queue;
    bool marked;
    std::uint32_t mark;
    bool operator==(const Arrival&) const = default;
  };
  Arrival arrival(const packet::FrameBytes& frame) {
    rte_mbuf* const sent = pool_.make(frame);
    if (port_.send(sent) == 0) rte_pktmbuf_free(sent);
    Arrival arrival{4, false, 0};
    for (std::uint16_t queue = 0; queue < 4; ++queue) {
      for (rte_mbuf* const mbuf : port_.receive(queue)) {
        const bool marked = (mbuf->ol_flags & RTE_MBUF_F_RX_FDIR_ID) != 0;
        arrival = {queue, marked, marked ? mbuf->hash.fdir.hi : 0};
        rte_pktmbuf_free(mbuf);
      }
    }
    return arrival;
  }

  int query(rte_flow* flow, rte_flow_query_count& answer) {
    const rte_flow_action count{RTE_FLOW_ACTION_TYPE_COUNT, nullptr};
    return rte_flow_query(port_.id, flow, &count, &answer, &error_);
  }

  const rte_flow_action_queue to_two_{2};
  const rte_flow_action_mark mark_{0xabcdef};
  rte_flow_attr attr_{};
  rte_flow_error error_{};
  Pool pool_;
  Port port_{"net_vnic_flow", "wire=loopback"};
};

TEST_F(FlowOps, ARuleSteersMarksAndCountsUntilItIsDestroyed) {
  EXPECT_EQ(arrival(kPortUdp4), (Arrival{0, false, 0}));
  rte_flow* const flow = create({{RTE_FLOW_ACTION_TYPE_QUEUE, &to_two_},
                                 {RTE_FLOW_ACTION_TYPE_MARK, &mark_},
                                 {RTE_FLOW_ACTION_TYPE_COUNT, nullptr}});
  ASSERT_NE(flow, nullptr);
  EXPECT_EQ(arrival(kPortUdp4), (Arrival{2, true, 0xabcdef}));
  EXPECT_EQ(arrival(kPortUdp4), (Arrival{2, true, 0xabcdef}));
  EXPECT_EQ(arrival(kPortTcp4), (Arrival{0, false, 0}));

  rte_flow_query_count answer{};
  answer.reset = 1;
  ASSERT_EQ(query(flow, answer), 0);
  EXPECT_TRUE(answer.hits_set && answer.bytes_set);
  EXPECT_EQ(answer.hits, 2U);
  EXPECT_EQ(answer.bytes, 2 * kPortUdp4.size());
  ASSERT_EQ(query(flow, answer), 0);
  EXPECT_EQ(answer.hits, 0U);

  EXPECT_EQ(rte_flow_destroy(port_.id, flow, &error_), 0);
  EXPECT_EQ(arrival(kPortUdp4), (Arrival{0, false, 0}));
  EXPECT_EQ(rte_flow_destroy(port_.id, flow, &error_), -ENOENT);
  EXPECT_EQ(error_.type, RTE_FLOW_ERROR_TYPE_HANDLE);
  EXPECT_EQ(query(flow, answer), -ENOENT);
}

TEST_F(FlowOps, FlushingLeavesNoRule) {
  ASSERT_NE(create({{RTE_FLOW_ACTION_TYPE_DROP, nullptr}}), nullptr);
  EXPECT_EQ(arrival(kPortUdp4).queue, 4);
  EXPECT_EQ(port_.counts()["rx_flow_dropped"], 1U);
  EXPECT_EQ(rte_flow_flush(port_.id, &error_), 0);
  EXPECT_EQ(arrival(kPortUdp4).queue, 0);
}

TEST_F(FlowOps, OnlyRulesThatCountAreAsked) {
  rte_flow* const flow = create({{RTE_FLOW_ACTION_TYPE_QUEUE, &to_two_}});
  rte_flow_query_count answer{};
  EXPECT_EQ(query(flow, answer), -ENOTSUP);
  EXPECT_EQ(error_.type, RTE_FLOW_ERROR_TYPE_ACTION);
}

TEST_F(FlowOps, AQueueThatIsNotThereIsRefused) {
  const rte_flow_action_queue beyond{4};
  EXPECT_EQ(create({{RTE_FLOW_ACTION_TYPE_QUEUE, &beyond}}), nullptr);
  EXPECT_EQ(error_.type, RTE_FLOW_ERROR_TYPE_ACTION_CONF);
}

}  // namespace
}  // namespace warpline::vnic
