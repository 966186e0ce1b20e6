// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "warpline/packet/byte_order.h"
#include "warpline/packet/headers/ethernet.h"
#include "warpline/stream/internal/receiver_core.h"
#include "warpline/stream/internal/sequence.h"

namespace warpline::stream {
namespace {

MacAddress sender_of(FrameRef frame) {
  return packet::load_address<MacAddress>(packet::EthernetView(frame.data()).source());
}

}  // namespace

bool ReceiverCore::listens_on(std::uint16_t port) const {
  return std::ranges::find(settings_.ports, port) != settings_.ports.end();
}

ReceiverCore::Outcome ReceiverCore::take_stranger(const SegmentReading& segment, const SynOptions& offered,
                                                  FrameRef frame, Nanos now) {
  if ((segment.flags & packet::kTcpRst) != 0) return Disposition::no_connection;
  if (!listens_on(segment.key.local_port)) {
    reset_stranger(segment, frame, now);
    return Disposition::no_listener;
  }
  const bool syn = (segment.flags & packet::kTcpSyn) != 0;
  const bool ack = (segment.flags & packet::kTcpAck) != 0;
  if (syn && !ack) return take_first_syn(segment, offered, frame, now);
  if (!ack) return Disposition::no_acknowledgement;
  // Without a place the handshake is not claimed: the receiver that began it may still finish it.
  const bool may_claim = !syn && table_.size() != table_.capacity();
  if (const auto agreed = may_claim ? claim_handshake(segment) : std::nullopt) {
    return take_over(segment, *agreed, frame, now);
  }
  if (!syn && now <= cookies_until_) return take_cookie(segment, frame, now);
  if (!is_known_elsewhere(segment.key, false)) reset_stranger(segment, frame, now);
  return Disposition::no_connection;
}

Disposition ReceiverCore::take_first_syn(const SegmentReading& segment, const SynOptions& offered, FrameRef frame,
                                         Nanos now) {
  constexpr std::int64_t kCookieLife = 128'000'000'000;
  if (table_.size() == table_.capacity()) return Disposition::no_place;
  if (half_open_ < settings_.half_open) {
    Connection* const connection = table_.add(segment.key);
    connection->phase = Phase::syn_received;
    ++half_open_;
    set_up(*connection, segment.sequence, cookies_.next(segment.key, now), offered, frame);
    connection->receive.timestamp = segment.timestamp;
    connection->offered =
        settings_.known != nullptr &&
        settings_.known->offer(known_hash(segment.key), segment.sequence, connection->peer.sequence - 1, offered);
    connection->retransmit_at = Nanos{now.value + settings_.first_retransmission.value};
    arm(*connection, connection->retransmit_at);
    want_reply(*connection);
    return Disposition::handled;
  }
  Reply answer = reply_to(segment.key, sender_of(frame), own_.mac);
  answer.tcp.sequence = cookies_.make(segment.key, segment.sequence, offered, now);
  answer.tcp.acknowledgement = segment.sequence + 1;
  answer.tcp.window = static_cast<std::uint16_t>(std::min<std::uint64_t>(settings_.ring_bytes, 0xffff));
  write_syn(offered, segment.timestamp, now, answer.tcp);
  if (!strangers_.push(answer)) counters_.refused_replies.add(1);
  cookies_until_ = Nanos{now.value + kCookieLife};
  counters_.cookies.add(1);
  return Disposition::handled;
}

ReceiverCore::Outcome ReceiverCore::take_cookie(const SegmentReading& segment, FrameRef frame, Nanos now) {
  const std::uint32_t own_initial = segment.acknowledgement - 1;
  const std::uint32_t peer_initial = segment.sequence - 1;
  const auto agreed = cookies_.check(segment.key, peer_initial, own_initial, now);
  // No reset: behind a first segment that was lost this may be the second of a handshake that is right.
  if (!agreed) return Disposition::wrong_cookie;
  if (table_.size() == table_.capacity()) return Disposition::no_place;
  // All receivers behind the address accept the cookie, but only one of them opens the connection. Segments that the
  // device delivers to another receiver are lost there.
  const bool is_first =
      settings_.known == nullptr || settings_.known->open_by_cookie(known_hash(segment.key), peer_initial, own_initial);
  if (!is_first) return Disposition::no_connection;
  return take_over(segment, *agreed, frame, now);
}

/// Returns what was agreed in the handshake that the segment finishes, if another receiver began it and nobody has
/// finished it: then this one has to.
std::optional<SynOptions> ReceiverCore::claim_handshake(const SegmentReading& segment) {
  if (settings_.known == nullptr) return std::nullopt;
  return settings_.known->claim(known_hash(segment.key), segment.sequence - 1, segment.acknowledgement - 1);
}

/// Has a connection of which nothing but the end of its handshake came here.
ReceiverCore::Outcome ReceiverCore::take_over(const SegmentReading& segment, const SynOptions& agreed, FrameRef frame,
                                              Nanos now) {
  if (table_.size() == table_.capacity()) return Disposition::no_place;
  Connection* const connection = table_.add(segment.key);
  set_up(*connection, segment.sequence - 1, segment.acknowledgement - 1, agreed, frame);
  connection->receive.timestamp = segment.timestamp;
  establish(*connection, now);
  return deliver(*connection, segment, frame, now);
}

Disposition ReceiverCore::take_syn_again(Connection& connection, const SegmentReading& segment, FrameRef frame,
                                         Nanos now) {
  if (connection.phase != Phase::syn_received) {
    challenge(connection, now);  // RFC 5961, section 4
    return Disposition::blind_reset;
  }
  if (segment.sequence + 1 == connection.receive.initial && (segment.flags & packet::kTcpAck) == 0) {
    connection.peer.mac = sender_of(frame);  // by another router, or the first one was damaged where no checksum is
    want_reply(connection);
    return Disposition::handled;
  }
  // The number is checked first (RFC 9293, 3.10.7.4): anybody can forge a SYN with another one. A peer that has
  // forgotten the connection resets it when it receives the challenge.
  const std::int64_t offset = offset_near(0, segment.sequence, connection.receive.initial);
  if (offset < 0 || offset >= static_cast<std::int64_t>(connection.peer.announced)) {
    challenge(connection, now);
    return Disposition::blind_reset;
  }
  remove(connection);  // the receiver listens again (fourth); the peer repeats its SYN
  return Disposition::handled;
}

ReceiverCore::Outcome ReceiverCore::finish_handshake(Connection& connection, const SegmentReading& segment,
                                                     FrameRef frame, Nanos now) {
  const std::int64_t offset = offset_near(0, segment.sequence, connection.receive.initial);
  if (offset < 0 || offset >= static_cast<std::int64_t>(connection.receive.window_end)) {
    challenge(connection, now);
    return Disposition::outside_window;
  }
  if ((segment.flags & packet::kTcpAck) == 0) return Disposition::no_acknowledgement;
  if (segment.acknowledgement != connection.peer.sequence) {
    if (const auto agreed = claim_handshake(segment)) {  // another receiver answered the SYN, too
      remove(connection);
      return take_over(segment, *agreed, frame, now);
    }
    if (now > cookies_until_) {
      if (!is_known_elsewhere(segment.key, true)) reset_stranger(segment, frame, now);
      return Disposition::wrong_acknowledgement;
    }
    // A SYN that came twice was answered by a cookie first, then by what is remembered here.
    if (!cookies_.check(segment.key, segment.sequence - 1, segment.acknowledgement - 1, now)) {
      return Disposition::wrong_cookie;
    }
    remove(connection);
    return take_cookie(segment, frame, now);
  }
  if (connection.offered && !claim_own(connection)) {
    remove(connection);
    return Disposition::no_connection;  // here: another receiver has it
  }
  --half_open_;
  establish(connection, now);
  return deliver(connection, segment, frame, now);
}

void ReceiverCore::set_up(Connection& connection, std::uint32_t peer_initial, std::uint32_t own_initial,
                          const SynOptions& offered, FrameRef frame) {
  connection.peer = {.mac = sender_of(frame),
                     .selective = offered.selective,
                     .scale = offered.window_scale ? scale_ : std::uint8_t{0},
                     .sequence = own_initial + 1,
                     .announced = std::min<std::uint64_t>(settings_.ring_bytes, 0xffff)};
  connection.receive.initial = peer_initial + 1;
  connection.receive.timestamps = offered.timestamps;
  connection.receive.window_end = settings_.ring_bytes;
  tell_others(connection, true);
}

/// Ends that others may finish the handshake. False if one has.
bool ReceiverCore::claim_own(Connection& connection) {
  connection.offered = false;
  return settings_.known
      ->claim(known_hash(connection.key), connection.receive.initial - 1, connection.peer.sequence - 1)
      .has_value();
}

/// Says to the receivers behind the same address that a connection of these ends begins, or is no more. From its SYN
/// on: the segment behind it may come to another one.
void ReceiverCore::tell_others(const Connection& connection, bool begins) {
  if (settings_.known == nullptr) return;
  const std::uint64_t hash = known_hash(connection.key);
  if (begins) {
    settings_.known->add(hash);
  } else {
    settings_.known->remove(hash);
    settings_.known->end_cookie(hash, connection.receive.initial - 1, connection.peer.sequence - 1);
  }
}

void ReceiverCore::establish(Connection& connection, Nanos now) {
  connection.phase = Phase::established;
  connection.attempts = 0;
  connection.retransmit_at = kNever;
  connection.last_heard = now;
  connection.receive.oldest_acknowledgement = connection.peer.sequence;
  connection.receive.newest_acknowledgement = connection.peer.sequence;
  counters_.opened.add(1);
  connection.on_board = settings_.consumers;
  change_lane(connection);
  arm(connection, next_due(connection));
  want_event(connection);
}

}  // namespace warpline::stream
