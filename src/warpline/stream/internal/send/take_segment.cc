// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "warpline/packet/headers/ethernet.h"
#include "warpline/stream/internal/address_words.h"
#include "warpline/stream/internal/send/sender_core.h"

namespace warpline::stream {
namespace {

constexpr std::int32_t kOwnWindow = 0xffff;  ///< what we announce: bytes of peers are taken in order and thrown away

/// RFC 9293, 3.7.1: where the peer names none.
std::uint32_t default_mss(const ConnectionKey& key) { return is_ipv4(key.remote) ? 536 : 1220; }

}  // namespace

void SenderCore::receive(FrameRef frame, bool checksums_are_right, Nanos now) {
  counters_.dispositions[static_cast<std::size_t>(take(frame, checksums_are_right, now))].add(1);
}

Disposition SenderCore::take(FrameRef frame, bool checksums_are_right, Nanos now) {
  if (frame.head_length() < packet::EthernetView::kHeaderLength) return Disposition::malformed;
  const packet::EthernetView ethernet(frame.data());
  const bool from_a_station = (ethernet.source()[0] & 1) == 0;
  if (!from_a_station || std::memcmp(ethernet.destination(), settings_.mac.bytes.data(), 6) != 0) {
    return Disposition::unrelated;
  }
  PeerHeader header;
  const SegmentReading segment = read_segment_with(
      frame, checksums_are_right, [&header](const packet::TcpView& tcp) { header = read_peer_header(tcp); });
  if (segment.disposition != Disposition::stored) return segment.disposition;
  if (!is_another_host(segment.key.remote, segment.key.local)) return Disposition::unrelated;
  const bool for_us = segment.key.local[0] == station_.local[0] && segment.key.local[1] == station_.local[1];
  if (!for_us) return Disposition::unrelated;
  SendConnection* const connection = table_.find(segment.key);
  if (connection == nullptr) {
    if ((segment.flags & packet::kTcpRst) == 0) reset_stranger(segment, frame, now);
    return Disposition::no_connection;
  }
  if (connection->phase == Phase::syn_sent) return take_answer(*connection, segment, header, now);
  if ((segment.flags & packet::kTcpRst) != 0) return take_reset(*connection, segment, now);
  if ((segment.flags & packet::kTcpSyn) != 0) {
    if (connection->phase == Phase::syn_received) return take_crossed_syn(*connection, segment, header, now);
    // The peer has not received the end of the handshake, or sent something blind (RFC 5961, section 4).
    challenge(*connection, now);
    return Disposition::blind_reset;
  }
  return take_in_sequence(*connection, segment, header, now);
}

/// RFC 9293, 3.10.7.3.
Disposition SenderCore::take_answer(SendConnection& connection, const SegmentReading& segment, const PeerHeader& header,
                                    Nanos now) {
  const bool ack = (segment.flags & packet::kTcpAck) != 0;
  if (ack && segment.acknowledgement != connection.initial + 1) {
    if ((segment.flags & packet::kTcpRst) == 0) refuse(connection, segment, now);
    return Disposition::wrong_acknowledgement;
  }
  if ((segment.flags & packet::kTcpRst) != 0) {
    if (!ack) return Disposition::blind_reset;
    counters_.refused.add(1);
    end_by(connection, SendState::refused);
    return Disposition::handled;
  }
  if ((segment.flags & packet::kTcpSyn) == 0) return Disposition::no_acknowledgement;
  agree(connection, segment, header);
  update_window(connection, segment, header, 0);
  if (ack) {
    establish(connection, now);
    if (!connection.syn_lost) connection.round_trip.sample(Nanos{now.value - connection.sent_at.value});
  } else {
    connection.phase = Phase::syn_received;
    connection.wants_syn = true;
    want_turn(connection);
  }
  return Disposition::handled;
}

/// The peer's SYN once more, when it crossed ours: RFC 9293, 3.5, figure 8. Its SYN,ACK ends the handshake.
Disposition SenderCore::take_crossed_syn(SendConnection& connection, const SegmentReading& segment,
                                         const PeerHeader& header, Nanos now) {
  const bool same = segment.sequence + 1 == connection.receive_next;
  if (same && (segment.flags & packet::kTcpAck) != 0) {
    if (!finish_crossed_handshake(connection, segment, now)) return Disposition::wrong_acknowledgement;
    update_window(connection, segment, header, 0);
    return Disposition::handled;
  }
  connection.wants_syn = true;
  want_turn(connection);
  return Disposition::blind_reset;
}

/// Answers an acknowledgement of what was never sent by a reset of that number (RFC 9293, 3.5.2, group 2).
void SenderCore::refuse(const SendConnection& connection, const SegmentReading& segment, Nanos now) {
  if (!strangers_.may_answer(now)) return;
  if (!strangers_.push(reset_of(segment, connection.peer_mac, settings_.mac))) counters_.refused_replies.add(1);
}

void SenderCore::agree(SendConnection& connection, const SegmentReading& segment, const PeerHeader& header) {
  constexpr std::uint32_t kLeastMss = 88;  // with all options a segment still has bytes
  constexpr std::uint32_t kTimestamps = 12;
  const bool v4 = is_ipv4(connection.key.remote);
  const std::uint32_t own = settings_.mtu - (v4 ? 40U : 60U);
  const std::uint32_t peers = header.mss != 0 ? header.mss : default_mss(connection.key);
  connection.receive_next = segment.sequence + 1;
  connection.last_acknowledged = connection.receive_next;
  connection.selective = header.offered.selective;
  connection.timestamps = header.offered.timestamps && segment.has_timestamp;
  connection.timestamp = segment.timestamp;
  connection.peer_scale = header.offered.window_scale ? header.scale : 0;
  connection.segment_bytes = std::max(std::min(own, peers), kLeastMss) - (connection.timestamps ? kTimestamps : 0);
  connection.congestion = CongestionWindow(settings_.congestion, connection.segment_bytes, settings_.window_bytes);
}

/// RFC 5961, section 3.
Disposition SenderCore::take_reset(SendConnection& connection, const SegmentReading& segment, Nanos now) {
  if (connection.phase == Phase::time_wait) return Disposition::blind_reset;  // RFC 1337
  const std::int32_t offset = serial_distance(connection.receive_next, segment.sequence);
  if (offset != 0) {
    if (offset > 0 && offset < kOwnWindow) challenge(connection, now);
    return Disposition::blind_reset;
  }
  if (connection.fin_acknowledged) {
    end_by(connection, connection.state);  // all arrived: nothing is lost but the farewell
  } else {
    counters_.reset.add(1);
    end_by(connection, connection.phase == Phase::syn_received ? SendState::refused : SendState::reset);
  }
  return Disposition::handled;
}

/// RFC 9293, 3.10.7.4, for all synchronized states.
Disposition SenderCore::take_in_sequence(SendConnection& connection, const SegmentReading& segment,
                                         const PeerHeader& header, Nanos now) {
  constexpr std::int64_t kOldestTimestamp = 24LL * 24 * 3600 * 1'000'000'000;  // RFC 7323, 5.5
  if (connection.timestamps) {
    if (!segment.has_timestamp) return Disposition::no_timestamp;
    const bool forgotten = now.value - connection.heard_at.value > kOldestTimestamp;
    if (!forgotten && serial_distance(connection.timestamp, segment.timestamp) < 0) {
      want_acknowledgement(connection);
      return Disposition::old_timestamp;
    }
  }
  const bool fin = (segment.flags & packet::kTcpFin) != 0;
  const std::int32_t begin = serial_distance(connection.receive_next, segment.sequence);
  const std::int64_t length = std::int64_t{segment.payload_length} + (fin ? 1 : 0);
  const bool acceptable = length == 0 ? begin >= 0 && begin <= kOwnWindow : begin < kOwnWindow && begin + length > 0;
  if (!acceptable) {
    want_acknowledgement(connection);
    // A FIN again: the peer has not heard that it arrived, and may send it once more.
    if (fin && connection.phase == Phase::time_wait)
      connection.expire_at = Nanos{now.value + settings_.time_wait.value};
    return begin < 0 ? Disposition::duplicate : Disposition::outside_window;
  }
  if ((segment.flags & packet::kTcpAck) == 0) return Disposition::no_acknowledgement;
  if (connection.phase == Phase::syn_received && !finish_crossed_handshake(connection, segment, now)) {
    return Disposition::wrong_acknowledgement;
  }
  const std::int64_t acknowledged =
      offset_near(connection.acknowledged, segment.acknowledgement, connection.initial + 1);
  const auto oldest = static_cast<std::int64_t>(connection.acknowledged) -
                      static_cast<std::int64_t>(std::max<std::uint64_t>(connection.largest_window, 1));
  if (acknowledged > static_cast<std::int64_t>(connection.next) || acknowledged < oldest) {
    challenge(connection, now);
    return Disposition::wrong_acknowledgement;
  }
  if (serial_distance(connection.last_acknowledged, segment.sequence) <= 0) connection.timestamp = segment.timestamp;
  connection.heard_at = now;
  if (acknowledged >= static_cast<std::int64_t>(connection.acknowledged)) {
    const auto offset = static_cast<std::uint64_t>(acknowledged);
    const std::uint64_t window_end = connection.window_end;
    update_window(connection, segment, header, offset);
    const bool plain = length == 0 && connection.window_end == window_end;
    take_acknowledgement(connection, segment, header, offset, !plain, now);
  }
  const Disposition disposition = take_content(connection, segment);
  note_end(connection, now);
  return disposition;
}

bool SenderCore::finish_crossed_handshake(SendConnection& connection, const SegmentReading& segment, Nanos now) {
  if (segment.acknowledgement != connection.initial + 1) {
    refuse(connection, segment, now);
    return false;
  }
  establish(connection, now);
  return true;
}

/// RFC 9293, 3.10.7.4: by the newest segment only, which SND.WL1 and SND.WL2 tell. Of a SYN the window is not scaled.
void SenderCore::update_window(SendConnection& connection, const SegmentReading& segment, const PeerHeader& header,
                               std::uint64_t acknowledged) {
  const bool syn = (segment.flags & packet::kTcpSyn) != 0;
  const std::int32_t newer = serial_distance(connection.window_sequence, segment.sequence);
  if (!syn && (newer < 0 || (newer == 0 && acknowledged < connection.window_acknowledged))) return;
  const std::uint64_t window = std::uint64_t{header.window} << (syn ? 0 : connection.peer_scale);
  connection.window_sequence = segment.sequence;
  connection.window_acknowledged = acknowledged;
  connection.largest_window = std::max(connection.largest_window, window);
  const std::uint64_t before = connection.window_end;
  connection.window_end = acknowledged + window;
  if (connection.window_end <= before || connection.phase != Phase::open) return;
  if (connection.segments.empty() && connection.retransmit_at != kNever) {
    // The question whether it is open has its answer.
    connection.retransmit_at = kNever;
    connection.attempts = 0;
    connection.wants_window_probe = false;
  }
  want_turn(connection);
}

/// What the peer sends is taken in order, and thrown away.
Disposition SenderCore::take_content(SendConnection& connection, const SegmentReading& segment) {
  const bool fin = (segment.flags & packet::kTcpFin) != 0;
  if (segment.payload_length == 0 && !fin) return Disposition::no_payload;
  want_acknowledgement(connection);
  if (connection.peer_ended) return Disposition::behind_end;
  const std::int32_t begin = serial_distance(connection.receive_next, segment.sequence);
  if (begin > 0) return Disposition::too_many_holes;
  const std::uint32_t fresh =
      segment.payload_length - std::min(segment.payload_length, static_cast<std::uint32_t>(-begin));
  counters_.ignored_bytes.add(fresh);
  connection.receive_next += fresh;
  if (!fin) return Disposition::handled;
  ++connection.receive_next;
  connection.peer_ended = true;
  connection.peer_was_first = !connection.fin_sent;
  return Disposition::handled;
}

}  // namespace warpline::stream
