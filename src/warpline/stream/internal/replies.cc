// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "warpline/packet/headers/ethernet.h"
#include "warpline/stream/internal/address_words.h"
#include "warpline/stream/internal/option_writer.h"
#include "warpline/stream/internal/receiver_core.h"
#include "warpline/stream/internal/sequence.h"

namespace warpline::stream {
namespace {

constexpr std::uint16_t kSmallestMss = 536;  // RFC 9293, 3.7.1, for IPv4; IPv6's links have more

/// RFC 2018, section 4, and RFC 2883: what came twice, then the range that grew last, then those before it.
void write_blocks(const ReceiveState& state, OptionWriter& options) {
  const std::uint32_t most = std::min<std::uint32_t>(options.room_for_blocks(), ReceiveState::kRecent);
  ByteRange blocks[ReceiveState::kRecent + 1];
  std::uint32_t count = 0;
  if (!state.duplicate.empty()) blocks[count++] = state.duplicate;
  const std::uint32_t first_range = count;
  const auto add = [&](const ByteRange& range) {
    const bool known = std::find(blocks + first_range, blocks + count, range) != blocks + count;
    if (!known && count < most) blocks[count++] = range;
  };
  for (const std::uint64_t offset : state.recent) {
    const std::uint32_t i = state.ranges.first_reaching(offset + 1);
    if (i < state.ranges.count() && state.ranges[i].begin <= offset) add(state.ranges[i]);
  }
  for (std::uint32_t i = 0; i < state.ranges.count() && count < most; ++i) add(state.ranges[i]);
  if (count == 0) return;
  options.begin_blocks(count);
  for (std::uint32_t i = 0; i < count; ++i) {
    options.block(sequence_of(blocks[i].begin, state.initial), sequence_of(blocks[i].end, state.initial));
  }
}

}  // namespace

void ReceiverCore::want_reply(Connection& connection) {
  if (connection.wants_reply) return;
  connection.wants_reply = true;
  replies_.push(table_.index_of(connection));
}

void ReceiverCore::want_event(Connection& connection) {
  if (connection.wants_event) return;
  connection.wants_event = true;
  events_.push(table_.index_of(connection));
}

/// RFC 5961: who is asked by an acknowledgement of what is true answers right, if it sent what was odd itself. Ten a
/// second for each connection, so that nobody learns of one by another (RFC 5961, section 7).
void ReceiverCore::challenge(Connection& connection, Nanos now) {
  constexpr std::int64_t kBetween = 100'000'000;
  if (connection.last_challenge.value != 0 && now.value - connection.last_challenge.value < kBetween) {
    counters_.refused_replies.add(1);
    return;
  }
  connection.last_challenge = now;
  want_reply(connection);
}

/// RFC 9293, 3.5.2, group 1.
void ReceiverCore::reset_stranger(const SegmentReading& segment, FrameRef frame, Nanos now) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  if (now.value - resets_since_.value >= kSecond) {
    resets_since_ = now;
    resets_ = 0;
  }
  if (resets_ == settings_.resets_per_second) {
    counters_.refused_replies.add(1);
    return;
  }
  ++resets_;
  const packet::EthernetView ethernet(frame.data());
  packet::TcpFrame answer = frame_to(segment.key, packet::load_address<MacAddress>(ethernet.source()));
  if ((segment.flags & packet::kTcpAck) != 0) {
    answer.tcp.sequence = segment.acknowledgement;
    answer.tcp.flags = packet::kTcpRst;
  } else {
    const std::uint32_t numbers =
        ((segment.flags & packet::kTcpSyn) != 0 ? 1U : 0U) + ((segment.flags & packet::kTcpFin) != 0 ? 1U : 0U);
    answer.tcp.acknowledgement = segment.sequence + segment.payload_length + numbers;
    answer.tcp.flags = packet::kTcpRst | packet::kTcpAck;
  }
  queue_stranger(answer);
}

void ReceiverCore::reset_peer(const Connection& connection, Nanos now) {
  packet::TcpFrame answer = frame_to(connection.key, connection.peer_mac);
  answer.tcp.sequence = connection.send_next();
  const ReceiveState& state = connection.receive;
  answer.tcp.acknowledgement = sequence_of(state.next, state.initial) + (state.end_reached ? 1 : 0);
  answer.tcp.flags = packet::kTcpRst | packet::kTcpAck;
  if (state.timestamps) OptionWriter(answer.tcp).timestamps(timestamp_at(now), state.timestamp);
  queue_stranger(answer);
}

void ReceiverCore::queue_stranger(const packet::TcpFrame& frame) {
  if (stranger_count_ == strangers_.size()) {
    counters_.refused_replies.add(1);
    return;
  }
  strangers_[(first_stranger_ + stranger_count_++) % strangers_.size()] = frame;
}

