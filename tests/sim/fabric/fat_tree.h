// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "sim/fabric/event_wheel.h"
#include "sim/packet.h"

namespace warpline::sim {

/// A datagram on its way: its head as it was written; of the payload, which nobody reads, the length alone.
struct FabricPacket : WheelEvent {
  enum class Place : std::uint8_t { edge, aggregation, core, aggregation_down, edge_down, host };

  std::uint32_t from = 0;  ///< host
  std::uint32_t to = 0;    ///< host
  std::uint32_t path = 0;  ///< hash of its flow, for the choice among equal paths
  std::uint16_t head_length = 0;
  std::uint16_t payload_length = 0;
  Place place = Place::edge;  ///< where it arrives next
  std::uint8_t ecn = 0;
  std::array<std::uint8_t, 400> head;

  [[nodiscard]] std::uint32_t wire_bytes() const { return head_length + payload_length + kWireOverhead; }
};

/// What the links and switches of a fat tree are.
struct FatTreeSettings {
  std::uint32_t k = 4;                     ///< ports of a switch, even: k cubed / 4 hosts
  std::uint32_t picoseconds_a_byte = 80;   ///< 100 Gbit/s
  std::int64_t hop = 300;                  ///< nanoseconds of a link, and of the switch behind it
  std::uint64_t capacity_bytes = 500'000;  ///< of the queue of each output
  std::uint64_t mark_above_bytes = 0;      ///< longer queues mark Congestion Experienced; 0: none does
};

/// What became of packets in the tree.
struct FatTreeCounters {
  std::uint64_t hops = 0;  ///< of all packets
  std::uint64_t delivered = 0;
  std::uint64_t dropped = 0;  ///< a queue was full
  std::uint64_t marked = 0;
  std::uint64_t longest_queue = 0;  ///< bytes
};

/// Hosts under three layers of switches (Al-Fares, Loukissas, Vahdat: "A scalable, commodity data center network
/// architecture", SIGCOMM 2008). Each flow stays on one path, chosen by a hash (ECMP). Switches buffer at outputs.
/// One event a hop: when a packet is queued it is known when it will have left.
class FatTree {
 public:
  FatTree(EventWheel& wheel, const FatTreeSettings& settings);

  [[nodiscard]] std::uint32_t hosts() const { return half_ * half_ * settings_.k; }
  [[nodiscard]] const FatTreeSettings& settings() const { return settings_; }
  [[nodiscard]] const FatTreeCounters& counters() const { return counters_; }
  /// Links between two hosts: 2, 4 or 6.
  [[nodiscard]] std::uint32_t links(std::uint32_t from, std::uint32_t to) const;
  /// When the host's link will have sent what it has.
  [[nodiscard]] std::int64_t link_free_at(std::uint32_t host) const { return host_up_[host] / 1000; }

  [[nodiscard]] FabricPacket& take();
  void give(FabricPacket& packet) { free_.push_back(&packet); }
  /// The host's link takes the packet; its queue there is the host's own, and has no end.
  void send(FabricPacket& packet);
  /// The packet has come to its next place. True: that is the host that it is for, who gives it back.
  bool arrive(FabricPacket& packet);

 private:
  [[nodiscard]] std::uint32_t pod(std::uint32_t host) const { return host / (half_ * half_); }
  [[nodiscard]] std::uint32_t edge(std::uint32_t host) const { return host / half_; }
  void offer(std::int64_t& free_at, FabricPacket& packet, FabricPacket::Place next);
  void queue(std::int64_t& free_at, FabricPacket& packet, FabricPacket::Place next);

  EventWheel& wheel_;
  FatTreeSettings settings_;
  std::uint32_t half_;
  FatTreeCounters counters_;
  // Picosecond at which each output will have sent all that it has.
  std::vector<std::int64_t> host_up_;
  std::vector<std::int64_t> edge_down_;         ///< by host
  std::vector<std::int64_t> edge_up_;           ///< by edge switch and aggregation switch of its pod
  std::vector<std::int64_t> aggregation_down_;  ///< by aggregation switch and edge switch of its pod
  std::vector<std::int64_t> aggregation_up_;    ///< by aggregation switch and core switch above it
  std::vector<std::int64_t> core_down_;         ///< by core switch and pod
  std::vector<std::unique_ptr<FabricPacket[]>> memory_;
  std::vector<FabricPacket*> free_;
};

}  // namespace warpline::sim
