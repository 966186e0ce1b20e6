// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_prefetch.h>

#include "pipeline/batch.h"
#include "pipeline/routing/generation.h"
#include "pipeline/routing/route_lcore.h"
#include "pipeline/stage_loop.h"

namespace warpline {

/// The whole way of a routed packet on one lcore: polls one queue of every port, looks destinations up a burst at a
/// time, rewrites, and sends by port. Owner: that lcore.
template <RouteLookup Lookup>
class RouteStage final : public Stage {
 public:
  RouteStage(const GenerationSwitch<Lookup>& generations, RouteLcore& lcore, PacketBudget& budget, std::uint16_t burst)
      : reader_(generations), lcore_(lcore), budget_(budget), burst_(burst) {}

  std::uint16_t poll() override {
    const Generation<Lookup>& generation = reader_.take();
    lcore_.look_after_waiting();
    std::uint32_t moved = 0;
    const bool timed = sampler_.due();
    for (std::uint16_t port = 0; port < lcore_.ports().size(); ++port) {
      moved += timed ? receive<true>(generation, port) : receive<false>(generation, port);
    }
    if (timed) sampler_.start();
    const std::uint32_t sent = lcore_.flush_due(moved == 0);
    if (timed && sent != 0) sampler_.lap(lcore_.ports().front().stream->sent.transmit, sent);
    if (moved != 0) sampler_.count_burst();
    return static_cast<std::uint16_t>(moved);
  }

  bool drain() override {
    lcore_.end();
    return true;
  }

  [[nodiscard]] const typename GenerationSwitch<Lookup>::Reader& reader() const { return reader_; }

 private:
  static constexpr std::uint16_t kAhead = 4;  ///< packets fetched ahead of the one that is looked at

  /// The packets of one family in a burst.
  template <typename Key>
  struct Lookups {
    std::uint16_t count = 0;
    std::array<rte_mbuf*, kMaxBurst> mbufs;
    std::array<Key, kMaxBurst> keys;
    std::array<std::uint32_t, kMaxBurst> hops;

    void add(rte_mbuf* mbuf, const Key& key) {
      mbufs[count] = mbuf;
      keys[count++] = key;
    }
  };

  template <bool kTimed>
  std::uint16_t receive(const Generation<Lookup>& generation, std::uint16_t rx_port) {
    Stream& stream = *lcore_.ports()[rx_port].stream;
    const std::uint16_t room = budget_.claim(burst_);
    if constexpr (kTimed) sampler_.start();
    stream.recycle();
    const std::uint16_t received = rte_eth_rx_burst(stream.rx.port, stream.rx.queue, received_.data(), room);
    budget_.give_back(room - received);
    if (received == 0) return 0;
    if constexpr (kTimed) sampler_.lap(stream.received.receive, received);
    stream.received.packets.add(received);
    stream.received.bursts.add(1);
    const bool watched = stream.recycler != nullptr && stream.recycler->watches();
    if (watched) [[unlikely]]
      note_pushed();
    stream.received.bytes.add(sort(rx_port, received));
    if (v4_.count != 0) {
      generation.tables.find(v4_.keys.data(), v4_.hops.data(), v4_.count);
      pass_on<true>(generation, rx_port, v4_);
    }
    if (v6_.count != 0) {
      generation.tables.find(v6_.keys.data(), v6_.hops.data(), v6_.count);
      pass_on<false>(generation, rx_port, v6_);
    }
    if (watched) [[unlikely]]
      tell_recycler(stream);
    if constexpr (kTimed) sampler_.lap(stream.sent.work, received);
    return received;
  }

