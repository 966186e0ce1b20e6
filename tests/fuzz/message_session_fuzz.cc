// SPDX-License-Identifier: Apache-2.0
// An endpoint under any sequence of calls, datagrams of a lying peer and steps of the clock: it never reads or writes
// what is not its own, keeps what is in flight within bounds, and ends every message once. With protection or without;
// ends are somewhere else now and then, and the network says that they are not there.

#include <map>
#include <memory>

#include "fuzz/packet_input.h"
#include "sim/toy_protection.h"
#include "warpline/message/endpoint.h"
#include "warpline/packet/headers/message_header.h"

using namespace warpline;

namespace {

constexpr std::uint32_t kRoom = 1024;

template <typename T>
T pick(const std::vector<T>& from, std::uint8_t which) {
  return from.empty() ? T{} : from[which % from.size()];
}

/// Two endpoints whose packets the fuzzer may carry, change, repeat and lose.
struct Pair {
  Pair(bool go_back_n, bool grants, bool is_protected, std::uint32_t max_messages) {
    message::EndpointConfig config;
    config.max_sessions = 3;
    config.max_messages = max_messages;
    config.max_queued = 16;
    config.max_sent_packets = 256;
    config.receive_bytes = 64 << 10;
    config.max_message_bytes = 20'000;
    config.receive_window = 8192;
    config.datagram_bytes = 512;
    config.base_bytes = 300;
    if (go_back_n) config.reliability = message::Reliability::go_back_n;
    if (grants) config.grants = 2048;
    for (std::uint8_t i = 0; i < 2; ++i) {
      config.secret.emplace().fill(static_cast<std::uint8_t>(i + 1));
      config.streams = i == 0;
      if (is_protected) {
        protections.push_back(std::make_unique<sim::ToyProtection>(config.max_sessions));
        config.protection = protections.back().get();
      }
      hosts.push_back(message::Endpoint::create(config, now).value());
      addresses.push_back(message::peer_address(Ipv4Address{{10, 0, 0, i}}, 7));
    }
  }

  void transmit(std::size_t from) {
    message::Outgoing out[4];
    std::uint8_t heads[4][kRoom];
    for (std::size_t i = 0; i < 4; ++i) {
      out[i].head = heads[i];
      out[i].head_capacity = kRoom;
      out[i].copy_up_to = 64;
    }
    const std::size_t count = hosts[from].transmit(out, now);
    for (std::size_t i = 0; i < count; ++i) {
      std::vector<std::uint8_t> bytes(out[i].head, out[i].head + out[i].head_length);
      bytes.insert(bytes.end(), out[i].payload, out[i].payload + out[i].payload_length);
      require(bytes.size() <= 512, "no packet is longer than the datagram that was asked for");
      wire[from].push_back(std::move(bytes));
      if (out[i].token != 0) tokens[from].push_back(out[i].token);
    }
    while (wire[from].size() > 64) wire[from].erase(wire[from].begin());
  }

  void receive(std::size_t to, std::vector<std::uint8_t> bytes, std::uint8_t ecn) {
    // What is decrypted lies in one piece.
    const std::size_t most = protections.empty() ? message::kMaxHeadBytes : bytes.size();
    const auto cut = static_cast<std::uint32_t>(std::min(bytes.size(), most));
    std::vector<std::uint8_t> head(bytes.begin(), bytes.begin() + cut);
    std::vector<std::uint8_t> rest(bytes.begin() + cut, bytes.end());
    message::Datagram datagram;
    datagram.head = head.data();
    datagram.head_length = cut;
    datagram.rest = rest.data();
    datagram.rest_length = static_cast<std::uint32_t>(rest.size());
    datagram.from = address_of(1 - to);
    datagram.ecn = ecn;
    hosts[to].receive({&datagram, 1}, now);
  }

  /// Where its packets come from now.
  [[nodiscard]] message::PeerAddress address_of(std::size_t side) const {
    message::PeerAddress address = addresses[side];
    address.port = static_cast<std::uint16_t>(address.port + places[side] % 64);
    address.ip[13] = places[side] / 64;
    return address;
  }

  /// ICMP of a liar, or not: of the first bytes of a packet that this side has sent.
  void unreachable(std::size_t side, std::vector<std::uint8_t> bytes, std::size_t most) {
    bytes.resize(std::min(bytes.size(), most));
    const message::Unreachable said{address_of(1 - side), bytes};
    hosts[side].unreachable({&said, 1}, now);
  }

