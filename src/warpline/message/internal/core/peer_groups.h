// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "warpline/base/secrets/siphash.h"
#include "warpline/message/config.h"
#include "warpline/message/internal/core/session.h"
#include "warpline/message/internal/parts/hash_index.h"
#include "warpline/message/internal/parts/index_pool.h"
#include "warpline/message/types.h"

namespace warpline::message {

/// What the sessions of one address hold together, and those of its neighbourhood (an IPv4 /24, an IPv6 /64): who opens
/// many sessions gets no larger share for it.
///
/// Messages that are still arriving from one address hold a share of the receive memory that is less the less is left,
/// as in the buffers of switches (Choudhury and Hahne, "Dynamic Queue Length Thresholds", 1998): half of what is free,
/// and those of its neighbourhood as much as is free. Some is always left for others.
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
  [[nodiscard]] bool may_borrow(const Session& session) const { return !groups_[session.prefix_group].borrowed; }
  void hold(const Session& session, std::uint64_t bytes, bool borrows);
  void release(const Session& session, std::uint64_t bytes, bool borrowed);

 private:
  struct Group {
    std::uint64_t hash = 0;
    std::uint64_t held = 0;      ///< bytes of messages that arrive
    std::uint32_t sessions = 0;  ///< with none, the group is gone
    std::uint32_t accepted = 0;  ///< of them, that peers opened
    std::uint32_t half_open = 0;
    bool borrowed = false;  ///< of a prefix: one of the messages is beyond the share
  };
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
  [[nodiscard]] std::uint32_t enter(std::uint64_t hash);
  void depart(std::uint32_t group);
  /// Adds to what the session's groups count.
  void count(const Session& session, int accepted, int half_open);

  const std::uint32_t max_sessions_;
  Quotas quotas_{};
  IndexPool<Group> groups_;
  HashIndex by_hash_;
  SipKey key_;
  std::uint64_t held_ = 0;      ///< of all
  std::uint32_t accepted_ = 0;  ///< of all
};

}  // namespace warpline::message
