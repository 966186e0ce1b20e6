// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "warpline/message/datagram.h"
#include "warpline/message/endpoint.h"
#include "warpline/message/internal/core/endpoint_core.h"
#include "warpline/message/internal/session/handshake_tokens.h"
#include "warpline/message/internal/session/session_life.h"
#include "warpline/message/internal/transfer/transfers.h"
#include "warpline/packet/headers/message_header.h"

namespace warpline::message {

/// hello, challenge, hello with token, accept. Until a peer has shown by the token that it is where it says, nothing is
/// kept of it, and no answer is longer than what it answers.
class Handshake {
 public:
  Handshake(EndpointCore& core, Transfers& transfers, SessionLife& life)
      : core_(core), transfers_(transfers), life_(life), tokens_(sip_key(*core.context.config.secret)) {}

  // What the application does; endpoint.h says what each call means.
  Opened connect(const PeerAddress& peer, const SessionOptions& options);
  CallStatus reconnect(SessionId id);

  /// Takes a packet of any type but `session`.
  void receive(const Datagram& datagram);
  /// A hello of another version is rejected in that version; and a reject may say that of a hello of ours.
  void receive_wrong_version(const Datagram& datagram);
  /// What the network says of a packet that was sent here; Endpoint::unreachable().
  void take_unreachable(const Unreachable& said);
  /// Tells a sender that its packet's session is unknown, if it can be answered. The packet has been counted.
  void reset(const PeerAddress& to, const packet::MessageHeader& header);
  /// The peer has shown the cookie, and with protection that it has the keys: the session that it opened is the
  /// application's. Only now one that the peer had under the same id is over.
  void confirm(Session& session);

  [[nodiscard]] const HandshakeTokens& tokens() const { return tokens_; }

  void write_hello(Session& session, Outgoing& out);
  void write_accept(Session& session, Outgoing& out);

 private:
  void begin_hello(Session& session);
  [[nodiscard]] bool may_doubt(const Session& session) const;
  void doubt(Session& session, LossReason why);
  [[nodiscard]] Session* take_place(const PeerAddress& peer);
  void receive_hello(const Datagram& datagram);
  void receive_challenge(const Datagram& datagram);
  void receive_accept(const Datagram& datagram);
  void receive_reject(const Datagram& datagram);
  void receive_reset(const Datagram& datagram);
  void establish(Session& session, const packet::MessageTerms& peer);
  [[nodiscard]] packet::MessageTerms own_terms(const Session& session) const;
  [[nodiscard]] packet::MessageHello hello_of(const Session& session) const;
  [[nodiscard]] packet::MessageAccept accept_of(const Session& session) const;
  [[nodiscard]] packet::MessageKeyShare share_of(const Session& session) const;
  [[nodiscard]] bool protect(Session& session, const packet::MessageHello& hello);
  [[nodiscard]] bool protect(Session& session, const packet::MessageAccept& accept);
  [[nodiscard]] bool is_protected() const { return core_.context.is_protected(); }
  [[nodiscard]] PacketProtection& protection() const { return *core_.context.config.protection; }
  [[nodiscard]] bool authentic(const Datagram& datagram, const packet::MessageHello& hello);
  [[nodiscard]] Session* answered(const Datagram& datagram, std::uint32_t session_id, std::uint64_t nonce);
  /// Whether a stranger's packet can be answered. If so, it uses up a part of what strangers may have.
  [[nodiscard]] bool may_answer(const PeerAddress& stranger);
  template <typename Packet>
  void reply(const PeerAddress& to, const Packet& packet);

  EndpointCore& core_;
  Transfers& transfers_;
  SessionLife& life_;
  HandshakeTokens tokens_;
};

}  // namespace warpline::message
