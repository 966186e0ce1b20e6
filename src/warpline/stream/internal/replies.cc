// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "warpline/packet/headers/ethernet.h"
#include "warpline/stream/internal/address_words.h"
#include "warpline/stream/internal/option_writer.h"
#include "warpline/stream/internal/receiver_core.h"
#include "warpline/stream/internal/sequence.h"

namespace warpline::stream {
namespace {

constexpr std::uint16_t kSmallestMss = 536;  // RFC 9293, 3.7.1, for IPv4; IPv6's links have more

}  // namespace

/// What is said here is more than what a lane may have written.
void ReceiverCore::want_reply(Connection& connection) {
  connection.written = false;
  queue_reply(connection);
}

void ReceiverCore::queue_reply(Connection& connection) {
  if (connection.wants_reply) return;
  connection.wants_reply = true;
  replies_.push(table_.index_of(connection));
}

void ReceiverCore::want_event(Connection& connection) {
  if (connection.wants_event) return;
  connection.wants_event = true;
  events_.push(table_.index_of(connection));
}

void ReceiverCore::challenge(Connection& connection, Nanos now) {
  bool challenged = connection.challenges.may_challenge(now);
  if (challenged && connection.phase == Phase::syn_received) {
    // No SYN again: an acknowledgement of what is awaited (RFC 9293, 3.10.7.4, first).
    challenged = strangers_.push(acknowledge(connection.key, connection.receive, connection.peer, own_, now));
  } else if (challenged) {
    want_reply(connection);
  }
  if (!challenged) counters_.refused_replies.add(1);
}

void ReceiverCore::reset_stranger(const SegmentReading& segment, FrameRef frame, Nanos now) {
  const MacAddress sender = packet::load_address<MacAddress>(packet::EthernetView(frame.data()).source());
  if (!strangers_.may_answer(now) || !strangers_.push(reset_of(segment, sender, own_.mac))) {
    counters_.refused_replies.add(1);
  }
}

void ReceiverCore::reset_peer(const Connection& connection, Nanos now) {
  Reply answer = reply_to(connection.key, connection.peer.mac, own_.mac);
  answer.tcp.sequence = connection.send_next();
  const ReceiveState& state = connection.receive;
  answer.tcp.acknowledgement = state.expected();
  answer.tcp.flags = packet::kTcpRst | packet::kTcpAck;
  if (state.timestamps) OptionWriter(answer.tcp).timestamps(own_.timestamp_at(now), state.timestamp);
  if (!strangers_.push_own(answer)) counters_.refused_replies.add(1);
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
  if (agreed.timestamps) options.timestamps(own_.timestamp_at(now), peer_timestamp);
}

Reply ReceiverCore::reply_of(Connection& connection, Nanos now) {
  ReceiveState& state = connection.receive;
  PeerEnd& peer = connection.peer;
  if (connection.phase == Phase::syn_received) {
    Reply reply = reply_to(connection.key, peer.mac, own_.mac);
    reply.tcp.sequence = peer.sequence - 1;
    reply.tcp.acknowledgement = state.initial;
    reply.tcp.window = static_cast<std::uint16_t>(std::min<std::uint64_t>(settings_.ring_bytes, 0xffff));
    write_syn({peer.scale != 0, peer.selective, state.timestamps}, state.timestamp, now, reply.tcp);
    return reply;
  }
  Reply reply = acknowledge(connection.key, state, peer, own_, now);
  if (connection.phase == Phase::last_ack) {
    reply.tcp.flags |= packet::kTcpFin;
  } else if (connection.wants_probe) {
    --reply.tcp.sequence;
  }
  tell_lane(connection);
  if (bursts_) connection.replied_in = bursts_->in_hand();
  note_reply(connection);
  return reply;
}

/// Takes the lane's reply, and takes note of it as of one that was written here.
std::uint32_t ReceiverCore::take_written(Connection& connection, std::span<std::uint8_t> out) {
  const WrittenReply& reply = written_[table_.index_of(connection)];
  connection.written = false;
  connection.peer.announced = std::max(connection.peer.announced, reply.announced);
  connection.receive.count_as_acknowledged();
  note_reply(connection);
  counters_.lane_acknowledgements.add(1);
  std::memcpy(out.data(), reply.bytes, reply.length);
  return reply.length;
}

void ReceiverCore::note_reply(Connection& connection) {
  connection.acknowledge_at = kNever;
  connection.wants_probe = false;
  counters_.acknowledgements.add(1);
}

std::uint32_t ReceiverCore::next_reply(std::span<std::uint8_t> out, Nanos now) {
  if (!strangers_.empty()) return emit(strangers_.pop(), out.data());
  while (!replies_.empty()) {
    Connection& connection = table_[replies_.pop()];
    connection.wants_reply = false;
    if (!connection.is_linked()) continue;
    return connection.written ? take_written(connection, out) : emit(reply_of(connection, now), out.data());
  }
  return 0;
}

}  // namespace warpline::stream
