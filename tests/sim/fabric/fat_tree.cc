// SPDX-License-Identifier: Apache-2.0
#include "sim/fabric/fat_tree.h"

#include <algorithm>

namespace warpline::sim {
namespace {

constexpr std::uint8_t kMarked = 3;
constexpr std::size_t kPacketsAtATime = 4096;

}  // namespace

FatTree::FatTree(EventWheel& wheel, const FatTreeSettings& settings)
    : wheel_(wheel),
      settings_(settings),
      half_(settings.k / 2),
      host_up_(hosts()),
      edge_down_(hosts()),
      edge_up_(std::size_t{settings.k} * half_ * half_),
      aggregation_down_(edge_up_.size()),
      aggregation_up_(edge_up_.size()),
      core_down_(std::size_t{half_} * half_ * settings.k) {}

std::uint32_t FatTree::links(std::uint32_t from, std::uint32_t to) const {
  if (edge(from) == edge(to)) return 2;
  return pod(from) == pod(to) ? 4 : 6;
}

FabricPacket& FatTree::take() {
  if (free_.empty()) {
    memory_.push_back(std::make_unique_for_overwrite<FabricPacket[]>(kPacketsAtATime));
    for (std::size_t i = 0; i < kPacketsAtATime; ++i) free_.push_back(&memory_.back()[i]);
  }
  FabricPacket& packet = *free_.back();
  free_.pop_back();
  return packet;
}

void FatTree::queue(std::int64_t& free_at, FabricPacket& packet, FabricPacket::Place next) {
  const std::int64_t begins = std::max(free_at, wheel_.now() * 1000);
  free_at = begins + std::int64_t{packet.wire_bytes()} * settings_.picoseconds_a_byte;
  packet.place = next;
  ++counters_.hops;
  wheel_.at((free_at + 999) / 1000 + settings_.hop, packet);
}

void FatTree::offer(std::int64_t& free_at, FabricPacket& packet, FabricPacket::Place next) {
  const std::int64_t waits = std::max<std::int64_t>(free_at - wheel_.now() * 1000, 0);
  const std::uint64_t queued = static_cast<std::uint64_t>(waits) / settings_.picoseconds_a_byte;
  counters_.longest_queue = std::max(counters_.longest_queue, queued);
  if (queued + packet.wire_bytes() > settings_.capacity_bytes) {
    ++counters_.dropped;
    return give(packet);
  }
  if (settings_.mark_above_bytes != 0 && queued > settings_.mark_above_bytes && packet.ecn != 0) {
    packet.ecn = kMarked;
    ++counters_.marked;
  }
  queue(free_at, packet, next);
}

void FatTree::send(FabricPacket& packet) { queue(host_up_[packet.from], packet, FabricPacket::Place::edge); }

bool FatTree::arrive(FabricPacket& packet) {
  using Place = FabricPacket::Place;
  const std::uint32_t up = packet.path % half_;
  const std::uint32_t across = packet.path / half_ % half_;
  const auto down = [&] {  // from an aggregation switch of the pod
    const std::uint32_t at = pod(packet.to) * half_ + up;
    offer(aggregation_down_[std::size_t{at} * half_ + edge(packet.to) % half_], packet, Place::edge_down);
  };
  switch (packet.place) {
    case Place::edge:
      if (edge(packet.from) == edge(packet.to)) {
        offer(edge_down_[packet.to], packet, Place::host);
      } else {
        offer(edge_up_[std::size_t{edge(packet.from)} * half_ + up], packet, Place::aggregation);
      }
      return false;
    case Place::aggregation:
      if (pod(packet.from) == pod(packet.to)) {
        down();
      } else {
        const std::uint32_t at = pod(packet.from) * half_ + up;
        offer(aggregation_up_[std::size_t{at} * half_ + across], packet, Place::core);
      }
      return false;
    case Place::core:
      offer(core_down_[std::size_t{up * half_ + across} * settings_.k + pod(packet.to)], packet,
            Place::aggregation_down);
      return false;
    case Place::aggregation_down:
      down();
      return false;
    case Place::edge_down:
      offer(edge_down_[packet.to], packet, Place::host);
      return false;
    case Place::host:
      ++counters_.delivered;
      return true;
  }
  return false;
}

}  // namespace warpline::sim
