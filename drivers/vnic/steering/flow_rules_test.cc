// SPDX-License-Identifier: Apache-2.0
#include "vnic/steering/flow_rules.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <deque>
#include <span>

#include "warpline/base/property_testing.h"
#include "warpline/packet/frame_testing.h"

namespace warpline::vnic {
namespace {

/// A pattern and actions as an application writes them. Items live as long as this does.
class FlowSpec {
 public:
  FlowSpec() { attr_.ingress = 1; }

  template <typename Item>
  FlowSpec& match(rte_flow_item_type type, const Item& spec, const Item& mask) {
    items_.push_back({type, keep(spec), nullptr, keep(mask)});
    return *this;
  }
  template <typename Item>
  FlowSpec& match(rte_flow_item_type type, const Item& spec) {
    items_.push_back({type, keep(spec), nullptr, nullptr});
    return *this;
  }
  FlowSpec& match(rte_flow_item_type type) {
    items_.push_back({type, nullptr, nullptr, nullptr});
    return *this;
  }
  FlowSpec& act(rte_flow_action_type type) {
    actions_.push_back({type, nullptr});
    return *this;
  }
  FlowSpec& queue(std::uint16_t index) {
    actions_.push_back({RTE_FLOW_ACTION_TYPE_QUEUE, keep(rte_flow_action_queue{index})});
    return *this;
  }
  FlowSpec& mark(std::uint32_t id) {
    actions_.push_back({RTE_FLOW_ACTION_TYPE_MARK, keep(rte_flow_action_mark{id})});
    return *this;
  }
  [[nodiscard]] rte_flow_attr& attr() { return attr_; }
  [[nodiscard]] std::vector<rte_flow_item>& items() { return items_; }

  int translate(FlowRule& rule, rte_flow_error& error, std::uint16_t queues = 4) {
    auto items = items_;
    auto actions = actions_;
    items.push_back({RTE_FLOW_ITEM_TYPE_END, nullptr, nullptr, nullptr});
    actions.push_back({RTE_FLOW_ACTION_TYPE_END, nullptr});
    return vnic::translate(&attr_, items.data(), actions.data(), queues, rule, &error);
  }
  std::unique_ptr<FlowRule> rule() {
    auto rule = std::make_unique<FlowRule>();
    rte_flow_error error{};
    EXPECT_EQ(translate(*rule, error), 0) << error.message;
    return rule;
  }

 private:
  template <typename T>
  const void* keep(const T& value) {
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(&value);
    return kept_.emplace_back(bytes, bytes + sizeof(T)).data();
  }

