// SPDX-License-Identifier: Apache-2.0
#include "warpline/rpc/multi_endpoint.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "warpline/message/protection.h"
#include "warpline/rpc/hosts_testing.h"
#include "warpline/rpc/pending_call.h"
#include "warpline/transport/udp_socket.h"

namespace warpline::rpc {
namespace {

constexpr Nanos kLong{30'000'000'000};

MultiEndpoint::Settings settings_of(std::uint32_t threads) {
  MultiEndpoint::Settings settings;
  settings.threads = threads;
  settings.host.local = kAnyPort;
  settings.host.endpoint.receive_bytes = 4 << 20;
  settings.host.endpoint.max_sessions = 256;
  settings.host.endpoint.max_messages = 1024;
  settings.host.endpoint.peer_timeout = kLong;
  return settings;
}

MultiEndpoint open_multi(std::uint32_t threads) {
  auto multi = MultiEndpoint::open(settings_of(threads));
  EXPECT_TRUE(multi.ok()) << multi.error().message();
  return std::move(multi).value();
}

SocketAddress address_of(const MultiEndpoint& multi) { return {kAnyPort.address, multi.port()}; }

/// Answers with the number of its thread.
MessageHost::Handler say_thread(std::uint32_t thread) {
  return [thread](std::span<const std::uint8_t>, std::span<std::uint8_t> room) {
    room[0] = static_cast<std::uint8_t>(thread);
    return std::optional<std::size_t>(1);
  };
}

/// A client with a port of its own, and one session.
struct Client {
  explicit Client(const MultiEndpoint& server) : host(open_host()), session(*host.connect(address_of(server))) {}
  std::string ask(std::string_view request) {
    const auto answer = host.ask(session, request, kLong);
    EXPECT_TRUE(answer.ok()) << answer.error().message();
    return answer.ok() ? *answer : std::string();
  }
  MessageHost host;
  message::SessionId session;
};

TEST(MultiEndpoint, KeepsEachOfManyClientsWithOneThread) {
  constexpr std::uint32_t kClients = 64;
  constexpr std::uint32_t kRequests = 20;
  MultiEndpoint server = open_multi(3);
  ASSERT_EQ(server.threads(), 3U);
  std::thread serving([&] { EXPECT_TRUE(server.serve(say_thread).ok()); });
  std::array<std::uint32_t, 3> clients_of{};
  for (std::uint32_t i = 0; i < kClients; ++i) {
    Client client(server);
    const std::string thread = client.ask("who?");
    ASSERT_EQ(thread.size(), 1U);
    ASSERT_LT(thread[0], 3);
    ++clients_of[static_cast<std::uint8_t>(thread[0])];
    for (std::uint32_t j = 1; j < kRequests; ++j) EXPECT_EQ(client.ask("who?"), thread);
    // Another session from the same port is at the same thread: they may share datagrams.
    client.session = *client.host.connect(address_of(server));
    EXPECT_EQ(client.ask("who?"), thread);
  }
  server.stop();
  serving.join();
  for (const std::uint32_t clients : clients_of) EXPECT_GT(clients, 0U);
  EXPECT_EQ(server.total(&message::EndpointCounters::handled), kClients * (kRequests + 1));
  EXPECT_EQ(server.total(&message::EndpointCounters::sessions_accepted), 2 * kClients);
  EXPECT_GE(server.total(&transport::TransportCounters::received), kClients * (kRequests + 1));
  EXPECT_EQ(server.dropped(message::MessageDrop::misdirected), 0U);
  EXPECT_EQ(server.dropped(message::MessageDrop::unknown_session), 0U);
}

TEST(MultiEndpoint, AThreadThatIsHeldUpHoldsUpNoOther) {
  MultiEndpoint server = open_multi(2);
  std::atomic<bool> holds{false};
  std::atomic<bool> held{false};
  std::thread serving([&] {
    EXPECT_TRUE(server
                    .serve([&](std::uint32_t thread) {
                      return [&, thread](std::span<const std::uint8_t> request, std::span<std::uint8_t> room) {
                        if (request[0] == '!') {
                          held = true;
                          held.notify_all();
                          holds.wait(false);
                        }
                        return say_thread(thread)(request, room);
                      };
                    })
                    .ok());
  });
  // One client of each thread; ports are the kernel's choice.
  std::array<std::unique_ptr<Client>, 2> clients;
  std::vector<std::unique_ptr<Client>> spare;
  while (!clients[0] || !clients[1]) {
    auto client = std::make_unique<Client>(server);
    auto& place = clients[static_cast<std::uint8_t>(client->ask("who?")[0])];
    spare.push_back(std::exchange(place, std::move(client)));
  }
  std::thread patient([&] { EXPECT_EQ(clients[0]->ask("!"), std::string(1, '\0')); });
  held.wait(false);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(clients[1]->ask("who?"), "\1");
  holds = true;
  holds.notify_all();
  patient.join();
  server.stop();
  serving.join();
}

TEST(MultiEndpoint, ThatDrainsHasAnsweredOnAllThreads) {
  MultiEndpoint server = open_multi(2);
  std::atomic<int> begun{0};
  std::atomic<bool> go{false};
  std::thread serving([&] {
    EXPECT_TRUE(server
                    .serve([&](std::uint32_t thread) {
                      return [&, thread](std::span<const std::uint8_t> request, std::span<std::uint8_t> room) {
                        if (request[0] == '!') {
                          ++begun;
                          begun.notify_all();
                          go.wait(false);
                        }
                        return say_thread(thread)(request, room);
                      };
                    })
                    .ok());
  });
  std::array<std::unique_ptr<Client>, 2> clients;
  while (!clients[0] || !clients[1]) {
    auto client = std::make_unique<Client>(server);
    clients[static_cast<std::uint8_t>(client->ask("who?")[0])] = std::move(client);
  }
  std::vector<std::thread> asking;
  for (std::size_t i = 0; i < clients.size(); ++i) {
    asking.emplace_back([&, i] {
      EXPECT_EQ(clients[i]->ask("!"), std::string(1, static_cast<char>(i)));
      clients[i]->host.run();  // hears that it is over, and ends its session
    });
  }
  for (int seen = begun; seen < 2; seen = begun) begun.wait(seen);
  server.drain(kLong);
  go = true;
  go.notify_all();
  serving.join();
  for (const auto& client : clients) client->host.stop();
  for (std::thread& thread : asking) thread.join();
  for (std::uint32_t i = 0; i < server.threads(); ++i) EXPECT_TRUE(server.host(i).endpoint().drained());
}

/// Gets nothing, and fails after some turns.
class FailingTransport final : public transport::Transport {
 public:
  std::span<const message::Datagram> receive(Nanos) override { return {}; }
  [[nodiscard]] bool failed() const override { return ++asked_ > 100; }
  std::span<message::Outgoing> room() override { return {}; }
  void send(std::size_t, Nanos) override {}
  std::span<const std::uint64_t> completed() override { return {}; }
  void wait(Nanos, Nanos) override {}

 private:
  mutable int asked_ = 0;
};

TEST(MultiEndpoint, EndsHandlersOfEachThreadThatWaitForCallsByAnother) {
  const MessageHost backend = open_host();  // whose loop does not run: it answers nothing
  std::optional<MultiEndpoint> multi(open_multi(2));
  std::array<std::atomic<bool>, 2> waits{};
  std::atomic<int> cancelled{0};
  for (std::uint32_t i = 0; i < 2; ++i) {
    MessageHost& other = multi->host(1 - i);
    const message::SessionId asked = *other.connect({kAnyPort.address, backend.port()});
    const auto handler = [&, asked, i](HandledRequest&, unsigned) {
      for (PendingCall call; call.submit(other, {.session = asked}) == message::CallStatus::ok;) {
        waits[i] = true;
        if (call.wait().status == message::MessageStatus::cancelled) ++cancelled;
      }
    };
    ASSERT_TRUE(multi->host(i).handle_on_threads({.threads = 1}, handler).ok());
  }
  std::thread runs([&] { EXPECT_TRUE(multi->run().ok()); });
  std::deque<Client> clients;
  while (!waits[0] || !waits[1]) {
    if (clients.size() < 32) {
      Client& client = clients.emplace_back(*multi);
      EXPECT_EQ(client.host.submit({.session = client.session}, {}).status, message::CallStatus::ok);
    }
    for (Client& client : clients) (void)client.host.turn();
    std::this_thread::yield();
  }
  multi->stop();
  runs.join();
  multi.reset();
  EXPECT_GE(cancelled, 2);
}

TEST(MultiEndpoint, EndsWhenOneTransportFails) {
  const auto socket = transport::UdpSocket::open({.local = kAnyPort}).value();
  FailingTransport failing;
  for (const bool first : {true, false}) {
    std::array<transport::Transport*, 2> transports{socket.get(), &failing};
    if (first) std::swap(transports[0], transports[1]);
    auto multi = MultiEndpoint::over(transports, settings_of(9));
    ASSERT_TRUE(multi.ok());
    EXPECT_EQ(multi->threads(), 2U);
    EXPECT_EQ(multi->port(), 0U);
    EXPECT_TRUE(multi->run().ok());
  }
}

TEST(MultiEndpoint, StoppedBeforeItRunsEndsAtOnce) {
  MultiEndpoint server = open_multi(2);
  server.stop();
  EXPECT_TRUE(server.run().ok());
}

/// No thread calls it: it is only a place.
class NoProtection final : public message::PacketProtection {
 public:
  bool prove_hello(message::KeyId, std::span<const std::uint8_t>, message::HandshakeProof&) override { return false; }
  bool offer(std::uint32_t) override { return false; }
  bool answer(std::uint32_t, message::KeyId) override { return false; }
  [[nodiscard]] message::KeyId key(std::uint32_t) const override { return 0; }
  [[nodiscard]] message::KeyShare share(std::uint32_t) const override { return {}; }
  bool prove(std::uint32_t, std::span<const std::uint8_t>, message::HandshakeProof&) override { return false; }
  bool start(std::uint32_t, const message::KeyShare&, const message::HandshakeTranscript&, bool) override {
    return false;
  }
  void stop(std::uint32_t) override {}
  void seal(std::uint32_t, std::uint64_t, std::span<const std::uint8_t>, std::span<std::uint8_t>,
            std::span<std::uint8_t, kTagBytes>) override {}
  bool open(std::uint32_t, std::uint64_t, std::span<const std::uint8_t>, std::span<std::uint8_t>,
            std::span<const std::uint8_t, kTagBytes>) override {
    return false;
  }
};

TEST(MultiEndpoint, HasNoProtectionThatTwoThreadsShare) {
  std::array<NoProtection, 2> protections;
  MultiEndpoint::Settings settings = settings_of(2);
  settings.host.endpoint.protection = protections.data();
  const auto shared = MultiEndpoint::open(settings);
  ASSERT_FALSE(shared.ok());
  EXPECT_EQ(shared.error().kind, ErrorKind::usage);
  settings.adjust = [&](std::uint32_t thread, message::EndpointConfig& config) {
    config.protection = &protections[thread];
  };
  EXPECT_TRUE(MultiEndpoint::open(settings).ok());
}

TEST(MultiEndpoint, IsOfOneThreadTo256) {
  for (const std::uint32_t threads : {0U, 257U}) {
    const auto multi = MultiEndpoint::open(settings_of(threads));
    ASSERT_FALSE(multi.ok());
    EXPECT_EQ(multi.error().kind, ErrorKind::usage);
  }
  EXPECT_FALSE(MultiEndpoint::over({}, settings_of(1)).ok());
}

TEST(MultiEndpoint, ThatComesBackWithOtherThreadsTellsOldClientsAtOnce) {
  std::optional<MultiEndpoint> server(open_multi(3));
  const SocketAddress address = address_of(*server);
  std::thread serving([&] { EXPECT_TRUE(server->serve(say_thread).ok()); });
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < 16; ++i) {
    clients.push_back(std::make_unique<Client>(*server));
    EXPECT_EQ(clients.back()->ask("who?").size(), 1U);
  }
  for (const std::uint32_t threads : {2U, 4U}) {
    server->stop();
    serving.join();
    server.reset();
    MultiEndpoint::Settings settings = settings_of(threads);
    settings.host.local = address;
    server.emplace(MultiEndpoint::open(settings).value());
    serving = std::thread([&] { EXPECT_TRUE(server->serve(say_thread).ok()); });
    for (const auto& client : clients) {
      const auto gone = client->host.ask(client->session, "who?", kLong);
      ASSERT_FALSE(gone.ok());
      EXPECT_EQ(gone.error().why, "peer_lost: restarted");
      client->session = *client->host.connect(address);
      EXPECT_EQ(client->ask("who?").size(), 1U);
      EXPECT_EQ(client->ask("who?").size(), 1U);
    }
  }
  server->stop();
  serving.join();
}

}  // namespace
}  // namespace warpline::rpc
