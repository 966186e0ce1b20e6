// SPDX-License-Identifier: Apache-2.0
#include "warpline/port/announce/announce.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "warpline/packet/byte_order.h"
#include "warpline/packet/headers/ethernet.h"
#include "warpline/packet/headers/vlan.h"

namespace warpline::port {
namespace {

constexpr Nanos kAnnounceInterval{2'000'000'000};     // RFC 5227, 1.1
constexpr Nanos kDefendInterval{10'000'000'000};      // likewise
constexpr Nanos kUnsolicitedInterval{1'000'000'000};  // RFC 3810, 9.11

Nanos later(Nanos now, Nanos by) { return {now.value + by.value}; }

}  // namespace

Announcer::Announcer(const Port& port, const MacAddress& mac, std::span<const InterfaceAddress> addresses,
                     rte_mempool& pool, std::uint16_t vlan)
    : port_(port),
      addresses_(addresses.begin(), addresses.end()),
      pool_(pool),
      vlan_(vlan),
      mac_(mac),
      silent_(port.writes_files() || mac == MacAddress{}),
      random_(std::uint64_t{packet::load_be32(mac_.bytes.data() + 2)}),
      known_(addresses.size()) {}

std::uint32_t Announcer::begin(Nanos now) {
  for (const Nanos due : {now, later(now, kAnnounceInterval)}) {
    for (const InterfaceAddress& own : addresses_) {
      if (const auto* const v4 = std::get_if<Ipv4Address>(&own.address)) plan(due, packet::arp_announcement(mac_, *v4));
    }
  }
  const auto wait = static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(kUnsolicitedInterval.value)));
  for (const Nanos due : {now, later(now, {wait})}) plan_reports(due, packet::ReportReason::joined);
  write_due(now);
  return send({port_.id(), 0});
}

std::vector<std::string> Announcer::tend(Nanos now) {
  std::vector<std::string> lines;
  const std::span<packet::AddressWatch> watches = port_.watches();
  std::uint8_t queries = packet::AddressWatch::kNoQuery;
  for (std::size_t i = 0; i < std::min(watches.size(), addresses_.size()); ++i) {
    queries |= watches[i].take_queries();
    if (watches[i].conflicts() != known_[i].conflicts) defend(i, now, lines);
  }
  if ((queries & packet::AddressWatch::kQueryV2) != 0) plan_reports(now, packet::ReportReason::query_v2);
  if ((queries & packet::AddressWatch::kQueryV1) != 0) plan_reports(now, packet::ReportReason::query_v1);
  if (!planned_.empty()) write_due(now);
  return lines;
}

void Announcer::defend(std::size_t address, Nanos now, std::vector<std::string>& lines) {
  Known& known = known_[address];
  const packet::AddressWatch& watch = port_.watches()[address];
  const bool first = known.conflicts == 0;
  known.conflicts = watch.conflicts();
  const IpAddress& own = addresses_[address].address;
  if (first) {
    lines.push_back(fmt::format("port {}: the station {} has the address {}, too: give one of them another address",
                                port_.name(), to_string(watch.other()), to_string(own)));
  }
  const auto* const v4 = std::get_if<Ipv4Address>(&own);
  if (v4 == nullptr || (!first && now < later(known.defended, kDefendInterval))) return;
  known.defended = now;
  plan(now, packet::arp_announcement(mac_, *v4));
}

void Announcer::plan_reports(Nanos due, packet::ReportReason reason) {
  for (packet::AnnouncedFrame& frame : group_reports(mac_, addresses_, reason)) plan(due, std::move(frame));
}

void Announcer::plan(Nanos due, packet::AnnouncedFrame frame) {
  if (silent_) return;
  if (vlan_ != 0) {
    constexpr std::ptrdiff_t kAddresses = 12;
    std::array<std::uint8_t, packet::VlanView::kHeaderLength> tag;
    packet::store_be16(tag.data(), packet::kEtherTypeVlan);
    packet::store_be16(tag.data() + 2, vlan_);
    frame.insert(frame.begin() + kAddresses, tag.begin(), tag.end());
  }
  const auto behind = std::ranges::find_if(planned_, [due](const Planned& other) { return due < other.due; });
  planned_.insert(behind, Planned{due, std::move(frame)});
}

/// Those for which there is no slot are written later.
void Announcer::write_due(Nanos now) {
  std::uint32_t written = written_.load(std::memory_order_relaxed);
  const std::uint32_t end = taken_.load(std::memory_order_acquire) + kSlots;
  for (; !planned_.empty() && planned_.front().due <= now && written != end; ++written) {
    const packet::AnnouncedFrame& frame = planned_.front().frame;
    Slot& slot = slots_[written % kSlots];
    slot.length = static_cast<std::uint16_t>(std::min(frame.size(), kSlotBytes));
    std::copy_n(frame.begin(), slot.length, slot.bytes.begin());
    planned_.pop_front();
  }
  written_.store(written, std::memory_order_release);
}

std::uint32_t Announcer::send(PortQueue by) {
  std::uint32_t sent = 0;
  const std::uint32_t end = written_.load(std::memory_order_acquire);
  for (; read_ != end; ++read_) {
    const Slot& slot = slots_[read_ % kSlots];
    rte_mbuf* mbuf = rte_pktmbuf_alloc(&pool_);
    if (mbuf == nullptr) continue;
    char* const bytes = rte_pktmbuf_append(mbuf, slot.length);
    if (bytes != nullptr) std::memcpy(bytes, slot.bytes.data(), slot.length);
    if (bytes != nullptr && rte_eth_tx_burst(by.port, by.queue, &mbuf, 1) == 1) {
      ++sent;
    } else {
      rte_pktmbuf_free(mbuf);
    }
  }
  taken_.store(read_, std::memory_order_release);
  return sent;
}

}  // namespace warpline::port
