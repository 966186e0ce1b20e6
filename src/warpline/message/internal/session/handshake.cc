// SPDX-License-Identifier: Apache-2.0
#include "warpline/message/internal/session/handshake.h"

#include <algorithm>
#include <span>

#include "warpline/message/protection.h"

namespace warpline::message {
namespace {

/// A half-open session keeps its place for one part in so many of connect_timeout while others want it.
constexpr std::int64_t kPatiencePart = 8;

/// The whole datagram in one piece: handshake packets are shorter than any head.
template <typename Packet>
bool read(const Datagram& datagram, Packet& packet) {
  return datagram.rest_length == 0 &&
         packet::parse(datagram.head, datagram.head_length, packet) == packet::MessageParse::ok;
}

/// The transcript covers both packets of a protected handshake.
HandshakeTranscript transcript_of(packet::MessageHello hello, const packet::MessageAccept& accept) {
  hello.token = 0;
  hello.token_time = 0;
  std::array<std::uint8_t, packet::MessageHello::kProtectedLength> first;
  std::array<std::uint8_t, packet::MessageAccept::kProtectedLength> second;
  packet::emit(hello, first.data());
  packet::emit(accept, second.data());
  HandshakeTranscript transcript;
  std::copy_n(first.begin(), packet::MessageHello::kProven, transcript.begin());
  std::copy_n(second.begin(), packet::MessageAccept::kProven, transcript.begin() + packet::MessageHello::kProven);
  return transcript;
}

/// In a time that does not depend on where they differ.
bool equal(const packet::MessageProof& one, const packet::MessageProof& other) {
  unsigned difference = 0;
  for (std::size_t i = 0; i < one.size(); ++i) difference |= static_cast<unsigned>(one[i] ^ other[i]);
  return difference == 0;
}

}  // namespace

bool Handshake::may_answer(const PeerAddress& stranger) {
  return !core_.strays.full() && core_.strangers.admits(stranger, core_.context.now());
}

/// After may_answer().
template <typename Packet>
void Handshake::reply(const PeerAddress& to, const Packet& packet) {
  static_assert(Packet::kLength <= StrayReply::kMaxLength);
  StrayReply& stray = core_.strays.add(to);
  stray.length = Packet::kLength;
  packet::emit(packet, stray.bytes.data());
}

/// A session with this peer, if need be in the place of the one that has waited longest to be confirmed: who lives has
/// confirmed it by then.
Session* Handshake::take_place(const PeerAddress& peer) {
  if (Session* session = core_.sessions.take(peer)) return session;
  Session* const oldest = core_.sessions.oldest_half_open();
  const std::int64_t patience = core_.context.config.connect_timeout.value / kPatiencePart;
  if (oldest == nullptr || core_.context.attended().value - oldest->opened.value < patience) return nullptr;
  life_.lose(*oldest, LossReason::no_answer);
  return core_.sessions.take(peer);
}

Opened Handshake::connect(const PeerAddress& peer, const SessionOptions& options) {
  Session* session = take_place(peer);
  if (session == nullptr) return {CallStatus::no_memory, {}};
  session->opened_here = true;
  session->context = options.context;
  session->ordered = options.ordered;
  session->go_back_n = core_.context.config.reliability == Reliability::go_back_n;
  life_.begin(*session);
  begin_hello(*session);
  return {CallStatus::ok, core_.sessions.id_of(*session)};
}

CallStatus Handshake::reconnect(SessionId id) {
  Session* session = core_.sessions.find(id);
  if (session == nullptr) return CallStatus::unknown_session;
  const bool over = session->phase == SessionPhase::lost && !session->lost_event && !session->lost_pending;
  if (!over || !session->opened_here) return CallStatus::not_allowed;
  life_.begin(*session);
  begin_hello(*session);
  return CallStatus::ok;
}

packet::MessageTerms Handshake::own_terms(const Session& session) const {
  packet::MessageTerms terms;
  terms.datagram_bytes = static_cast<std::uint16_t>(core_.context.config.datagram_bytes);
  terms.go_back_n = session.go_back_n;
  terms.ordered = session.ordered;
  terms.is_protected = is_protected();
  terms.grants = core_.context.config.grants != 0;
  terms.bundles = core_.context.config.bundles;
  terms.room = core_.context.config.receive_window;
  terms.max_ack_delay =
      static_cast<std::uint32_t>(std::min<std::int64_t>(core_.context.config.max_ack_delay.value, 0xffffffff));
  return terms;
}

void Handshake::begin_hello(Session& session) {
  session.nonce = tokens_.nonce();
  session.token = 0;
  session.token_time = 0;
  session.hellos = 0;
  session.next_hello = core_.context.now();
  session.hello_due = true;
  // Without a key the peer refuses it.
  if (is_protected()) {
    static_cast<void>(protection().offer(core_.sessions.index_of(session)));
  }
  core_.timers.arm(session,
                   core_.context.when_attended({session.opened.value + core_.context.config.connect_timeout.value}));
  core_.ready.add(session);
}

packet::MessageHello Handshake::hello_of(const Session& session) const {
  return {.session = core_.sessions.wire_id(session),
          .nonce = session.nonce,
          .token = session.token,
          .token_time = session.token_time,
          .terms = own_terms(session),
          .key = is_protected() ? protection().key(core_.sessions.index_of(session)) : 0,
          .share = share_of(session)};
}

packet::MessageKeyShare Handshake::share_of(const Session& session) const {
  return is_protected() ? protection().share(core_.sessions.index_of(session)) : packet::MessageKeyShare{};
}

packet::MessageAccept Handshake::accept_of(const Session& session) const {
  return {.session = session.remote,
          .nonce = session.nonce,
          .cookie = session.cookie,
          .server_nonce = session.server_nonce,
          .server_session = core_.sessions.wire_id(session),
          .terms = own_terms(session),
          .share = share_of(session),
          .proof = session.proof};
}

/// Whether it comes from one who has a key that is here; counts it if not. Without protection nothing is to be proven.
bool Handshake::authentic(const Datagram& datagram, const packet::MessageHello& hello) {
  if (!is_protected()) return true;
  const std::span<const std::uint8_t> proven(datagram.head, packet::MessageHello::kProven);
  packet::MessageProof expected;
  if (!protection().prove_hello(hello.key, proven, expected)) {
    core_.context.drop(MessageDrop::unknown_key);
    return false;
  }
  if (equal(expected, hello.proof)) return true;
  core_.context.drop(MessageDrop::not_authentic);
  return false;
}

void Handshake::write_hello(Session& session, Outgoing& out) {
  session.hello_due = false;
  packet::MessageHello hello = hello_of(session);
  packet::emit(hello, out.head);
  out.head_length = hello.length();
  if (is_protected() && hello.token != 0 &&
      protection().prove(core_.sessions.index_of(session), {out.head, packet::MessageHello::kProven}, hello.proof)) {
    packet::emit(hello, out.head);
  }
  const EndpointConfig& config = core_.context.config;
  const Nanos longest = longest_backoff(config, config.initial_rto, config.connect_timeout);
  session.next_hello = core_.context.in(doubled(config.initial_rto, session.hellos, longest));
  if (session.hellos != 0xff) ++session.hellos;
  core_.timers.arm(session, session.next_hello);
}

void Handshake::receive(const Datagram& datagram) {
  switch (packet::MessagePrefix::type(datagram.head)) {
    case packet::MessagePacketType::hello:
      return receive_hello(datagram);
    case packet::MessagePacketType::challenge:
      return receive_challenge(datagram);
    case packet::MessagePacketType::accept:
      return receive_accept(datagram);
    case packet::MessagePacketType::reject:
      return receive_reject(datagram);
    case packet::MessagePacketType::reset:
      return receive_reset(datagram);
    case packet::MessagePacketType::session:
      return;
  }
}

void Handshake::receive_hello(const Datagram& datagram) {
  // A flood under any address costs a token's hash at most, and takes nothing from peers that have proven theirs.
  packet::MessageHello hello;
  const bool good = read(datagram, hello) && hello.nonce != 0;
  const bool proven = good && tokens_.proves(datagram.from, hello, core_.context.now());
  const bool admitted = proven ? core_.proven.admits(datagram.from, core_.context.now()) : may_answer(datagram.from);
  if (!admitted) return core_.context.drop(MessageDrop::no_reply_room);
  if (!good) return core_.context.drop(MessageDrop::malformed);
  const auto reject = [&](packet::MessageReject::Reason reason) {
    if (core_.strays.full()) return;  // the hello has been counted
    reply(datagram.from, packet::MessageReject{hello.session, hello.nonce, reason});
  };
  if (!core_.context.config.accept) {
    core_.context.drop(MessageDrop::not_accepting);
    return reject(packet::MessageReject::Reason::not_accepting);
  }
  if (!proven) {
    if (hello.token != 0) {
      core_.context.drop(MessageDrop::bad_handshake);
    } else {
      core_.context.counters.packets_in.add(1);
    }
    hello.token_time = HandshakeTokens::time(core_.context.now());
    return reply(datagram.from, packet::MessageChallenge{hello.session, hello.nonce,
                                                         tokens_.token(datagram.from, hello), hello.token_time});
  }
  if (hello.terms.is_protected != is_protected() || hello.terms.datagram_bytes < 256) {
    core_.context.drop(MessageDrop::not_accepting);
    return reject(packet::MessageReject::Reason::terms);
  }
  // A live session of the same name stays until the peer confirms the new one: this hello may be old.
  Session* const live = core_.sessions.find(datagram.from, hello.session);
  Session* const again = live != nullptr && !live->opened_here && live->nonce == hello.nonce
                             ? live
                             : core_.sessions.find_half_open(datagram.from, hello.session, hello.nonce);
  if (again != nullptr) {
    core_.context.counters.packets_in.add(1);
    again->accept_due = true;
    return core_.ready.add(*again);
  }
  if (core_.context.draining) {
    core_.context.drop(MessageDrop::not_accepting);
    return reject(packet::MessageReject::Reason::not_accepting);
  }
  const auto over_quota = [&](Counter& quota) {
    quota.add(1);
    core_.context.drop(MessageDrop::over_quota);
  };
  EndpointCounters& counters = core_.context.counters;
  switch (core_.groups.admits(datagram.from)) {
    case PeerGroups::Admission::yes:
      break;
    // It says hello again, when some of them are confirmed.
    case PeerGroups::Admission::half_open_per_address:
      return over_quota(counters.over_half_open_per_address);
    case PeerGroups::Admission::half_open_per_prefix:
      return over_quota(counters.over_half_open_per_prefix);
    case PeerGroups::Admission::per_address:
      over_quota(counters.over_per_address);
      return reject(packet::MessageReject::Reason::full);
    case PeerGroups::Admission::per_prefix:
      over_quota(counters.over_per_prefix);
      return reject(packet::MessageReject::Reason::full);
  }
  if (!authentic(datagram, hello)) return reject(packet::MessageReject::Reason::terms);
  const Authorizer& authorizer = core_.context.config.authorizer;
  if (authorizer.allows != nullptr && !authorizer.allows(authorizer.context, datagram.from, hello.key)) {
    core_.context.drop(MessageDrop::not_authorized);
    return reject(packet::MessageReject::Reason::not_accepting);
  }
  Session* session = take_place(datagram.from);
  if (session == nullptr) {
    core_.context.drop(MessageDrop::no_session);
    // If the peer has forgotten the one that it has, the place is free when it says hello again.
    if (live != nullptr) return doubt(*live, LossReason::restarted);
    return reject(packet::MessageReject::Reason::full);
  }
  session->ordered = hello.terms.ordered;
  session->go_back_n = hello.terms.go_back_n;
  life_.begin(*session);
  session->remote = hello.session;
  session->nonce = hello.nonce;
  session->server_nonce = tokens_.nonce();
  session->cookie = tokens_.cookie(hello.nonce, core_.sessions.wire_id(*session));
  if (is_protected() && !protect(*session, hello)) {
    core_.context.drop(MessageDrop::not_authentic);
    life_.lose(*session, LossReason::not_accepted);
    return reject(packet::MessageReject::Reason::terms);
  }
  establish(*session, hello.terms);
  session->accept_due = true;
  core_.context.counters.packets_in.add(1);
  core_.timers.arm(*session, core_.context.in(core_.context.config.connect_timeout));
  core_.ready.add(*session);
}

/// Gives a session that a peer opens its keys. False, if this hello gives none.
bool Handshake::protect(Session& session, const packet::MessageHello& hello) {
  const std::uint32_t slot = core_.sessions.index_of(session);
  if (!protection().answer(slot, hello.key)) return false;
  const HandshakeTranscript transcript = transcript_of(hello, accept_of(session));
  return protection().prove(slot, transcript, session.proof) &&
         protection().start(slot, hello.share, transcript, false);
}

void Handshake::write_accept(Session& session, Outgoing& out) {
  session.accept_due = false;
  const packet::MessageAccept accept = accept_of(session);
  packet::emit(accept, out.head);
  out.head_length = accept.length();
}

/// The session that a handshake packet answers, or nullptr.
Session* Handshake::answered(const Datagram& datagram, std::uint32_t session_id, std::uint64_t nonce) {
  Session* session = core_.sessions.named(session_id);
  if (session == nullptr) return nullptr;
  const bool waits = session->phase == SessionPhase::opening && session->opened_here && session->nonce == nonce &&
                     session->peer == datagram.from;
  return waits ? session : nullptr;
}

void Handshake::receive_challenge(const Datagram& datagram) {
  packet::MessageChallenge challenge;
  if (!read(datagram, challenge)) return core_.context.drop(MessageDrop::malformed);
  Session* session = answered(datagram, challenge.session, challenge.nonce);
  if (session == nullptr) return core_.context.drop(MessageDrop::bad_handshake);
  core_.context.counters.packets_in.add(1);
  if (session->token == challenge.token) return;  // a repeated one: the next hello is under way
  session->token = challenge.token;
  session->token_time = challenge.token_time;
  session->hellos = 0;
  session->hello_due = true;
  core_.ready.add(*session);
}

/// Gives a session that was opened here its keys. False, with nothing changed, unless the accept is of one who has the
/// key.
bool Handshake::protect(Session& session, const packet::MessageAccept& accept) {
  if (!accept.terms.is_protected) return false;
  const std::uint32_t slot = core_.sessions.index_of(session);
  const HandshakeTranscript transcript = transcript_of(hello_of(session), accept);
  packet::MessageProof expected;
  return protection().prove(slot, transcript, expected) && equal(expected, accept.proof) &&
         protection().start(slot, accept.share, transcript, true);
}

void Handshake::receive_accept(const Datagram& datagram) {
  packet::MessageAccept accept;
  if (!read(datagram, accept)) return core_.context.drop(MessageDrop::malformed);
  Session* session = answered(datagram, accept.session, accept.nonce);
  if (session == nullptr || accept.terms.datagram_bytes < 256) return core_.context.drop(MessageDrop::bad_handshake);
  if (is_protected() && !protect(*session, accept)) return core_.context.drop(MessageDrop::not_authentic);
  core_.context.counters.packets_in.add(1);
  if (Session* known = core_.sessions.find(datagram.from, accept.server_session))
    life_.lose(*known, LossReason::restarted);
  session->remote = accept.server_session;
  session->cookie = accept.cookie;
  session->confirmed = true;
  establish(*session, accept.terms);
  core_.context.counters.sessions_opened.add(1);
  core_.events.add_opened(*session);
  session->ping = !any(session->own, session->high_own);  // the peer waits to see the cookie
  if (core_.context.draining) life_.tell_going(*session);
  static_cast<void>(core_.paths.seek(*session));
  core_.ready.add(*session);
}

void Handshake::establish(Session& session, const packet::MessageTerms& peer) {
  session.phase = SessionPhase::established;
  session.quiet_from = core_.context.attended();
  core_.timers.watch_idle(session, core_.context.in(core_.context.config.keepalive));
  core_.timers.arm_next(session);
  session.hello_due = false;
  session.most_bytes = std::min(session.most_bytes, peer.datagram_bytes);
  core_.paths.join(session);
  session.peer_grants = peer.grants;
  session.bundles = peer.bundles && !session.go_back_n;  // as eRPC: one message a packet
  session.room = session.room_told = peer.room;
  session.room_told = core_.context.config.receive_window;
  session.max_ack_delay = Nanos{std::min<std::int64_t>(peer.max_ack_delay, 1'000'000'000)};
  begin_congestion_control(session, core_.context.config.cc);
  core_.sessions.show(session);
  transfers_.cut_again(session);
}

void Handshake::receive_reject(const Datagram& datagram) {
  packet::MessageReject reject;
  if (!read(datagram, reject)) return core_.context.drop(MessageDrop::malformed);
  Session* session = answered(datagram, reject.session, reject.nonce);
  if (session == nullptr) return core_.context.drop(MessageDrop::bad_handshake);
  core_.context.counters.packets_in.add(1);
  switch (reject.reason) {
    case packet::MessageReject::Reason::full:
      return life_.lose(*session, LossReason::peer_full);
    case packet::MessageReject::Reason::version:
      return life_.lose(*session, LossReason::wrong_version);
    case packet::MessageReject::Reason::not_accepting:
    case packet::MessageReject::Reason::terms:
      return life_.lose(*session, LossReason::not_accepted);
  }
}

void Handshake::receive_reset(const Datagram& datagram) {
  packet::MessageReset reset;
  if (!read(datagram, reset)) return core_.context.drop(MessageDrop::malformed);
  Session* const known = core_.sessions.find(datagram.from, reset.session);
  if (known == nullptr) return core_.context.drop(MessageDrop::unknown_session);
  Session& session = *known;
  if (session.cookie != reset.cookie) return core_.context.drop(MessageDrop::wrong_cookie);
  core_.context.counters.packets_in.add(1);
  if (!is_protected()) return life_.lose(session, LossReason::restarted);
  doubt(session, LossReason::restarted);  // whoever reads the path could say so
}

/// Who could not read the packet does not know the cookie in it; who could is no judge of whether the peer lives, and
/// its packet was on the way when the newest that it has acknowledged had arrived.
void Handshake::take_unreachable(const Unreachable& said) {
  packet::MessageHeader header;
  const auto length = static_cast<std::uint32_t>(said.payload.size());
  const bool read = packet::parse_repeated(said.payload.data(), length, header) == packet::MessageParse::ok;
  Session* const session = read ? core_.sessions.find(said.to, header.session) : nullptr;
  const bool news = session != nullptr && session->cookie == header.cookie && may_doubt(*session) &&
                    header.packet_number >= session->newest_acked && header.packet_number < session->sent.next();
  if (!news) return core_.context.counters.unreachable_ignored.add(1);
  core_.context.counters.peers_doubted.add(1);
  doubt(*session, LossReason::unreachable);
}

/// Pings use the session's window, and an answer may be followed by the next lie. Without a limit, pings would leave no
/// room for messages where somebody says of each packet that the peer is gone. A kernel says so once a second.
bool Handshake::may_doubt(const Session& session) const {
  const std::int64_t since = core_.context.attended().value - session.doubted_at.value;
  return session.doubt == LossReason::none && since >= core_.timers.doubt_patience();
}

/// Asks the peer whether it has the session, and waits less long for its answer (Timers::silent_at): for some probes
/// from now on, whatever was sent in vain before.
void Handshake::doubt(Session& session, LossReason why) {
  if (!may_doubt(session)) return;
  session.doubt = why;
  session.doubted_at = core_.context.attended();
  session.unanswered = 0;
  session.ping = true;
  core_.ready.add(session);
  core_.timers.arm_next(session);
}

void Handshake::receive_wrong_version(const Datagram& datagram) {
  const packet::MessagePacketType type = packet::MessagePrefix::type(datagram.head);
  packet::MessageReject reject;
  if (type == packet::MessagePacketType::reject && read(datagram, reject) &&
      reject.reason == packet::MessageReject::Reason::version) {
    return receive_reject(datagram);
  }
  core_.context.drop(MessageDrop::wrong_version);
  if (type != packet::MessagePacketType::hello || datagram.head_length < packet::MessageHello::kLength) return;
  if (!may_answer(datagram.from)) return;
  reply(datagram.from,
        packet::MessageReject{packet::load_be32(datagram.head + 4), packet::load_be64(datagram.head + 8),
                              packet::MessageReject::Reason::version, packet::MessagePrefix::version(datagram.head)});
}

void Handshake::reset(const PeerAddress& to, const packet::MessageHeader& header) {
  if (may_answer(to)) reply(to, packet::MessageReset{header.session, header.cookie});
}

void Handshake::confirm(Session& session) {
  core_.groups.confirm(session);
  core_.sessions.hide(session);
  if (Session* before = core_.sessions.find(session.peer, session.remote)) life_.lose(*before, LossReason::restarted);
  session.confirmed = true;
  core_.sessions.show(session);
  if (core_.context.draining) life_.tell_going(session);
  if (core_.paths.seek(session)) core_.ready.add(session);
  core_.context.counters.sessions_accepted.add(1);
  core_.events.add_opened(session);
}

}  // namespace warpline::message