  void poll(std::size_t at) {
    message::MessageEvent events[4];
    const std::size_t count = hosts[at].poll(events);
    for (std::size_t i = 0; i < count; ++i) {
      const message::MessageEvent& event = events[i];
      if (event.kind == message::EventKind::connected || event.kind == message::EventKind::accepted)
        sessions[at].push_back(event.session);
      const bool of_stream =
          event.kind == message::EventKind::stream_request || event.kind == message::EventKind::stream_piece;
      require(!of_stream || at == 0, "streams come only where they are taken");
      if (of_stream || event.kind == message::EventKind::request || event.kind == message::EventKind::message) {
        std::uint8_t sum = 0;
        for (std::uint32_t b = 0; b < event.length; ++b) sum = static_cast<std::uint8_t>(sum + event.data[b]);
        for (const std::uint8_t byte : event.metadata()) sum = static_cast<std::uint8_t>(sum + byte);
        read = static_cast<std::uint8_t>(read + sum);
        held[at].push_back(event.id);
      }
      const bool ends =
          (event.kind == message::EventKind::response || event.kind == message::EventKind::sent) && !event.id.incoming;
      if (ends) require(under_way[at].erase(event.context) == 1, "a message ends once");
      // Nothing to be given back where the buffer was the application's: release() then says so.
      const bool answered = event.kind == message::EventKind::response && event.status == message::MessageStatus::ok;
      if (answered) held[at].push_back(event.id);
    }
  }

