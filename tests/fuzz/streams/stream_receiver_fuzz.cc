// SPDX-License-Identifier: Apache-2.0
// A receiver of streams: whatever segments come, in whatever pieces, bytes that could be read stay as they were until
// they are released, what is sent is well formed, and no connection leaves anything behind at its end.

#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

#include "fuzz/packet_input.h"
#include "fuzz/streams/stream_segments.h"
#include "warpline/packet/verify.h"
#include "warpline/stream/stream_receiver.h"

using namespace warpline;

namespace {

/// What is known of the one connection that the fuzzer may open at a time.
struct Heard {
  stream::ConnectionId connection;
  std::uint64_t released = 0;
  packet::FrameBytes readable;  ///< as it was when it was last looked at
};

/// Opens the connection of port 1, with selective acknowledgements or without options. Returns what it acknowledges.
std::uint32_t open(stream::StreamReceiver& receiver, bool selective, Nanos now) {
  packet::TcpHeader tcp = first_syn(selective);
  packet::SegmentedFrame syn(segment(tcp, 0, 0));
  receiver.receive(syn.ref(), false, now);
  std::uint8_t reply[stream::StreamReceiver::kReplyBytes];
  require(receiver.next_reply(reply, now) != 0, "a SYN is answered");
  packet::SegmentedFrame answer{std::span<const std::uint8_t>(reply)};
  const packet::ParsedFrame parsed = packet::parse(answer.ref());
  tcp = third_segment(tcp, packet::TcpView(answer.ref().data() + parsed.l4_offset).sequence());
  packet::SegmentedFrame acknowledgement(segment(tcp, 0, 0));
  receiver.receive(acknowledgement.ref(), false, now);
  require(receiver.counters().opened.get() == 1, "and its connection opened");
  return tcp.acknowledgement;
}

/// Ends all connections and lets five minutes pass: then there is none, and no timer.
void end(stream::StreamReceiver& receiver, const std::vector<stream::ConnectionId>& connections, Nanos now) {
  for (const stream::ConnectionId connection : connections) receiver.abort(connection, now);
  receiver.end_burst(now);
  std::uint8_t reply[stream::StreamReceiver::kReplyBytes];
  for (int second = 0; second < 300; ++second) {
    while (receiver.next_reply(reply, now) != 0) {
    }
    now.value += 1'000'000'000;
    receiver.advance(now);
  }
  require(receiver.connections() == 0, "no place is taken");
  require(receiver.next_deadline().value == std::numeric_limits<std::int64_t>::max(), "no timer is armed");
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
  auto made = stream::StreamReceiver::create(receiver_of_two(), now);
  if (!made.ok()) return 0;
  stream::StreamReceiver receiver = std::move(made).value();
  std::optional<Heard> heard;
  std::vector<stream::ConnectionId> connections;
  constexpr std::size_t kTurns = 1024;
  const std::uint8_t begin = input.byte();
  std::uint32_t acknowledgement = (begin & 1) != 0 ? open(receiver, (begin & 2) != 0, now) : 0;
  for (std::size_t turn = 0; turn < std::min(size, kTurns); ++turn) {
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
      connections.push_back(event->connection);
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
      if ((choice & 15) == 15) receiver.close(heard->connection, now);
    }
    now.value += std::int64_t{1} << (input.byte() % 36);
    receiver.advance(now);
    require(receiver.next_deadline() > now, "nothing that is due is left");
  }
  end(receiver, connections, now);
  return 0;
}
