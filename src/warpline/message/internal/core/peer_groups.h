// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "warpline/base/secrets/siphash.h"
#include "warpline/message/config.h"
#include "warpline/message/internal/core/message.h"
#include "warpline/message/internal/core/session.h"
#include "warpline/message/internal/parts/hash_index.h"
#include "warpline/message/internal/parts/index_pool.h"
#include "warpline/message/types.h"

namespace warpline::message {

/// What the sessions of one address hold together, and those of its neighbourhood (an IPv4 /24, an IPv6 /64): who opens
/// many sessions gets no larger share for it.
///
/// Their shares of what all sessions take from are the less the less is left, as in the buffers of switches (Choudhury
/// and Hahne, "Dynamic Queue Length Thresholds", 1998), so that some is always left for others:
/// - Messages that are still arriving from one address hold at most half of the free receive memory, those of its
///   neighbourhood as much as is free.
/// - All messages of one address and the responses to them, until they are over, hold at most kShare times the free
///   receive memory and kShare times the free places in the pool of messages, those of its neighbourhood twice as much.
///   One address alone gets 8 of 9 parts. The first places of each session do not count: they are kept for it.
/// - Requests of one address take at most kShare times as many of the application's places as are free, see poll().
class PeerGroups {
 public:
  PeerGroups(const EndpointConfig& config, SipKey key);

  /// Any thread: these quotas hold from now on. Sessions that are there stay, and what has begun to arrive goes on.
  void set_quotas(const SessionQuotas& quotas);

  /// The quota that is exhausted, if one is.
  enum class Admission : std::uint8_t { yes, half_open_per_address, half_open_per_prefix, per_address, per_prefix };
  /// Whether a peer at this address may open a session more; if it has too many, whether half-open or not.
  [[nodiscard]] Admission admits(const PeerAddress& peer) const;
  /// A session with Session::peer begins: half-open, unless it was opened here.
  void join(Session& session);
  /// The peer confirms it: it is half-open no longer. Before Session::confirmed says so.
  void confirm(const Session& session) { count(session, 0, -1); }
  void leave(const Session& session);
  /// Sessions that peers opened, half-open or not.
  [[nodiscard]] std::uint32_t accepted() const { return accepted_; }

  /// Whose share does not allow something.
  enum class Share : std::uint8_t { allows, address, prefix };
  /// Whether the session may have so many bytes more for a message that begins to arrive, and after it `later` for
  /// another, of `free` that there are. While nobody has any, one message may have all.
  [[nodiscard]] Share may_hold(const Session& session, std::uint64_t bytes, std::uint64_t later,
                               std::uint64_t free) const;
  /// Whether it may nevertheless, being what other messages of its session wait for with what they hold: one at a time
  /// of a neighbourhood.
  [[nodiscard]] bool may_borrow(const Session& session) const {
    return !groups_[groups_[session.address_group].prefix].borrowed;
  }
  void hold(const Session& session, std::uint64_t bytes, bool borrows);
  void release(const Session& session, std::uint64_t bytes, bool borrowed);

  /// Returns whether messages of an address may take so many bytes more, and after them `later` for another, of `free`
  /// bytes. One that holds none may take what is free. `address`: Session::address_group.
  [[nodiscard]] Share may_have(std::uint32_t address, std::uint64_t bytes, std::uint64_t later,
                               std::uint64_t free) const;
  /// Returns whether so little is `taken` by all that any address may take so many bytes more, of `free` bytes.
  [[nodiscard]] static bool anybody_may_have(std::uint64_t taken, std::uint64_t bytes, std::uint64_t free) {
    return allows(taken, bytes, free, kShare);
  }
  void charge(std::uint32_t address, std::uint64_t bytes) {
    Group& group = groups_[address];
    group.bytes += bytes;
    groups_[group.prefix].bytes += bytes;
  }
  void refund(std::uint32_t address, std::uint64_t bytes) {
    const std::uint32_t prefix = groups_[address].prefix;
    groups_[address].bytes -= bytes;
    groups_[prefix].bytes -= bytes;
    free_if_gone(address);
    free_if_gone(prefix);
  }

  /// What waits for its turn: requests of an address, linked by Message::event_next, or addresses of a prefix, linked
  /// by `next`. EventQueue's.
  struct Turns {
    MessageList waiting;
    std::uint32_t next = kNone;
    std::uint32_t taken : 31 = 0;  ///< requests, each in one of the application's places
    bool passed : 1 = false;       ///< gets no turn until one of `taken` is over
  };
  [[nodiscard]] Turns& turns_of(std::uint32_t group) { return groups_[group].turns; }
  [[nodiscard]] const Turns& turns_of(std::uint32_t group) const { return groups_[group].turns; }
  [[nodiscard]] std::uint32_t prefix_of(std::uint32_t address) const { return groups_[address].prefix; }
  /// A group that has no session and holds nothing ends.
  void free_if_gone(std::uint32_t group) {
    if (groups_[group].sessions == 0) [[unlikely]]
      free_if_unused(group);
  }