  /// Submits a request or a one-way message.
  void begin(std::size_t side, std::uint8_t action, std::uint8_t which, std::uint8_t room_bytes,
             const std::vector<std::uint8_t>& payload) {
    const std::uint64_t context = ++contexts;
    const std::uint32_t length = which < 128 ? which : (which - 127U) * 155U;
    auto response = std::make_unique<std::vector<std::uint8_t>>(room_bytes * 8U);
    const message::MutableBuffer room{response->data(), static_cast<std::uint32_t>(response->size()), false};
    message::Submitted made;
    if ((action & 64) != 0) {
      message::SendOptions options;
      options.context = context;
      options.copy = (action & 128) != 0;
      options.stream = which % 5 == 0;
      if (which % 7 == 0) options.priority = message::Priority::high;
      if (which % 3 == 0) options.metadata = std::span(payload).first(which * 4U);
      made = hosts[side].send(pick(sessions[side], which), {payload.data(), length, false}, options, now);
    } else {
      message::RequestOptions options;
      options.context = context;
      options.copy = (action & 128) != 0;
      if (which % 4 == 0) options.deadline = Nanos{now.value + which * 100'000};
      options.response_in_endpoint = which % 8 < 3;
      options.stream = which % 5 == 0;
      if (which % 7 == 0) options.priority = message::Priority::high;
      if (which % 3 == 0) options.metadata = std::span(payload).first(which * 4U);
      made = hosts[side].request(pick(sessions[side], which), {payload.data(), length, false},
                                 options.response_in_endpoint ? message::MutableBuffer{} : room, options, now);
    }
    if (made.status != message::CallStatus::ok) return;
    under_way[side][context] = std::move(response);
    own[side].push_back(made.id);
  }

  Nanos now{1'000'000'000'000};
  std::vector<std::unique_ptr<sim::ToyProtection>> protections;  ///< of the hosts, if they have any
  std::vector<message::Endpoint> hosts;
  std::vector<message::PeerAddress> addresses;
  std::uint8_t places[2] = {};  ///< where packets come from: address_of()
  std::vector<std::vector<std::uint8_t>> wire[2];
  std::vector<std::uint64_t> tokens[2];
  std::vector<message::SessionId> sessions[2];
  std::vector<message::MessageId> held[2];
  std::vector<message::MessageId> own[2];
  std::map<std::uint64_t, std::unique_ptr<std::vector<std::uint8_t>>> under_way[2];
  std::uint64_t contexts = 0;
  std::uint8_t read = 0;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  FuzzInput input(data, size);
  const std::uint8_t first = input.byte();
  const std::uint32_t messages = (first & 32) != 0 ? 160 : 24;
  Pair pair((first & 1) != 0, (first & 8) != 0, (first & 16) != 0, messages);
  message::SessionOptions session_options;
  session_options.ordered = (first & 2) != 0;
  pair.sessions[0].push_back(pair.hosts[0].connect(pair.addresses[1], session_options, pair.now).session);
  if ((first & 4) != 0) {  // most of the time past the handshake
    for (int i = 0; i < 6; ++i) {
      for (const std::size_t side : {0, 1}) {
        pair.transmit(side);
        for (auto& bytes : pair.wire[side]) pair.receive(1 - side, bytes, 0);
        pair.wire[side].clear();
        pair.poll(1 - side);
      }
    }
  }
  const std::vector<std::uint8_t> payload(20'000, 0x11);
  for (std::size_t step = 0; step < size; ++step) {
    const std::uint8_t action = input.byte();
    const std::uint8_t which = input.byte();
    const std::size_t side = action & 1;
    message::Endpoint& host = pair.hosts[side];
    switch (action >> 1 & 15) {
      case 0:
      case 1:
        pair.transmit(side);
        break;
      case 2:
      case 3: {  // the oldest packet arrives
        auto& wire = pair.wire[1 - side];
        if (wire.empty()) break;
        auto bytes = wire.front();
        wire.erase(wire.begin());
        pair.receive(side, bytes, which & 3);
        break;
      }
      case 4: {  // any packet, changed
        auto bytes = pick(pair.wire[1 - side], which);
        const std::size_t at = input.byte();
        if (at < bytes.size()) bytes[at] = input.byte();
        pair.receive(side, bytes, 0);
        break;
      }
      case 5:
        if ((action & 192) == 192) {
          pair.unreachable(side, pick(pair.wire[side], which), input.byte());
        } else {
          pair.receive(side, pick(pair.wire[1 - side], which), 0);
        }
        break;
      case 6: {  // lost
        auto& wire = pair.wire[1 - side];
        if (!wire.empty()) wire.erase(wire.begin() + which % static_cast<std::ptrdiff_t>(wire.size()));
        break;
      }
      case 7:
        pair.now.value += std::int64_t{which} * which * 1000;
        host.advance(pair.now);
        break;
      case 8:
        pair.now.value += (std::int64_t{which} - 100) * 100'000'000;
        host.advance(pair.now);
        break;
      case 9:
      case 10: {
        const int times = which == 251 ? 70 : 1;  // more than a session has slots
        const std::uint8_t room = input.byte();
        for (int i = 0; i < times; ++i) pair.begin(side, action, which, room, payload);
        break;
      }
      case 11: {
        message::SendOptions options;
        options.copy = (action & 64) != 0;
        if ((action & 128) != 0) options.metadata = std::span(payload).first(which * 4U);
        static_cast<void>(
            host.respond(pick(pair.held[side], which), {payload.data(), which * 40U, false}, options, pair.now));
        break;
      }
      case 12:
        static_cast<void>((action & 64) != 0 ? host.release(pick(pair.held[side], which), pair.now)
                                             : host.cancel(pick(pair.own[side], which), pair.now));
        break;
      case 13:
        if (!pair.tokens[side].empty()) {
          host.transmitted(pair.tokens[side].back());
          pair.tokens[side].pop_back();
        } else {
          pair.places[side] = which;  // it is somewhere else
        }
        break;
      case 14:
        pair.poll(side);
        break;
      case 15: {
        const message::SessionId session = pick(pair.sessions[side], which);
        if ((action & 192) == 0) static_cast<void>(host.close(session, pair.now));
        if ((action & 192) == 64 && which >= 192) host.drain(Nanos{pair.now.value + which * 100'000}, pair.now);
        if ((action & 192) == 64) static_cast<void>(host.reconnect(session, pair.now));
        if ((action & 192) == 128) pair.receive(side, input.rest(), 0);
        if ((action & 192) == 192) {
          const message::Opened opened = host.connect(pair.addresses[1 - side], session_options, pair.now);
          if (opened.status == message::CallStatus::ok) pair.sessions[side].push_back(opened.session);
        }
        break;
      }
      default:  // there are no others
        break;
    }
    for (const message::SessionId session : pair.sessions[side]) {
      const message::SessionFacts facts = host.facts(session);
      require(facts.in_flight_packets <= 1024 && facts.messages <= 64, "what is in flight is bounded");
      require((facts.in_flight_packets == 0) == (facts.in_flight_bytes == 0), "packets and bytes in flight agree");
    }
    require(host.facts().queued_messages <= 16, "what waits is bounded");
    static_cast<void>(host.next_deadline());
  }
  // Both ends are closed: everything that was begun must have ended, and all memory be back.
  for (const std::size_t side : {0, 1}) {
    for (const message::SessionId session : pair.sessions[side])
      static_cast<void>(pair.hosts[side].close(session, pair.now));
    for (const std::uint64_t token : pair.tokens[side]) pair.hosts[side].transmitted(token);
    pair.hosts[side].advance(pair.now);  // which may be before what it saw last
    for (int i = 0; i < 4000; ++i) {     // sessions that were never confirmed; in one step it would have been away
      pair.now.value += 900'000;
      pair.hosts[side].advance(pair.now);
    }
    for (int i = 0; i < 200; ++i) pair.poll(side);
    for (const message::MessageId& id : pair.held[side]) static_cast<void>(pair.hosts[side].release(id, pair.now));
    for (int i = 0; i < 10; ++i) pair.poll(side);
    for (const message::SessionId session : pair.sessions[side])
      static_cast<void>(pair.hosts[side].forget(session, pair.now));
    for (int i = 0; i < 200; ++i) pair.poll(side);
    require(pair.under_way[side].empty(), "every message ended");
    const message::EndpointFacts facts = pair.hosts[side].facts();
    require(facts.free_sessions == 3, "no session leaks");
    require(facts.free_messages == messages && facts.queued_messages == 0, "no message leaks");
    require(facts.free_sent_packets == 256, "no packet leaks");
    require(facts.free_receive_bytes == 64 << 10, "no receive memory leaks");
  }
  for (const auto& protection : pair.protections) {
    require(protection->misused() == 0, "no packet number is sealed twice, and none outside of a session");
  }
  return 0;
}
