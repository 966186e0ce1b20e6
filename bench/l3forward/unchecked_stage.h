// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_prefetch.h>

#include "warpline/datapath/queue_path.h"
#include "warpline/datapath/stage_loop.h"
#include "warpline/datapath/transmit.h"
#include "warpline/route/hop_rewrite.h"
#include "warpline/router/egress.h"
#include "warpline/router/generation.h"

namespace warpline {

/// How much of routing an UncheckedStage does with an IPv4 packet, each more than the one before.
enum class Unchecked : std::uint8_t {
  lookup,   ///< looks the destination up and swaps the stations: nothing is done with what was found
  rewrite,  ///< writes stations, time to live and checksum by what was found; leaves by the other port all the same
  route     ///< leaves by the port that was found
};

/// Routing as if all packets were good: no header is looked at, no neighbour can be missing, no packet too long.
/// What is left is what any router has to do. Between two ports, on one lcore.
template <router::RouteLookup Lookup, Unchecked kDoes>
class UncheckedStage final : public datapath::Stage {
 public:
  struct Port {
    datapath::QueuePath* path;
    route::HopRewrite rewrite;
    router::Egress egress;
  };

  UncheckedStage(const router::Generation<Lookup>& generation, const route::NeighbourTable& neighbours,
                 std::array<Port, 2>& ports, std::uint16_t burst)
      : generation_(generation), neighbours_(neighbours), ports_(ports), burst_(burst) {}

  std::uint16_t poll() override {
    const std::uint16_t moved = receive(0) + receive(1);
    if constexpr (kDoes == Unchecked::route) {
      const std::uint64_t now = ticks_now();
      for (Port& port : ports_) port.egress.flush_due(moved == 0, now);
    }
    return moved;
  }
  bool drain() override {
    for (Port& port : ports_) port.egress.flush();
    return true;
  }

 private:
  static constexpr std::uint32_t kEthernet = packet::EthernetView::kHeaderLength;
  static constexpr std::uint16_t kAhead = 4;

  std::uint16_t receive(std::uint16_t rx_port) {
    datapath::QueuePath& path = *ports_[rx_port].path;
    const std::uint16_t count = rte_eth_rx_burst(path.rx.port, path.rx.queue, mbufs_.data(), burst_);
    if (count == 0) return 0;
    path.received.packets.add(count);
    path.received.bursts.add(1);
    std::uint64_t bytes = 0;
    for (std::uint16_t i = 0; i < count && i < kAhead; ++i) rte_prefetch0(rte_pktmbuf_mtod(mbufs_[i], void*));
    for (std::uint16_t i = 0; i < count; ++i) {
      if (i + kAhead < count) rte_prefetch0(rte_pktmbuf_mtod(mbufs_[i + kAhead], void*));
      bytes += rte_pktmbuf_pkt_len(mbufs_[i]);
      keys_[i] = Lookup::v4_key(rte_pktmbuf_mtod(mbufs_[i], const std::uint8_t*) + kEthernet, 20);
    }
    path.received.bytes.add(bytes);
    generation_.tables.find(keys_.data(), hops_.data(), count);
    const router::Hop* const hops = generation_.hops.data();
    std::uint32_t sum = 0;
    for (std::uint16_t i = 0; i < count; ++i) {
      rte_mbuf* mbuf = mbufs_[i];
      auto* frame = rte_pktmbuf_mtod(mbuf, std::uint8_t*);
      if constexpr (kDoes == Unchecked::lookup) {
        packet::swap_macs(frame);
        sum += hops_[i];
        continue;
      }
      const router::Hop hop = hops[hops_[i]];
      Port& out = ports_[hop.port];
      route::HopRewrite::live_less_v4(frame + kEthernet);
      out.rewrite.stations(frame, neighbours_.word(hop.neighbour).mac());
      if constexpr (kDoes == Unchecked::route) out.egress.append(mbuf, rte_pktmbuf_pkt_len(mbuf));
    }
    found_ += sum;
    if constexpr (kDoes == Unchecked::route) {
      for (Port& port : ports_) port.egress.flush_full();
    }
    if constexpr (kDoes != Unchecked::route) {
      datapath::QueuePath& other = *ports_[1 - rx_port].path;
      datapath::transmit(other, other.tx, mbufs_.data(), count, bytes);
    }
    return count;
  }

  const router::Generation<Lookup>& generation_;
  const route::NeighbourTable& neighbours_;
  std::array<Port, 2>& ports_;
  std::uint16_t burst_;
  std::uint64_t found_ = 0;  ///< so that lookups count for something
  std::array<rte_mbuf*, datapath::kMaxBurst> mbufs_;
  std::array<typename Lookup::V4Key, datapath::kMaxBurst> keys_;
  std::array<std::uint32_t, datapath::kMaxBurst> hops_;
};

}  // namespace warpline
