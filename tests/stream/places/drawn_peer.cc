// SPDX-License-Identifier: Apache-2.0
#include "places/drawn_peer.h"

#include <algorithm>

#include "warpline/packet/byte_order.h"

namespace warpline::stream {
namespace {

constexpr std::uint64_t kSegmentBytes = 1448;
constexpr std::uint8_t kFinAndAck = packet::kTcpFin | packet::kTcpAck;

/// What a peer does next: parts of a hundred.
enum class Act : std::uint8_t { reset, reset_behind_bytes, syn_again, old_bytes, forge, end, repeat, send };

Act draw_act(Random& random) {
  constexpr std::pair<Act, std::uint64_t> kParts[] = {{Act::reset, 3},     {Act::reset_behind_bytes, 4},
                                                      {Act::syn_again, 2}, {Act::old_bytes, 4},
                                                      {Act::forge, 4},     {Act::end, 20},
                                                      {Act::repeat, 20},   {Act::send, 43}};
  std::uint64_t part = random.below(100);
  for (const auto& [act, parts] : kParts) {
    if (part < parts) return act;
    part -= parts;
  }
  return Act::send;
}

}  // namespace

DrawnPeer::DrawnPeer(std::uint16_t port, Random& random)
    : random_(random),
      port_(port),
      // Every third number comes round within the stream.
      initial_(static_cast<std::uint32_t>(random.below(3) == 0 ? 0 - random.below(100'000) : random.next())),
      has_options_(random.below(2) == 0),
      total_(random.below(random.below(4) == 0 ? 200'000 : 5000)) {}

DrawnPeer::Frame DrawnPeer::frame(std::uint32_t sequence, std::uint8_t flags, std::uint64_t offset,
                                  std::uint32_t length, Nanos now) const {
  packet::TcpFrame header;
  header.destination_mac = testing::kOurMac;
  header.source_mac = testing::kPeerMac;
  header.source = Ipv4Address{{10, 0, 0, 2}};
  header.destination = Ipv4Address{{10, 0, 0, 1}};
  header.tcp.source_port = port_;
  header.tcp.destination_port = testing::kPort;
  header.tcp.sequence = sequence;
  header.tcp.acknowledgement = (flags & packet::kTcpAck) != 0 ? acknowledgement_ : 0;
  header.tcp.flags = flags;
  header.tcp.window = 0xffff;
  if (has_options_) {
    std::uint8_t* at = header.tcp.options;
    if ((flags & packet::kTcpSyn) != 0) {
      constexpr std::uint8_t kOffer[] = {2, 4, 5, 0xb4, 1, 3, 3, 7, 1, 1, 4, 2};
      at = std::copy(std::begin(kOffer), std::end(kOffer), at);
    }
    constexpr std::uint8_t kTimestamps[] = {1, 1, 8, 10};
    at = std::copy(std::begin(kTimestamps), std::end(kTimestamps), at);
    packet::store_be32(at, 1000 + static_cast<std::uint32_t>(now.value / 1'000'000));
    packet::store_be32(at + 4, echo_);
    header.tcp.options_length = static_cast<std::uint8_t>(at + 8 - header.tcp.options);
  }
  const std::uint32_t headers = packet::tcp_headers_length(header);
  Frame bytes(headers + length);
  for (std::uint32_t i = 0; i < length; ++i) bytes[headers + i] = byte_at(port_, offset + i);
  packet::ChecksumSum sum;
  sum.add(bytes.data() + headers, length);
  static_cast<void>(packet::emit(header, bytes, length, sum));
  return bytes;
}

void DrawnPeer::connect(Nanos now, std::vector<Frame>& out) {
  connecting_ = true;
  out.push_back(frame(initial_, packet::kTcpSyn, 0, 0, now));
}

void DrawnPeer::send_new(Nanos now, std::vector<Frame>& out) {
  const std::uint64_t end = std::min(total_, window_end_);
  if (ended_ || sent_ >= end) return;
  const std::uint32_t length = some(std::min(end - sent_, kSegmentBytes));
  const std::uint8_t push = random_.below(4) == 0 ? packet::kTcpPsh : std::uint8_t{0};
  if (random_.below(10) != 0) out.push_back(frame(sequence(sent_), packet::kTcpAck | push, sent_, length, now));
  sent_ += length;
}

void DrawnPeer::send_again(Nanos now, std::vector<Frame>& out) const {
  if (acknowledged_ < sent_) {
    const auto length = static_cast<std::uint32_t>(std::min(sent_ - acknowledged_, kSegmentBytes));
    out.push_back(frame(sequence(acknowledged_), packet::kTcpAck, acknowledged_, length, now));
  } else if (ended_) {
    out.push_back(frame(sequence(sent_), kFinAndAck, sent_, 0, now));
  }
}

/// Any flags and numbers, of ends that may be another peer's.
void DrawnPeer::send_forged(Nanos now, std::vector<Frame>& out) const {
  DrawnPeer other = *this;
  if (random_.below(2) == 0) other.port_ = static_cast<std::uint16_t>(30'000 + random_.below(20));
  other.acknowledgement_ = static_cast<std::uint32_t>(random_.next());
  // Numbers that fit exactly are not forged: those of segments before the stream, and far behind it, never do.
  const std::uint32_t forged = sequence(total_ + 1 + random_.below(std::uint64_t{1} << 31));
  const auto flags = static_cast<std::uint8_t>(random_.next() & 0x3f);
  const bool bare = (flags & (packet::kTcpRst | packet::kTcpSyn)) != 0;
  out.push_back(other.frame(forged, flags, 0, bare ? 0 : some(50), now));
}

void DrawnPeer::send_end(Nanos now, std::vector<Frame>& out) {
  if (sent_ < total_) return send_new(now, out);
  ended_ = true;
  out.push_back(frame(sequence(sent_), kFinAndAck, sent_, 0, now));
}

void DrawnPeer::send_reset(bool behind_bytes, Nanos now, std::vector<Frame>& out) {
  if (behind_bytes && !ended_ && sent_ < total_) {
    const std::uint32_t length = some(std::min<std::uint64_t>(total_ - sent_, 100));
    out.push_back(frame(sequence(sent_), packet::kTcpAck, sent_, length, now));
    sent_ += length;
  }
  const std::uint64_t at = behind_bytes ? sent_ + (ended_ ? 1 : 0) : acknowledged_;
  out.push_back(frame(sequence(at), packet::kTcpRst, 0, 0, now));
  // It falls silent, or goes on: the reset may have been someone else's.
  over_ = random_.below(2) == 0;
}

void DrawnPeer::act(Nanos now, std::vector<Frame>& out) {
  const Act act = draw_act(random_);
  if (!open_) {
    if (!connecting_ || act == Act::repeat) connect(now, out);
    if (act == Act::forge) send_forged(now, out);
    over_ = connecting_ && random_.below(50) == 0;
    return;
  }
  switch (act) {
    case Act::reset:
    case Act::reset_behind_bytes:
      return send_reset(act == Act::reset_behind_bytes, now, out);
    case Act::syn_again:
      out.push_back(frame(initial_, packet::kTcpSyn, 0, 0, now));
      return;
    case Act::old_bytes: {
      const std::uint64_t offset = random_.below(sent_ + 1);
      const std::uint32_t length = some(std::min<std::uint64_t>(sent_ - offset, 3000));
      out.push_back(frame(sequence(offset), packet::kTcpAck, offset, length, now));
      return;
    }
    case Act::forge:
      return send_forged(now, out);
    case Act::end:
      over_ = acknowledged_ > total_ && random_.below(5) == 0;
      return send_end(now, out);
    case Act::repeat:
      return send_again(now, out);
    case Act::send:
      return send_new(now, out);
  }
}

bool DrawnPeer::hear(const testing::Reply& reply, Nanos now, std::vector<Frame>& out) {
  const packet::TcpHeader& tcp = reply.tcp();
  if (over_ || !connecting_) return true;
  if (reply.has(packet::kTcpRst)) {
    // Resets of forged segments have numbers that are none of this connection.
    over_ = open_ && tcp.sequence == acknowledgement_;
    return true;
  }
  if (reply.has(packet::kTcpSyn)) {
    if (!open_ && tcp.acknowledgement == sequence(0)) {
      open_ = true;
      acknowledgement_ = tcp.sequence + 1;
      scale_ = reply.scale.value_or(0);
      window_end_ = tcp.window;
      echo_ = reply.timestamp;
    }
    if (open_) out.push_back(frame(sequence(sent_ + (ended_ ? 1 : 0)), packet::kTcpAck, 0, 0, now));
    return true;
  }
  // A forged SYN may have opened another connection of the same ends: its numbers are others.
  const auto ahead = static_cast<std::int32_t>(tcp.sequence - acknowledgement_);
  if (!open_ || ahead < -1 || ahead > 1) return true;
  echo_ = reply.timestamp;
  const auto more = static_cast<std::int32_t>(tcp.acknowledgement - sequence(acknowledged_));
  if (more > 0) {
    acknowledged_ += static_cast<std::uint64_t>(more);
    if (acknowledged_ > sent_ + (ended_ ? 1 : 0)) return false;
  }
  if (more >= 0) window_end_ = acknowledged_ + (std::uint64_t{tcp.window} << scale_);
  if (reply.has(packet::kTcpFin)) {
    acknowledgement_ = tcp.sequence + 1;
    out.push_back(frame(sequence(sent_ + (ended_ ? 1 : 0)), packet::kTcpAck, 0, 0, now));
    over_ = random_.below(2) == 0;
  }
  return true;
}

}  // namespace warpline::stream
