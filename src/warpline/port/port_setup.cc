// SPDX-License-Identifier: Apache-2.0
// How a port's configuration meets what its device can do.
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include <rte_errno.h>

#include "warpline/port/offloads.h"
#include "warpline/port/port.h"
#include "warpline/runtime/dpdk_log.h"
#include "warpline/runtime/setup_step.h"

namespace warpline::port {
namespace {

Result<void> check_queues(const std::string& name, const char* side, std::uint16_t wanted, std::uint16_t most) {
  if (wanted <= most) return {};
  return usage_error(
      fmt::format("port {}: {} {} queues", name, wanted, side), fmt::format("the device has {}", most),
      most == 0 ? "use another port" : fmt::format("ask for at most {} pipelines or queues a port", most));
}

/// Each receive queue of net_pcap is a file or an interface of its own: without its queue an input is never read. Those
/// of net_af_packet (qpairs) share what the interface receives by its flows (packet(7), PACKET_FANOUT_HASH).
Result<void> check_inputs(const std::string& name, const std::string& driver, std::uint16_t queues,
                          std::uint16_t inputs) {
  if (driver == "net_af_packet" && queues != 0 && queues < inputs) {
    return usage_error(fmt::format("port {}: {} queue pairs", name, inputs),
                       fmt::format("each receives some of the flows, and the run has {} receive queues", queues),
                       fmt::format("use {} pipelines or queues per port, or qpairs={}", inputs, queues));
  }
  if (driver != "net_pcap" || queues == 0 || queues >= inputs) return {};
  return usage_error(fmt::format("port {}: {} files or interfaces to receive from", name, inputs),
                     fmt::format("each needs a receive queue, and the port has {}", queues),
                     fmt::format("use {} pipelines or queues per port, or name fewer", inputs));
}

/// net_tap has as many queues of the one kind as of the other.
Result<void> check_pairs(const std::string& name, const std::string& driver, const PortQueues& queues) {
  if (driver != "net_tap" || queues.rx == queues.tx || queues.rx == 0 || queues.tx == 0) return {};
  return usage_error(fmt::format("port {}: {} receive queues and {} transmit queues", name, queues.rx, queues.tx),
                     "net_tap has as many of the one kind as of the other",
                     "use the model run-to-completion, or another driver");
}

/// Adds those of `wanted` that the device lacks to `refused`; the others are returned.
std::uint64_t grant(OffloadSide side, std::uint64_t wanted, std::uint64_t capability,
                    std::vector<std::string>& refused) {
  for (const std::string& name : offload_names(side, wanted & ~capability)) {
    refused.push_back(fmt::format("{} offload {}", side == OffloadSide::rx ? "receive" : "transmit", name));
  }
  return wanted & capability;
}

/// By its MTU and by its frame, as rte_eth_dev_configure will judge.
std::uint16_t largest_mtu(const rte_eth_dev_info& info) {
  const bool knows_both = info.max_mtu != UINT16_MAX && info.max_rx_pktlen > info.max_mtu;
  const std::uint32_t overhead =
      knows_both ? info.max_rx_pktlen - info.max_mtu : std::uint32_t{RTE_ETHER_HDR_LEN + RTE_ETHER_CRC_LEN};
  const std::uint32_t by_frame = info.max_rx_pktlen > overhead ? info.max_rx_pktlen - overhead : 0;
  return static_cast<std::uint16_t>(std::min<std::uint32_t>(info.max_mtu, by_frame));
}

std::uint16_t power_above(std::uint16_t ring) {
  return static_cast<std::uint16_t>(std::min<std::uint32_t>(std::bit_ceil(std::uint32_t{ring}), UINT16_MAX));
}

}  // namespace

bool has_queue_pairs(std::string_view spec) { return spec.starts_with("net_af_packet") || spec.starts_with("net_tap"); }

Result<void> Port::spread(const rte_eth_dev_info& info, rte_eth_conf& device) {
  WARPLINE_TRY(const std::uint64_t wanted, rss_bits(settings_.rss_fields));
  const std::size_t key_bytes = settings_.rss_key.size();
  if (key_bytes != 0 && info.hash_key_size != 0 && key_bytes != info.hash_key_size) {
    return usage_error(fmt::format("port {}: RSS key of {} bytes", name_, key_bytes),
                       fmt::format("the device takes {}", info.hash_key_size), "give a key of that length, or none");
  }
  const bool has_rss = info.flow_type_rss_offloads != 0;
  if (key_bytes != 0 && (!has_rss || info.hash_key_size == 0)) setup_.refused.emplace_back("RSS key");
  if (queues_.rx < 2) return {};
  if (!has_rss) {
    // Ports that the program makes for itself spread nothing and need not.
    if (!settings_.spec.empty())
      setup_.refused.emplace_back("RSS: the device spreads packets its own way, or not at all");
    return {};
  }
  for (const std::string& field : refused_rss(settings_.rss_fields, info.flow_type_rss_offloads)) {
    setup_.refused.push_back(fmt::format("RSS field {}", field));
  }
  device.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
  device.rx_adv_conf.rss_conf.rss_hf = wanted & info.flow_type_rss_offloads;
  if (key_bytes != 0 && info.hash_key_size != 0) {
    device.rx_adv_conf.rss_conf.rss_key = settings_.rss_key.data();
    device.rx_adv_conf.rss_conf.rss_key_len = static_cast<std::uint8_t>(key_bytes);
  }
  return {};
}

Result<void> Port::configure(const PortSettings& settings, const PortQueues& queues) {
  const runtime::SetupStep step(fmt::format("configuring port {}", name_));
  settings_ = settings;
  watches_ = std::make_unique<packet::AddressWatch[]>(settings.addresses.size());
  queues_ = queues;
  setup_ = {};
  rte_eth_dev_info info;
  if (const int problem = rte_eth_dev_info_get(id_, &info); problem != 0) {
    return environment_error(fmt::format("port {}: the device does not answer", name_), rte_strerror(-problem),
                             "run `warpline doctor`");
  }
  WARPLINE_CHECK(check_queues(name_, "receive", queues.rx, info.max_rx_queues));
  WARPLINE_CHECK(check_queues(name_, "transmit", queues.tx, info.max_tx_queues));
  WARPLINE_CHECK(check_inputs(name_, driver_, queues.rx, info.max_rx_queues));
  WARPLINE_CHECK(check_pairs(name_, driver_, queues));
  const std::uint16_t most = largest_mtu(info);
  if (settings.mtu > most || settings.mtu < info.min_mtu) {
    return usage_error(fmt::format("port {}: MTU {}", name_, settings.mtu),
                       fmt::format("the device takes {} to {}", info.min_mtu, most),
                       fmt::format("use `--mtu {}`", settings.mtu > most ? most : info.min_mtu));
  }
  device_config_ = {};
  device_config_.rxmode.mtu = settings.mtu;
  WARPLINE_CHECK(spread(info, device_config_));
  WARPLINE_TRY(const std::uint64_t rx_wanted, offload_bits(OffloadSide::rx, settings.rx_offloads));
  WARPLINE_TRY(const std::uint64_t tx_wanted, offload_bits(OffloadSide::tx, settings.tx_offloads));
  device_config_.rxmode.offloads = grant(OffloadSide::rx, rx_wanted, info.rx_offload_capa, setup_.refused);
  device_config_.txmode.offloads = grant(OffloadSide::tx, tx_wanted, info.tx_offload_capa, setup_.refused);
  if (queues.one_pool) device_config_.txmode.offloads |= info.tx_offload_capa & RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE;

  setup_.rx_queues = queues.rx;
  setup_.tx_queues = queues.tx;
  setup_.rx_ring = settings.rx_ring;
  setup_.tx_ring = settings.tx_ring;
  if (const int problem = rte_eth_dev_adjust_nb_rx_tx_desc(id_, &setup_.rx_ring, &setup_.tx_ring); problem != 0) {
    return environment_error(fmt::format("port {}: ring sizes", name_), rte_strerror(-problem), "use other ring sizes");
  }
  if (setup_.rx_ring != settings.rx_ring || setup_.tx_ring != settings.tx_ring) {
    setup_.rings = fmt::format("port {}: rings of {} and {} descriptors instead of {} and {}: the device's limits",
                               name_, setup_.rx_ring, setup_.tx_ring, settings.rx_ring, settings.tx_ring);
  }
  setup_.mtu = settings.mtu;
  return {};
}

PortSettings Port::settings_in_force() const {
  // Some drivers, mlx5's among them, make the next power of two of any other size.
  PortSettings settings = settings_;
  settings.rx_ring = power_above(setup_.rx_ring);
  settings.tx_ring = power_above(setup_.tx_ring);
  return settings;
}

/// The MTU in force: the device's own where it cannot be told one.
Result<void> Port::set_mtu() {
  if (settings_.mtu == RTE_ETHER_MTU) return {};  // every device's default; setting it would touch kernel interfaces
  const int problem = rte_eth_dev_set_mtu(id_, settings_.mtu);
  if (problem == 0) return {};
  if (problem != -ENOTSUP) {
    return environment_error(fmt::format("port {}: MTU {}", name_, settings_.mtu), rte_strerror(-problem),
                             "use a smaller `--mtu`, or set the interface's with `ip link set ... mtu ...`");
  }
  if (!settings_.spec.empty()) setup_.refused.push_back(fmt::format("MTU {}: the driver cannot set it", settings_.mtu));
  return {};
}

}  // namespace warpline::port
