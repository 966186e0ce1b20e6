// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include <rte_flow.h>

#include "warpline/packet/parse.h"

namespace warpline::vnic {

/// What a flow rule does with a frame that it matches. Neither drop nor queue: RSS goes on to choose.
struct FlowAction {
  bool drop = false;
  bool has_queue = false;
  bool has_mark = false;
  bool counts = false;
  std::uint16_t queue = 0;
  std::uint32_t mark = 0;
};

/// Matches n bytes of a frame: all those where the mask has a bit. Values hold no bit that the mask has not.
template <std::size_t n>
struct MaskedBytes {
  std::array<std::uint8_t, n> value{}, mask{};
};

/// One created rule: rte_flow's opaque handle points to it. Masks of zeros match anything.
struct FlowRule {
  std::uint32_t priority = 0;
  std::uint8_t vlans = 0;  ///< tags that must be there
  MaskedBytes<6> destination_mac, source_mac;
  std::array<MaskedBytes<2>, packet::kMaxVlanTags + 1>
      type;                                              ///< EtherType before each tag and behind the last; i <= vlans
  std::array<MaskedBytes<2>, packet::kMaxVlanTags> tag;  ///< TCI; i < vlans
  packet::L3Kind l3 = packet::L3Kind::none;              ///< none: any
  MaskedBytes<16> source, destination;                   ///< addresses; IPv4's in the first four bytes
  MaskedBytes<1> protocol;                               ///< behind extension headers
  packet::L4Kind l4 = packet::L4Kind::none;              ///< none: any
  MaskedBytes<2> source_port, destination_port;
  FlowAction action;
  // Frames that it matched, and their bytes. Written by the thread that matches.
  std::atomic<std::uint64_t> hits{0};
  std::atomic<std::uint64_t> bytes{0};

  [[nodiscard]] bool matches(const std::uint8_t* frame, const packet::ParsedFrame& parsed) const;
};

/// A port's flow rules, matched in order of priority, those of one priority in order of creation. Changed and matched
/// as Ingress's configuration is.
class FlowRules {
 public:
  /// The first rule that matches, its counters advanced; null when none does.
  [[nodiscard]] const FlowRule* match(const std::uint8_t* frame, std::uint32_t length,
                                      const packet::ParsedFrame& parsed);
  FlowRule* add(std::unique_ptr<FlowRule> rule);
  /// False when there is no such rule.
  bool remove(const FlowRule* rule);
  void clear() { rules_.clear(); }
  [[nodiscard]] bool empty() const { return rules_.empty(); }
  [[nodiscard]] bool contains(const FlowRule* rule) const;

 private:
  std::vector<std::unique_ptr<FlowRule>> rules_;
};

/// Translates a pattern (eth, vlan, ipv4, ipv6, udp, tcp) and actions (queue, drop, mark, count) into `rule`. 0, or a
/// negative errno that `error` explains: ENOTSUP for what the device has not, EINVAL for what makes no sense. Without
/// a VLAN item tags do not matter, but an EtherType in ETH is the frame's outermost.
[[nodiscard]] int translate(const rte_flow_attr* attr, const rte_flow_item pattern[], const rte_flow_action actions[],
                            std::uint16_t queues, FlowRule& rule, rte_flow_error* error);

}  // namespace warpline::vnic