  /// Returns whether the application, which has so many `places` free, may take one more request of an address.
  [[nodiscard]] bool may_take_of_address(std::uint32_t address, std::size_t places) const {
    return groups_[address].turns.taken / kShare < places;
  }
  [[nodiscard]] bool may_take_of_prefix(std::uint32_t prefix, std::size_t places) const {
    return groups_[prefix].turns.taken / (2 * kShare) < places;
  }

  /// Returns whether the session has one of the places left that are kept for it in the pool of messages.
  [[nodiscard]] bool has_own_place(const Session& session) const { return session.places < own_places_; }
  /// Returns whether the session's peer may have one place more in the pool of messages. A message that `waits` for
  /// another one leaves a place for that.
  [[nodiscard]] Share may_have_place(const Session& session, bool waits) const {
    return has_own_place(session) ? Share::allows : may_charge_place(session, waits);
  }
  /// Counts the place of a new message of this session, whether or not its peer may have it.
  void take_place(Session& session, Message& message) {
    message.group = session.address_group;
    if (session.places++ >= own_places_) charge_place(message);
  }
  /// A message that is `charged` is freed. Session::places counts one less, whatever session is there now.
  void refund_place(const Message& message) {
    const std::uint32_t prefix = groups_[message.group].prefix;
    --groups_[message.group].places;
    --groups_[prefix].places;
    --places_;
    free_if_gone(message.group);
    free_if_gone(prefix);
  }

 private:
  static constexpr std::uint64_t kShare = 8;  ///< an address may hold so many times what is free
  /// Groups of all addresses and prefixes that find none of their own, which they do unless more addresses than there
  /// are sessions have left messages with the application.
  static constexpr std::uint32_t kRestOfAddresses = 0;
  static constexpr std::uint32_t kRestOfPrefixes = 1;

  struct alignas(64) Group {
    std::uint64_t hash = 0;
    std::uint64_t held = 0;        ///< bytes of messages that arrive
    std::uint64_t bytes = 0;       ///< of all messages
    std::uint32_t places = 0;      ///< of messages, those that count
    std::uint32_t prefix = kNone;  ///< of an address: its prefix's group
    std::uint32_t sessions = 0;
    std::uint32_t accepted = 0;  ///< of them, that peers opened
    std::uint32_t half_open = 0;
    bool borrowed = false;  ///< of a prefix: one of the messages is beyond the share
    Turns turns{};
  };
  static_assert(sizeof(Group) == 64, "one line of the cache");
  /// Whether a group that has `had` may have `more`, being allowed `share` times what is free then.
  [[nodiscard]] static bool allows(std::uint64_t had, std::uint64_t more, std::uint64_t free, std::uint64_t share) {
    return more <= free && (had == 0 || had + more <= share * (free - more));
  }
  /// Whether a group may have so many bytes more, by `share` of what is free and its quota, where 0 is none.
  [[nodiscard]] static bool may_hold(const Group& group, std::uint64_t bytes, std::uint64_t share,
                                     std::uint64_t quota) {
    return group.held + bytes <= share && (quota == 0 || group.held == 0 || group.held + bytes <= quota);
  }
  /// SessionQuotas in force, none of them 0 but those of bytes. Written by any thread, read by the endpoint's.
  struct Quotas {
    std::atomic<std::uint32_t> per_address;
    std::atomic<std::uint32_t> per_prefix;
    std::atomic<std::uint32_t> half_open_per_address;
    std::atomic<std::uint32_t> half_open_per_prefix;
    std::atomic<std::uint64_t> bytes_per_address;
    std::atomic<std::uint64_t> bytes_per_prefix;
  };
  struct Hashes {
    std::uint64_t address;
    std::uint64_t prefix;
  };

  [[nodiscard]] Hashes hashes_of(const PeerAddress& peer) const;
  [[nodiscard]] std::uint32_t enter(std::uint64_t hash, std::uint32_t rest);
  void free_if_unused(std::uint32_t group);
  [[nodiscard]] std::array<std::uint32_t, 2> groups_of(std::uint32_t address) const {
    return {address, groups_[address].prefix};
  }
  [[nodiscard]] Share may_charge_place(const Session& session, bool waits) const;
  void charge_place(Message& message) {
    message.charged = true;
    ++groups_[message.group].places;
    ++groups_[groups_[message.group].prefix].places;
    ++places_;
  }
  /// Adds to what the session's groups count.
  void count(const Session& session, int accepted, int half_open);

  const std::uint32_t max_sessions_;
  const std::uint32_t own_places_;     ///< of each session, that do not count
  const std::uint32_t common_places_;  ///< that all sessions take from beyond these
  Quotas quotas_{};
  IndexPool<Group> groups_;
  HashIndex by_hash_;
  SipKey key_;
  std::uint64_t held_ = 0;      ///< of all
  std::uint32_t places_ = 0;    ///< of all
  std::uint32_t accepted_ = 0;  ///< of all
};

}  // namespace warpline::message
