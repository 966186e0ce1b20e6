// SPDX-License-Identifier: Apache-2.0
#include "warpline/message/internal/core/session_table.h"

#include <numeric>

namespace warpline::message {

SessionTable::SessionTable(const EndpointConfig& config, SipKey key)
    : endpoint_(config.endpoint),
      endpoints_(config.endpoints),
      sessions_(config.max_sessions),
      free_(config.max_sessions),
      peers_(config.max_sessions, key) {
  std::iota(free_.rbegin(), free_.rend(), 0U);
}

Session* SessionTable::find(SessionId id) {
  if (id.index >= sessions_.size()) return nullptr;
  Session& session = sessions_[id.index];
  const bool alive = session.phase != SessionPhase::free && session.generation == id.generation && !session.forgotten;
  return alive ? &session : nullptr;
}

Session* SessionTable::take(const PeerAddress& peer) {
  if (free_.empty()) return nullptr;
  Session& session = sessions_[free_.back()];
  free_.pop_back();
  Session fresh;
  fresh.generation = session.generation + 1;
  fresh.epoch = session.epoch;
  fresh.peer = peer;
  // The queues may still hold it from before; they drop what is not due.
  fresh.ready = session.ready;
  fresh.ready_next = session.ready_next;
  fresh.urgent = session.urgent;
  fresh.urgent_next = session.urgent_next;
  fresh.starved_listed = session.starved_listed;
  fresh.starved_next = session.starved_next;
  fresh.ack_listed = session.ack_listed;
  fresh.ack_next = session.ack_next;
  fresh.wants_grants = session.wants_grants;
  fresh.wanting_next = session.wanting_next;
  fresh.places = session.places;
  session = fresh;
  return &session;
}

void SessionTable::add_half_open(Session& session) {
  session.half_open_next = kNone;
  session.half_open_before = half_open_last_;
  (half_open_last_ == kNone ? half_open_first_ : sessions_[half_open_last_].half_open_next) = index_of(session);
  half_open_last_ = index_of(session);
}

void SessionTable::remove_half_open(const Session& session) {
  const std::uint32_t before = session.half_open_before;
  const std::uint32_t next = session.half_open_next;
  (before == kNone ? half_open_first_ : sessions_[before].half_open_next) = next;
  (next == kNone ? half_open_last_ : sessions_[next].half_open_before) = before;
}

void SessionTable::give(Session& session) {
  if (session.opened_event || session.lost_event) {
    session.forgotten = true;
    return;
  }
  session.phase = SessionPhase::free;
  session.forgotten = false;
  free_.push_back(index_of(session));
}

}  // namespace warpline::message
