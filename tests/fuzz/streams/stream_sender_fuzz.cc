// SPDX-License-Identifier: Apache-2.0
// A sender of streams: whatever segments come, in whatever pieces, what it sends is well formed, has the right bytes at
// their place, and lies in the window that the peer announced, and no connection leaves anything behind at its end.

#include <algorithm>
#include <limits>
#include <optional>

#include "fuzz/packet_input.h"
#include "warpline/packet/tcp_frame.h"
#include "warpline/packet/verify.h"
#include "warpline/stream/stream_sender.h"

using namespace warpline;

namespace {

constexpr std::uint32_t kOffered = 200'000;
constexpr std::uint16_t kSenderPort = 40'000;

std::uint8_t byte_at(std::uint64_t offset) { return static_cast<std::uint8_t>(offset * 7 + offset / 256); }

struct Source final : stream::PayloadSource {
  void read(stream::ConnectionId, std::uint64_t offset, std::uint32_t length, std::uint8_t* to,
            packet::ChecksumSum& sum) const override {
    require(offset + length <= kOffered, "only what was offered is sent");
    for (std::uint32_t i = 0; i < length; ++i) to[i] = byte_at(offset + i);
    sum.add(to, length);
  }
};

stream::SenderSettings settings(std::uint8_t choice) {
  stream::SenderSettings settings;
  settings.mac = packet::kTestDestinationMac;
  settings.address = packet::kTestDestinationV4;
  settings.connections = 2;
  settings.window_bytes = 64 << 10;
  settings.congestion = (choice & 1) != 0 ? stream::CongestionKind::fixed : stream::CongestionKind::cubic;
  settings.nagle = (choice & 2) != 0;
  settings.secret[0] = 1;
  return settings;
}

/// A segment to the connection that comes from `port`, whose numbers lie near those of the connection.
packet::FrameBytes any_segment(FuzzInput& input, std::uint16_t port, std::uint32_t initial, std::uint32_t peers) {
  packet::TcpFrame frame;
  frame.destination_mac = packet::kTestDestinationMac;
  frame.source_mac = packet::kTestSourceMac;
  frame.source = packet::kTestSourceV4;
  frame.destination = packet::kTestDestinationV4;
  packet::TcpHeader& tcp = frame.tcp;
  tcp.source_port = 80;
  tcp.destination_port = port;
  tcp.flags = input.byte();
  if ((tcp.flags & 0x80) != 0) tcp.flags = packet::kTcpAck;  // as most are
  if ((tcp.flags & 0x40) != 0) tcp.flags = packet::kTcpSyn | packet::kTcpAck;
  tcp.sequence = peers + static_cast<std::uint32_t>(static_cast<std::int8_t>(input.byte()) / 32);
  tcp.acknowledgement = initial + 1 + (tcp.flags == 0x12 ? 0 : input.byte() * 181U);
  tcp.window = static_cast<std::uint16_t>(input.byte() << 8);
  const std::uint32_t length = input.byte() % 8 == 7 ? 100 : 0;
  const std::uint8_t blocks = input.byte() % 4;
  if (blocks != 0 && (tcp.flags & packet::kTcpSyn) == 0) {
    tcp.options[0] = tcp.options[1] = packet::kTcpOptionNop;
    tcp.options[2] = packet::kTcpOptionSack;
    tcp.options[3] = static_cast<std::uint8_t>(2 + 8 * blocks);
    for (std::uint8_t i = 0; i < 2 * blocks; ++i) {
      packet::store_be32(tcp.options + 4 + 4 * i, initial + 1 + input.byte() * 362U);
    }
    tcp.options_length = static_cast<std::uint8_t>(4 + 8 * blocks);
  } else if ((tcp.flags & packet::kTcpSyn) != 0 && blocks > 1) {
    const std::uint8_t permitted[] = {packet::kTcpOptionNop, packet::kTcpOptionNop, packet::kTcpOptionSackPermitted, 2};
    std::copy_n(permitted, 4, tcp.options);
    tcp.options_length = 4;
  } else {
    tcp.options_length = static_cast<std::uint8_t>(input.byte() % 11 * 4);
    for (std::uint8_t i = 0; i < tcp.options_length; ++i) tcp.options[i] = input.byte();
  }
  const std::uint32_t headers = packet::tcp_headers_length(frame);
  packet::FrameBytes bytes(headers + length);
  packet::ChecksumSum sum;
  sum.add(bytes.data() + headers, length);
  require(packet::emit(frame, bytes, length, sum) == headers, "a segment is written");
  return bytes;
}

/// What is known of the one connection that the fuzzer has at a time.
struct Sent {
  stream::ConnectionId connection;
  std::uint32_t initial = 0;  ///< of the sender
  std::uint32_t peers = 1000;
};

/// Opens the connection of the one port that it has, perhaps one of many behind one another.
std::optional<Sent> connect(stream::StreamSender& sender, std::uint8_t choice, Nanos now) {
  const auto id = sender.connect({packet::kTestSourceV4, 80}, packet::kTestSourceMac, now, kSenderPort);
  if (!id) return std::nullopt;  // the last one is in TIME-WAIT
  require(sender.offer(*id, kOffered), "what is opened takes bytes");
  if ((choice & 1) != 0) sender.close(*id);
  return Sent{*id};
}

/// Takes all that is to be sent, and checks it.
void take_frames(stream::StreamSender& sender, packet::FrameBytes& out, Sent& sent, Nanos now) {
  for (int i = 0; i < 100; ++i) {
    const std::uint32_t length = sender.next_frame(out, now);
    if (length == 0) return;
    packet::SegmentedFrame frame(packet::FrameBytes(out.begin(), out.begin() + length));
    require(packet::verdict_of(frame.ref()) == Verdict::forward, "what is sent is well formed, with right checksums");
    const packet::ParsedFrame parsed = packet::parse(frame.ref());
    const packet::TcpView tcp(frame.ref().data() + parsed.l4_offset);
    if ((tcp.flags() & packet::kTcpSyn) != 0) sent.initial = tcp.sequence();
    if ((tcp.flags() & packet::kTcpAck) != 0) sent.peers = tcp.acknowledgement();
    const std::uint32_t offset = tcp.sequence() - sent.initial - 1;
    for (std::uint32_t at = 0; at < parsed.payload_length; ++at) {
      require(out[parsed.payload_offset + at] == byte_at(offset + at), "each byte is at its place");
    }
  }
}

/// Ends the connection and lets ten minutes pass, as long as TIME-WAIT and the wait for a FIN: then there is none, and
/// no timer.
void end(stream::StreamSender& sender, packet::FrameBytes& out, const std::optional<Sent>& sent, Nanos now) {
  if (sent) sender.abort(sent->connection, now);
  for (int second = 0; second < 600; ++second) {
    while (sender.next_frame(out, now) != 0) {
    }
    while (sender.poll()) {
    }
    now.value += 1'000'000'000;
    sender.advance(now);
  }
  require(sender.connections() == 0, "no place is taken");
  require(sender.lingering() == 0, "none lingers");
  require(sender.next_deadline().value == std::numeric_limits<std::int64_t>::max(), "no timer is armed");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  FuzzInput input(data, size);
  Nanos now{1'000'000};
  const Source source;
  auto made = stream::StreamSender::create(settings(input.byte()), source, now);
  if (!made.ok()) return 0;
  stream::StreamSender sender = std::move(made).value();
  packet::FrameBytes out(sender.frame_bytes());
  std::optional<Sent> sent = connect(sender, input.byte(), now);
  require(sent.has_value(), "there is a place");
  constexpr std::size_t kTurns = 1024;
  for (std::size_t turn = 0; turn < std::min(size, kTurns); ++turn) {
    if (!sent) sent = connect(sender, input.byte(), now);
    Sent last = sent.value_or(Sent{});
    take_frames(sender, out, last, now);
    if (sent) sent = last;
    const std::uint8_t choice = input.byte();
    const auto cuts = input.cuts();
    const auto port = static_cast<std::uint16_t>((choice & 3) == 3 ? kSenderPort + 1 : kSenderPort);
    const packet::FrameBytes bytes = any_segment(input, port, last.initial, last.peers);
    packet::SegmentedFrame pieces(bytes, cuts);
    sender.receive(pieces.ref(), (choice & 8) != 0, now);
    require(pieces.bytes() == bytes, "a frame is not written to");
    if (sent) {
      if (const auto view = sender.view(sent->connection)) {
        require(view->acknowledged <= view->sent && view->sent <= view->offered, "no more than there is");
        require(view->state != stream::SendState::open || view->window >= 1, "something may always be on its way");
      }
      // Also where the event that it has ended waits to be taken.
      if ((choice & 0x70) == 0x70)
        sender.set_user_timeout(sent->connection, Nanos{std::int64_t{1} << (choice & 15)}, now);
      if ((choice & 0x70) == 0x60) sender.close(sent->connection);
      if ((choice & 0xf0) == 0xd0) sender.abort(sent->connection, now);
    }
    if ((choice & 0x80) == 0) {
      while (sender.poll()) {
      }
    }
    if (sent && !sender.view(sent->connection)) sent.reset();
    now.value += std::int64_t{1} << (input.byte() % 36);
    sender.advance(now);
    require(sender.next_deadline() > now, "nothing that is due is left");
  }
  end(sender, out, sent, now);
  return 0;
}
