// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <type_traits>

#include <rte_mbuf.h>

#include "warpline/datapath/batch.h"
#include "warpline/datapath/stage_loop.h"
#include "warpline/router/generation.h"
#include "warpline/router/route_lcore.h"

namespace warpline::router {

/// The whole way of a routed packet on one lcore: polls one queue of every port, looks destinations up a burst at a
/// time, rewrites, and sends by port. Owner: that lcore.
template <RouteLookup Lookup>
class RouteStage final : public datapath::Stage {
 public:
  RouteStage(const GenerationSwitch<Lookup>& generations, RouteLcore& lcore, datapath::PacketBudget& budget,
             std::uint16_t burst)
      : reader_(generations), lcore_(lcore), budget_(budget), burst_(burst) {}

  std::uint16_t poll() override { return sampler_.due() ? round<true>() : round<false>(); }

  bool drain() override {
    const Generation<Lookup>& generation = reader_.take();
    for (std::uint16_t port = 0; port < lcore_.ports().size(); ++port) {
      datapath::QueuePath& path = *lcore_.ports()[port].path;
      const auto held = [&path](rte_mbuf** mbufs, std::uint16_t room) { return path.take_held(mbufs, room); };
      while (receive_by<false>(held, port, bursts_[0]) != 0) pass_on<false>(generation, bursts_[0]);
    }
    lcore_.end();
    return true;
  }

  [[nodiscard]] const typename GenerationSwitch<Lookup>::Reader& reader() const { return reader_; }

 private:
  static constexpr std::uint32_t kEthernet = packet::EthernetView::kHeaderLength;
  static constexpr bool kByAddress = std::is_same_v<typename Lookup::V4Key, std::uint32_t>;

  /// Packets of one family that came in one burst.
  template <typename Key>
  struct Lookups {
    std::uint16_t count = 0;
    std::array<rte_mbuf*, datapath::kMaxBurst> mbufs;
    std::array<std::uint8_t*, datapath::kMaxBurst> frames;
    std::array<Key, datapath::kMaxBurst> keys;
    std::array<std::uint32_t, datapath::kMaxBurst> hops;

    void add(rte_mbuf* mbuf, std::uint8_t* frame, const Key& key) {
      mbufs[count] = mbuf;
      frames[count] = frame;
      keys[count++] = key;
    }
  };

  /// What was received at once by one port.
  struct Burst {
    std::uint16_t port;
    bool in_one;  ///< each packet is one segment
    std::array<std::uint16_t, datapath::kMaxBurst> lengths;
    Lookups<typename Lookup::V4Key> packets;  ///< all of them at first, then those of IPv4
  };

  /// Passes on what one port received only after the next one has received, so that its frames have time to come.
  template <bool kTimed>
  std::uint16_t round() {
    const Generation<Lookup>& generation = reader_.take();
    lcore_.begin_round();
    std::uint32_t moved = 0;
    Burst* before = nullptr;
    for (std::uint16_t port = 0; port < lcore_.ports().size(); ++port) {
      Burst& burst = bursts_[port % bursts_.size()];
      const std::uint16_t received = receive<kTimed>(port, burst);
      if (before != nullptr) pass_on<kTimed>(generation, *before);
      before = received != 0 ? &burst : nullptr;
      moved += received;
    }
    if (before != nullptr) pass_on<kTimed>(generation, *before);
    if constexpr (kTimed) sampler_.start();
    const std::uint32_t sent = lcore_.flush_due(moved == 0);
    if (kTimed && sent != 0) sampler_.lap(lcore_.ports().front().path->sent.transmit, sent);
    if (moved != 0) sampler_.count_burst();
    return static_cast<std::uint16_t>(moved);
  }

  template <bool kTimed>
  std::uint16_t receive(std::uint16_t port, Burst& burst) {
    datapath::QueuePath& path = *lcore_.ports()[port].path;
    return receive_by<kTimed>([&path](rte_mbuf** mbufs, std::uint16_t room) { return path.receive(mbufs, room); }, port,
                              burst);
  }

