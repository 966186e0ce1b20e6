// SPDX-License-Identifier: Apache-2.0
#include "warpline/message/internal/session/path_validation.h"

#include <algorithm>

#include "warpline/message/protection.h"

namespace warpline::message {
namespace {

constexpr Nanos kLongestWait{100'000'000};  ///< from one challenge of a session to the next

}  // namespace

/// Whether the application, who was asked about the session's first address, lets it have this one.
bool PathValidation::is_allowed(const Session& session, const PeerAddress& to) const {
  const EndpointConfig& config = core_.context.config;
  if (session.opened_here || config.authorizer.allows == nullptr || session.peer.same_address(to)) return true;
  const KeyId key = config.protection == nullptr ? 0 : config.protection->key(core_.sessions.index_of(session));
  return config.authorizer.allows(config.authorizer.context, to, key);
}

void PathValidation::challenge(Session& session, const PeerAddress& from) {
  if (session.phase != SessionPhase::established || session.peer == from) return;
  EndpointContext& context = core_.context;
  if (context.now() < session.challenge_from || !has_room(session)) {
    return context.counters.path_challenges_spared.add(1);
  }
  // No more often than a hello would be sent (RFC 9000, section 8.2.1), whatever a clock that was set did to the rtt.
  const EndpointConfig& config = context.config;
  const Nanos wait = session.rtt.known() ? session.rtt.timeout(Nanos{}) : config.initial_rto;
  session.challenge_from = context.in(std::clamp(wait, config.min_rto, std::max(config.min_rto, kLongestWait)));
  if (!is_allowed(session, from)) return context.counters.path_changes_refused.add(1);
  context.counters.path_challenges.add(1);
  const std::uint32_t time = HandshakeTokens::time(context.now());
  send(session, from, {packet::MessagePathCheck::Kind::challenge, time, token(session, from, time)});
}

bool PathValidation::take(Session& session, const packet::MessageHeader& header, const Datagram& datagram) {
  packet::MessagePathCheck check;
  if (packet::parse(datagram.head + packet::MessageHeader::kLength, check) != packet::MessageParse::ok) {
    core_.context.drop(MessageDrop::malformed);
    return false;
  }
  if (check.kind == packet::MessagePathCheck::Kind::challenge) {
    // Who asks is where it was: it is this end that has moved. If there is no room it asks again.
    if (!has_room(session)) return true;
    // Whether only to another port it cannot know; without protection its peer would not ask otherwise.
    if (core_.context.is_protected()) recovery_.begin_elsewhere(session);
    check.kind = packet::MessagePathCheck::Kind::response;
    send(session, session.peer, check);
    return true;
  }
  if (datagram.from == session.peer || header.packet_number < session.moved_from) return true;  // it was asked twice
  if (!HandshakeTokens::lives(check.time, core_.context.now()) ||
      check.token != token(session, datagram.from, check.time)) {
    core_.context.drop(MessageDrop::bad_path_response);
    return false;
  }
  session.moved_from = std::max(header.packet_number + 1, session.received.end());
  move(session, datagram.from);
  return true;
}

/// Until the peer is found again, nothing else makes numbers free.
bool PathValidation::has_room(Session& session) {
  if (core_.strays.full()) return false;
  if (session.sent.may_skip(0)) return true;
  recovery_.raise_floor(session);
  return session.sent.may_skip(0);
}

void PathValidation::send(Session& session, const PeerAddress& to, const packet::MessagePathCheck& check) {
  StrayReply& stray = core_.strays.add(to);
  Outgoing out;
  out.head = stray.bytes.data();
  out.head_capacity = StrayReply::kMaxLength;
  writer_.write_path_check(session, check, out);
  stray.length = out.head_length;
}

void PathValidation::move(Session& session, const PeerAddress& to) {
  const bool other_address = !session.peer.same_address(to);
  if (other_address) {
    core_.paths.leave(session);
    session.rtt = RttEstimator{};
  }
  core_.sessions.move(session, to);
  if (other_address) core_.paths.join(session);
  recovery_.change_path(session, other_address);
  core_.context.counters.path_changes.add(1);
}

}  // namespace warpline::message
