// SPDX-License-Identifier: Apache-2.0
#include "warpline/port/port.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include <rte_bus_vdev.h>
#include <rte_dev.h>
#include <rte_devargs.h>
#include <rte_errno.h>
#include <rte_ether.h>

#include "warpline/machine/ordinary_scheduling.h"
#include "warpline/packet/listener.h"
#include "warpline/port/removal_watch.h"
#include "warpline/port/vnic.h"
#include "warpline/runtime/dpdk_log.h"
#include "warpline/runtime/lcore_plan.h"
#include "warpline/runtime/port_spec.h"
#include "warpline/runtime/setup_step.h"

namespace warpline::port {
namespace {

/// The ethdev of a device that has been probed, or RTE_MAX_ETHPORTS.
std::uint16_t find_ethdev(const runtime::PortSpec& spec) {
  std::uint16_t id = RTE_MAX_ETHPORTS;
  if (rte_eth_dev_get_port_by_name(spec.device.c_str(), &id) == 0) return id;
  if (!spec.pci) return RTE_MAX_ETHPORTS;
  // A device with several ports names them after itself: take the first.
  rte_dev_iterator iterator;
  RTE_ETH_FOREACH_MATCHING_DEV(id, spec.device.c_str(), &iterator) {
    rte_eth_iterator_cleanup(&iterator);
    return id;
  }
  return RTE_MAX_ETHPORTS;
}

/// Makes the device; DPDK's log says what went wrong. Virtual devices are not probed by rte_dev_probe(), which since
/// DPDK 24.11 takes 128 bytes of arguments: two names of capture files are longer.
int make_device(const std::string& text, bool pci) {
  const machine::OrdinaryScheduling for_threads;
  if (pci) return rte_dev_probe(text.c_str());
  rte_devargs parsed{};
  int problem = rte_devargs_parse(&parsed, text.c_str());
  if (problem == 0) problem = rte_vdev_init(parsed.name, parsed.args);
  rte_devargs_reset(&parsed);
  return problem;
}

}  // namespace

Result<Port> Port::open(const std::string& text) {
  WARPLINE_CHECK(runtime::check_port_spec(text));
  WARPLINE_TRY(const runtime::PortSpec spec, runtime::parse_port_spec(text));
  const std::string what = fmt::format("port {}", text);
  const runtime::SetupStep step("opening " + what);
  const runtime::CapturedLog log;
  std::uint16_t id = find_ethdev(spec);
  if (id != RTE_MAX_ETHPORTS && !spec.pci) {
    return usage_error(what, "it is open already", "give each port a name of its own");
  }
  if (id == RTE_MAX_ETHPORTS) {
    const int problem = make_device(text, spec.pci);
    id = find_ethdev(spec);
    if (problem != 0 && id == RTE_MAX_ETHPORTS) {
      const std::string why = log.reason(rte_strerror(-problem));
      if (spec.pci) return environment_error(what, why, "`dpdk-devbind.py --status` shows which driver has it");
      if (why.find("failed to parse device") != std::string::npos) {
        if (spec.driver == "net_vnic") return built_without_vnic(what);
        return usage_error(what, fmt::format("DPDK has no driver {}", spec.driver), runtime::vdev_hint(spec.driver));
      }
      return usage_error(what, why, fmt::format("see DPDK's guide to {} for its arguments", spec.driver));
    }
  }
  if (id == RTE_MAX_ETHPORTS) {
    return environment_error(what, "its driver made no Ethernet port of it", "run `warpline doctor`");
  }
  Port port(id);
  const auto [first, last] = spec.arguments.equal_range("tx_pcap");
  for (auto output = first; output != last; ++output) port.unused_outputs_.push_back(output->second);
  port.writes_files_ = first != last;
  return port;
}

Result<Port> Port::adopt(std::uint16_t id) {
  if (rte_eth_dev_is_valid_port(id) == 0) {
    return usage_error(fmt::format("port {}", id), "there is no such ethdev", "make it first");
  }
  return Port(id);
}

Port::Port(std::uint16_t id) : id_(id) {
  char name[RTE_ETH_NAME_MAX_LEN] = "";
  rte_eth_dev_get_name_by_port(id, name);
  name_ = name;
  rte_eth_dev_info info;
  if (rte_eth_dev_info_get(id, &info) == 0) {
    driver_ = info.driver_name == nullptr ? "" : info.driver_name;
    device_ = info.device;
  }
  const int node = rte_eth_dev_socket_id(id);
  node_ = node < 0 ? runtime::kAnyNode : node;
  watch_removal(id_, name_);
}

Port::Port(Port&& other) noexcept { *this = std::move(other); }

Port& Port::operator=(Port&& other) noexcept {
  if (this == &other) return *this;
  close();
  id_ = std::exchange(other.id_, kNone);
  name_ = std::move(other.name_);
  driver_ = std::move(other.driver_);
  device_ = other.device_;
  node_ = other.node_;
  started_ = std::exchange(other.started_, false);
  writes_files_ = other.writes_files_;
  settings_ = std::move(other.settings_);
  tx_free_wish_ = other.tx_free_wish_;
  queues_ = other.queues_;
  setup_ = std::move(other.setup_);
  pool_needed_ = other.pool_needed_;
  unused_outputs_ = std::move(other.unused_outputs_);
  mapped_ = std::exchange(other.mapped_, {});
  device_config_ = other.device_config_;
  watches_ = std::move(other.watches_);
  cut_ = std::move(other.cut_);
  return *this;
}

Port::~Port() { close(); }

void Port::close() {
  if (id_ == kNone) return;
  const runtime::SetupStep step(fmt::format("closing port {}", name_), runtime::SetupStep::Of::clean_up);
  stop();
  const runtime::CapturedLog log;
  end_removal_watch(id_, name_);
  unmap();
  end_dropping();
  rte_eth_dev_close(id_);
  // A vdev goes altogether, so that its name can be used again. A PCI device may have other ports.
  if (driver_.find("pci") == std::string::npos && name_.find(':') == std::string::npos && device_ != nullptr) {
    rte_dev_remove(device_);
  }
  std::error_code ignored;
  for (const std::string& output : unused_outputs_) {
    // Not /dev/null, which may stand for an output too.
    if (std::filesystem::is_regular_file(std::filesystem::symlink_status(output, ignored))) {
      std::filesystem::remove(output, ignored);
    }
  }
  id_ = kNone;
}

Result<void> Port::start() {
  const runtime::SetupStep step(fmt::format("starting port {}", name_));
  const runtime::CapturedLog log;
  const machine::OrdinaryScheduling for_threads;
  // Nothing here reads packet types, so devices that take time to tell them need not.
  (void)rte_eth_dev_set_ptypes(id_, RTE_PTYPE_UNKNOWN, nullptr, 0);
  if (const int problem = rte_eth_dev_start(id_); problem != 0) {
    if (pool_needed_ != 0) {
      return usage_error(fmt::format("port {} does not start", name_), log.reason(rte_strerror(-problem)),
                         fmt::format("use a --pool-size above {}, or a smaller --rx-ring", pool_needed_));
    }
    const bool splits = (device_config_.rxmode.offloads & RTE_ETH_RX_OFFLOAD_BUFFER_SPLIT) != 0;
    return environment_error(fmt::format("port {} does not start", name_), log.reason(rte_strerror(-problem)),
                             splits ? "leave --split out, or see its guide at https://doc.dpdk.org/guides/nics/"
                                    : "see its guide at https://doc.dpdk.org/guides/nics/");
  }
  started_ = true;
  unused_outputs_.clear();
  const int problem = settings_.promiscuous ? rte_eth_promiscuous_enable(id_) : rte_eth_promiscuous_disable(id_);
  if (problem != 0 && settings_.promiscuous && !settings_.spec.empty()) {
    setup_.refused.push_back(fmt::format("promiscuous: {}", rte_strerror(-problem)));
  }
  join_groups(settings_.promiscuous && problem == 0);
  return {};
}

/// Lets frames to the groups of the port's IPv6 addresses in, as neighbour solicitations and listener queries are
/// (RFC 4861, 7.2.1; RFC 4291, 2.8): not only where the port is promiscuous, which a host may grant a virtual function
/// and yet not act upon. IPv4 needs no group: ARP is broadcast.
void Port::join_groups(bool promiscuous) {
  std::vector<rte_ether_addr> groups;
  const auto join = [&groups](const Ipv6Address& group) {
    const MacAddress mac = packet::group_mac(group);
    rte_ether_addr address{};
    std::memcpy(address.addr_bytes, mac.bytes.data(), mac.bytes.size());
    const auto same = [&](const rte_ether_addr& other) { return rte_is_same_ether_addr(&other, &address) != 0; };
    if (std::ranges::none_of(groups, same)) groups.push_back(address);
  };
  for (const InterfaceAddress& own : settings_.addresses) {
    const auto* const v6 = std::get_if<Ipv6Address>(&own.address);
    if (v6 == nullptr) continue;
    join(packet::all_nodes());
    join(packet::solicited_node(*v6));
  }
  if (groups.empty()) return;
  const int listed = rte_eth_dev_set_mc_addr_list(id_, groups.data(), static_cast<std::uint32_t>(groups.size()));
  if (listed == 0 || promiscuous || rte_eth_allmulticast_enable(id_) == 0 || settings_.spec.empty()) return;
  setup_.refused.push_back(
      fmt::format("multicast groups: {}: if the device filters, no neighbour finds the port's IPv6 addresses",
                  rte_strerror(-listed)));
}

void Port::stop() {
  if (!started_) return;
  const runtime::SetupStep step(fmt::format("stopping port {}", name_), runtime::SetupStep::Of::clean_up);
  const runtime::CapturedLog log;
  rte_eth_dev_stop(id_);
  started_ = false;
}

MacAddress Port::mac() const {
  rte_ether_addr address{};
  MacAddress mac;
  if (rte_eth_macaddr_get(id_, &address) == 0) std::memcpy(mac.bytes.data(), address.addr_bytes, mac.bytes.size());
  return mac;
}

PortCounters without_fcs(std::string_view driver, PortCounters counters) {
  // Their octet registers count the FCS, and they pass them on as they are; net_e1000_igb, net_igc, net_ixgbe and
  // net_i40e take it off.
  if (driver != "net_e1000_em" && driver != "net_e1000_igb_vf") return counters;
  const auto less = [](std::uint64_t bytes, std::uint64_t packets) {
    return bytes - std::min(bytes, packets * RTE_ETHER_CRC_LEN);
  };
  counters.rx_bytes = less(counters.rx_bytes, counters.rx_packets);
  counters.tx_bytes = less(counters.tx_bytes, counters.tx_packets);
  return counters;
}

PortCounters Port::counters() const {
  rte_eth_stats stats{};
  if (rte_eth_stats_get(id_, &stats) != 0) stats = {};
  std::uint64_t conflicts = 0;
  for (const packet::AddressWatch& watch : watches()) conflicts += watch.conflicts();
  for (std::uint16_t queue = 0; cut_ != nullptr && queue < queues_.rx; ++queue) {
    const std::uint64_t packets = cut_[queue].packets.get();
    stats.ipackets -= std::min(stats.ipackets, packets);
    stats.ibytes -= std::min(stats.ibytes, cut_[queue].bytes.get());
    stats.ierrors += packets;
  }
  return without_fcs(driver_, {.rx_packets = stats.ipackets,
                               .rx_bytes = stats.ibytes,
                               .tx_packets = stats.opackets,
                               .tx_bytes = stats.obytes,
                               .rx_missed = stats.imissed,
                               .rx_errors = stats.ierrors,
                               .rx_no_mbuf = stats.rx_nombuf,
                               .tx_errors = stats.oerrors,
                               .address_conflicts = conflicts});
}

std::map<std::string, std::uint64_t> Port::extended_counters() const {
  const int count = rte_eth_xstats_get(id_, nullptr, 0);
  if (count <= 0) return {};
  std::vector<rte_eth_xstat> values(static_cast<std::size_t>(count));
  std::vector<rte_eth_xstat_name> names(static_cast<std::size_t>(count));
  const auto room = static_cast<unsigned>(count);
  if (rte_eth_xstats_get(id_, values.data(), room) != count ||
      rte_eth_xstats_get_names(id_, names.data(), room) != count) {
    return {};
  }
  std::map<std::string, std::uint64_t> counters;
  for (const rte_eth_xstat& value : values) {
    if (value.id < names.size()) counters[names[value.id].name] = value.value;
  }
  return counters;
}

LinkState Port::link() const {
  rte_eth_link link{};
  if (rte_eth_link_get_nowait(id_, &link) != 0) return {.up = true};
  return {link.link_status == RTE_ETH_LINK_UP, link.link_speed == RTE_ETH_SPEED_NUM_UNKNOWN ? 0 : link.link_speed};
}

}  // namespace warpline::port
