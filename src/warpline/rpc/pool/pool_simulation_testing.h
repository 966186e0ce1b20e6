// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "warpline/message/loopback_testing.h"
#include "warpline/rpc/call_queue.h"
#include "warpline/rpc/pool/pooled_calls.h"
#include "warpline/transport/wake_up.h"

namespace warpline::rpc {

/// A pool and its servers on a network in virtual time. Each call's bytes say which one it is, so that servers can
/// count how often it was handled; the answer repeats them and names the server. Everything follows from the seed.
class PoolSimulation {
 public:
  static constexpr std::int64_t kMs = message::kMs;

  /// A call, what is known of it, and the bytes that it needs.
  struct Asked {
    Call call;
    CallId id;
    Nanos began{};
    Nanos ended{};
    int ends = 0;
    int handled = 0;  ///< times that a server had it
    CallResult result;
    std::vector<std::uint8_t> request;
    std::vector<std::uint8_t> response;
  };

  struct Server {
    message::Loopback::Host* host = nullptr;
    Nanos service{50'000};  ///< from a request to its answer
    std::uint64_t handled = 0;
    bool declines = false;
  };

  PoolSimulation(std::uint64_t seed, std::size_t count, ServerPoolSettings settings, message::Impairment faults = {},
                 const message::EndpointConfig& of_client = config())
      : network(seed, faults) {
    client = &network.add(of_client);
    std::vector<SocketAddress> addresses;
    for (std::size_t i = 0; i < count; ++i) {
      Server& server = servers.emplace_back();
      server.host = &network.add(config());
      server.host->handle = [this, i](const message::MessageEvent& event) { return serve(i, event); };
      addresses.push_back({message::ip_address(server.host->address), server.host->address.port});
    }
    auto made = transport::WakeUp::make();
    if (!made) std::abort();
    wake_ = std::move(made).value();
    queue.emplace(settings.calls, *wake_);
    settings.on_change = [this](const ServerChange& change) { changes.push_back(change); };
    pool.emplace(*queue, addresses, settings, seed, network.now);
    client->handle = [this](const message::MessageEvent& event) {
      moved_ = true;
      return pool->handle(client->endpoint, event, network.now);
    };
    free_ = client->endpoint.facts();
  }

  static message::EndpointConfig config() {
    message::EndpointConfig config;
    config.max_sessions = 64;
    config.max_messages = 1024;
    config.receive_bytes = 4 << 20;
    config.connect_timeout = Nanos{200 * kMs};
    config.peer_timeout = Nanos{2000 * kMs};
    config.keepalive = Nanos{500 * kMs};
    return config;
  }

  /// Submits a call of so many bytes, 8 at least.
  Asked& ask(bool idempotent, Nanos patience = message::kNever, std::size_t bytes = 8,
             message::Priority priority = message::Priority::normal) {
    Asked& asked = calls.emplace_back();
    asked.request = message::pattern(bytes, calls.size());
    const std::uint64_t number = calls.size() - 1;
    std::memcpy(asked.request.data(), &number, sizeof(number));
    asked.response.resize(bytes + 1);
    asked.call = {.message = {asked.request.data(), static_cast<std::uint32_t>(bytes)},
                  .response = {asked.response.data(), static_cast<std::uint32_t>(asked.response.size())},
                  .priority = priority,
                  .idempotent = idempotent,
                  .patience = patience};
    asked.began = network.now;
    const SubmittedCall submitted = queue->submit(asked.call, {ended, this, number}, network.now);
    EXPECT_EQ(submitted.status, message::CallStatus::ok);
    asked.id = submitted.id;
    moved_ = true;
    return asked;
  }

