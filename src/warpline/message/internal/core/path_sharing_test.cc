// SPDX-License-Identifier: Apache-2.0
// What sessions with one address know of their path from each other (RFC 9040).
#include <gtest/gtest.h>

#include <vector>

#include "warpline/message/two_testing.h"

namespace warpline::message {
namespace {

EndpointConfig sharing_paths(bool shares = true) {
  EndpointConfig config = small();
  config.max_sessions = 64;
  config.max_messages = 1024;
  config.receive_bytes = 64U << 20;
  config.shares_paths = shares;
  return config;
}

/// A client and a server that answers with nothing, and as many sessions as wanted.
struct Sessions {
  explicit Sessions(const EndpointConfig& config) : net(7), client(net.add(config)), server(net.add(config)) {
    server.handle = [this](const MessageEvent& event) {
      return event.kind == EventKind::request &&
             server.endpoint.respond(event.id, {nullptr, 0}, {}, net.now) == CallStatus::ok;
    };
  }
  SessionId open() {
    const SessionId opened = client.endpoint.connect(server.address, {}, net.now).session;
    EXPECT_TRUE(net.run([&] { return client.endpoint.facts(opened).established; }));
    return opened;
  }
  void ask(SessionId session, std::uint32_t length) {
    EXPECT_EQ(client.endpoint.request(session, {payload.data(), length}, {}, {}, net.now).status, CallStatus::ok);
  }
  void ask_and_wait(SessionId session, std::uint32_t length) {
    client.events.clear();
    ask(session, length);
    EXPECT_TRUE(net.run([&] { return Two::count(client, EventKind::response) != 0; }));
  }
  SessionFacts facts(SessionId session) { return client.endpoint.facts(session); }

  Loopback net;
  Loopback::Host& client;
  Loopback::Host& server;
  std::vector<std::uint8_t> payload = pattern(1 << 20, 1);
};

constexpr double kAlone = CcConfig{}.initial_window_bytes;

TEST(PathSharing, a_new_session_knows_the_round_trip_of_the_others) {
  Sessions of(sharing_paths());
  const SessionId first = of.open();
  of.ask_and_wait(first, 32);
  const SessionFacts known = of.facts(first);
  ASSERT_GT(known.smoothed_rtt.value, 0);
  const SessionId second = of.client.endpoint.connect(of.server.address, {}, of.net.now).session;
  SessionFacts begun;
  ASSERT_TRUE(of.net.run([&] { return (begun = of.facts(second)).established; }));
  EXPECT_GT(begun.smoothed_rtt.value, 0);
  EXPECT_LT(begun.rto, EndpointConfig{}.initial_rto);
}

TEST(PathSharing, sessions_that_begin_at_once_begin_as_one) {
  Sessions of(sharing_paths());
  std::vector<SessionId> sessions;
  for (int i = 0; i < 8; ++i) {
    sessions.push_back(of.client.endpoint.connect(of.server.address, {}, of.net.now).session);
    of.ask(sessions.back(), 100'000);
  }
  double sum = 0;
  std::uint32_t sending = 0;
  of.net.tap = [&](const Loopback::Host&, std::vector<std::uint8_t>&) {
    double all = 0;
    std::uint32_t count = 0;
    for (const SessionId session : sessions) {
      all += of.facts(session).in_flight_bytes;
      count += of.facts(session).in_flight_packets != 0 ? 1 : 0;
    }
    if (count == 8 && sending == 0) sum = all;
    sending = std::max(sending, count);
    return false;
  };
  EXPECT_TRUE(of.net.run([&] { return Two::count(of.client, EventKind::response) == 8; }));
  EXPECT_EQ(sending, 8U);
  EXPECT_LE(sum, 2 * kAlone);
  EXPECT_GT(sum, kAlone / 2);
}

TEST(PathSharing, beside_others_a_session_begins_with_its_share_but_no_more_than_alone) {
  for (const bool shares : {true, false}) {
    Sessions of(sharing_paths(shares));
    const SessionId first = of.open();
    const SessionId second = of.open();
    of.net.run_for(Nanos{10 * kMs});
    of.ask(first, 1 << 20);
    ASSERT_TRUE(of.net.run([&] {
      const SessionFacts facts = of.facts(first);
      return facts.window_bytes > kAlone && facts.in_flight_packets != 0;
    }));
    const double others = of.facts(first).window_bytes;
    of.ask(second, 100'000);
    of.net.settle();
    const double window = of.facts(second).window_bytes;
    EXPECT_LE(window, kAlone);
    EXPECT_EQ(window == kAlone, !shares || others / 2 >= kAlone);
    EXPECT_GE(window, of.facts(second).datagram_bytes);
  }
}

TEST(PathSharing, who_sends_little_asks_nobody) {
  Sessions of(sharing_paths());
  std::vector<SessionId> sessions;
  for (int i = 0; i < 8; ++i) sessions.push_back(of.open());
  for (const SessionId session : sessions) of.ask(session, 32);
  of.net.settle();
  for (const SessionId session : sessions) EXPECT_EQ(of.facts(session).window_bytes, kAlone);
}

TEST(PathSharing, who_was_there_before_tells_the_next_for_a_while) {
  for (const bool shares : {true, false}) {
    Sessions of(sharing_paths(shares));
    const SessionId first = of.open();
    // Most of what it sends is lost: its window falls.
    of.net.impairment.loss = 400'000;
    of.ask_and_wait(first, 300'000);
    of.net.impairment.loss = 0;
    const double fell = of.facts(first).window_bytes;
    ASSERT_LT(fell, kAlone / 2);
    ASSERT_EQ(of.client.endpoint.forget(first, of.net.now), CallStatus::ok);
    const auto begins_with = [&] {
      const SessionId next = of.client.endpoint.connect(of.server.address, {}, of.net.now).session;
      of.ask(next, 100'000);
      double window = 0;
      EXPECT_TRUE(of.net.run([&] {
        window = of.facts(next).window_bytes;
        return of.facts(next).in_flight_packets != 0;
      }));
      of.client.endpoint.forget(next, of.net.now);
      return window;
    };
    const double soon = begins_with();
    EXPECT_LE(soon, shares ? std::max(2 * fell, 1472.0) : kAlone);
    EXPECT_EQ(soon == kAlone, !shares);
    of.net.run_for(Nanos{30'000 * kMs});
    EXPECT_EQ(begins_with(), kAlone) << "it has aged";
  }
}

TEST(PathSharing, another_address_is_another_path) {
  Sessions of(sharing_paths());
  of.ask_and_wait(of.open(), 32);
  const Loopback::Host& other = of.net.add(sharing_paths());
  const SessionId there = of.client.endpoint.connect(other.address, {}, of.net.now).session;
  SessionFacts begun;
  ASSERT_TRUE(of.net.run([&] { return (begun = of.facts(there)).established; }));
  EXPECT_EQ(begun.smoothed_rtt.value, 0);
}

}  // namespace
}  // namespace warpline::message
