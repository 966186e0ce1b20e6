// SPDX-License-Identifier: Apache-2.0
// Two endpoints back to back in memory: what the protocol costs, without any network.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <vector>

#include "warpline/message/endpoint.h"

namespace warpline::message {
namespace {

constexpr std::size_t kBurst = 32;
constexpr std::uint32_t kRoom = 2048;

/// An endpoint and the packets that it sent last.
class Side {
 public:
  Side(EndpointConfig config, std::uint8_t number) : memory_(kBurst * kRoom), out_(kBurst), in_(kBurst) {
    config.secret.fill(number);
    address = peer_address(Ipv4Address{{10, 0, 0, number}}, 1000);
    auto made = Endpoint::create(config, Nanos{0});
    if (!made) std::abort();
    endpoint.emplace(std::move(made).value());
    for (std::size_t i = 0; i < kBurst; ++i) {
      out_[i].head = memory_.data() + i * kRoom;
      out_[i].head_capacity = kRoom;
    }
  }

  /// Packets of this side arrive at `peer`; false if there were none.
  bool send_to(Side& peer, Nanos now) {
    const std::size_t count = endpoint->transmit(out_, now);
    for (std::size_t i = 0; i < count; ++i) {
      in_[i].head = out_[i].head;
      in_[i].head_length = out_[i].head_length;
      in_[i].rest = const_cast<std::uint8_t*>(out_[i].payload);
      in_[i].rest_length = out_[i].payload_length;
      in_[i].from = address;
    }
    peer.endpoint->receive({in_.data(), count}, now);
    for (std::size_t i = 0; i < count; ++i) {
      if (out_[i].token != 0) endpoint->transmitted(out_[i].token);
    }
    packets += count;
    return count != 0;
  }

  std::optional<Endpoint> endpoint;
  PeerAddress address;
  std::uint64_t packets = 0;

 private:
  std::vector<std::uint8_t> memory_;
  std::vector<Outgoing> out_;
  std::vector<Datagram> in_;
};

EndpointConfig config_for(std::uint32_t sessions) {
  EndpointConfig config;
  config.max_sessions = sessions;
  config.max_messages = std::max(4096U, 2 * sessions);
  config.max_sent_packets = std::max(1U << 16, 64 * sessions);
  config.receive_bytes = 64U << 20;
  return config;
}

/// Requests and responses of `bytes`, `depth` under way in each of `sessions`; both ends on one core.
void requests(benchmark::State& state, CcKind control) {
  const auto length = static_cast<std::uint32_t>(state.range(0));
  const auto sessions = static_cast<std::uint32_t>(state.range(1));
  const auto depth = static_cast<std::uint32_t>(state.range(2));
  EndpointConfig config = config_for(sessions);
  config.cc.kind = control;
  Side client(config, 1);
  Side server(config, 2);
  Nanos now{0};
  std::vector<SessionId> ids;
  MessageEvent events[64];
  const auto exchange = [&] {
    bool any = client.send_to(server, now);
    any |= server.send_to(client, now);
    return any;
  };
  for (std::uint32_t i = 0; i < sessions; ++i) {
    ids.push_back(client.endpoint->connect(server.address, {}, now).session);
    while (exchange()) {
    }
    while (client.endpoint->poll(events) != 0 || server.endpoint->poll(events) != 0) {
    }
  }
  std::vector<std::uint8_t> message(length, 0x5a);
  std::vector<std::uint8_t> response(length);
  std::uint64_t done = 0;
  const auto ask = [&](SessionId session) {
    const Submitted made =
        client.endpoint->request(session, {message.data(), length, false}, {response.data(), length, false}, {}, now);
    if (made.status != CallStatus::ok) std::abort();
  };
  const auto step = [&] {
    now.value += 2000;
    client.endpoint->advance(now);
    server.endpoint->advance(now);
    client.send_to(server, now);
    for (std::size_t n; (n = server.endpoint->poll(events)) != 0;) {
      for (std::size_t i = 0; i < n; ++i) {
        if (events[i].kind != EventKind::request) continue;
        static_cast<void>(server.endpoint->respond(events[i].id, {events[i].data, events[i].length, false}, {}, now));
      }
    }
    server.send_to(client, now);
    for (std::size_t n; (n = client.endpoint->poll(events)) != 0;) {
      for (std::size_t i = 0; i < n; ++i) {
        if (events[i].kind != EventKind::response || events[i].status != MessageStatus::ok) std::abort();
        ++done;
        ask(events[i].session);
      }
    }
  };
  for (std::uint32_t d = 0; d < depth; ++d) {
    for (const SessionId session : ids) ask(session);
  }
  while (done < 2ULL * depth * sessions) step();
  if (response != message) std::abort();
  const std::uint64_t packets_before = client.packets + server.packets;
  done = 0;
  for (auto _ : state) {
    for (const std::uint64_t before = done; done == before;) step();
  }
  const auto rpcs = static_cast<double>(done);
  state.SetItemsProcessed(static_cast<std::int64_t>(done));
  state.counters["ns/rpc"] = benchmark::Counter(rpcs * 1e-9, benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
  state.counters["packets/rpc"] = static_cast<double>(client.packets + server.packets - packets_before) / rpcs;
  state.counters["probes"] =
      static_cast<double>(client.endpoint->counters().probes.get() + server.endpoint->counters().probes.get());
  if (length > 1000) {
    state.SetBytesProcessed(static_cast<std::int64_t>(done) * length * 2);
  }
}
BENCHMARK_CAPTURE(requests, swift, CcKind::swift)
    ->ArgNames({"bytes", "sessions", "depth"})
    ->Args({32, 1, 32})
    ->Args({32, 1, 1})
    ->Args({32, 100, 1})
    ->Args({32, 20000, 1})
    ->Args({1024, 100, 1})
    ->Args({8 << 20, 1, 2});
BENCHMARK_CAPTURE(requests, no_control, CcKind::none)
    ->ArgNames({"bytes", "sessions", "depth"})
    ->Args({32, 1, 32})
    ->Args({32, 100, 1});

}  // namespace
}  // namespace warpline::message
