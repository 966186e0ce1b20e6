// SPDX-License-Identifier: Apache-2.0
// A client whose sessions are lost opens them again, and is no flood.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "warpline/message/loopback_testing.h"
#include "warpline/packet/headers/message_header.h"
#include "warpline/service/app.h"

namespace warpline::service {
namespace {

using message::EventKind;
using message::Loopback;

constexpr std::int64_t kMilli = message::kMs;

/// A client with --reconnect and a server, in virtual time.
struct Reconnecting {
  explicit Reconnecting(std::uint64_t seed, std::uint32_t sessions = 1) : client_host(net.add(endpoint(true))) {
    plan.outstanding = 1;
    plan.reconnect = true;
    plan.seed = seed;
    plan.peers.assign(sessions, server_host.address);
  }

  static message::EndpointConfig endpoint(bool accepts) {
    message::EndpointConfig config;
    config.accept = accepts;
    config.max_sessions = 64;
    config.max_messages = 256;
    config.receive_bytes = 1 << 20;
    config.peer_timeout = Nanos{200 * kMilli};
    return config;
  }
  void begin() {
    client.emplace(plan, pattern, stop);
    client_host.handle = [this](const message::MessageEvent& event) {
      client->handle(client_host.endpoint, event, net.now);
      return true;
    };
    client_host.work = [this] {
      if (!over) over = !client->turn(client_host.endpoint, net.now);
      return false;
    };
    client_host.due = [this] { return over ? message::kNever : client->next_turn(); };
    net.tap = [this](const Loopback::Host& from, const std::vector<std::uint8_t>& sent) {
      const bool reject = packet::MessagePrefix::type(sent.data()) == packet::MessagePacketType::reject;
      if (&from == &server_host && reject) rejected.push_back(net.now.value);
      return false;
    };
    client->begin(client_host.endpoint, net.now);
  }
  void serve() {
    net.restart(server_host, endpoint(true));
    server_host.handle = [this](const message::MessageEvent& event) {
      if (event.kind == EventKind::request)
        (void)server_host.endpoint.respond(event.id, {}, {.code = kServed}, net.now);
      return true;
    };
  }
  void refuse() {
    net.restart(server_host, endpoint(false));
    rejected.clear();
  }
  void run_for(std::int64_t milliseconds) { net.run_for(Nanos{milliseconds * kMilli}); }

  Loopback net{7};
  Loopback::Host& server_host = net.add(endpoint(false));
  Loopback::Host& client_host;
  MessageClient::Plan plan;
  std::vector<std::uint8_t> bytes = std::vector<std::uint8_t>(1 << 20);
  MessagePattern pattern{bytes};
  std::atomic<bool> stop{false};
  std::optional<MessageClient> client;
  bool over = false;
  std::vector<std::int64_t> rejected;  ///< when
};

TEST(Reconnect, WaitsTwiceAsLongEachTimeThatItIsRejected) {
  Reconnecting run(3);
  run.begin();
  run.run_for(20'000);
  // 10 ms to 1 s, each wait between its half and all of it.
  ASSERT_GT(run.rejected.size(), 20U);
  EXPECT_LT(run.rejected.size(), 50U);
  std::int64_t wait = 10 * kMilli;
  for (std::size_t i = 1; i < run.rejected.size(); ++i) {
    const std::int64_t waited = run.rejected[i] - run.rejected[i - 1];
    EXPECT_GE(waited, wait / 2) << i;
    EXPECT_LE(waited, wait + kMilli) << i;
    wait = std::min(2 * wait, 1000 * kMilli);
  }
  EXPECT_EQ(run.client->tally().lost[static_cast<std::size_t>(message::LossReason::not_accepted)].get(),
            run.rejected.size());
}

TEST(Reconnect, BeginsWithShortWaitsAgainOnceItWasAnswered) {
  Reconnecting run(3);
  run.begin();
  run.run_for(20'000);
  run.serve();
  run.run_for(1100);
  EXPECT_EQ(run.client->tally().connected.get(), 1U);
  EXPECT_GT(run.client->tally().ok(), 100U);
  run.refuse();
  run.run_for(2000);
  ASSERT_GT(run.rejected.size(), 4U);
  EXPECT_LE(run.rejected[1] - run.rejected[0], 41 * kMilli);
}

TEST(Reconnect, ManyDoNotComeInStep) {
  Reconnecting one(3, 40);
  Reconnecting same(3, 40);
  Reconnecting other(4, 40);
  for (Reconnecting* run : {&one, &same, &other}) {
    run->begin();
    run->run_for(5'000);
  }
  EXPECT_EQ(one.rejected, same.rejected);
  EXPECT_NE(one.rejected, other.rejected);
  // Fewer than half of the 40 sessions are back within any one millisecond, but at first.
  std::vector<std::int64_t> times(one.rejected.begin() + 40, one.rejected.end());
  ASSERT_GT(times.size(), 200U);
  std::size_t most = 0;
  for (std::size_t i = 40, first = 40; i < times.size(); ++i) {
    while (times[i] - times[first] > kMilli) ++first;
    most = std::max(most, i - first + 1);
  }
  EXPECT_LT(most, 20U);
}

TEST(Reconnect, EndsAtOnceWhenStopped) {
  Reconnecting run(3);
  run.begin();
  run.run_for(20'000);
  run.stop = true;
  run.run_for(1100);
  EXPECT_TRUE(run.over);
}

}  // namespace
}  // namespace warpline::service
