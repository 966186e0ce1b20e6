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
enum : std::uint64_t { kHashOfAddress = 1, kHashOfPrefix = 2 };

}  // namespace

PeerGroups::PeerGroups(const EndpointConfig& config, SipKey key)
    : max_sessions_(config.max_sessions),
      groups_(2 * config.max_sessions),
      by_hash_(2 * config.max_sessions),
      key_(key) {
  set_quotas(config.quotas);
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

std::uint32_t PeerGroups::enter(std::uint64_t hash) {
  std::uint32_t index = by_hash_.find(hash);
  if (index == kNone) {
    index = groups_.take();  // a session is in two: there are as many
    groups_[index] = {.hash = hash};
    by_hash_.insert(hash, index);
  }
  ++groups_[index].sessions;
  return index;
}

void PeerGroups::depart(std::uint32_t group) {
  if (--groups_[group].sessions != 0) return;
  by_hash_.erase(groups_[group].hash, group);
  groups_.give(group);
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
  for (const std::uint32_t index : {session.address_group, session.prefix_group}) {
    groups_[index].accepted += static_cast<std::uint32_t>(accepted);
    groups_[index].half_open += static_cast<std::uint32_t>(half_open);
  }
}

void PeerGroups::join(Session& session) {
  const Hashes hashes = hashes_of(session.peer);
  session.address_group = enter(hashes.address);
  session.prefix_group = enter(hashes.prefix);
  if (!session.opened_here) count(session, 1, 1);
}

void PeerGroups::leave(const Session& session) {
  if (!session.opened_here) count(session, -1, session.confirmed ? 0 : -1);
  depart(session.address_group);
  depart(session.prefix_group);
}

PeerGroups::Share PeerGroups::may_hold(const Session& session, std::uint64_t bytes, std::uint64_t later,
                                       std::uint64_t free) const {
  if (held_ == 0 && later == 0) return Share::allows;
  bytes += later;
  if (!may_hold(groups_[session.address_group], bytes, free / 2,
                quotas_.bytes_per_address.load(std::memory_order_relaxed)))
    return Share::address;
  if (!may_hold(groups_[session.prefix_group], bytes, free, quotas_.bytes_per_prefix.load(std::memory_order_relaxed)))
    return Share::prefix;
  return Share::allows;
}

void PeerGroups::hold(const Session& session, std::uint64_t bytes, bool borrows) {
  if (borrows) groups_[session.prefix_group].borrowed = true;
  groups_[session.address_group].held += bytes;
  groups_[session.prefix_group].held += bytes;
  held_ += bytes;
}

void PeerGroups::release(const Session& session, std::uint64_t bytes, bool borrowed) {
  if (borrowed) groups_[session.prefix_group].borrowed = false;
  groups_[session.address_group].held -= bytes;
  groups_[session.prefix_group].held -= bytes;
  held_ -= bytes;
}

}  // namespace warpline::message
