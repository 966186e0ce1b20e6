// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "warpline/packet/headers/ethernet.h"
#include "warpline/stream/internal/address_words.h"
#include "warpline/stream/internal/option_writer.h"
#include "warpline/stream/internal/send/sender_core.h"

namespace warpline::stream {
namespace {

constexpr std::uint16_t kAnnounced = 0xffff;    ///< our window: what comes is thrown away at once
constexpr std::uint32_t kSegmentsOfATurn = 16;  ///< of one connection before the next one's

}  // namespace

std::uint32_t SenderCore::frame_bytes() const { return packet::EthernetView::kHeaderLength + settings_.mtu; }

void SenderCore::want_turn(SendConnection& connection) {
  if (connection.wants_turn) return;
  connection.wants_turn = true;
  turns_.push(table_.index_of(connection));
}

void SenderCore::want_event(SendConnection& connection) {
  if (connection.wants_event || connection.told) return;
  connection.wants_event = true;
  events_.push(table_.index_of(connection));
}

void SenderCore::want_acknowledgement(SendConnection& connection) {
  connection.wants_acknowledgement = true;
  want_turn(connection);
}

void SenderCore::challenge(SendConnection& connection, Nanos now) {
  if (connection.challenges.may_challenge(now)) {
    want_acknowledgement(connection);
  } else {
    counters_.refused_replies.add(1);
  }
}

void SenderCore::reset_stranger(const SegmentReading& segment, FrameRef frame, Nanos now) {
  const MacAddress sender = packet::load_address<MacAddress>(packet::EthernetView(frame.data()).source());
  if (!strangers_.may_answer(now) || !strangers_.push(reset_of(segment, sender, settings_.mac))) {
    counters_.refused_replies.add(1);
  }
}

void SenderCore::reset_peer(const SendConnection& connection, Nanos now) {
  Reply answer = reply_to(connection.key, connection.peer_mac, settings_.mac);
  answer.tcp.sequence = connection.sequence(connection.next);
  answer.tcp.acknowledgement = connection.receive_next;
  answer.tcp.flags = packet::kTcpRst | packet::kTcpAck;
  if (connection.timestamps) OptionWriter(answer.tcp).timestamps(timestamp_at(now), connection.timestamp);
  if (!strangers_.push_own(answer)) counters_.refused_replies.add(1);
}

std::uint32_t SenderCore::timestamp_at(Nanos now) const {
  constexpr std::int64_t kTick = 1'000'000;  // RFC 7323, 5.4: between 1 ms and 1 s
  return timestamp_base_ + static_cast<std::uint32_t>(now.value / kTick);
}

packet::TcpFrame SenderCore::frame_to(const ConnectionKey& ends, const MacAddress& peer_mac) const {
  packet::TcpFrame frame;
  frame.destination_mac = peer_mac;
  frame.source_mac = settings_.mac;
  frame.source = settings_.address;
  frame.destination = address_of(ends.remote);
  frame.tcp.source_port = ends.local_port;
  frame.tcp.destination_port = ends.remote_port;
  return frame;
}

/// A segment that acknowledges, to be filled in.
packet::TcpFrame SenderCore::frame_of(SendConnection& connection, Nanos now) const {
  packet::TcpFrame frame = frame_to(connection.key, connection.peer_mac);
  frame.tcp.flags = packet::kTcpAck;
  frame.tcp.sequence = connection.sequence(connection.next);
  frame.tcp.acknowledgement = connection.receive_next;
  frame.tcp.window = kAnnounced;
  if (connection.timestamps) OptionWriter(frame.tcp).timestamps(timestamp_at(now), connection.timestamp);
  connection.last_acknowledged = connection.receive_next;
  connection.wants_acknowledgement = false;
  return frame;
}

/// A first one offers everything, one that answers a SYN that crossed ours what that offered.
void SenderCore::write_syn(const SendConnection& connection, Nanos now, packet::TcpFrame& frame) const {
  const bool answers = connection.phase == Phase::syn_received;
  const std::uint16_t headers = std::holds_alternative<Ipv4Address>(settings_.address) ? 40 : 60;
  frame.tcp.sequence = connection.initial;
  frame.tcp.flags = answers ? packet::kTcpSyn | packet::kTcpAck : packet::kTcpSyn;
  frame.tcp.acknowledgement = answers ? connection.receive_next : 0;
  frame.tcp.window = kAnnounced;
  OptionWriter options(frame.tcp);
  options.mss(static_cast<std::uint16_t>(settings_.mtu - headers));
  options.window_scale(0);  // so that the peer may scale its own
  if (!answers || connection.selective) options.selective();
  if (!answers || connection.timestamps) options.timestamps(timestamp_at(now), answers ? connection.timestamp : 0);
}

std::uint32_t SenderCore::next_frame(std::span<std::uint8_t> out, Nanos now) {
  if (!strangers_.empty()) return emit(strangers_.pop(), out.data());
  for (;;) {
    if (current_ == kNobody) {
      if (turns_.empty()) return 0;
      current_ = turns_.pop();
      table_[current_].wants_turn = false;
      left_of_turn_ = kSegmentsOfATurn;
    }
    SendConnection& connection = table_[current_];
    const std::uint32_t length = write_next(connection, out, now);
    if (length == 0) {
      current_ = kNobody;
      continue;
    }
    if (--left_of_turn_ == 0) {
      want_turn(connection);
      current_ = kNobody;
    }
    return length;
  }
}

UnfilledFrame SenderCore::next_unfilled(std::span<std::uint8_t> out, Nanos now) {
  UnfilledFrame frame;
  unfilled_ = &frame;
  frame.length = next_frame(out, now);
  unfilled_ = nullptr;
  return frame;
}

/// What the connection sends next: what was lost before what is new, and an acknowledgement alone if there is nothing
/// else to carry it.
std::uint32_t SenderCore::write_next(SendConnection& connection, std::span<std::uint8_t> out, Nanos now) {
  if (connection.phase == Phase::free || connection.phase == Phase::over) return 0;
  if (connection.phase == Phase::syn_sent || connection.phase == Phase::syn_received) {
    if (!connection.wants_syn) return 0;
    connection.wants_syn = false;
    connection.sent_at = now;
    packet::TcpFrame frame = frame_to(connection.key, connection.peer_mac);
    write_syn(connection, now, frame);
    return packet::emit(frame, out, 0, {});
  }
  if (connection.wants_tail_probe) {
    connection.wants_tail_probe = false;
    if (const std::uint32_t length = write_tail_probe(connection, out, now); length != 0) return length;
  }
  if (const std::uint32_t lost = connection.segments.first_lost(); lost != SentSegments::kNone) {
    const std::uint64_t in_flight = connection.in_flight();
    connection.window_limited = in_flight + connection.segments[lost].length > connection.congestion.bytes();
    if (!connection.window_limited || in_flight == 0) return write_again(connection, lost, out, now);
  } else if (const std::uint32_t length = write_new(connection, false, out, now); length != 0) {
    return length;
  }
  watch_window(connection, now);
  if (!connection.wants_acknowledgement && !connection.wants_window_probe) return 0;
  packet::TcpFrame frame = frame_of(connection, now);
  if (connection.wants_window_probe) {
    // Before the window, so that it must be answered (RFC 9293, 3.10.7.4, first), as Linux asks.
    connection.wants_window_probe = false;
    frame.tcp.sequence = connection.sequence(connection.acknowledged) - 1;
    counters_.window_probes.add(1);
  }
  return packet::emit(frame, out, 0, {});
}

/// RFC 8985, 7.3: something new, or the newest again, whatever congestion control says.
std::uint32_t SenderCore::write_tail_probe(SendConnection& connection, std::span<std::uint8_t> out, Nanos now) {
  if (connection.segments.empty()) return 0;
  connection.tail_probed = true;
  connection.tail_probe_was_again = false;
  std::uint32_t length = write_new(connection, true, out, now);
  const std::uint32_t newest = connection.segments.newest();
  if (length == 0 && connection.segments[newest].fate == SegmentFate::flying) {
    connection.tail_probe_was_again = true;
    length = write_again(connection, newest, out, now);
  }
  connection.tail_probed = length != 0;
  connection.tail_probe_end = connection.next;
  connection.tail_probe_at = kNever;
  if (length != 0) counters_.tail_probes.add(1);
  return length;
}

std::uint32_t SenderCore::write_again(SendConnection& connection, std::uint32_t place, std::span<std::uint8_t> out,
                                      Nanos now) {
  connection.segments.resend(place, now);
  const SentSegment& segment = connection.segments[place];
  counters_.retransmitted.add(1);
  counters_.retransmitted_bytes.add(segment.length - (segment.fin ? 1 : 0));
  if (connection.retransmit_at == kNever || place == connection.segments.oldest()) {
    connection.retransmit_at = times_out_at(connection, now);
  }
  arm(connection);
  return write_segment(connection, segment, out, now);
}

/// How many bytes that have not been sent may go (RFC 9293, 3.8.6.2.1): a whole segment, or all that there is, or half
/// of the largest window that the peer ever had. `probe`: whatever congestion control says.
std::uint32_t SenderCore::new_bytes(SendConnection& connection, bool probe) const {
  connection.window_limited = false;
  if (connection.next >= connection.offered) return 0;
  const std::uint64_t left = connection.offered - connection.next;
  const std::uint64_t room = connection.window_end - std::min(connection.window_end, connection.next);
  const std::uint64_t bytes = std::min({left, room, std::uint64_t{connection.segment_bytes}});
  if (bytes == 0) return 0;
  if (bytes < connection.segment_bytes && !connection.override_small) {
    const bool alone = connection.segments.empty();
    const bool worth = bytes == left ? !settings_.nagle || alone || connection.closing
                                     : bytes >= std::max<std::uint64_t>(connection.largest_window / 2, 1);
    if (!worth) return 0;
  }
  const std::uint64_t in_flight = connection.in_flight();
  connection.window_limited = !probe && in_flight != 0 && in_flight + bytes > connection.congestion.bytes();
  return connection.window_limited ? 0 : static_cast<std::uint32_t>(bytes);
}

std::uint32_t SenderCore::write_new(SendConnection& connection, bool probe, std::span<std::uint8_t> out, Nanos now) {
  if (connection.fin_sent || connection.segments.full()) return 0;
  const bool first = connection.segments.empty();
  if (first && now.value - connection.sent_at.value > timeout_of(connection).value) connection.congestion.on_idle();
  const std::uint32_t bytes = new_bytes(connection, probe);
  const bool fin = bytes == 0 && connection.closing && connection.next == connection.offered;
  if (bytes == 0 && !fin) return 0;
  if (first) connection.progress_at = now;
  connection.segments.push(connection.next, fin ? 1 : bytes, fin, now);
  const SentSegment& segment = connection.segments[connection.segments.newest()];
  const std::uint32_t length = write_segment(connection, segment, out, now);
  connection.next += segment.length;
  connection.fin_sent = fin;
  connection.override_small = false;
  connection.sent_at = now;
  counters_.segments.add(1);
  counters_.sent.add(bytes);
  // The question for a window, which may be due, is answered by this.
  if (connection.segments.size() == 1 || connection.retransmit_at == kNever) {
    connection.retransmit_at = times_out_at(connection, now);
  }
  watch_tail(connection, now);
  arm(connection);
  return length;
}

std::uint32_t SenderCore::write_segment(SendConnection& connection, const SentSegment& segment,
                                        std::span<std::uint8_t> out, Nanos now) {
  packet::TcpFrame frame = frame_of(connection, now);
  frame.tcp.sequence = connection.sequence(segment.begin);
  const std::uint32_t bytes = segment.length - (segment.fin ? 1 : 0);
  if (segment.fin) frame.tcp.flags |= packet::kTcpFin;
  if (segment.end() == connection.offered) frame.tcp.flags |= packet::kTcpPsh;
  const std::uint32_t headers = packet::tcp_headers_length(frame);
  packet::ChecksumSum sum;
  const ConnectionId id{table_.index_of(connection), connection.generation};
  if (bytes != 0 && unfilled_ != nullptr) {
    unfilled_->connection = id;
    unfilled_->offset = segment.begin;
    unfilled_->payload = bytes;
    unfilled_->checksum =
        headers - packet::TcpView::kHeaderLength - frame.tcp.options_length + packet::TcpView::kChecksum;
  } else if (bytes != 0) {
    source_.read(id, segment.begin, bytes, out.data() + headers, sum);
  }
  return packet::emit(frame, out, bytes, sum) + bytes;
}

}  // namespace warpline::stream
