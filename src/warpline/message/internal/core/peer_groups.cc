// SPDX-License-Identifier: Apache-2.0
#include "warpline/message/internal/core/peer_groups.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <variant>

namespace warpline::message {
namespace {

constexpr std::size_t kIpv4PrefixBytes = 15;  ///< of an IPv4-mapped address: a /24
constexpr std::size_t kIpv6PrefixBytes = 8;   ///< a /64
constexpr std::uint32_t kFewHalfOpen = 16;    ///< sessions that any address may have so
constexpr std::uint32_t kOwnPlaces = 4;       ///< one part of so many of the pool of messages is kept for each session
enum : std::uint64_t { kHashOfAddress = 1, kHashOfPrefix = 2 };

}  // namespace

PeerGroups::PeerGroups(const EndpointConfig& config, SipKey key)
    : max_sessions_(config.max_sessions),
      own_places_(config.max_messages / kOwnPlaces / config.max_sessions),
      common_places_(config.max_messages - own_places_ * config.max_sessions),
      groups_(2 + 4 * config.max_sessions),
      by_hash_(4 * config.max_sessions),
      key_(key) {
  set_quotas(config.quotas);
  for (int i = 0; i < 2; ++i) groups_[groups_.take()] = {.prefix = kRestOfPrefixes, .sessions = 1};  // the rests
}

void PeerGroups::set_quotas(const SessionQuotas& quotas) {
  constexpr auto kOrder = std::memory_order_relaxed;  // each stands for itself
  const auto set = [](std::atomic<std::uint32_t>& quota, std::uint32_t given, std::uint32_t otherwise) {
    quota.store(given == 0 ? otherwise : given, kOrder);
  };
  set(quotas_.per_address, quotas.per_address, max_sessions_);
  set(quotas_.per_prefix, quotas.per_prefix, max_sessions_);
  set(quotas_.half_open_per_address, quotas.half_open_per_address, std::max(max_sessions_ / 4, kFewHalfOpen));
  set(quotas_.half_open_per_prefix, quotas.half_open_per_prefix, std::max(max_sessions_ / 2, kFewHalfOpen));
  quotas_.bytes_per_address.store(quotas.bytes_per_address, kOrder);
  quotas_.bytes_per_prefix.store(quotas.bytes_per_prefix, kOrder);
}

PeerGroups::Hashes PeerGroups::hashes_of(const PeerAddress& peer) const {
  const bool v4 = std::holds_alternative<Ipv4Address>(ip_address(peer));
  std::array<std::uint64_t, 3> address{kHashOfAddress};
  std::memcpy(address.data() + 1, peer.ip.data(), peer.ip.size());
  std::array<std::uint64_t, 3> prefix{kHashOfPrefix};
  std::memcpy(prefix.data() + 1, peer.ip.data(), v4 ? kIpv4PrefixBytes : kIpv6PrefixBytes);
  return {siphash(key_, address), siphash(key_, prefix)};
}

std::uint32_t PeerGroups::enter(std::uint64_t hash, std::uint32_t rest) {
  std::uint32_t index = by_hash_.find(hash);
  if (index == kNone) {
    index = groups_.take();
    if (index == kNone) {
      index = rest;
    } else {
      groups_[index] = {.hash = hash};
      by_hash_.insert(hash, index);
    }
  }
  ++groups_[index].sessions;
  return index;
}

void PeerGroups::free_if_unused(std::uint32_t index) {
  const Group& group = groups_[index];
  if (group.places != 0 || group.bytes != 0 || group.turns.waiting.first != kNone || group.turns.taken != 0) return;
  by_hash_.erase(group.hash, index);
  groups_.give(index);
}

PeerGroups::Admission PeerGroups::admits(const PeerAddress& peer) const {
  const Hashes hashes = hashes_of(peer);
  Admission admission = Admission::yes;
  const auto check = [&](std::uint64_t hash, std::uint32_t most, Admission too_many, std::uint32_t most_half_open,
                         Admission too_many_half_open) {
    const std::uint32_t index = by_hash_.find(hash);
    if (index == kNone) return;
    if (groups_[index].half_open >= most_half_open) admission = std::max(admission, too_many_half_open);
    if (groups_[index].accepted >= most) admission = std::max(admission, too_many);
  };
  check(hashes.address, quotas_.per_address.load(std::memory_order_relaxed), Admission::per_address,
        quotas_.half_open_per_address.load(std::memory_order_relaxed), Admission::half_open_per_address);
  check(hashes.prefix, quotas_.per_prefix.load(std::memory_order_relaxed), Admission::per_prefix,
        quotas_.half_open_per_prefix.load(std::memory_order_relaxed), Admission::half_open_per_prefix);
  return admission;
}

void PeerGroups::count(const Session& session, int accepted, int half_open) {
  accepted_ += static_cast<std::uint32_t>(accepted);
  for (const std::uint32_t index : groups_of(session.address_group)) {
    groups_[index].accepted += static_cast<std::uint32_t>(accepted);
    groups_[index].half_open += static_cast<std::uint32_t>(half_open);
  }
}

void PeerGroups::join(Session& session) {
  const Hashes hashes = hashes_of(session.peer);
  session.address_group = enter(hashes.address, kRestOfAddresses);
  Group& address = groups_[session.address_group];
  if (address.prefix == kNone) {
    address.prefix = enter(hashes.prefix, kRestOfPrefixes);
  } else {
    ++groups_[address.prefix].sessions;
  }
  if (!session.opened_here) count(session, 1, 1);
}

void PeerGroups::leave(const Session& session) {
  if (!session.opened_here) count(session, -1, session.confirmed ? 0 : -1);
  for (const std::uint32_t index : groups_of(session.address_group)) {
    --groups_[index].sessions;
    free_if_gone(index);
  }
}

PeerGroups::Share PeerGroups::may_hold(const Session& session, std::uint64_t bytes, std::uint64_t later,
                                       std::uint64_t free) const {
  if (held_ == 0 && later == 0) return Share::allows;
  bytes += later;
  const auto [address, prefix] = groups_of(session.address_group);
  if (!may_hold(groups_[address], bytes, free / 2, quotas_.bytes_per_address.load(std::memory_order_relaxed)))
    return Share::address;
  if (!may_hold(groups_[prefix], bytes, free, quotas_.bytes_per_prefix.load(std::memory_order_relaxed)))
    return Share::prefix;
  return Share::allows;
}

void PeerGroups::hold(const Session& session, std::uint64_t bytes, bool borrows) {
  const auto [address, prefix] = groups_of(session.address_group);
  if (borrows) groups_[prefix].borrowed = true;
  groups_[address].held += bytes;
  groups_[prefix].held += bytes;
  held_ += bytes;
}

void PeerGroups::release(const Session& session, std::uint64_t bytes, bool borrowed) {
  const auto [address, prefix] = groups_of(session.address_group);
  if (borrowed) groups_[prefix].borrowed = false;
  groups_[address].held -= bytes;
  groups_[prefix].held -= bytes;
  held_ -= bytes;
}

namespace {}  // namespace

PeerGroups::Share PeerGroups::may_have(std::uint32_t address, std::uint64_t bytes, std::uint64_t later,
                                       std::uint64_t free) const {
  const auto [of_address, of_prefix] = groups_of(address);
  if (!allows(groups_[of_address].bytes, bytes + later, free, kShare)) return Share::address;
  return allows(groups_[of_prefix].bytes, bytes + later, free, 2 * kShare) ? Share::allows : Share::prefix;
}

PeerGroups::Share PeerGroups::may_charge_place(const Session& session, bool waits) const {
  const std::uint32_t free = common_places_ - std::min(places_, common_places_);
  const std::uint64_t share = waits ? kShare / 2 : kShare;
  const auto [address, prefix] = groups_of(session.address_group);
  if (!allows(groups_[address].places, 1, free, share)) return Share::address;
  return allows(groups_[prefix].places, 1, free, 2 * share) ? Share::allows : Share::prefix;
}

}  // namespace warpline::message
