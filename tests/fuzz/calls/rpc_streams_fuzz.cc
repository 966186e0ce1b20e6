// SPDX-License-Identifier: Apache-2.0
// Calls in pieces beside a peer that says whatever it likes of them, and an application that does anything in any
// order: what a peer holds here stays within its windows, every call ends, and all that it took comes back.

#include <array>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "fuzz/packet_input.h"
#include "warpline/rpc/streams/call_streams.h"

using namespace warpline;

namespace {

using Head = packet::MessageStreamHead;

constexpr std::uint32_t kStreams = 3;
constexpr std::uint32_t kWindow = rpc::kLeastStreamWindow;
constexpr std::size_t kHost = 0;
constexpr std::size_t kLiar = 1;

/// A host of streams and an endpoint that lies, with a network that loses some.
struct Talk {
  Talk() {
    message::EndpointConfig config;
    config.max_sessions = 2;
    config.max_messages = 1024;
    config.max_sent_packets = 1024;
    config.receive_bytes = 2U << 20;
    config.max_message_bytes = 100'000;
    config.receive_window = 4 * kWindow;
    config.streams = true;
    for (std::uint8_t i = 0; i < 2; ++i) {
      config.secret.emplace().fill(static_cast<std::uint8_t>(i + 1));
      ends.push_back(message::Endpoint::create(config, now).value());
      addresses.push_back(message::peer_address(Ipv4Address{{10, 0, 0, i}}, 7));
    }
    streams = rpc::CallStreams::make({.streams = kStreams, .window = kWindow}, config, nullptr).value();
    streams->take_by([this](rpc::CallStream stream) { mine.push_back(std::move(stream)); });
    sessions[kHost] = ends[kHost].connect(addresses[kLiar], {}, now).session;
    for (int i = 0; i < 4; ++i) turn(0);
    before = ends[kHost].facts();
  }

  void transmit(std::size_t from, std::uint8_t lost) {
    std::array<message::Outgoing, 8> out;
    std::array<std::array<std::uint8_t, 1500>, 8> heads;
    for (std::size_t i = 0; i < out.size(); ++i) {
      out[i].head = heads[i].data();
      out[i].head_capacity = 1500;
      out[i].copy_up_to = 1500;
    }
    for (std::size_t count = out.size(); count == out.size();) {
      count = ends[from].transmit(out, now);
      for (std::size_t i = 0; i < count; ++i) {
        std::vector<std::uint8_t> bytes(out[i].head, out[i].head + out[i].head_length);
        bytes.insert(bytes.end(), out[i].payload, out[i].payload + out[i].payload_length);
        if (out[i].token != 0) ends[from].transmitted(out[i].token);
        if (i < 8 && (lost >> i & 1) != 0) continue;
        message::Datagram datagram;
        datagram.head = bytes.data();
        datagram.head_length = static_cast<std::uint32_t>(bytes.size());
        datagram.from = addresses[from];
        ends[1 - from].receive({&datagram, 1}, now);
      }
    }
  }

  void poll() {
    std::array<message::MessageEvent, 16> events;
    for (std::size_t count = events.size(); count == events.size();) {
      count = ends[kHost].poll(events);
      for (const message::MessageEvent& event : std::span(events).first(count))
        static_cast<void>(streams->handle(ends[kHost], event, now));
    }
    for (std::size_t count = events.size(); count == events.size();) {
      count = ends[kLiar].poll(events);
      for (const message::MessageEvent& event : std::span(events).first(count)) learn(event);
    }
  }

  void learn(const message::MessageEvent& event) {
    if (event.kind == message::EventKind::accepted) sessions[kLiar] = event.session;
    const bool has_head = event.kind == message::EventKind::stream_request ||
                          event.kind == message::EventKind::stream_piece ||
                          (event.kind == message::EventKind::response && event.status == message::MessageStatus::ok);
    if (!has_head) return;
    Head head;
    require(packet::parse(event.data, event.length, head) == packet::MessageParse::ok, "what the host says has a head");
    heard.push_back(head);
    if (heard.size() > 8) heard.pop_front();
    if (event.kind == message::EventKind::stream_request) {
      asked.push_back(event.id);
    } else {
      static_cast<void>(ends[kLiar].release(event.id, now));
    }
  }

  void turn(std::uint8_t lost) {
    now.value += 100'000;
    for (message::Endpoint& end : ends) end.advance(now);
    poll();
    static_cast<void>(streams->advance(ends[kHost], true, now));
    transmit(kHost, lost);
    transmit(kLiar, static_cast<std::uint8_t>(lost >> 4));
    poll();
    // What the pieces of all streams cost, and what goes with each: no block is more than twice as long as its piece,
    // or two kilobytes.
    const std::uint64_t taken = before.free_receive_bytes - ends[kHost].facts().free_receive_bytes;
    if (before.free_receive_bytes != 0) require(taken <= 1'500'000, "what a peer holds is bounded");
  }

