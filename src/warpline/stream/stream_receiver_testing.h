// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include "warpline/base/random.h"
#include "warpline/packet/parse.h"
#include "warpline/packet/tcp_frame.h"
#include "warpline/packet/verify.h"
#include "warpline/stream/stream_receiver.h"

namespace warpline::stream::testing {

inline constexpr MacAddress kOurMac{{2, 0, 0, 0, 0, 1}};
inline constexpr MacAddress kPeerMac{{2, 0, 0, 0, 0, 2}};
inline constexpr std::uint16_t kPort = 5001;

inline Nanos milliseconds(std::int64_t n) { return Nanos{n * 1'000'000}; }

inline ReceiverSettings small_settings() {
  ReceiverSettings settings;
  settings.mac = kOurMac;
  settings.address = Ipv4Address{{10, 0, 0, 1}};
  settings.ports = {kPort};
  settings.connections = 8;
  settings.half_open = 4;
  settings.ring_bytes = 64 << 10;
  settings.secret[3] = 7;
  return settings;
}

/// Byte `offset` of the stream that tests send: no short period.
inline std::uint8_t pattern_at(std::uint64_t offset) {
  return static_cast<std::uint8_t>(mix64(offset >> 3) >> (8 * (offset & 7)));
}

/// A segment that came out of a StreamReceiver, with its options.
struct Reply {
  packet::TcpFrame frame;
  bool has_timestamp = false;
  std::uint32_t timestamp = 0;
  std::uint32_t timestamp_echo = 0;
  std::optional<std::uint16_t> mss;
  std::optional<std::uint8_t> scale;
  bool selective = false;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> blocks;

  [[nodiscard]] const packet::TcpHeader& tcp() const { return frame.tcp; }
  [[nodiscard]] bool has(std::uint8_t flags) const { return (frame.tcp.flags & flags) == flags; }
};

inline void read_options(const packet::TcpHeader& tcp, Reply& reply) {
  for (std::size_t at = 0; at < tcp.options_length && tcp.options[at] != packet::kTcpOptionEnd;) {
    const std::uint8_t* const option = tcp.options + at;
    if (*option == packet::kTcpOptionNop) {
      ++at;
      continue;
    }
    switch (*option) {
      case packet::kTcpOptionMss:
        reply.mss = packet::load_be16(option + 2);
        break;
      case packet::kTcpOptionWindowScale:
        reply.scale = option[2];
        break;
      case packet::kTcpOptionSackPermitted:
        reply.selective = true;
        break;
      case packet::kTcpOptionTimestamps:
        reply.has_timestamp = true;
        reply.timestamp = packet::load_be32(option + 2);
        reply.timestamp_echo = packet::load_be32(option + 6);
        break;
      case packet::kTcpOptionSack:
        for (std::size_t i = 2; i < option[1]; i += 8) {
          reply.blocks.emplace_back(packet::load_be32(option + i), packet::load_be32(option + i + 4));
        }
        break;
      default:
        break;
    }
    at += option[1];
  }
}

/// Reads a frame that a StreamReceiver wrote; nothing if it is none with right checksums.
inline std::optional<Reply> read_reply(std::span<std::uint8_t> bytes) {
  Segment segment{bytes.data(), static_cast<std::uint32_t>(bytes.size()), 0, Verdict::forward};
  const FrameRef frame = frame_at(&segment);
  const packet::ParsedFrame parsed = packet::parse(frame);
  if (parsed.l4 != packet::L4Kind::tcp || packet::verify_checksums(frame, parsed) != Verdict::forward) return {};
  Reply reply;
  if (packet::parse(bytes.data() + parsed.l4_offset, packet::l4_total(parsed), reply.frame.tcp) != Verdict::forward) {
    return {};
  }
  read_options(reply.frame.tcp, reply);
  return reply;
}

/// A peer's end of one connection, that sends what a test tells it to.
class Peer {
 public:
  Peer(StreamReceiver& receiver, std::uint16_t port, std::uint32_t initial) : receiver_(receiver), initial_(initial) {
    frame_.destination_mac = kOurMac;
    frame_.source_mac = kPeerMac;
    frame_.source = Ipv4Address{{10, 0, 0, 2}};
    frame_.destination = Ipv4Address{{10, 0, 0, 1}};
    frame_.tcp.source_port = port;
    frame_.tcp.destination_port = kPort;
    frame_.tcp.window = 0xffff;
  }