  /// `take` puts up to so many packets where it is told and returns how many.
  template <bool kTimed, typename F>
  std::uint16_t receive_by(F&& take, std::uint16_t port, Burst& burst) {
    datapath::QueuePath& path = *lcore_.ports()[port].path;
    const std::uint16_t room = budget_.claim(burst_);
    if constexpr (kTimed) sampler_.start();
    const std::uint16_t received = take(burst.packets.mbufs.data(), room);
    budget_.give_back(room - received);
    if (received == 0) return 0;
    burst.port = port;
    burst.packets.count = received;
    burst.in_one =
        PlainBurst::fetch(burst.packets.mbufs.data(), received, burst.packets.frames.data(), burst.lengths.data());
    path.received.packets.add(received);
    path.received.bursts.add(1);
    if constexpr (kTimed) sampler_.lap(path.received.receive, received);
    return received;
  }

  template <bool kTimed>
  void pass_on(const Generation<Lookup>& generation, Burst& burst) {
    if constexpr (kTimed) sampler_.start();
    datapath::QueuePath& path = *lcore_.ports()[burst.port].path;
    const std::uint16_t received = burst.packets.count;
    const bool watched = path.recycler != nullptr && path.recycler->watches();
    if (watched) [[unlikely]]
      note_pushed();
    path.received.bytes.add(sort(burst));
    if (burst.packets.count != 0) {
      generation.tables.find(burst.packets.keys.data(), burst.packets.hops.data(), burst.packets.count);
      leave<true>(generation, burst.port, burst.packets);
    }
    if (v6_.count != 0) {
      generation.tables.find(v6_.keys.data(), v6_.hops.data(), v6_.count);
      leave<false>(generation, burst.port, v6_);
    }
    for (RouteLcore::Port& port : lcore_.ports()) port.egress.flush_full();
    if (watched) [[unlikely]]
      tell_recycler(path);
    if constexpr (kTimed) sampler_.lap(path.sent.work, received);
  }

  /// Parts the burst by family; what is no plain packet takes its own way. Returns the burst's bytes.
  std::uint64_t sort(Burst& burst) {
    auto& packets = burst.packets;
    // Where IPv6 is all that comes, nothing is looked at in vain.
    const bool worth_it = burst.in_one && packet::load_be16(packets.frames[0] + packet::EthernetView::kEtherType) ==
                                              packet::kEtherTypeIpv4;
    const unsigned groups = worth_it ? packets.count / PlainBurst::kGroup : 0;
    const PlainBurst::Found found = lcore_.ports()[burst.port].plain_burst.look(
        packets.frames.data(), burst.lengths.data(), groups, addresses(packets));
    const bool whole = packets.count == groups * PlainBurst::kGroup;
    if (!kByAddress || !whole || found.plain != PlainBurst::all(groups)) return sort_mixed(burst, found.plain);
    v6_.count = 0;
    return found.bytes;
  }

  /// Bit g of `plain`: the g-th eight of the burst's packets are plain IPv4.
  [[gnu::noinline]] std::uint64_t sort_mixed(Burst& burst, std::uint64_t plain) {
    auto& v4 = burst.packets;
    const std::uint16_t count = v4.count;
    const route::PlainFrames look = lcore_.ports()[burst.port].plain;
    std::uint64_t bytes = 0;
    v4.count = v6_.count = 0;
    for (std::uint16_t i = 0; i < count; ++i) {
      rte_mbuf* mbuf = v4.mbufs[i];
      std::uint8_t* frame = v4.frames[i];
      const std::uint32_t length = rte_pktmbuf_pkt_len(mbuf);
      const std::uint32_t head = mbuf->data_len;
      bytes += length;
      const bool known = (plain >> (i / PlainBurst::kGroup) & 1) != 0;
      if (known || look.is_ipv4(frame, head, length)) [[likely]] {
        v4.add(mbuf, frame, Lookup::v4_key(frame + kEthernet, head - kEthernet));
      } else if (look.is_ipv6(frame, head, length)) {
        v6_.add(mbuf, frame, Lookup::v6_key(frame + kEthernet, head - kEthernet));
      } else {
        const packet::L3Kind kind = lcore_.examine(burst.port, mbuf);
        if (kind == packet::L3Kind::ipv4) v4.add(mbuf, frame, Lookup::v4_key(frame + kEthernet, head - kEthernet));
        if (kind == packet::L3Kind::ipv6) v6_.add(mbuf, frame, Lookup::v6_key(frame + kEthernet, head - kEthernet));
      }
    }
    return bytes;
  }

