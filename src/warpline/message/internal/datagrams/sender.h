// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "warpline/message/datagram.h"
#include "warpline/message/internal/core/endpoint_core.h"
#include "warpline/message/internal/send/packet_writer.h"
#include "warpline/message/internal/send/recovery.h"
#include "warpline/message/internal/session/handshake.h"
#include "warpline/message/internal/transfer/transfers.h"

namespace warpline::message {

/// What leaves next: grants, then sessions in turns, then answers to strangers (transmit.cc); and of a session what was
/// lost, then responses and own messages in turns (schedule.cc). What is high goes before what is not, but for one of
/// kPriorityTurns. Acknowledgements travel with them, or alone if there is nothing.
class Sender {
 public:
  Sender(EndpointCore& core, Transfers& transfers, Recovery& recovery, PacketWriter& writer, Handshake& handshake);

  /// Fills `out` from its front; returns how many. Less than asked: nothing more may leave now.
  std::size_t transmit(std::span<Outgoing> out);

 private:
  // transmit.cc
  /// Whether there is another packet to be written, with room for any head.
  [[nodiscard]] bool has_room(std::span<Outgoing> out, std::size_t count) {
    if (count >= out.size()) return false;
    if (out[count].head_capacity >= least_head_) return true;
    core_.context.counters.heads_too_small.add(1);
    return false;
  }
  static void prepare(Outgoing& packet);
  void address(const Session& session, Outgoing& packet);
  std::size_t send_sessions(std::span<Outgoing> out);
  void send_grants(std::span<Outgoing> out, std::size_t& count);
  [[nodiscard]] bool join(Session& session, Outgoing& before, std::uint32_t& last, const Outgoing& packet);
  bool send_from(Session& session, bool urgent, std::span<Outgoing> out, std::size_t& count);

  // schedule.cc: true if `out` is a packet now.
  [[nodiscard]] bool send_one(Session& session, Outgoing& out);
  [[nodiscard]] bool send_bare(Session& session, Outgoing& out);
  [[nodiscard]] bool send_path_probe(Session& session, Outgoing& out);
  // True if one more fragment is in `draft`, which may have begun.
  [[nodiscard]] bool send_next(Session& session, Draft& draft);
  [[nodiscard]] bool send_by_priority(Session& session, Draft& draft);
  [[nodiscard]] bool send_either(Session& session, MessageList& replies, MessageList& own, Draft& draft) {
    if (session.reply_turn && send_new(session, replies, false, draft)) return true;
    if (send_new(session, own, true, draft)) return true;
    return !session.reply_turn && send_new(session, replies, false, draft);
  }
  [[nodiscard]] bool send_lost(Session& session, Draft& draft);
  [[nodiscard]] bool send_new(Session& session, MessageList& list, bool own, Draft& draft);
  [[nodiscard]] bool send_probe(Session& session, Draft& draft);
  [[nodiscard]] bool may_send(Session& session, std::uint32_t bytes, bool joins);

  EndpointCore& core_;
  Transfers& transfers_;
  Recovery& recovery_;
  PacketWriter& writer_;
  Handshake& handshake_;
  bool farewell_turn_ = false;
  std::uint32_t least_head_;  ///< bytes that Outgoing::head_capacity must be
};

}  // namespace warpline::message
