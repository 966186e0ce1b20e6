// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <initializer_list>

#include "vnic/steering/flow_rules.h"

namespace warpline::vnic {
namespace {

/// A field of an item's header that can be matched. The default mask, for an item without one, is rte_flow's.
struct Field {
  std::size_t offset;
  std::size_t size;
  std::uint8_t* value;
  std::uint8_t* mask;
  std::uint8_t default_first = 0xff;
  std::uint8_t default_rest = 0xff;
};

template <std::size_t n>
Field field(std::size_t offset, MaskedBytes<n>& to, std::uint8_t default_mask = 0xff, std::size_t size = n) {
  return {offset, size, to.value.data(), to.mask.data(), default_mask, default_mask};
}

/// The headers in the order in which they lie in a frame.
enum class Layer : std::uint8_t { start, ethernet, vlan, l3, l4 };

class Translation {
 public:
  Translation(FlowRule& rule, rte_flow_error* error) : rule_(rule), error_(error) {}

  int attributes(const rte_flow_attr* attr) {
    if (attr == nullptr) return fail(EINVAL, RTE_FLOW_ERROR_TYPE_ATTR, nullptr, "no attributes");
    if (attr->group != 0) return fail(ENOTSUP, RTE_FLOW_ERROR_TYPE_ATTR_GROUP, attr, "there is group 0 only");
    if (attr->transfer != 0) return fail(ENOTSUP, RTE_FLOW_ERROR_TYPE_ATTR_TRANSFER, attr, "there is no switch");
    if (attr->egress != 0) return fail(ENOTSUP, RTE_FLOW_ERROR_TYPE_ATTR_EGRESS, attr, "rules are for ingress only");
    if (attr->ingress == 0) return fail(EINVAL, RTE_FLOW_ERROR_TYPE_ATTR_INGRESS, attr, "a rule is for ingress");
    rule_.priority = attr->priority;
    return 0;
  }

  int pattern(const rte_flow_item* item) {
    if (item == nullptr) return fail(EINVAL, RTE_FLOW_ERROR_TYPE_ITEM_NUM, nullptr, "no pattern");
    for (; item->type != RTE_FLOW_ITEM_TYPE_END; ++item) {
      if (item->type == RTE_FLOW_ITEM_TYPE_VOID) continue;
      if (const int status = this->item(*item); status != 0) return status;
    }
    return 0;
  }

  int actions(const rte_flow_action* action, std::uint16_t queues) {
    if (action == nullptr) return fail(EINVAL, RTE_FLOW_ERROR_TYPE_ACTION_NUM, nullptr, "no actions");
    const rte_flow_action* first = action;
    bool any = false;
    for (; action->type != RTE_FLOW_ACTION_TYPE_END; ++action) {
      if (action->type == RTE_FLOW_ACTION_TYPE_VOID) continue;
      if (const int status = this->action(*action, queues); status != 0) return status;
      any = true;
    }
    if (!any) return fail(EINVAL, RTE_FLOW_ERROR_TYPE_ACTION_NUM, first, "a rule needs queue, drop, mark or count");
    return 0;
  }

 private:
  int fail(int code, rte_flow_error_type type, const void* cause, const char* message) {
    return rte_flow_error_set(error_, code, type, cause, message);
  }

  int item(const rte_flow_item& item) {
    switch (item.type) {
      case RTE_FLOW_ITEM_TYPE_ETH:
        return ethernet(item);
      case RTE_FLOW_ITEM_TYPE_VLAN:
        return vlan(item);
      case RTE_FLOW_ITEM_TYPE_IPV4:
        return ipv4(item);
      case RTE_FLOW_ITEM_TYPE_IPV6:
        return ipv6(item);
      case RTE_FLOW_ITEM_TYPE_UDP:
        return l4(item, packet::L4Kind::udp, sizeof(rte_udp_hdr));
      case RTE_FLOW_ITEM_TYPE_TCP:
        return l4(item, packet::L4Kind::tcp, sizeof(rte_tcp_hdr));
      default:
        return fail(ENOTSUP, RTE_FLOW_ERROR_TYPE_ITEM, &item, "matched are eth, vlan, ipv4, ipv6, udp and tcp");
    }
  }

  int ethernet(const rte_flow_item& item) {
    if (const int status = enter(item, Layer::ethernet); status != 0) return status;
    const auto* mask = static_cast<const rte_flow_item_eth*>(item.mask);
    return take(item, sizeof(rte_ether_hdr), mask != nullptr && mask->has_vlan != 0,
                {field(0, rule_.destination_mac), field(6, rule_.source_mac), field(12, rule_.type[0], 0)});
  }

  int vlan(const rte_flow_item& item) {
    if (rule_.vlans == packet::kMaxVlanTags) {
      return fail(ENOTSUP, RTE_FLOW_ERROR_TYPE_ITEM, &item, "two VLAN tags at most");
    }
    if (const int status = enter(item, Layer::vlan); status != 0) return status;
    Field control = field(0, rule_.tag[rule_.vlans]);
    control.default_first = 0x0f;  // the id, not the priority
    ++rule_.vlans;
    const auto* mask = static_cast<const rte_flow_item_vlan*>(item.mask);
    return take(item, sizeof(rte_vlan_hdr), mask != nullptr && mask->has_more_vlan != 0,
                {control, field(2, rule_.type[rule_.vlans], 0)});
  }

  int ipv4(const rte_flow_item& item) {
    if (const int status = enter(item, Layer::l3); status != 0) return status;
    rule_.l3 = packet::L3Kind::ipv4;
    return take(item, sizeof(rte_ipv4_hdr), false,
                {field(offsetof(rte_ipv4_hdr, src_addr), rule_.source, 0xff, 4),
                 field(offsetof(rte_ipv4_hdr, dst_addr), rule_.destination, 0xff, 4),
                 field(offsetof(rte_ipv4_hdr, next_proto_id), rule_.protocol, 0)});
  }