  /// Where the destinations of plain packets go.
  template <typename Key>
  [[nodiscard]] static std::uint32_t* addresses(Lookups<Key>& packets) {
    if constexpr (kByAddress) {
      return packets.keys.data();
    } else {
      return packets.hops.data();  // not used
    }
  }

  /// Sends them where they were found to go.
  template <bool kV4, typename Key>
  void leave(const Generation<Lookup>& generation, std::uint16_t rx_port, const Lookups<Key>& lookups) {
    const route::NeighbourTable& neighbours = lcore_.neighbours();
    // Writing to a frame might change all that is not held here, for all the compiler knows.
    RouteLcore::Port* const ports = lcore_.ports().data();
    const Hop* const hops = generation.hops.data();
    const std::size_t count = lookups.count;
    for (std::size_t i = 0; i < count; ++i) {
      rte_mbuf* mbuf = lookups.mbufs[i];
      const Hop hop = hops[lookups.hops[i]];
      const route::NeighbourWord word = neighbours.word(hop.neighbour);
      RouteLcore::Port& out = ports[hop.port];
      std::uint8_t* frame = lookups.frames[i];
      const std::uint32_t length = rte_pktmbuf_pkt_len(mbuf);
      const auto life =
          kV4 ? route::HopRewrite::life_v4(frame + kEthernet) : route::HopRewrite::life_v6(frame + kEthernet);
      if (!word.good() || life.is_over() || (kV4 && life.wraps()) || length > out.max_frame) [[unlikely]] {
        lcore_.pass_on(rx_port, mbuf, hop, kV4);
        continue;
      }
      if constexpr (kV4) {
        route::HopRewrite::live_less_v4(frame + kEthernet, life);
      } else {
        route::HopRewrite::live_less_v6(frame + kEthernet, life);
      }
      out.rewrite.stations(frame, word.mac());
      out.egress.append(mbuf, length);
    }
  }

  void note_pushed() {
    for (std::size_t port = 0; port < lcore_.ports().size() && port < kMostWatched; ++port) {
      pushed_[port] = lcore_.ports()[port].egress.pushed();
    }
  }

  /// By which ports the burst left. The lcore's queues are in the order of its ports, receive and transmit alike.
  void tell_recycler(datapath::QueuePath& path) {
    const std::size_t first = path.recycle_index - (path.recycle_index % lcore_.ports().size());
    for (std::size_t port = 0; port < lcore_.ports().size() && port < kMostWatched; ++port) {
      const auto left = static_cast<std::uint32_t>(lcore_.ports()[port].egress.pushed() - pushed_[port]);
      if (left != 0) path.recycler->left(path.recycle_index, first + port, left);
    }
  }

  static constexpr std::size_t kMostWatched = memory::RecycleWatch::kMostQueues;

  typename GenerationSwitch<Lookup>::Reader reader_;
  RouteLcore& lcore_;
  datapath::PacketBudget& budget_;
  std::uint16_t burst_;
  datapath::StageSampler sampler_;
  std::array<Burst, 2> bursts_;  ///< the one that comes, and the one that is passed on
  Lookups<typename Lookup::V6Key> v6_;
  std::array<std::uint64_t, kMostWatched> pushed_;
};

}  // namespace warpline::router
