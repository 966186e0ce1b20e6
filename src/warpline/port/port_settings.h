// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "warpline/base/address.h"

namespace warpline::port {

/// How one port is to be set up. What the device cannot do is masked by the runtime and reported, never silently lost.
struct PortSettings {
  std::string spec{};                             ///< PCI address or vdev string
  std::uint16_t rx_ring = 1024;                   ///< descriptors a receive queue
  std::uint16_t tx_ring = 1024;                   ///< descriptors a transmit queue
  std::optional<std::uint16_t> rx_free_thresh{};  ///< unset: the driver's own
  std::optional<std::uint16_t> tx_free_thresh{};  ///< free descriptors below which sent buffers are collected
  std::optional<std::uint16_t> tx_rs_thresh{};    ///< descriptors after which the device reports what it has sent
  std::vector<std::string>
      rx_offloads{};  ///< names as DPDK prints them, lower case: "ipv4_cksum", "scatter", "rss_hash"
  std::vector<std::string> tx_offloads{};                      ///< names likewise: "mbuf_fast_free", "multi_segs"
  std::uint16_t mtu = 1500;                                    ///< bytes of layer-3 packet
  std::vector<std::uint8_t> rss_key{};                         ///< empty: the driver's own
  std::vector<std::string> rss_fields = {"ip", "udp", "tcp"};  ///< what is hashed to choose a receive queue
  std::vector<InterfaceAddress> addresses{};                   ///< answers ARP, ND and echo for them
  bool promiscuous = true;                                     ///< takes frames to other stations too
  auto operator<=>(const PortSettings&) const = default;
};

/// Returns `settings` with rings as long as a device may make them, for memory that is set aside before the device is
/// asked: devices round up to a power of two, and those that have a least number of descriptors have up to 512
/// (net_vmxnet3).
[[nodiscard]] inline PortSettings with_longest_rings(PortSettings settings) {
  for (std::uint16_t* const ring : {&settings.rx_ring, &settings.tx_ring}) {
    *ring = std::bit_ceil(std::clamp<std::uint16_t>(*ring, 512, 32768));
  }
  return settings;
}

/// Whether the driver that `spec` names has as many transmit queues as receive queues, all of which receive: a queue
/// that only transmits would receive frames that nothing reads (net_af_packet, qpairs), or is refused (net_tap).
[[nodiscard]] bool has_queue_pairs(std::string_view spec);

}  // namespace warpline::port
