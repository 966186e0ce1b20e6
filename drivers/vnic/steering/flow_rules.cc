// SPDX-License-Identifier: Apache-2.0
#include "vnic/steering/flow_rules.h"

#include <algorithm>

#include "warpline/packet/headers/ethernet.h"
#include "warpline/packet/headers/ipv4.h"
#include "warpline/packet/headers/ipv6.h"

namespace warpline::vnic {
namespace {

constexpr std::uint32_t kSourceMac = 6;
constexpr std::uint32_t kFirstType = 12;
constexpr std::uint32_t kFirstTag = packet::EthernetView::kHeaderLength;

template <std::size_t n>
bool agrees(const MaskedBytes<n>& wanted, const std::uint8_t* bytes, std::size_t used = n) {
  unsigned difference = 0;
  for (std::size_t i = 0; i < used; ++i) difference |= (bytes[i] & wanted.mask[i]) ^ wanted.value[i];
  return difference == 0;
}

void bump(std::atomic<std::uint64_t>& cell, std::uint64_t n) {
  cell.store(cell.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
}

}  // namespace

bool FlowRule::matches(const std::uint8_t* frame, const packet::ParsedFrame& parsed) const {
  if (parsed.vlan_tags < vlans) return false;
  if (l3 != packet::L3Kind::none && parsed.l3 != l3) return false;
  if (l4 != packet::L4Kind::none && parsed.l4 != l4) return false;
  if (!agrees(destination_mac, frame) || !agrees(source_mac, frame + kSourceMac)) return false;
  for (std::size_t i = 0; i <= vlans; ++i) {
    if (!agrees(type[i], frame + kFirstType + i * packet::VlanView::kHeaderLength)) return false;
    if (i < vlans && !agrees(tag[i], frame + kFirstTag + i * packet::VlanView::kHeaderLength)) return false;
  }
  if (l3 != packet::L3Kind::none) {
    const bool ipv4 = l3 == packet::L3Kind::ipv4;
    const std::uint8_t* header = frame + parsed.l3_offset;
    const std::size_t used = ipv4 ? 4 : 16;
    if (!agrees(source, header + (ipv4 ? packet::Ipv4View::kSource : packet::Ipv6View::kSource), used)) return false;
    if (!agrees(destination, header + (ipv4 ? packet::Ipv4View::kDestination : packet::Ipv6View::kDestination), used))
      return false;
    if (!agrees(protocol, &parsed.protocol)) return false;
  }
  if (l4 != packet::L4Kind::none) {
    const std::uint8_t* ports = frame + parsed.l4_offset;
    if (!agrees(source_port, ports) || !agrees(destination_port, ports + 2)) return false;
  }
  return true;
}

const FlowRule* FlowRules::match(const std::uint8_t* frame, std::uint32_t length, const packet::ParsedFrame& parsed) {
  if (length < packet::EthernetView::kHeaderLength) return nullptr;
  for (const std::unique_ptr<FlowRule>& rule : rules_) {
    if (!rule->matches(frame, parsed)) continue;
    bump(rule->hits, 1);
    bump(rule->bytes, length);
    return rule.get();
  }
  return nullptr;
}

FlowRule* FlowRules::add(std::unique_ptr<FlowRule> rule) {
  const auto behind = std::ranges::upper_bound(rules_, rule->priority, {},
                                               [](const std::unique_ptr<FlowRule>& r) { return r->priority; });
  return rules_.insert(behind, std::move(rule))->get();
}

bool FlowRules::remove(const FlowRule* rule) {
  return std::erase_if(rules_, [rule](const std::unique_ptr<FlowRule>& r) { return r.get() == rule; }) != 0;
}

bool FlowRules::contains(const FlowRule* rule) const {
  return std::ranges::any_of(rules_, [rule](const std::unique_ptr<FlowRule>& r) { return r.get() == rule; });
}

}  // namespace warpline::vnic
