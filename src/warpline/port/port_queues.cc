// SPDX-License-Identifier: Apache-2.0
// A port's queues, the pools that they are filled from, and what they send whole.
#include <fmt/format.h>
#include <linux/if_packet.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <string_view>
#include <utility>

#include <rte_dev.h>
#include <rte_devargs.h>
#include <rte_errno.h>
#include <rte_ether.h>
#include <rte_malloc.h>
#include <rte_mempool.h>

#include "warpline/port/offloads.h"
#include "warpline/port/port.h"
#include "warpline/port/send_limits.h"
#include "warpline/runtime/dpdk_log.h"
#include "warpline/runtime/setup_step.h"

namespace warpline::port {
namespace {

/// Buffers of such a pool are no part of their mbufs: to free them takes more than to put the mbuf back.
bool is_external(rte_mempool* pool) { return (rte_pktmbuf_priv_flags(pool) & RTE_PKTMBUF_POOL_F_PINNED_EXT_BUF) != 0; }

/// What a device may receive into a buffer of the pool. Devices count in units, the largest 1 KiB (ixgbe; i40e and ice
/// have 128 bytes), and scatter what does not fit into the whole ones, asked or not.
std::uint32_t usable_room(rte_mempool* pool) {
  constexpr std::uint32_t kLargestUnit = 1024;
  const std::uint32_t room = rte_pktmbuf_data_room_size(pool);
  return room <= RTE_PKTMBUF_HEADROOM ? 0 : (room - RTE_PKTMBUF_HEADROOM) / kLargestUnit * kLargestUnit;
}

Result<void> check_split(const std::string& port, const rte_eth_dev_info& info) {
  const bool splits = (info.rx_offload_capa & RTE_ETH_RX_OFFLOAD_BUFFER_SPLIT) != 0 && info.rx_seg_capa.max_nseg >= 2 &&
                      info.rx_seg_capa.multi_pools != 0;
  const bool gathers = (info.tx_offload_capa & RTE_ETH_TX_OFFLOAD_MULTI_SEGS) != 0;
  if (splits && gathers) return {};
  return usage_error(fmt::format("port {}: --split", port),
                     splits ? "the device does not send frames in pieces" : "the device does not split frames",
                     "leave it out, or use a port such as net_vnic0 or a ConnectX");
}

/// Whether buffers are as large as the driver wants them, and frames of them go out again in as few pieces as it sends.
Result<void> check_buffers(const std::string& port, const rte_eth_dev_info& info, const RxPools& pools,
                           std::uint32_t frame, bool sends) {
  const std::uint32_t room = rte_pktmbuf_data_room_size(pools.payload) - RTE_PKTMBUF_HEADROOM;
  const std::string what = fmt::format("port {}: buffers of {} bytes", port, room);
  if (pools.split == 0 && room < info.min_rx_bufsize) {
    return usage_error(what, fmt::format("the device takes none of less than {}", info.min_rx_bufsize),
                       fmt::format("use `--data-room {}`, or leave it out", info.min_rx_bufsize));
  }
  if (info.driver_name == std::string_view("net_af_xdp")) {
    // Linux, xsk_pool_get_rx_frame_size(): XDP keeps XDP_PACKET_HEADROOM of each buffer, and drops what does not fit
    // into the rest. The interface receives one VLAN tag beyond its MTU.
    constexpr std::uint32_t kXdpHeadroom = 256;
    constexpr std::uint32_t kNotReceived = RTE_ETHER_CRC_LEN + sizeof(rte_vlan_hdr);
    const std::uint32_t needed = frame - kNotReceived + kXdpHeadroom;
    if (room < needed) {
      return usage_error(
          what, fmt::format("XDP keeps {} of them and drops longer frames than fit into the rest", kXdpHeadroom),
          fmt::format("use `--data-room {}`, or a smaller `--mtu`", needed));
    }
  }
  const std::uint32_t most = info.tx_desc_lim.nb_mtu_seg_max;
  const std::uint32_t pieces = (pools.split != 0 ? 1 : 0) + (room == 0 ? 0 : (frame + room - 1) / room);
  if (!sends || most == 0 || pieces <= most) return {};
  return usage_error(what, fmt::format("the device sends a frame in {} pieces at most, not in {}", most, pieces),
                     fmt::format("use `--data-room {}`, or leave it out", (frame + most - 1) / most));
}

int setup_rx_queue(std::uint16_t id, std::uint16_t queue, std::uint16_t ring, unsigned node, rte_eth_rxconf rx,
                   const RxPools& pools) {
  if (pools.split == 0) return rte_eth_rx_queue_setup(id, queue, ring, node, &rx, pools.payload);
  rte_eth_rxseg segments[2] = {};
  segments[0].split.mp = pools.header;
  segments[0].split.length = pools.split;
  segments[1].split.mp = pools.payload;
  rx.rx_seg = segments;
  rx.rx_nseg = 2;
  return rte_eth_rx_queue_setup(id, queue, ring, node, &rx, nullptr);
}

/// Returns the number that a device's argument `key` has, or `otherwise`.
std::uint32_t argument_of(const rte_device* device, std::string_view key, std::uint32_t otherwise) {
  const rte_devargs* const devargs = device == nullptr ? nullptr : rte_dev_devargs(device);
  if (devargs == nullptr || devargs->args == nullptr) return otherwise;
  const std::string_view arguments = devargs->args;
  for (std::size_t begin = 0; begin < arguments.size();) {
    const std::size_t end = std::min(arguments.find(',', begin), arguments.size());
    const std::string_view argument = arguments.substr(begin, end - begin);
    begin = end + 1;
    if (!argument.starts_with(key) || argument.substr(key.size(), 1) != "=") continue;
    const std::string_view value = argument.substr(key.size() + 1);
    std::uint32_t number = 0;
    const auto read = std::from_chars(value.data(), value.data() + value.size(), number);
    if (read.ec == std::errc{} && number != 0) return number;
  }
  return otherwise;
}

/// Returns the descriptors of all queues that receive into the same pool, where it has fewer buffers; 0: none has.
std::uint32_t descriptors_beyond(std::span<const RxPools> pools, std::uint16_t queues, std::uint16_t ring) {
  std::map<const rte_mempool*, std::uint32_t> descriptors;
  for (std::uint16_t q = 0; q < queues; ++q) {
    const RxPools& own = pools[std::min<std::size_t>(q, pools.size() - 1)];
    descriptors[own.payload] += ring;
    if (own.header != nullptr) descriptors[own.header] += ring;
  }
  std::uint32_t needed = 0;
  for (const auto& [pool, count] : descriptors) {
    if (pool->size < count) needed = std::max(needed, count);
  }
  return needed;
}

bool is_af_packet(std::string_view driver) { return driver == "net_af_packet" || driver == "AF_PACKET PMD"; }

constexpr std::uint32_t kRingFrame = 2048;  ///< net_af_packet's framesz, unless its arguments say otherwise

}  // namespace

SendLimits send_limits(std::uint16_t ethdev) {
  rte_eth_dev_info info;
  std::uint16_t mtu = 0;
  if (rte_eth_dev_info_get(ethdev, &info) != 0 || info.driver_name == nullptr) return {};
  if (rte_eth_dev_get_mtu(ethdev, &mtu) != 0) mtu = UINT16_MAX;
  const std::string_view driver = info.driver_name;
  // drivers/net/pcap: a buffer of one jumbo frame puts the pieces together; files get no more, interfaces nothing.
  if (driver == "net_pcap") return {.chained = RTE_ETHER_MAX_JUMBO_FRAME_LEN};
  // drivers/net/tap ends a burst at a longer frame, so that those behind it are not sent either.
  if (driver == "net_tap") return {.frame = mtu + RTE_ETHER_HDR_LEN + RTE_ETHER_CRC_LEN + 4U};
  if (is_af_packet(driver)) {
    // drivers/net/af_packet: what does not fit into a frame of the ring is freed, and the kernel refuses what is longer
    // than the interface's MTU and a VLAN tag.
    constexpr std::uint32_t kHeader = TPACKET2_HDRLEN - sizeof(sockaddr_ll);
    const std::uint32_t frame = argument_of(info.device, "framesz", kRingFrame);
    return {.frame = std::min<std::uint32_t>(frame - std::min(frame, kHeader), mtu + RTE_ETHER_HDR_LEN + 4U)};
  }
  // drivers/net/af_xdp reads a frame as if it were in one buffer, beyond the first one's end; the kernel drops, as if
  // they had been sent, frames that are longer than the interface's MTU and a VLAN tag.
  if (driver == "net_af_xdp") {
    return {.frame = std::min<std::uint32_t>(info.max_rx_pktlen, mtu + RTE_ETHER_HDR_LEN + 4U), .chained = 0};
  }
  return {};
}

Result<void> Port::choose_offloads(const rte_eth_dev_info& info, std::span<const RxPools> pools) {
  constexpr std::uint32_t kVlanTags = 2 * 4;
  const std::uint32_t frame = settings_.mtu + RTE_ETHER_HDR_LEN + kVlanTags + RTE_ETHER_CRC_LEN;
  bool splits = false;
  bool several = false;
  bool external = false;
  for (const RxPools& pool : pools) {
    WARPLINE_CHECK(check_buffers(name_, info, pool, frame, queues_.tx != 0));
    splits = splits || pool.split != 0;
    several = several || frame > usable_room(pool.payload);
    external = external || is_external(pool.payload);
  }
  if (splits) {
    WARPLINE_CHECK(check_split(name_, info));
    device_config_.rxmode.offloads |= RTE_ETH_RX_OFFLOAD_BUFFER_SPLIT;
  }
  // To mlx5 a split is a kind of scattering.
  if (splits || several) device_config_.rxmode.offloads |= info.rx_offload_capa & RTE_ETH_RX_OFFLOAD_SCATTER;
  if (splits || several) device_config_.txmode.offloads |= info.tx_offload_capa & RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
  // With it drivers put buffers back into their pool as they are, and chained ones would keep their links: DPDK asks
  // for direct and non-segmented mbufs of one pool (rte_ip_frag.h).
  constexpr std::uint64_t kFastFree = RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE;
  if ((splits || several || external) && (device_config_.txmode.offloads & kFastFree) != 0) {
    device_config_.txmode.offloads &= ~kFastFree;
    if (std::ranges::find(settings_.tx_offloads, "mbuf_fast_free") != settings_.tx_offloads.end()) {
      setup_.refused.emplace_back("transmit offload mbuf_fast_free: frames lie in several buffers, or outside of them");
    }
  }
  return {};
}

Result<void> Port::attach(std::span<const RxPools> pools) {
  const std::string what = fmt::format("port {}", name_);
  rte_eth_dev_info info;
  if (const int problem = rte_eth_dev_info_get(id_, &info); problem != 0) {
    return environment_error(what, rte_strerror(-problem), "run `warpline doctor`");
  }
  WARPLINE_CHECK(choose_offloads(info, pools));
  const runtime::SetupStep step(fmt::format("setting up the queues of port {}", name_));
  const runtime::CapturedLog log;
  if (const int problem = rte_eth_dev_configure(id_, queues_.rx, queues_.tx, &device_config_); problem != 0) {
    return environment_error(what, log.reason(rte_strerror(-problem)), "ask less of it");
  }
  WARPLINE_CHECK(set_mtu());
  const unsigned node = node_ < 0 ? static_cast<unsigned>(SOCKET_ID_ANY) : static_cast<unsigned>(node_);
  rte_eth_rxconf rx = info.default_rxconf;
  rx.offloads = device_config_.rxmode.offloads;
  rx.rx_free_thresh = settings_.rx_free_thresh.value_or(rx.rx_free_thresh);
  pool_needed_ = descriptors_beyond(pools, queues_.rx, setup_.rx_ring);
  for (std::uint16_t q = 0; q < queues_.rx; ++q) {
    const RxPools& own = pools[std::min<std::size_t>(q, pools.size() - 1)];
    if (const int problem = setup_rx_queue(id_, q, setup_.rx_ring, node, rx, own); problem != 0) {
      return environment_error(fmt::format("{}: receive queue {}", what, q), log.reason(rte_strerror(-problem)),
                               "use another ring size or threshold");
    }
  }
  WARPLINE_CHECK(drop_cut_frames());
  rte_eth_txconf tx = info.default_txconf;
  tx.offloads = device_config_.txmode.offloads;
  const std::uint16_t drivers_own = tx.tx_free_thresh;
  const bool wishes = tx_free_wish_ && !settings_.tx_free_thresh;
  tx.tx_free_thresh = wishes ? *tx_free_wish_ : settings_.tx_free_thresh.value_or(drivers_own);
  tx.tx_rs_thresh = settings_.tx_rs_thresh.value_or(tx.tx_rs_thresh);
  for (std::uint16_t q = 0; q < queues_.tx; ++q) {
    int problem = rte_eth_tx_queue_setup(id_, q, setup_.tx_ring, node, &tx);
    if (problem != 0 && wishes && tx.tx_free_thresh != drivers_own) {
      tx.tx_free_thresh = drivers_own;
      problem = rte_eth_tx_queue_setup(id_, q, setup_.tx_ring, node, &tx);
    }
    if (problem != 0) {
      return environment_error(fmt::format("{}: transmit queue {}", what, q), log.reason(rte_strerror(-problem)),
                               "use another ring size or threshold");
    }
  }
  setup_.rx_offloads = offload_names(OffloadSide::rx, rx.offloads);
  setup_.tx_offloads = offload_names(OffloadSide::tx, tx.offloads);
  // A virtual function keeps what it counted for those who had it before, and not every driver clears it.
  (void)rte_eth_stats_reset(id_);
  return {};
}

/// net_af_packet hands on as much of a frame as fits into a frame of the kernel's ring, and does not say that there was
/// more. What fills one is a frame that was cut, or in rare cases one that fits exactly: it is dropped, as an error.
Result<void> Port::drop_cut_frames() {
  if (!is_af_packet(driver_)) return {};
  // What stands before the frame in a frame of the ring (packet(7), tpacket_rcv() of the kernel).
  constexpr std::uint32_t kBefore = TPACKET_ALIGN(TPACKET2_HDRLEN + 16) - RTE_ETHER_HDR_LEN;
  const std::uint32_t frame = argument_of(device_, "framesz", kRingFrame);
  cut_ = std::make_unique<CutFrames[]>(queues_.rx);
  for (std::uint16_t queue = 0; queue < queues_.rx; ++queue) {
    cut_[queue].length = frame - std::min(frame, kBefore);
    cut_[queue].callback = rte_eth_add_rx_callback(id_, queue, drop_cut, &cut_[queue]);
    if (cut_[queue].callback == nullptr) {
      return environment_error(fmt::format("port {}: cannot look for frames that the driver cuts", name_),
                               rte_strerror(rte_errno), "use a DPDK that is built with RTE_ETHDEV_RXTX_CALLBACKS");
    }
  }
  return {};
}

/// After the lcores have ended.
void Port::end_dropping() {
  for (std::uint16_t queue = 0; cut_ != nullptr && queue < queues_.rx; ++queue) {
    if (cut_[queue].callback == nullptr) continue;
    if (rte_eth_remove_rx_callback(id_, queue, cut_[queue].callback) != 0) continue;
    rte_free(const_cast<rte_eth_rxtx_callback*>(std::exchange(cut_[queue].callback, nullptr)));
  }
}

std::uint16_t Port::drop_cut(std::uint16_t /*port*/, std::uint16_t /*queue*/, rte_mbuf** mbufs, std::uint16_t count,
                             std::uint16_t /*most*/, void* frames) {
  CutFrames& cut = *static_cast<CutFrames*>(frames);
  std::uint16_t kept = 0;
  for (std::uint16_t i = 0; i < count; ++i) {
    rte_mbuf* const mbuf = mbufs[i];
    if (rte_pktmbuf_pkt_len(mbuf) < cut.length) [[likely]] {
      mbufs[kept++] = mbuf;
      continue;
    }
    cut.packets.add(1);
    cut.bytes.add(rte_pktmbuf_pkt_len(mbuf));
    rte_pktmbuf_free(mbuf);
  }
  return kept;
}

}  // namespace warpline::port
