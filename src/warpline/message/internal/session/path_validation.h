// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "warpline/message/datagram.h"
#include "warpline/message/internal/core/endpoint_core.h"
#include "warpline/message/internal/send/packet_writer.h"
#include "warpline/message/internal/send/recovery.h"
#include "warpline/message/internal/session/handshake_tokens.h"
#include "warpline/packet/headers/message_header.h"

namespace warpline::message {

/// Sessions whose peer is at another address than before (RFC 9000, sections 8.2 and 9): it is asked there, and when it
/// has answered from there, all goes there. Until then the new address gets challenges alone, each for a packet of the
/// peer and less than twice as long. The token in one is made of the address, so nothing is kept of it.
///
/// A session without protection follows its peer to other ports of the same address only: whoever has seen a packet of
/// it, and is at another address, could have made that packet.
class PathValidation {
 public:
  PathValidation(EndpointCore& core, Recovery& recovery, PacketWriter& writer, const HandshakeTokens& tokens)
      : core_(core), recovery_(recovery), writer_(writer), tokens_(tokens) {}

  /// Whether an established session's peer may be at this address, too, if a packet from there is authentic.
  [[nodiscard]] bool may_follow(const Session& session, const PeerAddress& to) const {
    return core_.context.is_protected() || session.peer.same_address(to);
  }
  /// The newest packet of the session's peer came from there, and may_follow(): asks, unless it is known by now.
  void challenge(Session& session, const PeerAddress& from);
  /// The session's packet is a MessagePathCheck. False: dropped.
  [[nodiscard]] bool take(Session& session, const packet::MessageHeader& header, const Datagram& datagram);

 private:
  [[nodiscard]] bool is_allowed(const Session& session, const PeerAddress& to) const;
  [[nodiscard]] bool has_room(Session& session);
  void send(Session& session, const PeerAddress& to, const packet::MessagePathCheck& check);
  void move(Session& session, const PeerAddress& to);
  [[nodiscard]] std::uint64_t token(const Session& session, const PeerAddress& of, std::uint32_t time) const {
    return tokens_.path_token(of, session.cookie, core_.sessions.wire_id(session), time);
  }

  EndpointCore& core_;
  Recovery& recovery_;
  PacketWriter& writer_;
  const HandshakeTokens& tokens_;
};

}  // namespace warpline::message