packet::TcpFrame ReceiverCore::frame_to(const ConnectionKey& ends, const MacAddress& peer_mac) const {
  packet::TcpFrame frame;
  frame.destination_mac = peer_mac;
  frame.source_mac = settings_.mac;
  frame.source = settings_.address;
  frame.destination = address_of(ends.remote);
  frame.tcp.source_port = ends.local_port;
  frame.tcp.destination_port = ends.remote_port;
  return frame;
}

std::uint32_t ReceiverCore::timestamp_at(Nanos now) const {
  constexpr std::int64_t kTick = 1'000'000;  // RFC 7323, 5.4: between 1 ms and 1 s
  return timestamp_base_ + static_cast<std::uint32_t>(now.value / kTick);
}

/// The options that the peer did not offer are not answered (RFC 7323, RFC 2018).
void ReceiverCore::write_syn(const SynOptions& agreed, std::uint32_t peer_timestamp, Nanos now,
                             packet::TcpHeader& tcp) const {
  const bool v4 = std::holds_alternative<Ipv4Address>(settings_.address);
  const int headers = v4 ? 40 : 60;
  tcp.flags = packet::kTcpSyn | packet::kTcpAck;
  OptionWriter options(tcp);
  options.mss(static_cast<std::uint16_t>(std::max<int>(settings_.mtu - headers, kSmallestMss)));
  if (agreed.window_scale) options.window_scale(scale_);
  if (agreed.selective) options.selective();
  if (agreed.timestamps) options.timestamps(timestamp_at(now), peer_timestamp);
}

/// The right edge never moves back, and on only when that is worth a segment (RFC 9293, 3.8.6.2.2).
std::uint16_t ReceiverCore::announce_window(Connection& connection) const {
  const ReceiveState& state = connection.receive;
  const std::uint64_t worth = std::min<std::uint64_t>(settings_.ring_bytes / 2, settings_.mtu);
  std::uint64_t edge = connection.announced;
  if (state.window_end >= edge + worth) edge = state.window_end;
  const std::uint64_t window = edge > state.next ? edge - state.next : 0;
  const std::uint64_t field = std::min<std::uint64_t>(window >> connection.scale, 0xffff);
  connection.announced = std::max(connection.announced, state.next + (field << connection.scale));
  return static_cast<std::uint16_t>(field);
}

packet::TcpFrame ReceiverCore::frame_of(Connection& connection, Nanos now) {
  packet::TcpFrame frame = frame_to(connection.key, connection.peer_mac);
  packet::TcpHeader& tcp = frame.tcp;
  ReceiveState& state = connection.receive;
  if (connection.phase == Phase::syn_received) {
    tcp.sequence = connection.initial;
    tcp.acknowledgement = state.initial;
    tcp.window = static_cast<std::uint16_t>(std::min<std::uint64_t>(settings_.ring_bytes, 0xffff));
    const SynOptions agreed{connection.scale != 0, connection.selective, state.timestamps};
    write_syn(agreed, state.timestamp, now, tcp);
    return frame;
  }
  const bool fin = connection.phase == Phase::last_ack;
  tcp.flags = fin ? packet::kTcpFin | packet::kTcpAck : packet::kTcpAck;
  tcp.sequence = connection.send_next() - (fin || connection.wants_probe ? 1 : 0);
  tcp.acknowledgement = sequence_of(state.next, state.initial) + (state.end_reached ? 1 : 0);
  tcp.window = announce_window(connection);
  OptionWriter options(tcp);
  if (state.timestamps) options.timestamps(timestamp_at(now), state.timestamp);
  if (connection.selective) write_blocks(state, options);
  state.acknowledged = state.next;
  tell_lane(connection);
  state.acknowledge_now = false;
  state.pushed = false;
  state.duplicate = {};
  connection.acknowledge_at = kNever;
  connection.wants_probe = false;
  counters_.acknowledgements.add(1);
  return frame;
}

std::uint32_t ReceiverCore::next_reply(std::span<std::uint8_t> out, Nanos now) {
  if (stranger_count_ != 0) {
    const packet::TcpFrame& frame = strangers_[first_stranger_];
    first_stranger_ = (first_stranger_ + 1) % strangers_.size();
    --stranger_count_;
    return packet::emit(frame, out, 0, {});
  }
  while (!replies_.empty()) {
    Connection& connection = table_[replies_.pop()];
    connection.wants_reply = false;
    const bool silent =
        connection.phase == Phase::free || connection.phase == Phase::over || connection.phase == Phase::leaving;
    if (silent) continue;
    return packet::emit(frame_of(connection, now), out, 0, {});
  }
  return 0;
}

}  // namespace warpline::stream
