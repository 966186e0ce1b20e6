// SPDX-License-Identifier: Apache-2.0
// hello, challenge, hello with token, accept. Until a peer has shown by the token that it is where it says, nothing is
// kept of it, and no answer is longer than what it answers.
#include <algorithm>
#include <type_traits>

#include "warpline/message/internal/state.h"
#include "warpline/message/protection.h"

namespace warpline {
namespace {

/// Tokens count time in units of 2^30 ns.
constexpr unsigned kTokenTimeShift = 30;
constexpr std::uint32_t kTokenLife = 8;

/// Each use of the secret has a number, so that no output serves two.
enum : std::uint64_t { kUseToken = 1, kUseNonce = 2, kUseCookie = 3 };

std::uint32_t token_clock(Nanos now) { return static_cast<std::uint32_t>(now.value >> kTokenTimeShift); }

/// The whole datagram in one piece: handshake packets are shorter than any head.
template <typename Packet>
bool read(const Datagram& datagram, Packet& packet) {
  return datagram.rest_length == 0 && parse(datagram.head, datagram.head_length, packet) == MessageParse::ok;
}

}  // namespace

template <typename Packet>
void EndpointState::reply(const PeerAddress& to, const Packet& packet) {
  static_assert(Packet::kLength <= StrayReply::kMaxLength);
  if (stray_count == strays.size()) {
    drop(MessageDrop::no_reply_room);
    return;
  }
  StrayReply& stray = strays[(stray_first + stray_count++) % strays.size()];
  stray.to = to;
  stray.length = Packet::kLength;
  emit(packet, stray.bytes.data());
}

MessageTerms EndpointState::own_terms(const Session& session) const {
  MessageTerms terms;
  terms.datagram_bytes = static_cast<std::uint16_t>(config.datagram_bytes);
  terms.go_back_n = session.go_back_n;
  terms.ordered = session.ordered;
  terms.is_protected = config.protection != nullptr;
  terms.grants = config.grants != 0;
  terms.bundles = config.bundles;
  terms.room = config.receive_window;
  terms.max_ack_delay = static_cast<std::uint32_t>(std::min<std::int64_t>(config.max_ack_delay.value, 0xffffffff));
  return terms;
}

void EndpointState::begin_hello(Session& session) {
  session.nonce = siphash(key, std::array<std::uint64_t, 2>{kUseNonce, ++nonces});
  session.token = 0;
  session.token_time = 0;
  session.hello_wait = config.initial_rto;
  session.next_hello = now();
  session.hello_due = true;
  arm(session, Nanos{session.opened.value + config.connect_timeout.value});
  make_ready(session);
}

void EndpointState::write_hello(Session& session, Outgoing& out) {
  session.hello_due = false;
  MessageHello hello;
  hello.session = wire_id(session);
  hello.nonce = session.nonce;
  hello.token = session.token;
  hello.token_time = session.token_time;
  hello.terms = own_terms(session);
  emit(hello, out.head);
  out.head_length = MessageHello::kLength;
  session.next_hello = Nanos{now().value + session.hello_wait.value};
  session.hello_wait = std::min(Nanos{session.hello_wait.value * 2}, config.max_rto);
  arm(session, session.next_hello);
}

std::uint64_t EndpointState::token_for(const PeerAddress& peer, const MessageHello& hello) const {
  std::array<std::uint64_t, 7> words{kUseToken};
  std::memcpy(words.data() + 1, peer.ip.data(), peer.ip.size());
  words[3] = std::uint64_t{peer.port} << 32 | hello.session;
  words[4] = hello.nonce;
  words[5] = std::uint64_t{hello.token_time} << 32 | hello.terms.room;
  words[6] = std::uint64_t{hello.terms.datagram_bytes} << 48 | std::uint64_t{hello.terms.max_ack_delay} << 8 |
             (hello.terms.go_back_n ? 1U : 0U) | (hello.terms.ordered ? 2U : 0U) |
             (hello.terms.is_protected ? 4U : 0U) | (hello.terms.grants ? 8U : 0U) | (hello.terms.bundles ? 16U : 0U);
  const std::uint64_t token = siphash(key, words);
  return token == 0 ? 1 : token;
}

void EndpointState::receive_hello(const Datagram& datagram) {
  MessageHello hello;
  if (!read(datagram, hello)) return drop(MessageDrop::malformed);
  const auto reject = [&](MessageReject::Reason reason) {
    reply(datagram.from, MessageReject{hello.session, hello.nonce, reason});
  };
  if (!config.accept) {
    drop(MessageDrop::not_accepting);
    return reject(MessageReject::Reason::not_accepting);
  }
  const std::uint32_t clock_now = token_clock(now());
  const bool proven =
      hello.token != 0 && clock_now - hello.token_time <= kTokenLife && hello.token == token_for(datagram.from, hello);
  if (!proven) {
    if (hello.token != 0) {
      drop(MessageDrop::bad_handshake);
    } else {
      counters.packets_in.add(1);
    }
    hello.token_time = clock_now;
    return reply(datagram.from,
                 MessageChallenge{hello.session, hello.nonce, token_for(datagram.from, hello), clock_now});
  }
  if (hello.terms.is_protected != (config.protection != nullptr) || hello.terms.datagram_bytes < 256) {
    drop(MessageDrop::not_accepting);
    return reject(MessageReject::Reason::terms);
  }
  const std::uint32_t known = peers.find(datagram.from, hello.session);
  if (known != kNone) {
    Session& session = sessions[known];
    if (!session.opened_here && session.nonce == hello.nonce) {
      counters.packets_in.add(1);
      session.accept_due = true;
      return make_ready(session);
    }
    lose(session, LossReason::restarted);
  }
  Session* session = new_session(datagram.from);
  if (session == nullptr) {
    drop(MessageDrop::no_session);
    return reject(MessageReject::Reason::full);
  }
  session->ordered = hello.terms.ordered;
  session->go_back_n = hello.terms.go_back_n;
  begin(*session);
  session->remote = hello.session;
  session->nonce = hello.nonce;
  session->server_nonce = siphash(key, std::array<std::uint64_t, 2>{kUseNonce, ++nonces});
  session->cookie = siphash(key, std::array<std::uint64_t, 4>{kUseCookie, hello.nonce, ++nonces, wire_id(*session)});
  establish(*session, hello.terms);
  session->accept_due = true;
  counters.packets_in.add(1);
  arm(*session, Nanos{now().value + config.connect_timeout.value});
  make_ready(*session);
}

void EndpointState::write_accept(Session& session, Outgoing& out) {
  session.accept_due = false;
  MessageAccept accept;
  accept.session = session.remote;
  accept.nonce = session.nonce;
  accept.cookie = session.cookie;
  accept.server_nonce = session.server_nonce;
  accept.server_session = wire_id(session);
  accept.terms = own_terms(session);
  emit(accept, out.head);
  out.head_length = MessageAccept::kLength;
}

namespace {

/// The session that a handshake packet answers, or nullptr.
Session* answered(EndpointState& state, const Datagram& datagram, std::uint32_t session_id, std::uint64_t nonce) {
  const std::uint32_t index = session_id & 0xffffffU;
  if (index >= state.sessions.size()) return nullptr;
  Session& session = state.sessions[index];
  const bool waits = session.phase == SessionPhase::opening && session.opened_here && session.nonce == nonce &&
                     session.peer == datagram.from && state.wire_id(session) == session_id;
  return waits ? &session : nullptr;
}

}  // namespace

void EndpointState::receive_challenge(const Datagram& datagram) {
  MessageChallenge challenge;
  if (!read(datagram, challenge)) return drop(MessageDrop::malformed);
  Session* session = answered(*this, datagram, challenge.session, challenge.nonce);
  if (session == nullptr) return drop(MessageDrop::bad_handshake);
  counters.packets_in.add(1);
  if (session->token == challenge.token) return;  // a repeated one: the next hello is under way
  session->token = challenge.token;
  session->token_time = challenge.token_time;
  session->hello_wait = config.initial_rto;
  session->hello_due = true;
  make_ready(*session);
}

void EndpointState::receive_accept(const Datagram& datagram) {
  MessageAccept accept;
  if (!read(datagram, accept)) return drop(MessageDrop::malformed);
  Session* session = answered(*this, datagram, accept.session, accept.nonce);
  if (session == nullptr || accept.terms.datagram_bytes < 256) return drop(MessageDrop::bad_handshake);
  counters.packets_in.add(1);
  const std::uint32_t known = peers.find(datagram.from, accept.server_session);
  if (known != kNone) lose(sessions[known], LossReason::restarted);
  session->remote = accept.server_session;
  session->cookie = accept.cookie;
  session->server_nonce = accept.server_nonce;
  session->confirmed = true;
  establish(*session, accept.terms);
  counters.sessions_opened.add(1);
  session->opened_event = true;
  queue_event(EventLink{index_of(*session), EventLink::Of::opened});
  session->ping = session->own.first == kNone;  // the peer waits to see the cookie
  make_ready(*session);
}

void EndpointState::establish(Session& session, const MessageTerms& peer) {
  session.phase = SessionPhase::established;
  session.quiet_from = now();
  watch_idle(session);
  session.hello_due = false;
  session.datagram_bytes = std::min<std::uint32_t>(config.datagram_bytes, peer.datagram_bytes);
  const std::uint32_t tag = config.protection != nullptr ? kMessageTagLength : 0;
  // Two words of acknowledgement always find room.
  session.fragment_bytes =
      session.datagram_bytes - MessageHeader::kLength - MessageAck::kLength - 2 * 8 - MessageFragment::kLength - tag;
  session.peer_grants = peer.grants;
  session.bundles = peer.bundles && !session.go_back_n;  // as eRPC: one message a packet
  session.room = session.room_told = peer.room;
  session.room_told = config.receive_window;
  session.max_ack_delay = Nanos{std::min<std::int64_t>(peer.max_ack_delay, 1'000'000'000)};
  CcConfig cc = config.cc;
  cc.mtu = session.datagram_bytes;
  session.congestion = CongestionControl(cc);
  session.allowed = session.congestion.output();
  peers.insert(session.peer, session.remote, index_of(session));
  // What was submitted during the handshake was not yet cut.
  for (const SlotUse& slot : session.outgoing) {
    if (slot.message == kNone) continue;
    Message& message = messages[slot.message];
    if (message.state != MessageState::sending || message.out_length == 0) continue;
    message.fragments = (message.out_length - 1) / session.fragment_bytes + 1;
    message.granted = first_granted(session);
    if (message.fragments > 1) message.begin_window();
  }
  if (config.protection == nullptr) return;
  SessionNonces nonces_of;
  nonces_of.client = session.nonce;
  nonces_of.server = session.server_nonce;
  nonces_of.client_session = session.opened_here ? wire_id(session) : session.remote;
  nonces_of.server_session = session.opened_here ? session.remote : wire_id(session);
  config.protection->start(index_of(session), nonces_of, session.opened_here);
}

void EndpointState::receive_reject(const Datagram& datagram) {
  MessageReject rejected;
  if (!read(datagram, rejected)) return drop(MessageDrop::malformed);
  Session* session = answered(*this, datagram, rejected.session, rejected.nonce);
  if (session == nullptr) return drop(MessageDrop::bad_handshake);
  counters.packets_in.add(1);
  switch (rejected.reason) {
    case MessageReject::Reason::full:
      return lose(*session, LossReason::peer_full);
    case MessageReject::Reason::version:
      return lose(*session, LossReason::version);
    case MessageReject::Reason::not_accepting:
    case MessageReject::Reason::terms:
      return lose(*session, LossReason::not_accepted);
  }
}

void EndpointState::receive_reset(const Datagram& datagram) {
  MessageReset reset;
  if (!read(datagram, reset)) return drop(MessageDrop::malformed);
  const std::uint32_t index = peers.find(datagram.from, reset.session);
  if (index == kNone) return drop(MessageDrop::unknown_session);
  Session& session = sessions[index];
  if (session.cookie != reset.cookie) return drop(MessageDrop::wrong_cookie);
  counters.packets_in.add(1);
  if (config.protection == nullptr) return lose(session, LossReason::restarted);
  // Whoever reads the path could say so: reason to ask the peer, and to wait less long for its answer (timers.cc).
  if (session.denied) return;
  session.denied = session.ping = true;
  make_ready(session);
  arm(session, next_due(session));
}

/// A hello of another version gets to know ours; its fields up to the nonce are where they are in all versions.
void EndpointState::wrong_version(const Datagram& datagram) {
  drop(MessageDrop::version);
  const bool hello =
      datagram.head_length >= MessageHello::kLength && MessagePrefix::type(datagram.head) == MessagePacketType::hello;
  if (!hello) return;
  reply(datagram.from,
        MessageReject{load_be32(datagram.head + 4), load_be64(datagram.head + 8), MessageReject::Reason::version});
}

template void EndpointState::reply(const PeerAddress&, const MessageReset&);

}  // namespace warpline
