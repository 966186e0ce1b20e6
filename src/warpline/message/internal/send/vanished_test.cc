// SPDX-License-Identifier: Apache-2.0
// Peers that vanish hold nothing that other sessions need.
#include <gtest/gtest.h>

#include <algorithm>
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
    many = &net.add(config);
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
    ASSERT_EQ(host.endpoint.request(session, {bytes.data(), 32, false}, {place.data(), room, false}, {}, net.now).status,
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

}  // namespace
}  // namespace warpline::message
