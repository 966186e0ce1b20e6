// SPDX-License-Identifier: Apache-2.0
// What those cannot do who do not know the cookie.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <type_traits>

#include "warpline/message/two_testing.h"
#include "warpline/packet/headers/message_header.h"

namespace warpline::message {
namespace {

TEST(Stranger, leaves_nothing_behind) {
  Loopback net(1);
  Loopback::Host& server = net.add(small());
  packet::MessageHello hello;
  hello.terms.datagram_bytes = 1472;
  for (std::uint32_t i = 0; i < 10'000; ++i) {
    hello.session = i;
    hello.nonce = mix64(i);
    hello.token = i % 2 == 0 ? 0 : mix64(i + 1);
    std::vector<std::uint8_t> bytes(packet::MessageHello::kLength);
    packet::emit(hello, bytes.data());
    net.inject(server, peer_address(Ipv4Address{{192, 0, 2, static_cast<std::uint8_t>(i)}}, 9), bytes);
    net.settle();
  }
  EXPECT_EQ(server.endpoint.facts().free_sessions, 4U);
  EXPECT_LE(server.endpoint.counters().bytes_out.get(), 10'000U * packet::MessageHello::kLength);
}

/// An empty hello, and the datagram that it is in.
struct Hello {
  Hello() {
    packet::MessageHello hello{.session = 1, .nonce = 2, .terms = {}};
    hello.terms.datagram_bytes = 1472;
    packet::emit(hello, bytes);
    datagram.head = bytes;
    datagram.head_length = packet::MessageHello::kLength;
    datagram.from = peer_address(Ipv4Address{{192, 0, 2, 1}}, 9);
  }
  std::uint8_t bytes[packet::MessageHello::kLength];
  Datagram datagram;
};

/// Places for datagrams to be sent.
template <std::size_t kCount>
struct Places {
  Places() {
    for (std::size_t i = 0; i < kCount; ++i) {
      out[i].head = heads.data() + i * kMinHeadCapacity;
      out[i].head_capacity = kMinHeadCapacity;
    }
  }
  std::vector<std::uint8_t> heads = std::vector<std::uint8_t>(kCount * kMinHeadCapacity);
  Outgoing out[kCount];
};

TEST(Stranger, is_answered_after_the_sessions_but_answered) {
  Two two;
  const Hello hello;
  for (int i = 0; i < 100; ++i) two.client.endpoint.receive({&hello.datagram, 1}, two.net.now);
  ASSERT_EQ(two.request(20'000).status, CallStatus::ok);
  Places<4> places;
  ASSERT_EQ(two.client.endpoint.transmit(places.out, two.net.now), 4U);
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(places.out[i].to, i < 3 ? two.server.address : hello.datagram.from) << i;
    two.client.endpoint.transmitted(places.out[i].token);
  }
}

TEST(Stranger, a_million_times_a_second_leaves_the_others_and_the_sessions_their_part) {
  EndpointConfig config = small();
  config.max_sessions = 64;
  Two two(small(), config);
  two.server.handle = [&](const MessageEvent& event) {
    return event.kind == EventKind::request &&
           two.server.endpoint.respond(event.id, {}, {}, two.net.now) == CallStatus::ok;
  };
  const Hello hello;
  std::uint32_t responses = 0;
  two.client.handle = [&](const MessageEvent& event) { return (responses += event.kind == EventKind::response) != 0; };
  for (std::uint32_t ms = 0; ms < 1000; ++ms) {
    ASSERT_EQ(two.request(32).status, CallStatus::ok);
    for (int i = 0; i < 1000; ++i) two.server.endpoint.receive({&hello.datagram, 1}, two.net.now);
    two.net.run_for(Nanos{1'000'000});
    if (ms % 100 != 50) continue;
    const std::uint64_t opened = two.server.endpoint.counters().sessions_accepted.get();
    Loopback::Host& other = two.net.add(small());
    const SessionId session = two.net.connect(other, two.server).first;
    EXPECT_TRUE(other.endpoint.facts(session).established);
    EXPECT_EQ(two.server.endpoint.counters().sessions_accepted.get(), opened + 1);
    EXPECT_EQ(two.server.endpoint.counters().dropped(MessageDrop::bad_handshake), 0U);
    other.dead = true;
  }
  EXPECT_EQ(responses, 1000U);
  EXPECT_GT(two.server.endpoint.counters().dropped(MessageDrop::no_reply_room), 900'000U);
}

TEST(Stranger, under_a_million_random_addresses_a_second_leaves_new_peers_their_part) {
  EndpointConfig config = small();
  config.max_sessions = 64;
  Loopback net(3);
  Loopback::Host& server = net.add(config);
  server.handle = [](const MessageEvent&) { return true; };
  Hello hello;
  Random random(5);
  constexpr int kStep = 100;  // microseconds
  const auto flood = [&](int steps, const std::function<bool()>& done) {
    for (int step = 0; step < steps && !done(); ++step) {
      for (int i = 0; i < kStep; ++i) {
        const std::uint64_t bits = random.next();
        const auto byte = [bits](unsigned n) { return static_cast<std::uint8_t>(bits >> (8 * n)); };
        hello.datagram.from =
            peer_address(Ipv4Address{{byte(0), byte(1), byte(2), byte(3)}}, static_cast<std::uint16_t>(bits >> 32));
        server.endpoint.receive({&hello.datagram, 1}, net.now);
        if (i % 10 == 0) net.run_for(Nanos{kStep * 100});
      }
    }
  };
  flood(1000, [] { return false; });
  int connected = 0;
  constexpr int kPeers = 10;
  for (int i = 0; i < kPeers; ++i) {
    Loopback::Host& other = net.add(small());
    const SessionId session = other.endpoint.connect(server.address, {}, net.now).session;
    flood(11'000, [&] { return !other.events.empty(); });
    connected += other.endpoint.facts(session).established ? 1 : 0;
    other.dead = true;
  }
  EXPECT_EQ(connected, kPeers);
  EXPECT_GT(server.endpoint.counters().dropped(MessageDrop::no_reply_room), 50'000U);
}

TEST(Stranger, is_counted_once_a_datagram_also_where_it_cannot_be_answered) {
  EndpointConfig config = small();
  config.accept = false;
  Loopback net(3);
  Loopback::Host& host = net.add(config);
  std::uint64_t sent = 0;
  const auto receive = [&](const std::vector<std::uint8_t>& bytes) {
    Datagram datagram;
    std::vector<std::uint8_t> head = bytes;
    datagram.head = head.data();
    datagram.head_length = static_cast<std::uint32_t>(head.size());
    datagram.from = peer_address(Ipv4Address{{192, 0, 2, static_cast<std::uint8_t>(sent)}}, 9);
    host.endpoint.receive({&datagram, 1}, net.now);
    ++sent;
  };
  for (int i = 0; i < 1000; ++i) {  // there is room for 256 answers
    const Hello hello;
    std::vector<std::uint8_t> bytes(hello.bytes, hello.bytes + sizeof hello.bytes);
    receive(bytes);
    bytes[1] = static_cast<std::uint8_t>((packet::kMessageVersion + 1) << 4 | (bytes[1] & 0xf));
    receive(bytes);
    std::vector<std::uint8_t> of_session(packet::MessageHeader::kLength);
    packet::MessageHeader header;
    header.session = 77;
    header.cookie = 5;
    header.flags = packet::kMessagePing;
    packet::emit(header, of_session.data());
    receive(of_session);
  }
  const EndpointCounters& counters = host.endpoint.counters();
  std::uint64_t counted = counters.packets_in.get();
  for (const Counter& drop : counters.drops) counted += drop.get();
  EXPECT_EQ(counted, sent);
  EXPECT_GT(counters.dropped(MessageDrop::not_accepting), 0U);
  EXPECT_EQ(counters.dropped(MessageDrop::wrong_version), 1000U);
  EXPECT_EQ(counters.dropped(MessageDrop::unknown_session), 1000U);
  EXPECT_GT(counters.dropped(MessageDrop::no_reply_room), 700U);
}

TEST(Stranger, may_be_limited_to_none_a_second_which_counts_as_one) {
  Two two;
  two.server.endpoint.limit_peers({}, 0);
  const Hello hello;
  two.server.endpoint.receive({&hello.datagram, 1}, two.net.now);
  ASSERT_EQ(two.request(32).status, CallStatus::ok);
  EXPECT_TRUE(two.until(two.server, EventKind::request));
}

TEST(Stranger, cannot_inject_or_reset) {
  Two two;
  ASSERT_EQ(two.request(32).status, CallStatus::ok);
  ASSERT_TRUE(two.until(two.server, EventKind::request));
  const EndpointFacts before = two.server.endpoint.facts();
  Random random(7);
  std::vector<std::uint8_t> bytes(80);
  std::uint8_t head[64];
  for (std::uint32_t i = 0; i < 1'000'000; ++i) {
    std::uint32_t length = 0;
    if (i % 4 == 0) {  // a reset from the peer's address
      length = packet::MessageReset::kLength;
      packet::emit(packet::MessageReset{static_cast<std::uint32_t>(random.below(4)), random.next()}, bytes.data());
    } else {  // a packet that is right but for the cookie, from the peer's address
      packet::MessageHeader header;
      header.flags = i % 4 == 1 ? packet::kMessageClose : packet::kMessageHasFragment;
      header.session = static_cast<std::uint32_t>(random.below(4));
      header.cookie = random.next();
      header.packet_number = random.below(50);
      length = header.length();
      packet::emit(header, bytes.data());
      packet::MessageFragment fragment;
      fragment.sequence = 9;
      if (i % 4 != 1) packet::emit(fragment, bytes.data() + packet::MessageHeader::kLength);
    }
    Datagram datagram;
    std::copy_n(bytes.begin(), std::min<std::size_t>(length, 64), head);
    datagram.head = head;
    datagram.head_length = length;
    datagram.from = two.client.address;
    two.server.endpoint.receive({&datagram, 1}, two.net.now);
  }
  EXPECT_EQ(two.server.endpoint.facts(), before);
  EXPECT_EQ(two.server.endpoint.counters().dropped(MessageDrop::wrong_cookie) +
                two.server.endpoint.counters().dropped(MessageDrop::unknown_session),
            1'000'000U);
  EXPECT_TRUE(two.server.endpoint.facts(two.there).established);
  two.server.events.clear();
  ASSERT_EQ(two.request(32).status, CallStatus::ok);
  EXPECT_TRUE(two.until(two.server, EventKind::request));
  EXPECT_EQ(Two::count(two.server, EventKind::message), 0);
}

TEST(Stranger, of_any_kind_a_million_times_changes_nothing) {
  Two two;
  ASSERT_EQ(two.request(32).status, CallStatus::ok);
  ASSERT_TRUE(two.until(two.server, EventKind::request));
  const EndpointFacts before[] = {two.client.endpoint.facts(), two.server.endpoint.facts()};
  Random random(11);
  std::uint64_t bytes_in = 0;
  std::uint64_t bytes_out = 0;
  std::uint8_t bytes[kMaxHeadBytes];
  std::vector<std::uint8_t> room(64 * kMinHeadCapacity);
  for (std::uint32_t i = 0; i < 1'000'000; ++i) {
    Loopback::Host& host = random.below(2) == 0 ? two.client : two.server;
    const auto session = static_cast<std::uint32_t>(random.below(4));
    std::uint32_t length = 0;
    const auto write = [&](const auto& packet) {
      packet::emit(packet, bytes);
      length = std::remove_cvref_t<decltype(packet)>::kLength;
    };
    packet::MessageTerms terms;
    terms.datagram_bytes = 1472;
    switch (i % 8) {
      case 0:
        write(packet::MessageHello{
            .session = session, .nonce = random.next(), .token = random.below(2) * random.next(), .terms = terms});
        break;
      case 1:
        write(packet::MessageChallenge{.session = session, .nonce = random.next(), .token = random.next()});
        break;
      case 2:
        write(
            packet::MessageAccept{.session = session, .nonce = random.next(), .cookie = random.next(), .terms = terms});
        break;
      case 3:
        write(packet::MessageReject{
            .session = session, .nonce = random.next(), .reason = packet::MessageReject::Reason::full});
        break;
      case 4:
        write(packet::MessageReset{.session = session, .cookie = random.next()});
        break;
      case 5: {
        packet::MessageHeader header;
        header.flags = static_cast<std::uint8_t>(random.below(0x100));
        header.session = session;
        header.cookie = random.next();
        header.packet_number = random.below(1000);
        packet::emit(header, bytes);
        length = header.length() + (header.has(packet::kMessageProtected) ? packet::kMessageTagLength : 0);
        std::fill(bytes + packet::MessageHeader::kLength, bytes + length, std::uint8_t{1});
        break;
      }
      default:  // noise, that may begin as ours do
        length = static_cast<std::uint32_t>(random.below(100));
        for (std::uint32_t b = 0; b < length; ++b) bytes[b] = static_cast<std::uint8_t>(random.next());
        if (i % 2 == 0 && length > 1) {
          bytes[0] = packet::kMessageMagic;
          bytes[1] = static_cast<std::uint8_t>(packet::kMessageVersion << 4 | random.below(8));
        }
    }
    Datagram datagram;
    datagram.head = bytes;
    datagram.head_length = length;
    datagram.from = &host == &two.client ? two.server.address : two.client.address;
    if (random.below(2) == 0) datagram.from.ip[15] = static_cast<std::uint8_t>(random.next());
    host.endpoint.receive({&datagram, 1}, two.net.now);
    bytes_in += length;
    if (i % 64 != 0) continue;
    for (Loopback::Host* each : {&two.client, &two.server}) {
      Outgoing out[64];
      for (std::uint32_t o = 0; o < 64; ++o) {
        out[o].head = room.data() + o * kMinHeadCapacity;
        out[o].head_capacity = kMinHeadCapacity;
      }
      const std::size_t count = each->endpoint.transmit(out, two.net.now);
      for (std::size_t o = 0; o < count; ++o) bytes_out += out[o].length();
    }
  }
  EXPECT_LE(bytes_out, bytes_in) << "nobody is flooded through us";
  EXPECT_EQ(two.client.endpoint.facts(), before[0]);
  EXPECT_EQ(two.server.endpoint.facts(), before[1]);
  two.server.events.clear();
  ASSERT_EQ(two.request(32).status, CallStatus::ok);
  EXPECT_TRUE(two.until(two.server, EventKind::request));
  EXPECT_EQ(Two::count(two.server, EventKind::accepted) + Two::count(two.server, EventKind::lost) +
                Two::count(two.client, EventKind::lost),
            0);
}

}  // namespace
}  // namespace warpline::message
