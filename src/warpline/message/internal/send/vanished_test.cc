// SPDX-License-Identifier: Apache-2.0
// Peers that vanish hold nothing that other sessions need.
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "warpline/message/loopback_testing.h"

namespace warpline::message {
namespace {

/// A server with sessions of many clients that vanish and of one that stays.
struct Server {
  explicit Server(std::uint32_t sessions, std::uint32_t max_sent_packets) : net(3) {
    EndpointConfig config;
    config.max_sessions = 2 * sessions;
    config.max_messages = 1 << 13;
    config.max_sent_packets = max_sent_packets;
    config.stranger_packets = 1'000'000'000;
    config.quotas.half_open_per_address = 2 * sessions;
    server = &net.add(config);
    config.max_sessions = sessions;
    config.max_sent_packets = 1 << 16;
    const Nanos peer_timeout = std::exchange(config.peer_timeout, Nanos{600'000 * kMs});  // outlives the server's
    many = &net.add(config);
    config.peer_timeout = peer_timeout;
    config.max_sessions = 1;
    other = &net.add(config);
    server->handle = [this](const MessageEvent& event) {
      if (event.kind != EventKind::request) return true;
      if (keep) {
        kept.push_back(event.id);
      } else {
        EXPECT_EQ(server->endpoint.respond(event.id, answer(), {}, net.now), CallStatus::ok);
      }
      return true;
    };
    other->handle = [this](const MessageEvent& event) {
      answered += event.kind == EventKind::response && event.status == MessageStatus::ok ? 1 : 0;
      return true;
    };
    many->handle = [](const MessageEvent&) { return true; };
    for (std::uint32_t i = 0; i < sessions; ++i) {
      gone.push_back(many->endpoint.connect(server->address, {}, net.now).session);
      if (i % 100 == 99) net.run_for(Nanos{kMs});
    }
    stays = other->endpoint.connect(server->address, {}, net.now).session;
    net.run_for(Nanos{500 * kMs});
    EXPECT_TRUE(std::ranges::all_of(gone, [&](SessionId id) { return many->endpoint.facts(id).established; }));
    EXPECT_TRUE(other->endpoint.facts(stays).established);
  }
  [[nodiscard]] ConstBuffer answer() const {
    return {bytes.data(), static_cast<std::uint32_t>(keep ? kept_bytes : 64), false};
  }
  void request(Loopback::Host& host, SessionId session, std::uint32_t room) {
    ASSERT_EQ(
        host.endpoint.request(session, {bytes.data(), 32, false}, {place.data(), room, false}, {}, net.now).status,
        CallStatus::ok);
  }
  /// Each request of the other client is answered in a few round trips.
  void expect_served(int requests, Nanos apart) {
    for (int i = 0; i < requests; ++i) {
      const std::uint32_t before = answered;
      request(*other, stays, 64);
      EXPECT_TRUE(net.run([&] { return answered != before; }, Nanos{5 * kMs})) << "request " << i;
      net.run_for(apart);
    }
  }

  Loopback net;
  Loopback::Host* server;
  Loopback::Host* many;
  Loopback::Host* other;
  std::vector<std::uint8_t> bytes = pattern(100'000, 1);
  std::vector<std::uint8_t> place = std::vector<std::uint8_t>(100'000);
  std::vector<SessionId> gone;
  SessionId stays;
  std::vector<MessageId> kept;
  std::uint32_t kept_bytes = 64;
  bool keep = false;
  std::uint32_t answered = 0;
};

constexpr std::uint32_t kGone = 512;

TEST(Vanished, peers_with_an_answer_in_flight_each_hold_nothing_that_others_need) {
  Server run(kGone, 1 << 12);  // 128 shared blocks
  run.keep = true;
  for (const SessionId session : run.gone) run.request(*run.many, session, 64);
  ASSERT_TRUE(run.net.run([&] { return run.kept.size() == kGone; }));
  run.many->dead = true;
  for (const MessageId& id : run.kept) {
    EXPECT_EQ(run.server->endpoint.respond(id, run.answer(), {}, run.net.now), CallStatus::ok);
  }
  run.keep = false;
  run.expect_served(200, Nanos{100 * kMs});
  // By then all are lost, and everything that they held is free.
  EXPECT_EQ(run.server->endpoint.counters().sessions_lost.get(), kGone);
  EXPECT_EQ(run.server->endpoint.facts().free_sent_packets, 1U << 12);
}

TEST(Vanished, peers_of_idle_sessions_hold_nothing_that_others_need) {
  Server run(kGone, 1 << 12);
  run.many->dead = true;
  run.expect_served(250, Nanos{100 * kMs});
  EXPECT_EQ(run.server->endpoint.counters().sessions_lost.get(), kGone);
}

TEST(Vanished, peers_with_long_answers_in_flight_leave_the_shared_blocks_to_others) {
  Server run(kGone, 1 << 10);  // 32 shared blocks
  run.keep = true;
  run.kept_bytes = 100'000;
  for (const SessionId session : run.gone) run.request(*run.many, session, 100'000);
  ASSERT_TRUE(run.net.run([&] { return run.kept.size() == kGone; }));
  run.many->dead = true;
  for (const MessageId& id : run.kept) {
    EXPECT_EQ(run.server->endpoint.respond(id, run.answer(), {}, run.net.now), CallStatus::ok);
  }
  run.keep = false;
  run.expect_served(20, Nanos{100 * kMs});
  EXPECT_GE(run.server->endpoint.facts().free_sent_packets, 1U << 8);
}

TEST(Vanished, peers_of_thousands_of_sessions_that_are_closed_are_each_told) {
  constexpr std::uint32_t kClosed = 3000;
  Server run(kClosed, 1 << 16);
  std::uint32_t closed = 0;
  run.server->handle = [&](const MessageEvent& event) {
    closed += event.kind == EventKind::lost && event.reason == LossReason::closed ? 1 : 0;
    return true;
  };
  for (const SessionId session : run.gone) EXPECT_EQ(run.many->endpoint.close(session, run.net.now), CallStatus::ok);
  run.net.run_for(Nanos{10 * kMs});
  EXPECT_EQ(closed, kClosed);
}

/// A peer that sends packets, but whose acknowledgements all get lost.
TEST(Vanished, peer_that_sends_but_acknowledges_nothing_is_lost) {
  Server run(1, 1 << 12);
  run.keep = true;
  run.request(*run.many, run.gone[0], 64);
  ASSERT_TRUE(run.net.run([&] { return run.kept.size() == 1; }));
  EXPECT_EQ(run.other->endpoint.close(run.stays, run.net.now), CallStatus::ok);
  run.net.run_for(Nanos{10 * kMs});
  LossReason reason = LossReason::none;
  run.server->handle = [&](const MessageEvent& event) {
    if (event.kind == EventKind::lost) reason = event.reason;
    return true;
  };
  // Nothing that the server sends to it arrives, and it goes on sending.
  run.net.tap = [&](const Loopback::Host& from, std::vector<std::uint8_t>&) { return &from == run.server; };
  EXPECT_EQ(run.server->endpoint.respond(run.kept[0], run.answer(), {}, run.net.now), CallStatus::ok);
  for (int i = 0; i < 140 && reason == LossReason::none; ++i) {
    static_cast<void>(run.many->endpoint.request(run.gone[0], {run.bytes.data(), 32, false},
                                                 {run.place.data(), 64, false}, {}, run.net.now));
    run.net.run_for(Nanos{1000 * kMs});
    if (i < 100) {  // RFC 1122, section 4.2.3.5: at least 100 s
      EXPECT_EQ(reason, LossReason::none) << "after " << i << " s";
    }
  }
  EXPECT_EQ(reason, LossReason::silent);
}

}  // namespace
}  // namespace warpline::message
