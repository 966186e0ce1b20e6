// SPDX-License-Identifier: Apache-2.0
#include "warpline/message/internal/session/handshake.h"

#include <algorithm>
#include <type_traits>

#include "warpline/message/protection.h"

namespace warpline {
namespace {

/// The whole datagram in one piece: handshake packets are shorter than any head.
template <typename Packet>
bool read(const Datagram& datagram, Packet& packet) {
  return datagram.rest_length == 0 && parse(datagram.head, datagram.head_length, packet) == MessageParse::ok;
}

}  // namespace

template <typename Packet>
void Handshake::reply(const PeerAddress& to, const Packet& packet) {
  static_assert(Packet::kLength <= StrayReply::kMaxLength);
  if (strays_.full()) {
    endpoint_.drop(MessageDrop::no_reply_room);
    return;
  }
  StrayReply& stray = strays_.add(to);
  stray.length = Packet::kLength;
  emit(packet, stray.bytes.data());
}

Opened Handshake::connect(const PeerAddress& peer, const SessionOptions& options) {
  Session* session = sessions_.take(peer);
  if (session == nullptr) return {CallStatus::no_memory, {}};
  session->opened_here = true;
  session->context = options.context;
  session->ordered = options.ordered;
  session->go_back_n = endpoint_.config.reliability == Reliability::go_back_n;
  life_.begin(*session);
  begin_hello(*session);
  return {CallStatus::ok, sessions_.id_of(*session)};
}

CallStatus Handshake::reconnect(SessionId id) {
  Session* session = sessions_.find(id);
  if (session == nullptr) return CallStatus::unknown_session;
  const bool over = session->phase == SessionPhase::lost && !session->lost_event && !session->lost_pending;
  if (!over || !session->opened_here) return CallStatus::not_allowed;
  life_.begin(*session);
  begin_hello(*session);
  return CallStatus::ok;
}

MessageTerms Handshake::own_terms(const Session& session) const {
  MessageTerms terms;
  terms.datagram_bytes = static_cast<std::uint16_t>(endpoint_.config.datagram_bytes);
  terms.go_back_n = session.go_back_n;
  terms.ordered = session.ordered;
  terms.is_protected = endpoint_.is_protected();
  terms.grants = endpoint_.config.grants != 0;
  terms.bundles = endpoint_.config.bundles;
  terms.room = endpoint_.config.receive_window;
  terms.max_ack_delay =
      static_cast<std::uint32_t>(std::min<std::int64_t>(endpoint_.config.max_ack_delay.value, 0xffffffff));
  return terms;
}

void Handshake::begin_hello(Session& session) {
  session.nonce = tokens_.nonce();
  session.token = 0;
  session.token_time = 0;
  session.hello_wait = endpoint_.config.initial_rto;
  session.next_hello = endpoint_.now();
  session.hello_due = true;
  timers_.arm(session, Nanos{session.opened.value + endpoint_.config.connect_timeout.value});
  ready_.add(session);
}

void Handshake::write_hello(Session& session, Outgoing& out) {
  session.hello_due = false;
  MessageHello hello;
  hello.session = sessions_.wire_id(session);
  hello.nonce = session.nonce;
  hello.token = session.token;
  hello.token_time = session.token_time;
  hello.terms = own_terms(session);
  emit(hello, out.head);
  out.head_length = MessageHello::kLength;
  session.next_hello = endpoint_.in(session.hello_wait);
  session.hello_wait = std::min(Nanos{session.hello_wait.value * 2}, endpoint_.config.max_rto);
  timers_.arm(session, session.next_hello);
}

void Handshake::receive(const Datagram& datagram) {
  switch (MessagePrefix::type(datagram.head)) {
    case MessagePacketType::hello:
      return receive_hello(datagram);
    case MessagePacketType::challenge:
      return receive_challenge(datagram);
    case MessagePacketType::accept:
      return receive_accept(datagram);
    case MessagePacketType::reject:
      return receive_reject(datagram);
    case MessagePacketType::reset:
      return receive_reset(datagram);
    case MessagePacketType::session:
      return;
  }
}

void Handshake::receive_hello(const Datagram& datagram) {
  MessageHello hello;
  if (!read(datagram, hello)) return endpoint_.drop(MessageDrop::malformed);
  const auto reject = [&](MessageReject::Reason reason) {
    reply(datagram.from, MessageReject{hello.session, hello.nonce, reason});
  };
  if (!endpoint_.config.accept) {
    endpoint_.drop(MessageDrop::not_accepting);
    return reject(MessageReject::Reason::not_accepting);
  }
  if (!tokens_.proves(datagram.from, hello, endpoint_.now())) {
    if (hello.token != 0) {
      endpoint_.drop(MessageDrop::bad_handshake);
    } else {
      endpoint_.counters.packets_in.add(1);
    }
    hello.token_time = HandshakeTokens::time(endpoint_.now());
    return reply(datagram.from,
                 MessageChallenge{hello.session, hello.nonce, tokens_.token(datagram.from, hello), hello.token_time});
  }
  if (hello.terms.is_protected != (endpoint_.is_protected()) || hello.terms.datagram_bytes < 256) {
    endpoint_.drop(MessageDrop::not_accepting);
    return reject(MessageReject::Reason::terms);
  }
  if (Session* known = sessions_.find(datagram.from, hello.session)) {
    if (!known->opened_here && known->nonce == hello.nonce) {
      endpoint_.counters.packets_in.add(1);
      known->accept_due = true;
      return ready_.add(*known);
    }
    life_.lose(*known, LossReason::restarted);
  }
  Session* session = sessions_.take(datagram.from);
  if (session == nullptr) {
    endpoint_.drop(MessageDrop::no_session);
    return reject(MessageReject::Reason::full);
  }
  session->ordered = hello.terms.ordered;
  session->go_back_n = hello.terms.go_back_n;
  life_.begin(*session);
  session->remote = hello.session;
  session->nonce = hello.nonce;
  session->server_nonce = tokens_.nonce();
  session->cookie = tokens_.cookie(hello.nonce, sessions_.wire_id(*session));
  establish(*session, hello.terms);
  session->accept_due = true;
  endpoint_.counters.packets_in.add(1);
  timers_.arm(*session, endpoint_.in(endpoint_.config.connect_timeout));
  ready_.add(*session);
}

void Handshake::write_accept(Session& session, Outgoing& out) {
  session.accept_due = false;
  MessageAccept accept;
  accept.session = session.remote;
  accept.nonce = session.nonce;
  accept.cookie = session.cookie;
  accept.server_nonce = session.server_nonce;
  accept.server_session = sessions_.wire_id(session);
  accept.terms = own_terms(session);
  emit(accept, out.head);
  out.head_length = MessageAccept::kLength;
}

/// The session that a handshake packet answers, or nullptr.
Session* Handshake::answered(const Datagram& datagram, std::uint32_t session_id, std::uint64_t nonce) {
  Session* session = sessions_.named(session_id);
  if (session == nullptr) return nullptr;
  const bool waits = session->phase == SessionPhase::opening && session->opened_here && session->nonce == nonce &&
                     session->peer == datagram.from;
  return waits ? session : nullptr;
}

void Handshake::receive_challenge(const Datagram& datagram) {
  MessageChallenge challenge;
  if (!read(datagram, challenge)) return endpoint_.drop(MessageDrop::malformed);
  Session* session = answered(datagram, challenge.session, challenge.nonce);
  if (session == nullptr) return endpoint_.drop(MessageDrop::bad_handshake);
  endpoint_.counters.packets_in.add(1);
  if (session->token == challenge.token) return;  // a repeated one: the next hello is under way
  session->token = challenge.token;
  session->token_time = challenge.token_time;
  session->hello_wait = endpoint_.config.initial_rto;
  session->hello_due = true;
  ready_.add(*session);
}

void Handshake::receive_accept(const Datagram& datagram) {
  MessageAccept accept;
  if (!read(datagram, accept)) return endpoint_.drop(MessageDrop::malformed);
  Session* session = answered(datagram, accept.session, accept.nonce);
  if (session == nullptr || accept.terms.datagram_bytes < 256) return endpoint_.drop(MessageDrop::bad_handshake);
  endpoint_.counters.packets_in.add(1);
  if (Session* known = sessions_.find(datagram.from, accept.server_session)) life_.lose(*known, LossReason::restarted);
  session->remote = accept.server_session;
  session->cookie = accept.cookie;
  session->server_nonce = accept.server_nonce;
  session->confirmed = true;
  establish(*session, accept.terms);
  endpoint_.counters.sessions_opened.add(1);
  events_.add_opened(*session);
  session->ping = session->own.first == kNone;  // the peer waits to see the cookie
  ready_.add(*session);
}

void Handshake::establish(Session& session, const MessageTerms& peer) {
  session.phase = SessionPhase::established;
  session.quiet_from = endpoint_.now();
  timers_.watch_idle(session, endpoint_.in(endpoint_.config.keepalive));
  timers_.arm_next(session);
  session.hello_due = false;
  session.datagram_bytes = std::min<std::uint32_t>(endpoint_.config.datagram_bytes, peer.datagram_bytes);
  const std::uint32_t tag = endpoint_.is_protected() ? kMessageTagLength : 0;
  // Two words of acknowledgement always find room.
  session.fragment_bytes =
      session.datagram_bytes - MessageHeader::kLength - MessageAck::kLength - 2 * 8 - MessageFragment::kLength - tag;
  session.peer_grants = peer.grants;
  session.bundles = peer.bundles && !session.go_back_n;  // as eRPC: one message a packet
  session.room = session.room_told = peer.room;
  session.room_told = endpoint_.config.receive_window;
  session.max_ack_delay = Nanos{std::min<std::int64_t>(peer.max_ack_delay, 1'000'000'000)};
  CcConfig cc = endpoint_.config.cc;
  cc.mtu = session.datagram_bytes;
  session.congestion = CongestionControl(cc);
  session.allowed = session.congestion.output();
  sessions_.show(session);
  transfers_.cut_again(session);
  if (!endpoint_.is_protected()) return;
  SessionNonces nonces_of;
  nonces_of.client = session.nonce;
  nonces_of.server = session.server_nonce;
  nonces_of.client_session = session.opened_here ? sessions_.wire_id(session) : session.remote;
  nonces_of.server_session = session.opened_here ? session.remote : sessions_.wire_id(session);
  endpoint_.config.protection->start(sessions_.index_of(session), nonces_of, session.opened_here);
}

void Handshake::receive_reject(const Datagram& datagram) {
  MessageReject rejected;
  if (!read(datagram, rejected)) return endpoint_.drop(MessageDrop::malformed);
  Session* session = answered(datagram, rejected.session, rejected.nonce);
  if (session == nullptr) return endpoint_.drop(MessageDrop::bad_handshake);
  endpoint_.counters.packets_in.add(1);
  switch (rejected.reason) {
    case MessageReject::Reason::full:
      return life_.lose(*session, LossReason::peer_full);
    case MessageReject::Reason::version:
      return life_.lose(*session, LossReason::version);
    case MessageReject::Reason::not_accepting:
    case MessageReject::Reason::terms:
      return life_.lose(*session, LossReason::not_accepted);
  }
}

void Handshake::receive_reset(const Datagram& datagram) {
  MessageReset reset;
  if (!read(datagram, reset)) return endpoint_.drop(MessageDrop::malformed);
  Session* const known = sessions_.find(datagram.from, reset.session);
  if (known == nullptr) return endpoint_.drop(MessageDrop::unknown_session);
  Session& session = *known;
  if (session.cookie != reset.cookie) return endpoint_.drop(MessageDrop::wrong_cookie);
  endpoint_.counters.packets_in.add(1);
  if (!endpoint_.is_protected()) return life_.lose(session, LossReason::restarted);
  // Whoever reads the path could say so: reason to ask the peer, and to wait less long for its answer
  // (Timers::patience_with).
  if (session.denied) return;
  session.denied = session.ping = true;
  ready_.add(session);
  timers_.arm_next(session);
}

void Handshake::receive_wrong_version(const Datagram& datagram) {
  endpoint_.drop(MessageDrop::version);
  const bool hello =
      datagram.head_length >= MessageHello::kLength && MessagePrefix::type(datagram.head) == MessagePacketType::hello;
  if (!hello) return;
  reply(datagram.from,
        MessageReject{load_be32(datagram.head + 4), load_be64(datagram.head + 8), MessageReject::Reason::version});
}

void Handshake::reset(const PeerAddress& to, const MessageHeader& header) {
  reply(to, MessageReset{header.session, header.cookie});
}

void Handshake::confirm(Session& session) {
  session.confirmed = true;
  endpoint_.counters.sessions_accepted.add(1);
  events_.add_opened(session);
}

}  // namespace warpline
