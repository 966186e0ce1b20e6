// SPDX-License-Identifier: Apache-2.0
#include "vnic/device/control.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include "vnic/common/device_clock.h"
#include "vnic/common/log.h"
#include "vnic/device/flow_ops.h"
#include "vnic/device/registry.h"

namespace warpline::vnic {
namespace {

bool has_carrier(const Device& device) {
  if (!device.link.up.load(std::memory_order_relaxed)) return false;
  if (device.args.wire == WireKind::peer && find_device(device.args.peer) == nullptr) return false;
  return device.egress.faults().link_up();
}

/// Runs `change` on the filters. -ENOMEM when their lists cannot grow.
template <typename Change>
int change_macs(rte_eth_dev* dev, Change change) {
  Device& device = device_of(dev);
  const Ingress::Change held(device.ingress);
  try {
    change(device.ingress.macs);
  } catch (const std::bad_alloc&) {
    return -ENOMEM;
  }
  return 0;
}

}  // namespace

bool publish_link(Device& device) {
  // If two threads publish, the one that read the carrier last must not publish first.
  const auto lock = lock_registry();
  rte_eth_link link{};
  const bool up = has_carrier(device);
  link.link_status = up ? RTE_ETH_LINK_UP : RTE_ETH_LINK_DOWN;
  link.link_speed = up ? RTE_ETH_SPEED_NUM_100G : RTE_ETH_SPEED_NUM_NONE;
  link.link_duplex = RTE_ETH_LINK_FULL_DUPLEX;
  link.link_autoneg = RTE_ETH_LINK_FIXED;
  return rte_eth_linkstatus_set(device.ethdev, &link) == 0;
}

void notify_link(Device& device) {
  if (publish_link(device) && device.ethdev->data->dev_conf.intr_conf.lsc != 0) {
    rte_eth_dev_callback_process(device.ethdev, RTE_ETH_EVENT_INTR_LSC, nullptr);
  }
}

void notify_reset(Device& device) {
  device.ingress.link_up.store(false, std::memory_order_release);
  rte_eth_dev_callback_process(device.ethdev, RTE_ETH_EVENT_INTR_RESET, nullptr);
}

void set_link(Device& device, bool up) {
  device.link.up.store(up, std::memory_order_release);
  device.ingress.link_up.store(up, std::memory_order_release);
  notify_link(device);
}

void tell_peers(std::string_view name) {
  for (Device* device : find_senders_to(name)) notify_link(*device);
}

int link_up(rte_eth_dev* dev) {
  Device& device = device_of(dev);
  device.link_wanted = true;
  if (device.started.load(std::memory_order_relaxed)) set_link(device, device.link_looks == 0);
  return 0;
}

int link_down(rte_eth_dev* dev) {
  Device& device = device_of(dev);
  device.link_wanted = false;
  set_link(device, false);
  return 0;
}

int link_update(rte_eth_dev* dev, int /*wait*/) {
  Device& device = device_of(dev);
  const bool negotiates = device.link_looks != 0 && device.started.load(std::memory_order_relaxed);
  if (negotiates && --device.link_looks == 0) set_link(device, device.link_wanted);
  return publish_link(device) ? 0 : -1;
}

int promiscuous_enable(rte_eth_dev* dev) {
  return change_macs(dev, [](MacFilter& macs) { macs.promiscuous = true; });
}

int promiscuous_disable(rte_eth_dev* dev) {
  return change_macs(dev, [](MacFilter& macs) { macs.promiscuous = false; });
}

int allmulticast_enable(rte_eth_dev* dev) {
  return change_macs(dev, [](MacFilter& macs) { macs.all_multicast = true; });
}

int allmulticast_disable(rte_eth_dev* dev) {
  return change_macs(dev, [](MacFilter& macs) { macs.all_multicast = false; });
}

int mac_add(rte_eth_dev* dev, rte_ether_addr* mac, std::uint32_t /*index*/, std::uint32_t /*pool*/) {
  return change_macs(dev, [&](MacFilter& macs) { macs.unicast.push_back(*mac); });
}

void mac_remove(rte_eth_dev* dev, std::uint32_t index) {
  const rte_ether_addr mac = dev->data->mac_addrs[index];
  change_macs(dev, [&](MacFilter& macs) {
    std::erase_if(macs.unicast, [&](const rte_ether_addr& other) { return rte_is_same_ether_addr(&other, &mac) != 0; });
  });
}

int mac_set(rte_eth_dev* dev, rte_ether_addr* mac) {
  return change_macs(dev, [&](MacFilter& macs) {
    // The first is the port's own.
    if (macs.unicast.empty()) macs.unicast.emplace_back();
    macs.unicast[0] = *mac;
  });
}

int multicast_list_set(rte_eth_dev* dev, rte_ether_addr* macs, std::uint32_t count) {
  return change_macs(dev, [&](MacFilter& filter) { filter.multicast.assign(macs, macs + count); });
}

int mtu_set(rte_eth_dev* dev, std::uint16_t mtu) {
  Device& device = device_of(dev);
  const std::uint32_t frame = mtu + kFrameOverhead;
  if (mtu > kMaxMtu) return -EINVAL;
  if (dev->data->dev_started != 0 && (device.args.persona->lacks & kLacksMtuChange) != 0) {
    log_error("%s: %s takes another MTU while the port is stopped only", device.name.c_str(),
              device.args.persona->name.data());
    return -EBUSY;
  }
  if (dev->data->dev_started != 0 && dev->data->scattered_rx == 0) {
    for (std::uint16_t i = 0; i < device.rx_queues; ++i) {
      if (device.rx[i] == nullptr || device.rx[i]->room[0] + RTE_PKTMBUF_HEADROOM >= mtu) continue;
      log_error(
          "%s: frames of an MTU of %u do not fit into the %u bytes of a buffer: stop the port and set the scatter "
          "offload, or take larger buffers",
          device.name.c_str(), mtu, device.rx[i]->room[0]);
      return -EINVAL;
    }
  }
  const Ingress::Change change(device.ingress);
  device.ingress.max_frame = frame;
  return 0;
}

int reta_update(rte_eth_dev* dev, rte_eth_rss_reta_entry64* reta, std::uint16_t size) {
  Device& device = device_of(dev);
  if (size != device.ingress.rss.entries) return -EINVAL;
  const Ingress::Change change(device.ingress);
  for (std::uint16_t i = 0; i < size; ++i) {
    const rte_eth_rss_reta_entry64& group = reta[i / RTE_ETH_RETA_GROUP_SIZE];
    const unsigned place = i % RTE_ETH_RETA_GROUP_SIZE;
    if ((group.mask >> place & 1) != 0 && group.reta[place] < device.rx_queues) {
      device.ingress.rss.table[i] = group.reta[place];
    }
  }
  return 0;
}

int reta_query(rte_eth_dev* dev, rte_eth_rss_reta_entry64* reta, std::uint16_t size) {
  const Device& device = device_of(dev);
  if (size != device.ingress.rss.entries) return -EINVAL;
  for (std::uint16_t i = 0; i < size; ++i) {
    rte_eth_rss_reta_entry64& group = reta[i / RTE_ETH_RETA_GROUP_SIZE];
    const unsigned place = i % RTE_ETH_RETA_GROUP_SIZE;
    if ((group.mask >> place & 1) != 0) group.reta[place] = device.ingress.rss.table[i];
  }
  return 0;
}

std::uint64_t rss_fields_of(const Persona& persona) { return persona.rss_fields & Rss::supported_fields(); }

int rss_hash_update(rte_eth_dev* dev, rte_eth_rss_conf* conf) {
  Device& device = device_of(dev);
  Rss& rss = device.ingress.rss;
  const bool has_key = conf->rss_key != nullptr && conf->rss_key_len != 0;
  const bool fits = !has_key || conf->rss_key_len == rss.key().size();
  if (!fits || (conf->rss_hf & ~rss_fields_of(*device.args.persona)) != 0) return -EINVAL;
  const Ingress::Change change(device.ingress);
  rss.set_fields(conf->rss_hf);
  if (has_key) rss.set_key({conf->rss_key, conf->rss_key_len});
  return 0;
}

int rss_hash_get(rte_eth_dev* dev, rte_eth_rss_conf* conf) {
  const Rss& rss = device_of(dev).ingress.rss;
  conf->rss_hf = rss.fields();
  if (const auto key = rss.key(); conf->rss_key != nullptr && conf->rss_key_len >= key.size()) {
    std::memcpy(conf->rss_key, key.data(), key.size());
    conf->rss_key_len = static_cast<std::uint8_t>(key.size());
  }
  return 0;
}

int flow_ops_get(rte_eth_dev* dev, const rte_flow_ops** ops) {
  if (device_of(dev).args.persona->flow_rules == FlowRuleTimes::never) return -ENOTSUP;
  *ops = &kFlowOps;
  return 0;
}

int read_clock(rte_eth_dev* /*dev*/, std::uint64_t* clock) {
  *clock = device_nanos();
  return 0;
}

}  // namespace warpline::vnic
