// SPDX-License-Identifier: Apache-2.0
// A server for 24 virtual hours: clients open sessions and close them, ask, are idle, vanish without a word, and come
// back at other addresses. Nothing of that stays in the server, whose memory is what it was.
#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <vector>

#include "warpline/base/random.h"
#include "warpline/message/loopback_testing.h"

namespace warpline::sim {
namespace {

using message::EventKind;
using message::Loopback;
using message::MessageEvent;

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kHour = 3600 * kSecond;
constexpr int kClients = 5;
constexpr std::uint32_t kSessions = 16;

message::EndpointConfig churning() {
  message::EndpointConfig config;
  config.max_sessions = kSessions;
  config.max_messages = 256;
  config.max_sent_packets = 1024;
  config.receive_bytes = 4 << 20;
  config.keepalive = Nanos{120 * kSecond};
  config.peer_timeout = Nanos{300 * kSecond};
  config.message_timeout = Nanos{30 * kSecond};
  return config;
}

TEST(Churn, LeavesNothingBehindInADay) {
  Loopback net(11, {.loss = 1'000, .duplicate = 1'000, .reorder = 10'000});
  Loopback::Host& server = net.add(churning());
  const message::EndpointFacts fresh = server.endpoint.facts();
  server.handle = [&](const MessageEvent& event) {
    if (event.kind == EventKind::request) {
      (void)server.endpoint.respond(event.id, {event.data, event.length}, {.copy = true}, net.now);
    } else if (event.kind == EventKind::message) {
      (void)server.endpoint.release(event.id, net.now);
    }
    return true;
  };
  struct Client {
    Loopback::Host* host = nullptr;
    std::vector<message::SessionId> sessions;
    std::vector<std::uint8_t> room = std::vector<std::uint8_t>(100'000);
  };
  std::vector<Client> clients(kClients);
  const std::vector<std::uint8_t> question = message::pattern(60'000, 1);
  std::uint64_t answered = 0;
  std::uint64_t lost = 0;
  for (Client& client : clients) {
    client.host = &net.add(churning());
    client.host->handle = [&](const MessageEvent& event) {
      if (event.kind == EventKind::response && event.status == message::MessageStatus::ok) ++answered;
      if (event.kind == EventKind::lost) {
        ++lost;
        (void)client.host->endpoint.forget(event.session, net.now);
        std::erase(client.sessions, event.session);
      }
      return true;
    };
  }
  Random random(3);
  const auto act = [&](Client& client) {
    message::Endpoint& endpoint = client.host->endpoint;
    const auto any = [&] { return client.sessions[random.below(client.sessions.size())]; };
    switch (random.below(8)) {
      case 0:
      case 1:
        if (client.sessions.size() < 4)
          client.sessions.push_back(endpoint.connect(server.address, {}, net.now).session);
        break;
      case 2:
        if (client.sessions.empty()) break;
        (void)endpoint.close(any(), net.now);
        break;
      case 3:  // it vanishes, and another comes at another address
        if (random.below(4) != 0) break;
        net.restart(*client.host, churning());
        client.sessions.clear();
        client.host->address.port = static_cast<std::uint16_t>(1024 + random.below(60'000));
        client.host->address.ip[14] = static_cast<std::uint8_t>(random.below(200));
        break;
      default:
        if (client.sessions.empty()) break;
        const auto length = static_cast<std::uint32_t>(random.below(random.below(2) == 0 ? 100 : question.size()));
        (void)endpoint.request(any(), {question.data(), length}, {client.room.data(), 100'000}, {}, net.now);
    }
  };
  std::size_t after_eight_hours = 0;
  std::uint64_t accepted_then = 0;
  for (int hour = 0; hour < 24; ++hour) {
    if (hour == 8) {  // every pool is as large as it gets
      after_eight_hours = mallinfo2().uordblks;
      accepted_then = server.endpoint.counters().sessions_accepted.get();
    }
    for (const std::int64_t end = net.now.value + kHour; net.now.value < end;) {
      act(clients[random.below(kClients)]);
      net.run_for(Nanos{static_cast<std::int64_t>(random.below(60)) * kSecond});
    }
  }
  EXPECT_GT(server.endpoint.counters().sessions_accepted.get(), accepted_then + 80);
  EXPECT_GT(answered, 500U);
  EXPECT_GT(lost, 100U);
  EXPECT_LT(mallinfo2().uordblks, after_eight_hours + 64 * 1024);
  for (const Client& client : clients) {
    for (const message::SessionId session : std::vector(client.sessions))
      (void)client.host->endpoint.close(session, net.now);
  }
  net.run_for(Nanos{1000 * kSecond});
  EXPECT_EQ(server.endpoint.facts(), fresh);
}

}  // namespace
}  // namespace warpline::sim