  int ipv6(const rte_flow_item& item) {
    if (const int status = enter(item, Layer::l3); status != 0) return status;
    rule_.l3 = packet::L3Kind::ipv6;
    // Which extension headers there are stands in flags behind the header.
    std::uint32_t extensions = 0;
    static_assert(sizeof(rte_flow_item_ipv6) == sizeof(rte_ipv6_hdr) + sizeof(extensions));
    if (item.mask != nullptr) {
      std::memcpy(&extensions, static_cast<const std::uint8_t*>(item.mask) + sizeof(rte_ipv6_hdr), sizeof(extensions));
    }
    return take(item, sizeof(rte_ipv6_hdr), extensions != 0,
                {field(offsetof(rte_ipv6_hdr, src_addr), rule_.source),
                 field(offsetof(rte_ipv6_hdr, dst_addr), rule_.destination),
                 field(offsetof(rte_ipv6_hdr, proto), rule_.protocol, 0)});
  }

  int l4(const rte_flow_item& item, packet::L4Kind kind, std::size_t header) {
    if (const int status = enter(item, Layer::l4); status != 0) return status;
    rule_.l4 = kind;
    return take(item, header, false, {field(0, rule_.source_port), field(2, rule_.destination_port)});
  }

  /// One header of each layer, from the outside in; VLAN tags may be two.
  int enter(const rte_flow_item& item, Layer layer) {
    if (layer < layer_ || (layer == layer_ && layer != Layer::vlan)) {
      return fail(ENOTSUP, RTE_FLOW_ERROR_TYPE_ITEM, &item, "one header of each layer, from Ethernet upwards");
    }
    layer_ = layer;
    return 0;
  }

  /// Takes over the fields. The item begins with a protocol's header of `header` bytes; `asks_more`: its mask has bits
  /// beyond that.
  int take(const rte_flow_item& item, std::size_t header, bool asks_more, std::initializer_list<Field> fields) {
    if (item.last != nullptr) return fail(ENOTSUP, RTE_FLOW_ERROR_TYPE_ITEM_LAST, &item, "ranges are not matched");
    if (item.spec == nullptr) {
      if (item.mask == nullptr) return 0;
      return fail(EINVAL, RTE_FLOW_ERROR_TYPE_ITEM_SPEC, &item, "a mask without a value");
    }
    const auto* spec = static_cast<const std::uint8_t*>(item.spec);
    const auto* mask = static_cast<const std::uint8_t*>(item.mask);
    std::ptrdiff_t matched = 0;
    for (const Field& field : fields) {
      for (std::size_t i = 0; i < field.size; ++i) {
        const std::uint8_t fallback = i == 0 ? field.default_first : field.default_rest;
        field.mask[i] = mask == nullptr ? fallback : mask[field.offset + i];
        field.value[i] = spec[field.offset + i] & field.mask[i];
        matched += field.mask[i] != 0 ? 1 : 0;
      }
    }
    if (mask == nullptr) return 0;
    const auto asked = std::count_if(mask, mask + header, [](std::uint8_t byte) { return byte != 0; });
    if (!asks_more && asked == matched) return 0;
    return fail(ENOTSUP, RTE_FLOW_ERROR_TYPE_ITEM_MASK, &item,
                "matched are addresses, EtherType, TCI, protocol and ports");
  }

  int action(const rte_flow_action& action, std::uint16_t queues) {
    FlowAction& to = rule_.action;
    switch (action.type) {
      case RTE_FLOW_ACTION_TYPE_COUNT:
        to.counts = true;
        return 0;
      case RTE_FLOW_ACTION_TYPE_MARK: {
        if (action.conf == nullptr) return fail(EINVAL, RTE_FLOW_ERROR_TYPE_ACTION_CONF, &action, "mark needs an id");
        to.has_mark = true;
        to.mark = static_cast<const rte_flow_action_mark*>(action.conf)->id;
        return 0;
      }
      case RTE_FLOW_ACTION_TYPE_DROP:
        if (to.drop || to.has_queue) return two_fates(action);
        to.drop = true;
        return 0;
      case RTE_FLOW_ACTION_TYPE_QUEUE: {
        if (to.drop || to.has_queue) return two_fates(action);
        const auto* conf = static_cast<const rte_flow_action_queue*>(action.conf);
        if (conf == nullptr || conf->index >= queues) {
          return fail(EINVAL, RTE_FLOW_ERROR_TYPE_ACTION_CONF, &action, "there is no such receive queue");
        }
        to.has_queue = true;
        to.queue = conf->index;
        return 0;
      }
      default:
        return fail(ENOTSUP, RTE_FLOW_ERROR_TYPE_ACTION, &action, "there are queue, drop, mark and count");
    }
  }

  int two_fates(const rte_flow_action& action) {
    return fail(EINVAL, RTE_FLOW_ERROR_TYPE_ACTION, &action, "a frame goes to one queue, or is dropped");
  }

  FlowRule& rule_;
  rte_flow_error* error_;
  Layer layer_ = Layer::start;
};

}  // namespace

int translate(const rte_flow_attr* attr, const rte_flow_item pattern[], const rte_flow_action actions[],
              std::uint16_t queues, FlowRule& rule, rte_flow_error* error) {
  Translation translation(rule, error);
  if (const int status = translation.attributes(attr); status != 0) return status;
  if (const int status = translation.pattern(pattern); status != 0) return status;
  return translation.actions(actions, queues);
}

}  // namespace warpline::vnic
