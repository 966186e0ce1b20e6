// SPDX-License-Identifier: Apache-2.0
// A receiver of streams: whatever segments come, in whatever pieces, bytes that could be read stay as they were until
// they are released, and what is sent is well formed.

#include <algorithm>
#include <optional>

#include "fuzz/packet_input.h"
#include "warpline/packet/tcp_frame.h"
#include "warpline/packet/verify.h"
#include "warpline/stream/stream_receiver.h"

using namespace warpline;

namespace {

constexpr std::uint32_t kPeerInitial = 1000;

/// What is known of the one connection that the fuzzer may open at a time.
struct Heard {
  stream::ConnectionId connection;
  std::uint64_t released = 0;
  packet::FrameBytes readable;  ///< as it was when it was last looked at
};

stream::ReceiverSettings settings() {
  stream::ReceiverSettings settings;
  settings.mac = packet::kTestDestinationMac;
  settings.address = packet::kTestDestinationV4;
  settings.ports = {80};
  settings.connections = 2;
  settings.half_open = 1;
  settings.ring_bytes = 64 << 10;
  settings.secret[0] = 1;
  return settings;
}

/// A segment of `length` bytes `fill`, its numbers and options in `tcp`.
packet::FrameBytes segment(const packet::TcpHeader& tcp, std::uint32_t length, std::uint8_t fill) {
  packet::TcpFrame frame;
  frame.destination_mac = packet::kTestDestinationMac;
  frame.source_mac = packet::kTestSourceMac;
  frame.source = packet::kTestSourceV4;
  frame.destination = packet::kTestDestinationV4;
  frame.tcp = tcp;
  frame.tcp.destination_port = 80;
  const std::uint32_t headers = packet::tcp_headers_length(frame);
  packet::FrameBytes bytes(headers + length, fill);
  packet::ChecksumSum sum;
  sum.add(bytes.data() + headers, length);
  require(packet::emit(frame, bytes, length, sum) == headers, "a segment is written");
  return bytes;
}

/// A segment whose numbers lie near those of the connection.
packet::FrameBytes any_segment(FuzzInput& input, std::uint32_t acknowledgement) {
  packet::TcpHeader tcp;
  tcp.source_port = static_cast<std::uint16_t>(1 + input.byte() / 100);
  tcp.flags = input.byte();
  if ((tcp.flags & 0x80) != 0) tcp.flags = packet::kTcpAck;  // as most are
  const auto step = static_cast<std::int8_t>(input.byte());
  const std::int32_t scale = 1 << (input.byte() % 17);
  tcp.sequence = kPeerInitial + static_cast<std::uint32_t>(step * scale);
  tcp.acknowledgement = acknowledgement + static_cast<std::uint32_t>(static_cast<std::int8_t>(input.byte()) / 64);
  tcp.options_length = static_cast<std::uint8_t>(input.byte() % 11 * 4);
  for (std::uint8_t i = 0; i < tcp.options_length; ++i) tcp.options[i] = input.byte();
  const std::uint32_t length = input.byte() % 8 * 190;
  return segment(tcp, length, input.byte());
}

/// Opens the connection of port 1, with selective acknowledgements or without options. Returns what it acknowledges.
std::uint32_t open(stream::StreamReceiver& receiver, bool selective, Nanos now) {
  packet::TcpHeader tcp;
  tcp.source_port = 1;
  tcp.flags = packet::kTcpSyn;
  tcp.sequence = kPeerInitial;
  if (selective) {
    tcp.options_length = 4;
    const std::uint8_t permitted[] = {packet::kTcpOptionNop, packet::kTcpOptionNop, packet::kTcpOptionSackPermitted, 2};
    std::copy_n(permitted, 4, tcp.options);
  }
  packet::SegmentedFrame syn(segment(tcp, 0, 0));
  receiver.receive(syn.ref(), false, now);
  std::uint8_t reply[stream::StreamReceiver::kReplyBytes];
  require(receiver.next_reply(reply, now) != 0, "a SYN is answered");
  packet::SegmentedFrame answer{std::span<const std::uint8_t>(reply)};
  const packet::ParsedFrame parsed = packet::parse(answer.ref());
  tcp.acknowledgement = packet::TcpView(answer.ref().data() + parsed.l4_offset).sequence() + 1;
  tcp.sequence = kPeerInitial + 1;
  tcp.flags = packet::kTcpAck;
  tcp.options_length = 0;
  packet::SegmentedFrame acknowledgement(segment(tcp, 0, 0));
  receiver.receive(acknowledgement.ref(), false, now);
  require(receiver.counters().opened.get() == 1, "and its connection opened");
  return tcp.acknowledgement;
}

void check(const stream::StreamReceiver& receiver, Heard& heard) {
  const auto view = receiver.view(heard.connection);
  if (!view) return;
  require(view->begin == heard.released, "the beginning moves by what is released alone");
  require(view->bytes.size() >= heard.readable.size(), "what could be read can be read");
  require(std::equal(heard.readable.begin(), heard.readable.end(), view->bytes.begin()), "and has not changed");
  require(view->bytes.size() <= 64 << 10, "no more than the ring holds");
  heard.readable.assign(view->bytes.begin(), view->bytes.end());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  FuzzInput input(data, size);
  Nanos now{1};
  auto made = stream::StreamReceiver::create(settings(), now);
  if (!made.ok()) return 0;
  stream::StreamReceiver receiver = std::move(made).value();
  std::optional<Heard> heard;
  const std::uint8_t begin = input.byte();
  std::uint32_t acknowledgement = (begin & 1) != 0 ? open(receiver, (begin & 2) != 0, now) : 0;
  for (std::size_t turn = 0; turn < std::min<std::size_t>(size, 64); ++turn) {
    const std::uint8_t choice = input.byte();
    const auto cuts = input.cuts();
    const packet::FrameBytes bytes =
        (choice & 7) == 7 ? input.frame({any_segment(input, acknowledgement)}) : any_segment(input, acknowledgement);
    packet::SegmentedFrame pieces(bytes, cuts);
    receiver.receive(pieces.ref(), (choice & 8) != 0, now);
    require(pieces.bytes() == bytes, "a frame is not written to");
    if ((choice & 16) != 0) receiver.end_burst(now);
    std::uint8_t reply[stream::StreamReceiver::kReplyBytes];
    while (const std::uint32_t length = receiver.next_reply(reply, now)) {
      packet::SegmentedFrame sent(packet::FrameBytes(reply, reply + length));
      require(packet::verdict_of(sent.ref()) == Verdict::forward, "a reply is well formed, with right checksums");
      const packet::ParsedFrame parsed = packet::parse(sent.ref());
      const packet::TcpView tcp(sent.ref().data() + parsed.l4_offset);
      if ((tcp.flags() & packet::kTcpSyn) != 0 && tcp.destination_port() == 1) acknowledgement = tcp.sequence() + 1;
    }
    while (const auto event = receiver.poll()) {
      if (!heard || !receiver.view(heard->connection)) heard = Heard{event->connection, 0, {}};
    }
    if (heard) {
      check(receiver, *heard);
      const std::uint64_t some = heard->readable.size() * (choice >> 6) / 3;
      if (receiver.release(heard->connection, some)) {
        heard->released += some;
        heard->readable.erase(heard->readable.begin(), heard->readable.begin() + static_cast<std::ptrdiff_t>(some));
        check(receiver, *heard);
      }
      if ((choice & 63) == 63) receiver.close(heard->connection, now);
    }
    now.value += std::int64_t{1} << (input.byte() % 36);
    receiver.advance(now);
    require(receiver.next_deadline() > now, "nothing that is due is left");
  }
  return 0;
}