  bool offers_options = true;  ///< window scale, SACK and timestamps in the SYN
  std::uint32_t acknowledgement = 0;
  std::uint32_t echo = 0;  ///< TSecr
  packet::TcpFrame& header() { return frame_; }

  [[nodiscard]] std::uint32_t sequence(std::uint64_t offset) const {
    return initial_ + 1 + static_cast<std::uint32_t>(offset);
  }

  void send_syn(Nanos now) {
    options_.clear();
    if (offers_options) {
      options_ = {2, 4, 5, 0xb4, 1, 3, 3, 7, 1, 1, 4, 2};
      add_timestamps(now);
    }
    send_raw(initial_, packet::kTcpSyn, {}, now);
  }

  /// Sends bytes `[offset, offset + length)` of the pattern.
  void send(std::uint64_t offset, std::uint32_t length, Nanos now, std::uint8_t flags = packet::kTcpAck) {
    std::vector<std::uint8_t> payload(length);
    for (std::uint32_t i = 0; i < length; ++i) payload[i] = pattern_at(offset + i);
    options_.clear();
    if (offers_options) add_timestamps(now);
    send_raw(sequence(offset), flags, payload, now);
  }

  void send_raw(std::uint32_t sequence, std::uint8_t flags, std::span<const std::uint8_t> payload, Nanos now) {
    frame_.tcp.sequence = sequence;
    frame_.tcp.flags = flags;
    frame_.tcp.acknowledgement = (flags & packet::kTcpAck) != 0 ? acknowledgement : 0;
    frame_.tcp.options_length = static_cast<std::uint8_t>(options_.size());
    std::copy(options_.begin(), options_.end(), frame_.tcp.options);
    const std::uint32_t headers = packet::tcp_headers_length(frame_);
    std::vector<std::uint8_t> bytes(headers + payload.size());
    std::copy(payload.begin(), payload.end(), bytes.begin() + headers);
    packet::ChecksumSum sum;
    sum.add(bytes.data() + headers, static_cast<std::uint32_t>(payload.size()));
    static_cast<void>(packet::emit(frame_, bytes, static_cast<std::uint32_t>(payload.size()), sum));
    Segment segment{bytes.data(), static_cast<std::uint32_t>(bytes.size()), 0, Verdict::forward};
    receiver_.receive(frame_at(&segment), false, now);
  }

  /// Opens the connection as a stack does; false if that did not work.
  [[nodiscard]] bool open(Nanos now);

 private:
  void add_timestamps(Nanos now) {
    const std::size_t at = options_.size();
    options_.resize(at + 12);
    options_[at] = options_[at + 1] = 1;
    options_[at + 2] = 8;
    options_[at + 3] = 10;
    packet::store_be32(options_.data() + at + 4, 1000 + static_cast<std::uint32_t>(now.value / 1'000'000));
    packet::store_be32(options_.data() + at + 8, echo);
  }

  StreamReceiver& receiver_;
  std::uint32_t initial_;
  packet::TcpFrame frame_;
  std::vector<std::uint8_t> options_;
};

/// Returns all that a StreamReceiver wants to send now.
inline std::vector<Reply> replies_of(StreamReceiver& receiver, Nanos now) {
  std::vector<Reply> replies;
  std::uint8_t bytes[StreamReceiver::kReplyBytes];
  while (const std::uint32_t length = receiver.next_reply(bytes, now)) {
    const auto reply = read_reply({bytes, length});
    if (!reply) break;
    replies.push_back(*reply);
  }
  return replies;
}

inline bool Peer::open(Nanos now) {
  send_syn(now);
  receiver_.end_burst(now);
  const std::vector<Reply> replies = replies_of(receiver_, now);
  if (replies.size() != 1 || !replies[0].has(packet::kTcpSyn | packet::kTcpAck)) return false;
  acknowledgement = replies[0].tcp().sequence + 1;
  echo = replies[0].timestamp;
  send(0, 0, now);
  receiver_.end_burst(now);
  return true;
}

}  // namespace warpline::stream::testing
