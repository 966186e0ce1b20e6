// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "warpline/stream/stream_receiver_testing.h"
#include "warpline/stream/stream_sender.h"

namespace warpline::stream::testing {

/// The bytes that tests send, of each connection the same.
class PatternSource final : public PayloadSource {
 public:
  void read(ConnectionId, std::uint64_t offset, std::uint32_t length, std::uint8_t* to,
            packet::ChecksumSum& sum) const override {
    for (std::uint32_t i = 0; i < length; ++i) to[i] = pattern_at(offset + i);
    sum.add(to, length);
  }
};

inline SenderSettings sender_settings() {
  SenderSettings settings;
  settings.mac = kPeerMac;
  settings.address = Ipv4Address{{10, 0, 0, 2}};
  settings.connections = 8;
  settings.window_bytes = 256 << 10;
  settings.secret[3] = 9;
  return settings;
}

/// A frame that came out of a StreamSender.
struct SentFrame {
  Reply segment;
  std::vector<std::uint8_t> payload;
  [[nodiscard]] const packet::TcpHeader& tcp() const { return segment.frame.tcp; }
  [[nodiscard]] bool has(std::uint8_t flags) const { return segment.has(flags); }
};

/// Returns all that a StreamSender wants to send now.
inline std::vector<SentFrame> frames_of(StreamSender& sender, Nanos now) {
  std::vector<SentFrame> frames;
  std::vector<std::uint8_t> bytes(sender.frame_bytes());
  while (const std::uint32_t length = sender.next_frame(bytes, now)) {
    const auto reply = read_reply({bytes.data(), length});
    if (!reply) break;
    Segment segment{bytes.data(), length, 0, Verdict::forward};
    const packet::ParsedFrame parsed = packet::parse(frame_at(&segment));
    frames.push_back({*reply, {bytes.begin() + parsed.payload_offset, bytes.begin() + length}});
  }
  return frames;
}

/// The end of one connection that a StreamSender opened, which answers what a test tells it to.
class PeerOfSender {
 public:
  explicit PeerOfSender(StreamSender& sender, std::uint32_t initial = 7000,
                        const IpAddress& address = Ipv4Address{{10, 0, 0, 1}},
                        const IpAddress& senders = Ipv4Address{{10, 0, 0, 2}})
      : sender_(sender), next_(initial) {
    frame_.destination_mac = kPeerMac;
    frame_.source_mac = kOurMac;
    frame_.source = address;
    frame_.destination = senders;
    frame_.tcp.source_port = kPort;
    frame_.tcp.window = 0xffff;
  }

  bool selective = true;
  bool timestamps = true;
  bool scaled = true;
  std::uint16_t mss = 1460;
  std::uint8_t scale = 4;     ///< of its windows, if `scaled`
  std::uint32_t first = 0;    ///< the sender's SYN
  std::uint32_t echo = 0;     ///< TSecr
  std::uint32_t clock = 100;  ///< TSval
  packet::TcpFrame& header() { return frame_; }
  [[nodiscard]] std::uint32_t next() const { return next_; }
  [[nodiscard]] std::uint32_t number(std::uint64_t offset) const {
    return first + 1 + static_cast<std::uint32_t>(offset);
  }

  /// Learns of the SYN that the sender sent.
  void take_syn(const SentFrame& syn) {
    first = syn.tcp().sequence;
    echo = syn.segment.timestamp;
    frame_.tcp.destination_port = syn.tcp().source_port;
  }

  void answer_syn(Nanos now, std::uint8_t flags = packet::kTcpSyn | packet::kTcpAck) {
    begin_options();
    if (mss != 0) put({2, 4, static_cast<std::uint8_t>(mss >> 8), static_cast<std::uint8_t>(mss & 0xff)});
    if (scaled) put({1, 3, 3, scale});
    if (selective) put({1, 1, 4, 2});
    if (timestamps) put_timestamps();
    send(next_, number(0), flags, {}, now);
    ++next_;
  }

  using Blocks = std::vector<std::pair<std::uint64_t, std::uint64_t>>;
  /// Acknowledges `offset` bytes, and tells of `blocks`.
  void acknowledge(std::uint64_t offset, Nanos now, const Blocks& blocks = {}) {
    begin_options();
    if (timestamps) put_timestamps();
    if (!blocks.empty()) {
      put({1, 1, 5, static_cast<std::uint8_t>(2 + 8 * blocks.size())});
      for (const auto& [begin, end] : blocks) {
        put32(number(begin));
        put32(number(end));
      }
    }
    send(next_, number(offset), packet::kTcpAck, {}, now);
  }

  void send_plain(std::uint32_t sequence, std::uint32_t acknowledgement, std::uint8_t flags, Nanos now,
                  std::span<const std::uint8_t> payload = {}) {
    begin_options();
    if (timestamps && (flags & packet::kTcpRst) == 0) put_timestamps();
    send(sequence, acknowledgement, flags, payload, now);
  }

 private:
  void begin_options() { frame_.tcp.options_length = 0; }
  void put(std::initializer_list<std::uint8_t> bytes) {
    std::copy(bytes.begin(), bytes.end(), frame_.tcp.options + frame_.tcp.options_length);
    frame_.tcp.options_length = static_cast<std::uint8_t>(frame_.tcp.options_length + bytes.size());
  }
  void put32(std::uint32_t value) {
    packet::store_be32(frame_.tcp.options + frame_.tcp.options_length, value);
    frame_.tcp.options_length = static_cast<std::uint8_t>(frame_.tcp.options_length + 4);
  }
  void put_timestamps() {
    put({1, 1, 8, 10});
    put32(clock);
    put32(echo);
  }
  void send(std::uint32_t sequence, std::uint32_t acknowledgement, std::uint8_t flags,
            std::span<const std::uint8_t> payload, Nanos now) {
    frame_.tcp.sequence = sequence;
    frame_.tcp.flags = flags;
    frame_.tcp.acknowledgement = (flags & packet::kTcpAck) != 0 ? acknowledgement : 0;
    const std::uint32_t headers = packet::tcp_headers_length(frame_);
    std::vector<std::uint8_t> bytes(headers + payload.size());
    std::copy(payload.begin(), payload.end(), bytes.begin() + headers);
    packet::ChecksumSum sum;
    sum.add(payload.data(), static_cast<std::uint32_t>(payload.size()));
    static_cast<void>(packet::emit(frame_, bytes, static_cast<std::uint32_t>(payload.size()), sum));
    Segment segment{bytes.data(), static_cast<std::uint32_t>(bytes.size()), 0, Verdict::forward};
    sender_.receive(frame_at(&segment), false, now);
  }

  StreamSender& sender_;
  std::uint32_t next_;
  packet::TcpFrame frame_;
};

}  // namespace warpline::stream::testing