  rte_flow_attr attr_{};
  std::vector<rte_flow_item> items_;
  std::vector<rte_flow_action> actions_;
  std::deque<std::vector<std::uint8_t>> kept_;
};

bool matches(FlowSpec& spec, const packet::FrameBytes& bytes) {
  packet::SegmentedFrame frame(bytes);
  return spec.rule()->matches(frame.ref().data(), packet::parse(frame.ref()));
}

std::uint16_t be16(std::uint16_t value) { return rte_cpu_to_be_16(value); }

rte_flow_item_ipv4 ipv4_item(std::uint32_t source, std::uint32_t destination, std::uint8_t protocol = 0) {
  rte_flow_item_ipv4 item{};
  item.hdr.src_addr = rte_cpu_to_be_32(source);
  item.hdr.dst_addr = rte_cpu_to_be_32(destination);
  item.hdr.next_proto_id = protocol;
  return item;
}
rte_flow_item_udp udp_item(std::uint16_t source, std::uint16_t destination) {
  rte_flow_item_udp item{};
  item.hdr.src_port = be16(source);
  item.hdr.dst_port = be16(destination);
  return item;
}
rte_flow_item_vlan vlan_item(std::uint16_t control, std::uint16_t inner_type = 0) {
  rte_flow_item_vlan item{};
  item.hdr.vlan_tci = be16(control);
  item.hdr.eth_proto = be16(inner_type);
  return item;
}
rte_flow_item_eth type_item(std::uint16_t type) {
  rte_flow_item_eth item{};
  item.hdr.ether_type = be16(type);
  return item;
}

const packet::FrameBytes kRuleUdp4 =
    packet::ipv4_frame(packet::kProtocolUdp, packet::udp_datagram(packet::counting(20)));
const packet::FrameBytes kRuleTcp4 =
    packet::ipv4_frame(packet::kProtocolTcp, packet::tcp_segment(packet::counting(20)));
const packet::FrameBytes kRuleUdp6 =
    packet::ipv6_frame(packet::kProtocolUdp, packet::udp_datagram(packet::counting(20)));
const packet::FrameBytes kArp = packet::arp_frame({});

TEST(FlowRules, MatchAFiveTuple) {
  FlowSpec spec;
  spec.match(RTE_FLOW_ITEM_TYPE_ETH)
      .match(RTE_FLOW_ITEM_TYPE_IPV4, ipv4_item(0xc6120001, 0xc6130001))
      .match(RTE_FLOW_ITEM_TYPE_UDP, udp_item(49152, 9))
      .queue(1);
  EXPECT_TRUE(matches(spec, kRuleUdp4));
  EXPECT_TRUE(matches(spec, packet::tagged(kRuleUdp4, 0x8100, 1)));
  EXPECT_FALSE(matches(spec, kRuleTcp4));
  EXPECT_FALSE(matches(spec, kRuleUdp6));
  for (const std::size_t byte : {29, 33, 35, 37}) {
    packet::FrameBytes other = kRuleUdp4;
    other[byte] ^= 1;
    EXPECT_FALSE(matches(spec, other)) << byte;
  }
}

TEST(FlowRules, MasksLeaveOutWhatTheyLeaveOut) {
  FlowSpec spec;
  spec.match(RTE_FLOW_ITEM_TYPE_IPV4, ipv4_item(0xc6120099, 0xffffffff), ipv4_item(0xffffff00, 0))
      .match(RTE_FLOW_ITEM_TYPE_UDP, udp_item(1, 9), udp_item(0, 0xffff))
      .queue(0);
  EXPECT_TRUE(matches(spec, kRuleUdp4));
  packet::FrameBytes other = kRuleUdp4;
  other[28] ^= 1;  // outside of /24
  EXPECT_FALSE(matches(spec, other));
}

TEST(FlowRules, MatchAProtocolWithoutItsHeader) {
  FlowSpec spec;
  spec.match(RTE_FLOW_ITEM_TYPE_IPV4, ipv4_item(0, 0, packet::kProtocolTcp), ipv4_item(0, 0, 0xff)).queue(0);
  EXPECT_TRUE(matches(spec, kRuleTcp4));
  EXPECT_FALSE(matches(spec, kRuleUdp4));
}

TEST(FlowRules, MatchIpv6) {
  rte_flow_item_ipv6 item{};
  std::memcpy(&item.hdr.dst_addr, packet::kTestDestinationV6.bytes.data(), 16);
  rte_flow_item_ipv6 mask{};
  std::memset(&mask.hdr.dst_addr, 0xff, 16);
  FlowSpec spec;
  spec.match(RTE_FLOW_ITEM_TYPE_IPV6, item, mask).match(RTE_FLOW_ITEM_TYPE_UDP).queue(0);
  EXPECT_TRUE(matches(spec, kRuleUdp6));
  EXPECT_FALSE(matches(spec, kRuleUdp4));
  EXPECT_FALSE(matches(spec, packet::ipv6_frame(packet::kProtocolTcp, packet::tcp_segment({}))));
  packet::FrameBytes other = kRuleUdp6;
  other[53] ^= 1;
  EXPECT_FALSE(matches(spec, other));
}

TEST(FlowRules, MatchEtherTypesAndTags) {
  FlowSpec arp;
  arp.match(RTE_FLOW_ITEM_TYPE_ETH, type_item(0x0806), type_item(0xffff)).queue(0);
  EXPECT_TRUE(matches(arp, kArp));
  EXPECT_FALSE(matches(arp, kRuleUdp4));
  EXPECT_FALSE(matches(arp, packet::tagged(kArp, 0x8100, 5)));

  FlowSpec vlan5;
  vlan5.match(RTE_FLOW_ITEM_TYPE_ETH).match(RTE_FLOW_ITEM_TYPE_VLAN, vlan_item(5)).queue(0);
  EXPECT_TRUE(matches(vlan5, packet::tagged(kArp, 0x8100, 5)));
  EXPECT_TRUE(matches(vlan5, packet::tagged(kArp, 0x8100, 0xe005)));  // the priority does not matter
  EXPECT_FALSE(matches(vlan5, packet::tagged(kArp, 0x8100, 6)));
  EXPECT_FALSE(matches(vlan5, kArp));

  FlowSpec both;
  both.match(RTE_FLOW_ITEM_TYPE_ETH, type_item(0x88a8), type_item(0xffff))
      .match(RTE_FLOW_ITEM_TYPE_VLAN, vlan_item(7))
      .match(RTE_FLOW_ITEM_TYPE_VLAN, vlan_item(5, 0x0806), vlan_item(0x0fff, 0xffff))
      .queue(0);
  EXPECT_TRUE(matches(both, packet::tagged(packet::tagged(kArp, 0x8100, 5), 0x88a8, 7)));
  EXPECT_FALSE(matches(both, packet::tagged(packet::tagged(kArp, 0x8100, 7), 0x88a8, 5)));
  EXPECT_FALSE(matches(both, packet::tagged(packet::tagged(kRuleUdp4, 0x8100, 5), 0x88a8, 7)));
  EXPECT_FALSE(matches(both, packet::tagged(kArp, 0x88a8, 7)));
}

TEST(FlowRules, MatchMacAddresses) {
  rte_flow_item_eth item{};
  std::memcpy(&item.hdr.dst_addr, packet::kTestDestinationMac.bytes.data(), 6);
  std::memcpy(&item.hdr.src_addr, packet::kTestSourceMac.bytes.data(), 6);
  FlowSpec spec;
  spec.match(RTE_FLOW_ITEM_TYPE_ETH, item).queue(0);
  EXPECT_TRUE(matches(spec, kRuleUdp4));
  packet::FrameBytes other = kRuleUdp4;
  other[11] ^= 1;
  EXPECT_FALSE(matches(spec, other));
}

WARPLINE_PROPERTY(FlowRules, AnyBytesAreMatchedWithinTheirFrame, (const std::vector<std::uint8_t>& bytes)) {
  FlowSpec everything;
  everything.match(RTE_FLOW_ITEM_TYPE_ETH, type_item(0), type_item(0xffff))
      .match(RTE_FLOW_ITEM_TYPE_VLAN, vlan_item(0), vlan_item(0xffff, 0xffff))
      .match(RTE_FLOW_ITEM_TYPE_IPV6)
      .match(RTE_FLOW_ITEM_TYPE_TCP)
      .queue(0);
  FlowRules rules;
  rules.add(everything.rule());
  for (const packet::FrameBytes& whole : {packet::FrameBytes(bytes), packet::tagged(kRuleUdp6, 0x8100, 1), kArp}) {
    const auto length = *rc::gen::inRange<std::size_t>(0, whole.size() + 1);
    packet::SegmentedFrame frame(std::span<const std::uint8_t>(whole).first(length));
    RC_ASSERT(rules.match(frame.ref().data(), frame.ref().length, packet::parse(frame.ref())) == nullptr);
  }
}

TEST(FlowRules, PriorityThenAgeDecides) {
  FlowRules rules;
  const auto add = [&rules](std::uint32_t priority) {
    FlowSpec spec;
    spec.attr().priority = priority;
    return rules.add(spec.match(RTE_FLOW_ITEM_TYPE_ETH).mark(priority).rule());
  };
  FlowRule* low = add(9);
  FlowRule* first = add(3);
  FlowRule* second = add(3);
  packet::SegmentedFrame frame(kRuleUdp4);
  const auto matched = [&] { return rules.match(frame.ref().data(), frame.ref().length, packet::parse(frame.ref())); };
  EXPECT_EQ(matched(), first);
  EXPECT_EQ(matched(), first);
  EXPECT_EQ(first->hits.load(), 2U);
  EXPECT_EQ(first->bytes.load(), 2 * kRuleUdp4.size());
  EXPECT_TRUE(rules.remove(first));
  EXPECT_FALSE(rules.contains(first));
  EXPECT_FALSE(rules.remove(first));
  EXPECT_EQ(matched(), second);
  EXPECT_TRUE(rules.remove(second));
  EXPECT_EQ(matched(), low);
  rules.clear();
  EXPECT_TRUE(rules.empty());
  EXPECT_EQ(matched(), nullptr);
}

TEST(FlowRules, ActionsAreTakenOver) {
  FlowSpec spec;
  const auto rule = spec.act(RTE_FLOW_ACTION_TYPE_VOID).mark(77).act(RTE_FLOW_ACTION_TYPE_COUNT).queue(3).rule();
  EXPECT_TRUE(rule->action.has_mark && rule->action.has_queue && rule->action.counts && !rule->action.drop);
  EXPECT_EQ(rule->action.mark, 77U);
  EXPECT_EQ(rule->action.queue, 3U);
  FlowSpec drop;
  EXPECT_TRUE(drop.act(RTE_FLOW_ACTION_TYPE_DROP).rule()->action.drop);
}

struct Refusal {
  int code;
  rte_flow_error_type type;
  bool operator==(const Refusal&) const = default;
};

Refusal refusal(FlowSpec& spec) {
  FlowRule rule;
  rte_flow_error error{};
  const int status = spec.translate(rule, error);
  EXPECT_TRUE(status == 0 || error.message != nullptr);
  return {-status, error.type};
}

TEST(FlowRules, WhatTheDeviceHasNotIsRefused) {
  const auto refused = [](auto&& change) {
    FlowSpec spec;
    change(spec);
    return refusal(spec);
  };
  EXPECT_EQ(refused([](FlowSpec& s) { s.queue(0).attr().group = 1; }),
            (Refusal{ENOTSUP, RTE_FLOW_ERROR_TYPE_ATTR_GROUP}));
  EXPECT_EQ(refused([](FlowSpec& s) { s.queue(0).attr().egress = 1; }),
            (Refusal{ENOTSUP, RTE_FLOW_ERROR_TYPE_ATTR_EGRESS}));
  EXPECT_EQ(refused([](FlowSpec& s) { s.queue(0).attr().transfer = 1; }),
            (Refusal{ENOTSUP, RTE_FLOW_ERROR_TYPE_ATTR_TRANSFER}));
  EXPECT_EQ(refused([](FlowSpec& s) { s.queue(0).attr().ingress = 0; }),
            (Refusal{EINVAL, RTE_FLOW_ERROR_TYPE_ATTR_INGRESS}));

  EXPECT_EQ(refused([](FlowSpec& s) { s.match(RTE_FLOW_ITEM_TYPE_VXLAN).queue(0); }),
            (Refusal{ENOTSUP, RTE_FLOW_ERROR_TYPE_ITEM}));
  EXPECT_EQ(refused([](FlowSpec& s) { s.match(RTE_FLOW_ITEM_TYPE_UDP).match(RTE_FLOW_ITEM_TYPE_IPV4).queue(0); }),
            (Refusal{ENOTSUP, RTE_FLOW_ERROR_TYPE_ITEM}));
  EXPECT_EQ(refused([](FlowSpec& s) {
              for (int i = 0; i < 3; ++i) s.match(RTE_FLOW_ITEM_TYPE_VLAN);
              s.queue(0);
            }),
            (Refusal{ENOTSUP, RTE_FLOW_ERROR_TYPE_ITEM}));
  EXPECT_EQ(refused([](FlowSpec& s) {
              rte_flow_item_ipv4 mask{};
              mask.hdr.time_to_live = 0xff;
              s.match(RTE_FLOW_ITEM_TYPE_IPV4, ipv4_item(1, 2), mask).queue(0);
            }),
            (Refusal{ENOTSUP, RTE_FLOW_ERROR_TYPE_ITEM_MASK}));
  EXPECT_EQ(refused([](FlowSpec& s) {
              rte_flow_item_eth mask{};
              mask.has_vlan = 1;
              s.match(RTE_FLOW_ITEM_TYPE_ETH, type_item(1), mask).queue(0);
            }),
            (Refusal{ENOTSUP, RTE_FLOW_ERROR_TYPE_ITEM_MASK}));
  EXPECT_EQ(refused([](FlowSpec& s) {
              rte_flow_item_ipv6 mask{};
              mask.has_frag_ext = 1;
              s.match(RTE_FLOW_ITEM_TYPE_IPV6, rte_flow_item_ipv6{}, mask).queue(0);
            }),
            (Refusal{ENOTSUP, RTE_FLOW_ERROR_TYPE_ITEM_MASK}));
  EXPECT_EQ(refused([](FlowSpec& s) {
              s.match(RTE_FLOW_ITEM_TYPE_UDP, udp_item(1, 2)).queue(0);
              s.items()[0].last = s.items()[0].spec;
            }),
            (Refusal{ENOTSUP, RTE_FLOW_ERROR_TYPE_ITEM_LAST}));
  EXPECT_EQ(refused([](FlowSpec& s) {
              s.match(RTE_FLOW_ITEM_TYPE_UDP, udp_item(1, 2), udp_item(0xffff, 0xffff)).queue(0);
              s.items()[0].spec = nullptr;
            }),
            (Refusal{EINVAL, RTE_FLOW_ERROR_TYPE_ITEM_SPEC}));

  EXPECT_EQ(refused([](FlowSpec&) {}), (Refusal{EINVAL, RTE_FLOW_ERROR_TYPE_ACTION_NUM}));
  EXPECT_EQ(refused([](FlowSpec& s) { s.queue(4); }), (Refusal{EINVAL, RTE_FLOW_ERROR_TYPE_ACTION_CONF}));
  EXPECT_EQ(refused([](FlowSpec& s) { s.act(RTE_FLOW_ACTION_TYPE_QUEUE); }),
            (Refusal{EINVAL, RTE_FLOW_ERROR_TYPE_ACTION_CONF}));
  EXPECT_EQ(refused([](FlowSpec& s) { s.act(RTE_FLOW_ACTION_TYPE_MARK); }),
            (Refusal{EINVAL, RTE_FLOW_ERROR_TYPE_ACTION_CONF}));
  EXPECT_EQ(refused([](FlowSpec& s) { s.queue(0).act(RTE_FLOW_ACTION_TYPE_DROP); }),
            (Refusal{EINVAL, RTE_FLOW_ERROR_TYPE_ACTION}));
  EXPECT_EQ(refused([](FlowSpec& s) { s.act(RTE_FLOW_ACTION_TYPE_RSS); }),
            (Refusal{ENOTSUP, RTE_FLOW_ERROR_TYPE_ACTION}));
}

TEST(FlowRules, MissingListsAreRefused) {
  FlowRule rule;
  rte_flow_attr attr{};
  attr.ingress = 1;
  const rte_flow_item no_items[] = {{RTE_FLOW_ITEM_TYPE_END, nullptr, nullptr, nullptr}};
  rte_flow_error error{};
  EXPECT_EQ(translate(nullptr, no_items, nullptr, 1, rule, &error), -EINVAL);
  EXPECT_EQ(error.type, RTE_FLOW_ERROR_TYPE_ATTR);
  EXPECT_EQ(translate(&attr, nullptr, nullptr, 1, rule, &error), -EINVAL);
  EXPECT_EQ(error.type, RTE_FLOW_ERROR_TYPE_ITEM_NUM);
  EXPECT_EQ(translate(&attr, no_items, nullptr, 1, rule, nullptr), -EINVAL);
}

}  // namespace
}  // namespace warpline::vnic
