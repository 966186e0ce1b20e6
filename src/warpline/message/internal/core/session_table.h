// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "warpline/base/large_vector.h"
#include "warpline/base/secrets/siphash.h"
#include "warpline/message/config.h"
#include "warpline/message/internal/core/peer_table.h"
#include "warpline/message/internal/core/session.h"
#include "warpline/message/types.h"

namespace warpline::message {

/// The sessions of an endpoint, in use or free, and all names that they go by: index, id, the id on the wire, and for
/// established ones the peer with its own id, which a session has for itself once it is confirmed. A session stays
/// where it is; its generation makes old ids unknown.
class SessionTable {
 public:
  SessionTable(const EndpointConfig& config, SipKey key);

  [[nodiscard]] Session& operator[](std::uint32_t index) { return sessions_[index]; }
  [[nodiscard]] const Session& operator[](std::uint32_t index) const { return sessions_[index]; }
  [[nodiscard]] std::uint32_t size() const { return static_cast<std::uint32_t>(sessions_.size()); }
  [[nodiscard]] std::uint32_t available() const { return static_cast<std::uint32_t>(free_.size()); }

  [[nodiscard]] std::uint32_t index_of(const Session& session) const {
    return static_cast<std::uint32_t>(&session - sessions_.data());
  }
  [[nodiscard]] SessionId id_of(const Session& session) const { return {index_of(session), session.generation}; }
  [[nodiscard]] std::uint32_t wire_id(const Session& session) const { return endpoint_ << 24 | index_of(session); }

  /// The index that a wire_id() of any endpoint holds; it may be beyond size().
  [[nodiscard]] static std::uint32_t index_in(std::uint32_t wire_id) { return wire_id & 0xffffffU; }
  /// The session of this endpoint, in use or not, that a packet names; or nullptr.
  [[nodiscard]] Session* named(std::uint32_t wire_id) {
    const std::uint32_t index = index_in(wire_id);
    return wire_id >> 24 == endpoint_ && index < size() ? &sessions_[index] : nullptr;
  }
  /// Whether a packet names a session of another endpoint that this one's address leads to.
  [[nodiscard]] bool elsewhere(std::uint32_t wire_id) const {
    return wire_id >> 24 != endpoint_ && wire_id >> 24 < endpoints_;
  }
  /// The session, lost or not, that the application names; nullptr if it was forgotten or never was.
  [[nodiscard]] Session* find(SessionId id);
  /// The established and confirmed session with this peer, whose id for it is `remote`; or nullptr.
  [[nodiscard]] Session* find(const PeerAddress& peer, std::uint32_t remote) {
    return at(peers_.find(peer, remote, 0));
  }
  /// The one that its hello of this nonce has opened, and nothing has confirmed; or nullptr.
  [[nodiscard]] Session* find_half_open(const PeerAddress& peer, std::uint32_t remote, std::uint64_t nonce) {
    return at(peers_.find(peer, remote, nonce));
  }

  /// A session with this peer, its fields as of a new one; nullptr if all are in use.
  [[nodiscard]] Session* take(const PeerAddress& peer);
  /// Frees a session; one with events in the queue when they have left it: whoever takes them there calls this again.
  void give(Session& session);

  /// The session that has waited longest to be confirmed; nullptr if none does.
  [[nodiscard]] Session* oldest_half_open() { return at(half_open_first_); }

  /// An established session can be found by its peer until it is hidden; both go by Session::confirmed.
  void show(Session& session) {
    peers_.insert(session.peer, session.remote, nonce_of(session), index_of(session));
    if (!session.confirmed) add_half_open(session);
  }
  void hide(const Session& session) {
    peers_.erase(session.peer, session.remote, nonce_of(session), index_of(session));
    if (!session.confirmed) remove_half_open(session);
  }

  /// An established and confirmed session's peer is at another address now. One that had this address and the same id
  /// there lives on, but is not found by it any more: its peer has left, or another could not have come.
  void move(Session& session, const PeerAddress& peer) {
    hide(session);
    session.peer = peer;
    if (const Session* const before = find(peer, session.remote)) hide(*before);
    show(session);
  }

 private:
  [[nodiscard]] Session* at(std::uint32_t index) { return index == kNone ? nullptr : &sessions_[index]; }
  [[nodiscard]] static std::uint64_t nonce_of(const Session& session) { return session.confirmed ? 0 : session.nonce; }
  void add_half_open(Session& session);
  void remove_half_open(const Session& session);

  std::uint32_t endpoint_;   ///< EndpointConfig::endpoint
  std::uint32_t endpoints_;  ///< EndpointConfig::endpoints
  LargeVector<Session> sessions_;
  std::vector<std::uint32_t> free_;
  PeerTable peers_;
  std::uint32_t half_open_first_ = kNone;  ///< those that wait to be confirmed, the oldest first
  std::uint32_t half_open_last_ = kNone;
};

/// First in, first out, linked through the sessions by kNext. A session is in it once at most, kListed says whether:
/// add() leaves one that is. A session that ends stays; whoever takes it out sees what has become of it.
template <std::uint32_t Session::* kNext, bool Session::* kListed>
class SessionQueue {
 public:
  explicit SessionQueue(SessionTable& sessions) : sessions_(sessions) {}

  [[nodiscard]] bool empty() const { return first_ == kNone; }
  [[nodiscard]] Session& front() { return sessions_[first_]; }
  [[nodiscard]] const Session& front() const { return sessions_[first_]; }

  void add(Session& session) {
    if (session.*kListed) return;
    session.*kListed = true;
    session.*kNext = kNone;
    const std::uint32_t index = sessions_.index_of(session);
    (last_ == kNone ? first_ : sessions_[last_].*kNext) = index;
    last_ = index;
  }

  Session& take() {
    Session& session = sessions_[first_];
    first_ = session.*kNext;
    if (first_ == kNone) last_ = kNone;
    session.*kListed = false;
    return session;
  }

 private:
  SessionTable& sessions_;
  std::uint32_t first_ = kNone;
  std::uint32_t last_ = kNone;
};

}  // namespace warpline::message