  /// Until `done`, for so long at most; false for the latter.
  bool run(const std::function<bool()>& done, Nanos limit = Nanos{60'000 * kMs}) {
    const Nanos end{network.now.value + limit.value};
    while (true) {
      moved_ = false;
      answer();
      (void)pool->advance(client->endpoint, true, network.now);
      if (done()) return true;
      if (network.now >= end) return false;
      Nanos next = moved_ ? network.now : std::min(end, pool->next_deadline());
      for (const Answer& answer : answers_) {
        if (!servers[answer.server].host->away) next = std::min(next, answer.due);
      }
      moved_ = false;
      network.run([this] { return moved_; }, {std::max<std::int64_t>(next.value - network.now.value, 1)});
    }
  }
  void run_for(Nanos time) {
    run([] { return false; }, time);
  }
  [[nodiscard]] bool all_ended() const {
    return std::ranges::all_of(calls, [](const Asked& asked) { return asked.ends != 0; });
  }
  /// Whether so many servers are in this state.
  [[nodiscard]] bool are(ServerState state, std::size_t expected) const {
    std::size_t found = 0;
    for (std::size_t i = 0; i < servers.size(); ++i) found += pool->servers().facts(i).state == state ? 1 : 0;
    return found == expected;
  }

  void kill(std::size_t number) {
    servers[number].host->dead = true;
    std::erase_if(answers_, [&](const Answer& answer) { return answer.server == number; });
  }
  void restart(std::size_t number) {
    kill(number);
    network.restart(*servers[number].host, config());
  }
  /// The server goes away: it answers what it has.
  void drain(std::size_t number) {
    servers[number].host->endpoint.drain({network.now.value + 1000 * kMs}, network.now);
  }
  void pause(std::size_t number) { servers[number].host->away = true; }
  void resume(std::size_t number) {
    if (servers[number].host->away) network.come_back(*servers[number].host);
  }

  /// What has to be true of every call that has ended.
  void check() const {
    for (const Asked& asked : calls) {
      ASSERT_EQ(asked.ends, 1);
      if (!asked.call.idempotent) {
        ASSERT_LE(asked.handled, 1);
      }
      if (asked.result.reach <= message::Reach::not_handled) {
        ASSERT_EQ(asked.handled, 0);
      }
      if (asked.call.patience != message::kNever) {
        ASSERT_LE(asked.ended.value, asked.began.value + asked.call.patience.value + kMs);
      }
      if (asked.result.status != message::MessageStatus::ok) continue;
      ASSERT_GE(asked.handled, 1);
      ASSERT_EQ(asked.result.reach, message::Reach::handled);
      ASSERT_EQ(asked.result.length, asked.request.size() + 1);
      ASSERT_TRUE(std::ranges::equal(asked.request, std::span(asked.result.data, asked.request.size())));
    }
  }

  /// The pool ends, and the endpoint has all back.
  void leave() {
    pool->leave(client->endpoint, network.now);
    network.run_for({10 * kMs});
    pool->end_rest(network.now);
    for (const Server& server : servers) server.host->dead = true;
    network.run_for({10'000 * kMs});
    ASSERT_EQ(client->endpoint.facts(), free_);
  }

  message::Loopback network;
  message::Loopback::Host* client = nullptr;
  std::deque<Server> servers;
  std::optional<CallQueue> queue;
  std::optional<PooledCalls> pool;
  std::deque<Asked> calls;
  std::vector<ServerChange> changes;

 private:
  struct Answer {
    Nanos due;
    std::size_t server;
    message::MessageId id;
    std::vector<std::uint8_t> bytes;
  };

  bool serve(std::size_t number, const message::MessageEvent& event) {
    if (event.kind != message::EventKind::request) return true;
    Server& server = servers[number];
    std::uint64_t call = 0;
    std::memcpy(&call, event.data, sizeof(call));
    ++calls[call].handled;
    ++server.handled;
    if (server.declines) {
      (void)server.host->endpoint.release(event.id, network.now);
      return true;
    }
    Answer answer{
        {network.now.value + server.service.value}, number, event.id, {event.data, event.data + event.length}};
    answer.bytes.push_back(static_cast<std::uint8_t>(number));
    answers_.push_back(std::move(answer));
    moved_ = true;
    return true;
  }

  /// Gives the answers that are due, of servers that have a processor.
  void answer() {
    std::erase_if(answers_, [&](const Answer& answer) {
      message::Loopback::Host& host = *servers[answer.server].host;
      if (answer.due > network.now || host.away) return false;
      const auto length = static_cast<std::uint32_t>(answer.bytes.size());
      const message::CallStatus status =
          host.endpoint.respond(answer.id, {answer.bytes.data(), length}, {.copy = true}, network.now);
      return status != message::CallStatus::no_memory;
    });
  }

  static void ended(void* self, std::uint64_t number, const CallResult& result) {
    auto& simulation = *static_cast<PoolSimulation*>(self);
    Asked& asked = simulation.calls[number];
    ++asked.ends;
    asked.ended = simulation.network.now;
    asked.result = result;
  }

  std::unique_ptr<transport::WakeUp> wake_;
  std::vector<Answer> answers_;
  message::EndpointFacts free_;
  bool moved_ = false;
};

}  // namespace warpline::rpc
