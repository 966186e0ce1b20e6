// SPDX-License-Identifier: Apache-2.0
// How sessions and messages begin and end.
#include "warpline/message/internal/core/session.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "warpline/message/endpoint.h"
#include "warpline/message/two_testing.h"
#include "warpline/packet/headers/message_header.h"

namespace warpline::message {
namespace {

TEST(Deadline, ends_a_request_on_time_and_tells_the_peer) {
  Two two;
  RequestOptions options;
  options.deadline = Nanos{two.net.now.value + 3'000'000};
  ASSERT_EQ(two.request(32, options).status, CallStatus::ok);
  ASSERT_TRUE(two.until(two.client, EventKind::response));
  EXPECT_EQ(two.client.events[0].status, MessageStatus::deadline);
  EXPECT_GE(two.net.now, options.deadline);
  EXPECT_LE(two.net.now.value, options.deadline.value + 2000);
  ASSERT_TRUE(two.until(two.server, EventKind::withdrawn));
  const MessageId id = Two::first(two.server, EventKind::request).id;
  EXPECT_EQ(two.server.endpoint.respond(id, {}, {}, two.net.now), CallStatus::unknown_message);
  two.net.run_for(Nanos{10'000'000});
  EXPECT_EQ(two.client.endpoint.facts(two.session).messages, 0U);
  EXPECT_EQ(two.server.endpoint.facts().free_messages, 256U);
}

TEST(Cancel, ends_a_message_half_sent_once) {
  Two two;
  const Submitted made = two.request(1 << 20);
  two.net.run_for(Nanos{20'000});
  EXPECT_EQ(two.client.endpoint.cancel(made.id, two.net.now), CallStatus::ok);
  EXPECT_EQ(two.client.endpoint.cancel(made.id, two.net.now), CallStatus::unknown_message);
  two.net.run_for(Nanos{50'000'000});
  ASSERT_EQ(Two::count(two.client, EventKind::response), 1);
  EXPECT_EQ(two.client.events[0].status, MessageStatus::cancelled);
  EXPECT_EQ(Two::count(two.server, EventKind::request), 0);
  EXPECT_EQ(two.server.endpoint.facts().free_receive_bytes, 8U << 20);
}

/// What a host without handlers is told, at most so many requests of it.
std::vector<MessageEvent> polled(Loopback::Host& host, std::size_t requests) {
  std::vector<MessageEvent> events(16);
  events.resize(host.endpoint.poll(events, requests));
  return events;
}

/// A server that polls no request: they are delivered, and whatever else its peer sends is told of.
struct Held : Two {
  Held() : Two(small(), small(), {.ordered = true}) { server.request_limit = 0; }
  void ask(std::uint16_t first, std::uint16_t last) {
    for (std::uint16_t code = first; code <= last; ++code) {
      ids.push_back(request(32, {.code = code}).id);
    }
    net.run_for(Nanos{1'000'000});
  }
  std::vector<MessageId> ids;
};

TEST(LimitOfRequests, lets_every_other_event_pass_and_keeps_their_order) {
  Held held;
  held.ask(1, 3);
  EXPECT_TRUE(held.server.events.empty());
  ASSERT_EQ(held.client.endpoint.send(held.session, {held.payload.data(), 10, false}, {.code = 9}, held.net.now).status,
            CallStatus::ok);
  held.net.run_for(Nanos{1'000'000});
  ASSERT_EQ(held.server.events.size(), 1U);
  EXPECT_EQ(held.server.events[0].code, 9);
  EXPECT_EQ(held.server.endpoint.release(held.server.events[0].id, held.net.now), CallStatus::ok);

  const auto codes = [](const std::vector<MessageEvent>& events) {
    std::vector<std::uint16_t> found;
    for (const MessageEvent& event : events) {
      EXPECT_EQ(event.kind, EventKind::request);
      found.push_back(event.code);
    }
    return found;
  };
  EXPECT_EQ(codes(polled(held.server, 1)), std::vector<std::uint16_t>{1});
  held.ask(4, 5);
  EXPECT_EQ(codes(polled(held.server, 3)), (std::vector<std::uint16_t>{2, 3, 4}));
  EXPECT_EQ(codes(polled(held.server, 3)), (std::vector<std::uint16_t>{5}));
  EXPECT_EQ(held.server.endpoint.counters().handled.get(), 6U);
}

TEST(LimitOfRequests, forgets_those_that_are_withdrawn_meanwhile) {
  Held held;
  const std::uint32_t free = held.server.endpoint.facts().free_messages;
  held.ask(1, 4);
  for (const std::size_t i : {0, 2}) {
    EXPECT_EQ(held.client.endpoint.cancel(held.ids[i], held.net.now), CallStatus::ok);
  }
  held.net.run_for(Nanos{1'000'000});
  EXPECT_TRUE(held.server.events.empty());
  const std::vector<MessageEvent> left = polled(held.server, 16);
  ASSERT_EQ(left.size(), 2U);
  EXPECT_EQ(left[0].code, 2);
  EXPECT_EQ(left[1].code, 4);
  for (const MessageEvent& event : left) {
    EXPECT_EQ(held.server.endpoint.respond(event.id, {}, {}, held.net.now), CallStatus::ok);
  }
  held.net.run_for(Nanos{10'000'000});
  EXPECT_EQ(held.server.endpoint.facts().free_messages, free);
}

TEST(LimitOfRequests, tells_of_a_lost_session_at_once) {
  Held held;
  held.net.run_for(Nanos{1'000'000});
  EndpointFacts without_sessions = held.server.endpoint.facts();
  ++without_sessions.free_sessions;
  held.ask(1, 4);
  EXPECT_EQ(held.client.endpoint.close(held.session, held.net.now), CallStatus::ok);
  ASSERT_TRUE(held.until(held.server, EventKind::lost));
  EXPECT_EQ(held.server.events.size(), 1U);
  // The next session in the lost one's place has requests of its own.
  held.net.run_for(Nanos{1'000'000});
  held.client.events.clear();
  held.server.events.clear();
  std::tie(held.session, held.there) = held.net.connect(held.client, held.server, {.ordered = true});
  held.ask(5, 5);
  const std::vector<MessageEvent> left = polled(held.server, 16);
  ASSERT_EQ(left.size(), 1U);
  EXPECT_EQ(left[0].code, 5);
  EXPECT_EQ(left[0].session, held.there);
  EXPECT_EQ(held.server.endpoint.respond(left[0].id, {}, {}, held.net.now), CallStatus::ok);
  EXPECT_EQ(held.client.endpoint.close(held.session, held.net.now), CallStatus::ok);
  ASSERT_TRUE(held.until(held.server, EventKind::lost));
  held.net.run_for(Nanos{1'000'000});
  EXPECT_EQ(held.server.endpoint.facts(), without_sessions);
}

TEST(Refusal, of_a_message_beyond_the_peers_limit) {
  Two two;
  ASSERT_EQ(two.request(2 << 20).status, CallStatus::ok);
  ASSERT_TRUE(two.until(two.client, EventKind::response));
  EXPECT_EQ(two.client.events[0].status, MessageStatus::refused);
  EXPECT_EQ(two.client.events[0].code, static_cast<std::uint16_t>(RefusalCode::message_too_long));
  ASSERT_EQ(two.client.endpoint.send(two.session, {two.payload.data(), 2 << 20, false}, {}, two.net.now).status,
            CallStatus::ok);
  ASSERT_TRUE(two.until(two.client, EventKind::sent));
  EXPECT_EQ(two.client.events[1].status, MessageStatus::refused);
}

TEST(Refusal, of_one_way_messages_of_both_ends_at_once_never_looks_like_success) {
  for (const Reliability reliability : {Reliability::selective, Reliability::go_back_n}) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      EndpointConfig config = small();
      config.reliability = reliability;
      config.max_message_bytes = 3000;
      config.credits = 8;
      config.cc.kind = CcKind::none;
      Loopback net(seed, {.loss = 50'000});
      Loopback::Host& a = net.add(config);
      Loopback::Host& b = net.add(config);
      const auto [there, here] = net.connect(a, b);
      const auto bytes = pattern(20'000, seed);
      const ConstBuffer message{bytes.data(), static_cast<std::uint32_t>(bytes.size()), false};
      ASSERT_EQ(a.endpoint.send(there, message, {}, net.now).status, CallStatus::ok);
      ASSERT_EQ(b.endpoint.send(here, message, {}, net.now).status, CallStatus::ok);
      ASSERT_TRUE(net.run([&] { return Two::count(a, EventKind::sent) != 0 && Two::count(b, EventKind::sent) != 0; }))
          << "seed " << seed;
      for (const Loopback::Host* host : {&a, &b}) {
        EXPECT_EQ(Two::first(*host, EventKind::sent).status, MessageStatus::refused) << "seed " << seed;
      }
    }
  }
}

TEST(Refusal, of_a_request_given_back) {
  Two two;
  two.server.handle = [&](const MessageEvent& event) {
    EXPECT_EQ(two.server.endpoint.release(event.id, two.net.now), CallStatus::ok);
    EXPECT_NE(two.server.endpoint.respond(event.id, {}, {}, two.net.now), CallStatus::ok);
    return true;
  };
  ASSERT_EQ(two.request(3000).status, CallStatus::ok);
  ASSERT_TRUE(two.until(two.client, EventKind::response));
  EXPECT_EQ(two.client.events[0].status, MessageStatus::refused);
  EXPECT_EQ(two.client.events[0].code, static_cast<std::uint16_t>(RefusalCode::declined));
}

class TooLong : public ::testing::TestWithParam<std::uint32_t> {};
TEST_P(TooLong, response_says_its_length) {
  Two two;
  two.server.handle = [&](const MessageEvent& event) {
    if (event.kind != EventKind::request) return true;
    EXPECT_EQ(two.server.endpoint.respond(event.id, {two.payload.data(), GetParam(), false}, {}, two.net.now),
              CallStatus::ok);
    return true;
  };
  ASSERT_EQ(two.request(10).status, CallStatus::ok);
  ASSERT_TRUE(two.until(two.client, EventKind::response));
  EXPECT_EQ(two.client.events[0].status, MessageStatus::too_long);
  EXPECT_EQ(two.client.events[0].length, GetParam());
  EXPECT_EQ(two.client.events[0].data, nullptr);
  two.net.run_for(Nanos{100'000'000});
  EXPECT_EQ(two.client.endpoint.facts(two.session).messages, 0U);
  EXPECT_EQ(two.server.endpoint.facts().free_messages, 256U);
}
/// Whether it comes in one packet or in many, is one-way or a request, in order or not.
TEST(TooLongForThePeer, is_refused_and_never_looks_delivered) {
  for (const Reliability reliability : {Reliability::selective, Reliability::go_back_n}) {
    for (const bool ordered : {false, true}) {
      EndpointConfig client = small();
      client.reliability = reliability;
      EndpointConfig server = small();
      server.max_message_bytes = 100;
      Two two(client, server, {.ordered = ordered});
      for (const std::uint32_t length : {100U, 101U, 129U, 1000U, 50'000U}) {
        for (const bool request : {false, true}) {
          two.client.events.clear();
          two.server.events.clear();
          const Submitted made =
              request ? two.request(length)
                      : two.client.endpoint.send(two.session, {two.payload.data(), length, false}, {}, two.net.now);
          ASSERT_EQ(made.status, CallStatus::ok);
          const bool taken = length <= 100;
          if (taken) {
            ASSERT_TRUE(two.until(two.server, request ? EventKind::request : EventKind::message));
            two.net.run_for(Nanos{kMs});
            ASSERT_EQ(two.server.endpoint.release(two.server.events[0].id, two.net.now), CallStatus::ok);
          }
          const EventKind end = request ? EventKind::response : EventKind::sent;
          ASSERT_TRUE(two.until(two.client, end)) << length;
          const MessageEvent& event = Two::first(two.client, end);
          EXPECT_EQ(event.status, taken && !request ? MessageStatus::ok : MessageStatus::refused) << length;
          if (!taken) {
            EXPECT_EQ(event.code, static_cast<std::uint16_t>(RefusalCode::message_too_long));
            EXPECT_EQ(event.reach, Reach::not_handled);
            two.net.run_for(Nanos{20 * kMs});
            EXPECT_TRUE(two.server.events.empty());
          }
        }
      }
      EXPECT_EQ(two.client.endpoint.facts().free_messages, 256U);
      EXPECT_EQ(two.server.endpoint.facts().free_messages, 256U);
      EXPECT_EQ(two.client.endpoint.facts(two.session).messages, 0U);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Lengths, TooLong, ::testing::Values(1001U, 1U << 20));

TEST(PeerLost, ends_every_request_within_the_configured_time_and_reconnects) {
  EndpointConfig config = small();
  config.peer_timeout = Nanos{200'000'000};
  Two two(config);
  for (const std::uint32_t length : {0U, 32U, 5000U, 1U << 20}) ASSERT_EQ(two.request(length).status, CallStatus::ok);
  two.net.run_for(Nanos{30'000});
  two.server.dead = true;
  const Nanos died = two.net.now;
  ASSERT_TRUE(two.until(two.client, EventKind::lost));
  EXPECT_EQ(Two::count(two.client, EventKind::response), 4);
  EXPECT_EQ(two.client.events.back().kind, EventKind::lost);
  EXPECT_EQ(two.client.events.back().reason, LossReason::silent);
  EXPECT_LE(two.net.now.value - died.value, 250'000'000);
  EXPECT_EQ(two.request(1).status, CallStatus::unknown_session);

  two.net.restart(two.server, small());
  two.client.events.clear();
  const Nanos again = two.net.now;
  ASSERT_EQ(two.client.endpoint.reconnect(two.session, two.net.now), CallStatus::ok);
  ASSERT_TRUE(two.until(two.client, EventKind::connected));
  EXPECT_LE(two.net.now.value - again.value, 10'000'000);
  ASSERT_EQ(two.request(32).status, CallStatus::ok);
  EXPECT_TRUE(two.until(two.server, EventKind::request));
}

TEST(PeerLost, by_a_restart_is_known_at_once) {
  Two two;
  two.net.restart(two.server, small());
  const Nanos now = two.net.now;
  ASSERT_EQ(two.request(32).status, CallStatus::ok);
  ASSERT_TRUE(two.until(two.client, EventKind::lost));
  EXPECT_EQ(two.client.events.back().reason, LossReason::restarted);
  EXPECT_LE(two.net.now.value - now.value, 1'000'000);
}

TEST(PeerLost, on_the_servers_side_frees_the_session) {
  EndpointConfig config = small();
  config.keepalive = Nanos{50'000'000};
  config.peer_timeout = Nanos{100'000'000};
  Two two(small(), config);
  two.client.dead = true;
  ASSERT_TRUE(two.until(two.server, EventKind::lost));
  EXPECT_EQ(two.server.endpoint.facts().free_sessions, 4U);
}

TEST(Idle, session_lives_on_keepalives) {
  EndpointConfig config = small();
  config.keepalive = Nanos{20'000'000};
  config.peer_timeout = Nanos{20'000'000};
  Two two(config, config);
  two.net.run_for(Nanos{2'000'000'000});
  EXPECT_TRUE(two.client.events.empty());
  EXPECT_TRUE(two.client.endpoint.facts(two.session).established);
  EXPECT_LE(two.client.packets, 300U);
}

TEST(Close, ends_messages_here_and_there) {
  Two two;
  ASSERT_EQ(two.request(100).status, CallStatus::ok);
  two.net.run_for(Nanos{50'000});
  ASSERT_EQ(two.client.endpoint.close(two.session, two.net.now), CallStatus::ok);
  ASSERT_TRUE(two.until(two.server, EventKind::lost));
  EXPECT_EQ(two.server.events.back().reason, LossReason::closed);
  EXPECT_EQ(Two::count(two.server, EventKind::withdrawn), 1);
  ASSERT_EQ(two.client.events.size(), 2U);
  EXPECT_EQ(two.client.events[0].status, MessageStatus::peer_lost);
  EXPECT_EQ(two.client.events[1].reason, LossReason::closed_here);
  EXPECT_EQ(two.client.endpoint.forget(two.session, two.net.now), CallStatus::ok);
  EXPECT_EQ(two.client.endpoint.forget(two.session, two.net.now), CallStatus::unknown_session);
  EXPECT_EQ(two.client.endpoint.facts().free_sessions, 4U);
}

TEST(Handshake, fails_with_a_reason) {
  Loopback net(1);
  Loopback::Host& client = net.add(small());
  EndpointConfig deaf = small();
  deaf.accept = false;
  EndpointConfig narrow = small();
  narrow.max_sessions = 1;
  const Loopback::Host& refuser = net.add(deaf);
  Loopback::Host& full = net.add(narrow);
  static_cast<void>(net.connect(client, full));
  const auto outcome = [&](PeerAddress peer) {
    client.events.clear();
    const Opened opened = client.endpoint.connect(peer, {}, net.now);
    EXPECT_EQ(opened.status, CallStatus::ok);
    EXPECT_TRUE(net.run([&] { return !client.events.empty(); }));
    EXPECT_EQ(client.endpoint.forget(opened.session, net.now), CallStatus::ok);
    return client.events[0].reason;
  };
  EXPECT_EQ(outcome(refuser.address), LossReason::not_accepted);
  EXPECT_EQ(outcome(full.address), LossReason::peer_full);
  EXPECT_EQ(outcome(peer_address(Ipv4Address{{10, 0, 0, 99}}, 1)), LossReason::no_answer);
}

/// The bytes of a packet in another version than ours.
template <typename Packet>
std::vector<std::uint8_t> of_version(std::uint8_t version, const Packet& packet) {
  std::vector<std::uint8_t> bytes(Packet::kLength);
  packet::emit(packet, bytes.data());
  bytes[1] = static_cast<std::uint8_t>(version << 4 | (bytes[1] & 15));
  return bytes;
}

constexpr std::uint8_t kOtherVersion = packet::kMessageVersion ^ 7;

TEST(Handshake, of_another_version_is_rejected_in_that_version) {
  Loopback net(1);
  Loopback::Host& server = net.add(small());
  std::vector<std::uint8_t> answer;
  net.tap = [&](const Loopback::Host&, std::vector<std::uint8_t>& bytes) {
    answer = bytes;
    return true;
  };
  net.inject(server, peer_address(Ipv4Address{{10, 0, 0, 9}}, 1),
             of_version(kOtherVersion, packet::MessageHello{.session = 5, .nonce = 6, .terms = {}}));
  net.settle();
  EXPECT_EQ(server.endpoint.counters().dropped(MessageDrop::wrong_version), 1U);
  EXPECT_EQ(answer,
            of_version(kOtherVersion, packet::MessageReject{
                                          .session = 5, .nonce = 6, .reason = packet::MessageReject::Reason::version}));
}

TEST(Handshake, with_a_peer_of_another_version_ends_with_that_reason) {
  Loopback net(1);
  Loopback::Host& client = net.add(small());
  packet::MessageHello hello;
  net.tap = [&](const Loopback::Host&, std::vector<std::uint8_t>& bytes) {
    return packet::parse(bytes.data(), static_cast<std::uint32_t>(bytes.size()), hello) == packet::MessageParse::ok;
  };
  const PeerAddress server = peer_address(Ipv4Address{{10, 0, 0, 9}}, 1);
  ASSERT_EQ(client.endpoint.connect(server, {}, net.now).status, CallStatus::ok);
  net.settle();
  packet::MessageReject reject{.session = hello.session, .nonce = hello.nonce + 1};
  reject.reason = packet::MessageReject::Reason::version;
  net.inject(client, server, of_version(kOtherVersion, reject));  // answers no hello of ours
  reject.nonce = hello.nonce;
  reject.reason = packet::MessageReject::Reason::full;
  net.inject(client, server, of_version(kOtherVersion, reject));  // may mean anything in that version
  net.settle();
  EXPECT_TRUE(client.events.empty());
  reject.reason = packet::MessageReject::Reason::version;
  net.inject(client, server, of_version(kOtherVersion, reject));
  net.settle();
  ASSERT_EQ(client.events.size(), 1U);
  EXPECT_EQ(client.events[0].kind, EventKind::lost);
  EXPECT_EQ(client.events[0].reason, LossReason::wrong_version);
}

TEST(Handshake, survives_loss_of_any_of_its_packets) {
  for (int lost = 0; lost < 8; ++lost) {
    Loopback net(1);
    Loopback::Host& client = net.add(small());
    Loopback::Host& server = net.add(small());
    int seen = 0;
    net.tap = [&](const Loopback::Host&, std::vector<std::uint8_t>&) { return seen++ == lost; };
    const auto [session, there] = net.connect(client, server);
    EXPECT_TRUE(client.endpoint.facts(session).established) << lost;
    EXPECT_TRUE(server.endpoint.facts(there).established) << lost;
    EXPECT_EQ(server.endpoint.facts().free_sessions, 3U);
  }
}

TEST(BackPressure, stops_a_sender_whose_receiver_does_not_read) {
  EndpointConfig config = small();
  config.receive_window = 16'384;
  Two two(small(), config);
  std::uint32_t accepted = 0;
  std::uint32_t sent = 0;
  const auto push = [&] {
    while (two.client.endpoint.send(two.session, {two.payload.data(), 1000, false}, {}, two.net.now).status ==
           CallStatus::ok) {
      ++accepted;
    }
  };
  two.client.handle = [&](const MessageEvent& event) { return (sent += event.kind == EventKind::sent ? 1 : 0) != 0; };
  for (int i = 0; i < 100; ++i) {
    push();
    two.net.run_for(Nanos{10'000'000});
  }
  EXPECT_LE(Two::count(two.server, EventKind::message), 18);
  EXPECT_GE(Two::count(two.server, EventKind::message), 10);
  EXPECT_EQ(two.server.endpoint.counters().dropped(MessageDrop::no_buffer), 0U);
  // It reads: all goes on.
  two.server.handle = [&](const MessageEvent& event) {
    return event.kind == EventKind::message && two.server.endpoint.release(event.id, two.net.now) == CallStatus::ok;
  };
  for (const MessageEvent& event : two.server.events) {
    if (event.kind == EventKind::message) static_cast<void>(two.server.endpoint.release(event.id, two.net.now));
  }
  EXPECT_TRUE(two.net.run([&] { return sent == accepted; }));
}

TEST(Transmit, writes_nothing_where_there_is_too_little_room) {
  Two two;
  ASSERT_EQ(two.request(20'000).status, CallStatus::ok);
  std::vector<std::uint8_t> heads(3 * kMinHeadCapacity, 0x77);
  Outgoing out[3];
  for (std::uint32_t i = 0; i < 3; ++i) {
    out[i].head = heads.data() + i * kMinHeadCapacity;
    out[i].head_capacity = kMinHeadCapacity;
  }
  out[0].head_capacity = kMinHeadCapacity - 1;
  EXPECT_EQ(two.client.endpoint.transmit(out, two.net.now), 0U);
  EXPECT_EQ(std::count(heads.begin(), heads.end(), 0x77), std::ssize(heads));
  EXPECT_GE(two.client.endpoint.counters().heads_too_small.get(), 1U);
  EXPECT_LE(two.client.endpoint.next_deadline(), two.net.now) << "what could not be written is still due";
  out[0].head_capacity = kMinHeadCapacity;
  out[1].head_capacity = 0;
  EXPECT_EQ(two.client.endpoint.transmit(out, two.net.now), 1U);
  EXPECT_TRUE(
      std::all_of(heads.begin() + kMinHeadCapacity, heads.end(), [](std::uint8_t byte) { return byte == 0x77; }));
  two.client.endpoint.transmitted(out[0].token);
  EXPECT_TRUE(two.until(two.server, EventKind::request)) << "the one that got away here is sent again";
}

TEST(ZeroCopy, completion_waits_for_the_transport) {
  Two two;
  two.server.handle = [&](const MessageEvent& event) {
    return event.kind == EventKind::request &&
           two.server.endpoint.respond(event.id, {event.data, 10, false}, {}, two.net.now) == CallStatus::ok;
  };
  two.net.keep_tokens = true;
  ASSERT_EQ(two.request(5000).status, CallStatus::ok);
  two.net.run_for(Nanos{10'000'000});
  EXPECT_EQ(Two::count(two.client, EventKind::response), 0);
  ASSERT_FALSE(two.net.kept_tokens.empty());
  for (const std::uint64_t token : two.net.kept_tokens) two.client.endpoint.transmitted(token);
  two.client.endpoint.transmitted(12345);
  two.net.run_for(Nanos{1000});
  EXPECT_EQ(Two::count(two.client, EventKind::response), 1);
}

TEST(Nested, requests_go_both_ways_at_once) {
  Two two;
  std::vector<std::uint8_t> inner(10);
  MessageId waiting;
  two.server.handle = [&](const MessageEvent& event) {
    if (event.kind == EventKind::request) {  // asks back before it answers
      waiting = event.id;
      EXPECT_EQ(two.server.endpoint
                    .request(event.session, {two.payload.data(), 4, false}, {inner.data(), 10, false}, {}, two.net.now)
                    .status,
                CallStatus::ok);
    } else if (event.kind == EventKind::response) {
      EXPECT_EQ(two.server.endpoint.respond(waiting, {inner.data(), event.length, false}, {}, two.net.now),
                CallStatus::ok);
    }
    return true;
  };
  two.client.handle = [&](const MessageEvent& event) {
    if (event.kind != EventKind::request) return false;
    EXPECT_EQ(two.client.endpoint.respond(event.id, {event.data, event.length, false}, {}, two.net.now),
              CallStatus::ok);
    return true;
  };
  ASSERT_EQ(two.request(100).status, CallStatus::ok);
  ASSERT_TRUE(two.until(two.client, EventKind::response));
  EXPECT_EQ(two.client.events[0].length, 4U);
}

TEST(Clock, may_jump_either_way) {
  Two two;
  two.server.handle = [&](const MessageEvent& event) {
    return event.kind != EventKind::request ||
           two.server.endpoint.respond(event.id, {}, {}, two.net.now) == CallStatus::ok;
  };
  for (const std::int64_t jump : {-500'000'000'000, 4'000'000'000'000}) {
    two.net.now.value += jump;
    two.client.events.clear();
    ASSERT_EQ(two.request(32).status, CallStatus::ok);
    ASSERT_TRUE(two.until(two.client, EventKind::response));
    EXPECT_EQ(two.client.events[0].status, MessageStatus::ok);
  }
  EXPECT_EQ(two.client.endpoint.counters().clock_jumps.get(), 2U);
}

TEST(Loss, of_one_packet_costs_less_than_three_round_trips_and_50_us) {
  for (const int lost : {0, 1}) {  // the request, the response
    Two two;
    two.server.handle = [&](const MessageEvent& event) {
      return event.kind == EventKind::request &&
             two.server.endpoint.respond(event.id, {event.data, event.length, false}, {}, two.net.now) ==
                 CallStatus::ok;
    };
    const auto round_trip = [&] {
      two.client.events.clear();
      const Nanos begin = two.net.now;
      EXPECT_EQ(two.request(32).status, CallStatus::ok);
      EXPECT_TRUE(two.until(two.client, EventKind::response));
      return two.net.now.value - begin.value;
    };
    for (int i = 0; i < 20; ++i) round_trip();
    const std::int64_t usual = round_trip();
    int seen = 0;
    two.net.tap = [&](const Loopback::Host&, std::vector<std::uint8_t>& bytes) {
      return (bytes[2] & packet::kMessageHasFragment) != 0 && seen++ == lost;
    };
    EXPECT_LE(round_trip(), usual + 3 * usual + 50'000) << lost;
  }
}

TEST(Reorder, without_loss_is_not_taken_for_it_for_long) {
  Loopback net(5);
  Loopback::Host& client = net.add(small());
  Loopback::Host& server = net.add(small());
  const auto [session, there] = net.connect(client, server);
  net.run_for(Nanos{kMs});
  net.impairment.reorder = 500'000;
  net.impairment.reorder_by = Nanos{3'000};
  const std::vector<std::uint8_t> bytes = pattern(1 << 20, 2);
  std::uint64_t spurious = 0;
  for (int i = 0; i < 30; ++i) {
    if (i == 10) spurious = client.endpoint.counters().fragments_repeated.get();
    client.events.clear();
    ASSERT_EQ(client.endpoint.send(session, {bytes.data(), 1 << 20, false}, {}, net.now).status, CallStatus::ok);
    ASSERT_TRUE(net.run([&] { return !client.events.empty(); }));
    for (const MessageEvent& event : server.events) static_cast<void>(server.endpoint.release(event.id, net.now));
    server.events.clear();
  }
  EXPECT_LE(client.endpoint.counters().fragments_repeated.get(), spurious + 3) << "of fifteen thousand";
}

}  // namespace
}  // namespace warpline::message