  /// Parts the burst by family; what is no plain packet takes its own way. Returns the burst's bytes.
  std::uint64_t sort(std::uint16_t rx_port, std::uint16_t count) {
    constexpr std::uint32_t kEthernet = EthernetView::kHeaderLength;
    const PlainFrames plain = lcore_.ports()[rx_port].plain;
    std::uint64_t bytes = 0;
    v4_.count = v6_.count = 0;
    for (std::uint16_t i = 0; i < count && i < kAhead; ++i) rte_prefetch0(rte_pktmbuf_mtod(received_[i], void*));
    for (std::uint16_t i = 0; i < count; ++i) {
      if (i + kAhead < count) rte_prefetch0(rte_pktmbuf_mtod(received_[i + kAhead], void*));
      rte_mbuf* mbuf = received_[i];
      const std::uint8_t* frame = rte_pktmbuf_mtod(mbuf, const std::uint8_t*);
      const std::uint32_t length = rte_pktmbuf_pkt_len(mbuf);
      const std::uint32_t head = mbuf->data_len;
      bytes += length;
      if (plain.is_ipv4(frame, head, length)) [[likely]] {
        v4_.add(mbuf, Lookup::v4_key(frame + kEthernet, head - kEthernet));
      } else if (plain.is_ipv6(frame, head, length)) {
        v6_.add(mbuf, Lookup::v6_key(frame + kEthernet, head - kEthernet));
      } else {
        const L3Kind kind = lcore_.examine(rx_port, mbuf);
        if (kind == L3Kind::ipv4) v4_.add(mbuf, Lookup::v4_key(frame + kEthernet, head - kEthernet));
        if (kind == L3Kind::ipv6) v6_.add(mbuf, Lookup::v6_key(frame + kEthernet, head - kEthernet));
      }
    }
    return bytes;
  }

  template <bool kV4, typename Key>
  void pass_on(const Generation<Lookup>& generation, std::uint16_t rx_port, const Lookups<Key>& lookups) {
    constexpr std::uint32_t kEthernet = EthernetView::kHeaderLength;
    constexpr std::uint32_t kLife = kEthernet + (kV4 ? Ipv4View::kTimeToLive : Ipv6View::kHopLimit);
    const NeighbourTable& neighbours = lcore_.neighbours();
    RouteLcore::Port* const ports = lcore_.ports().data();
    const Hop* const hops =
        generation.hops.data();  // writing to a frame might change the vector, for all the compiler knows
    for (std::uint16_t i = 0; i < lookups.count; ++i) {
      rte_mbuf* mbuf = lookups.mbufs[i];
      const Hop hop = hops[lookups.hops[i]];
      const NeighbourWord word = neighbours.word(hop.neighbour);
      RouteLcore::Port& out = ports[hop.port];
      std::uint8_t* frame = rte_pktmbuf_mtod(mbuf, std::uint8_t*);
      const std::uint32_t length = rte_pktmbuf_pkt_len(mbuf);
      if (!word.good() || frame[kLife] <= 1 || length > out.max_frame) [[unlikely]] {
        lcore_.pass_on(rx_port, mbuf, hop, kV4);
        continue;
      }
      if constexpr (kV4) {
        HopRewrite::live_less_v4(frame + kEthernet);
      } else {
        HopRewrite::live_less_v6(frame + kEthernet);
      }
      out.rewrite.stations(frame, word.mac());
      out.egress.push(mbuf, length);
    }
  }

  void note_pushed() {
    for (std::size_t port = 0; port < lcore_.ports().size() && port < kMostWatched; ++port) {
      pushed_[port] = lcore_.ports()[port].egress.pushed();
    }
  }

  /// By which ports the burst left. The lcore's queues are in the order of its ports, receive and transmit alike.
  void tell_recycler(Stream& stream) {
    const std::size_t first = stream.recycle_index - (stream.recycle_index % lcore_.ports().size());
    for (std::size_t port = 0; port < lcore_.ports().size() && port < kMostWatched; ++port) {
      const auto left = static_cast<std::uint32_t>(lcore_.ports()[port].egress.pushed() - pushed_[port]);
      if (left != 0) stream.recycler->left(stream.recycle_index, first + port, left);
    }
  }

  static constexpr std::size_t kMostWatched = RecycleWatch::kMostQueues;

  typename GenerationSwitch<Lookup>::Reader reader_;
  RouteLcore& lcore_;
  PacketBudget& budget_;
  std::uint16_t burst_;
  StageSampler sampler_;
  std::array<rte_mbuf*, kMaxBurst> received_;
  Lookups<typename Lookup::V4Key> v4_;
  Lookups<typename Lookup::V6Key> v6_;
  std::array<std::uint64_t, kMostWatched> pushed_;
};

}  // namespace warpline