  Nanos now{1'000'000'000};
  std::vector<message::Endpoint> ends;
  std::vector<message::PeerAddress> addresses;
  std::array<message::SessionId, 2> sessions;
  std::unique_ptr<rpc::CallStreams> streams;
  std::vector<rpc::CallStream> mine;  ///< opened or taken
  std::deque<Head> heard;
  std::vector<message::MessageId> asked;
  message::EndpointFacts before{};
};

/// A message with a head made of what was heard and of the input.
std::vector<std::uint8_t> lie(Talk& talk, FuzzInput& input) {
  Head head;
  if (!talk.heard.empty()) {
    const Head& last = talk.heard[input.byte() % talk.heard.size()];
    head.to = last.from;
    head.from = last.to == 0 ? 0x1000 : last.to;
  }
  const std::uint8_t how = input.byte();
  head.kind = static_cast<Head::Kind>(1 + how % 5);
  if ((how & 32) != 0) head.to += input.byte();
  if ((how & 64) != 0) head.from += input.byte() + 1U;
  head.number = (how & 128) != 0 ? input.byte() * 0x01010101U : input.byte() % 8U;
  head.credit = input.byte() * 0x00400000U + 65'536;
  const std::uint32_t length = input.byte() * (input.byte() % 8U == 0 ? 300U : 10U);
  std::vector<std::uint8_t> bytes(Head::kLength + length);
  packet::emit(head, bytes.data());
  if (how % 16 == 15) bytes.resize(input.byte() % 24U);
  if (how % 16 == 14 && !bytes.empty()) bytes[input.byte() % bytes.size()] ^= input.byte();
  return bytes;
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  FuzzInput input(data, size);
  Talk talk;
  for (int step = 0; step < 300; ++step) {
    const std::uint8_t action = input.byte();
    if (action == 0) break;
    rpc::CallStream none;
    rpc::CallStream& stream = talk.mine.empty() ? none : talk.mine[action / 16 % talk.mine.size()];
    const bool has = !talk.mine.empty();
    switch (action % 16) {
      case 1:
      case 2:
      case 3: {
        const std::vector<std::uint8_t> bytes = lie(talk, input);
        static_cast<void>(talk.ends[kLiar].send(talk.sessions[kLiar],
                                                {bytes.data(), static_cast<std::uint32_t>(bytes.size())},
                                                {.copy = true, .stream = true}, talk.now));
        break;
      }
      case 4: {
        const std::vector<std::uint8_t> bytes = lie(talk, input);
        message::RequestOptions options{.copy = true, .response_in_endpoint = true, .stream = true};
        if ((action & 64) != 0) options.deadline = {talk.now.value + input.byte() * 100'000};
        static_cast<void>(talk.ends[kLiar].request(
            talk.sessions[kLiar], {bytes.data(), static_cast<std::uint32_t>(bytes.size())}, {}, options, talk.now));
        break;
      }
      case 5: {
        if (talk.asked.empty()) break;
        const std::vector<std::uint8_t> bytes = lie(talk, input);
        static_cast<void>(talk.ends[kLiar].respond(talk.asked[input.byte() % talk.asked.size()],
                                                   {bytes.data(), static_cast<std::uint32_t>(bytes.size())},
                                                   {.copy = true, .stream = true}, talk.now));
        break;
      }
      case 6: {
        const std::vector<std::uint8_t> request(input.byte() * 50U);
        rpc::StreamCall call{.session = talk.sessions[kHost], .request = request};
        if ((action & 64) != 0) call.patience = {input.byte() * 100'000};
        rpc::OpenedStream opened = talk.streams->open(call, talk.now);
        if (opened.status == message::CallStatus::ok) talk.mine.push_back(std::move(opened.stream));
        break;
      }
      case 7:
      case 8:
        if (has) static_cast<void>(stream.try_write(std::vector<std::uint8_t>(input.byte() * 65U)));
        break;
      case 9:
      case 10: {
        std::span<const std::uint8_t> piece;
        std::uint32_t sum = 0;
        while (has && stream.try_read(piece) == rpc::StreamRead::piece) {
          for (const std::uint8_t byte : piece) sum += byte;
          if ((action & 128) != 0) break;
        }
        require(sum != 0xffffffff, "what is read is there");
        break;
      }
      case 11:
        if (has && (action & 64) != 0) stream.end_writing();
        if (has && (action & 64) == 0)
          static_cast<void>(stream.finish(action, std::vector<std::uint8_t>(input.byte() % 109U)));
        break;
      case 12:
        if (has) stream.cancel();
        break;
      case 13:
        if (has) talk.mine.erase(talk.mine.begin() + action / 16 % static_cast<std::ptrdiff_t>(talk.mine.size()));
        break;
      default:
        talk.turn(input.byte());
        break;
    }
  }
  // Nobody wants anything any more.
  static_cast<void>(talk.ends[kHost].close(talk.sessions[kHost], talk.now));
  for (int i = 0; i < 8; ++i) talk.turn(0);
  for (const rpc::CallStream& stream : talk.mine) require(stream.ended(), "no call outlives its session");
  talk.mine.clear();
  for (int i = 0; i < 8; ++i) talk.turn(0);
  require(talk.streams->available() == kStreams, "every place is free again");
  const message::EndpointFacts after = talk.ends[kHost].facts();
  require(
      after.free_messages == talk.before.free_messages && after.free_receive_bytes == talk.before.free_receive_bytes,
      "all memory is back");
  return 0;
}
