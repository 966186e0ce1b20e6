// SPDX-License-Identifier: Apache-2.0
// What a call costs through a pool beside one by MessageHost: the same loop, servers and message, over loopback.
//   rpc_bench --benchmark_enable_random_interleaving --benchmark_repetitions=9
#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <deque>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "warpline/rpc/message_host.h"
#include "warpline/rpc/pool/server_pool.h"

namespace warpline::rpc {
namespace {

constexpr int kUnderWay = 32;
constexpr int kCallsPerIteration = 1000;

/// Echoes on a thread of its own.
class EchoServer {
 public:
  EchoServer() : host_(open()), thread_([this] { host_.serve(echo); }) {}
  ~EchoServer() {
    host_.stop();
    thread_.join();
  }
  EchoServer(const EchoServer&) = delete;
  EchoServer& operator=(const EchoServer&) = delete;
  static MessageHost open() {
    auto host = MessageHost::open({.local = {Ipv4Address{{127, 0, 0, 1}}, 0}});
    if (!host) std::abort();
    return std::move(host).value();
  }
  [[nodiscard]] SocketAddress address() const { return {Ipv4Address{{127, 0, 0, 1}}, host_.port()}; }

 private:
  static std::optional<std::size_t> echo(std::span<const std::uint8_t> request, std::span<std::uint8_t> room) {
    std::copy(request.begin(), request.end(), room.begin());
    return request.size();
  }
  MessageHost host_;
  std::thread thread_;
};

/// Keeps calls under way; each end submits the next one. All on the thread of the benchmark.
template <typename Asker>
class Calls {
 public:
  Calls(MessageHost& host, Asker& asker, message::SessionId session) : host_(host), asker_(asker), session_(session) {}

  void run(int calls) {
    left_ = calls;
    for (int i = 0; i < kUnderWay; ++i) ask(static_cast<std::uint64_t>(i));
    while (under_way_ != 0) host_.turn();
  }

 private:
  void ask(std::uint64_t place) {
    if (left_ == 0) return;
    --left_;
    const Call call{.session = session_,
                    .message = {message_.data(), static_cast<std::uint32_t>(message_.size())},
                    .response = {rooms_[place].data(), static_cast<std::uint32_t>(rooms_[place].size())},
                    .idempotent = true};
    if (asker_.submit(call, {ended, this, place}).status != message::CallStatus::ok) std::abort();
    ++under_way_;
  }
  static void ended(void* self, std::uint64_t place, const CallResult& result) {
    auto& calls = *static_cast<Calls*>(self);
    if (result.status != message::MessageStatus::ok || result.length != calls.message_.size()) std::abort();
    --calls.under_way_;
    calls.ask(place);
  }

  MessageHost& host_;
  Asker& asker_;
  message::SessionId session_;
  std::array<std::uint8_t, 32> message_{};
  std::array<std::array<std::uint8_t, 32>, kUnderWay> rooms_{};
  int left_ = 0;
  int under_way_ = 0;
};

template <typename Asker>
void measure(benchmark::State& state, MessageHost& host, Asker& asker, message::SessionId session) {
  Calls<Asker> calls(host, asker, session);
  calls.run(kCallsPerIteration);
  for (auto _ : state) calls.run(kCallsPerIteration);
  state.SetItemsProcessed(state.iterations() * kCallsPerIteration);
}

void direct(benchmark::State& state) {
  const EchoServer server;
  MessageHost host = EchoServer::open();
  measure(state, host, host, *host.connect(server.address()));
}

/// Arguments: servers, and whether calls may be hedged, after a second, so that none is.
void pooled(benchmark::State& state) {
  std::deque<EchoServer> servers;
  std::vector<SocketAddress> addresses;
  for (std::int64_t i = 0; i < state.range(0); ++i) addresses.push_back(servers.emplace_back().address());
  MessageHost host = EchoServer::open();
  ServerPoolSettings settings;
  settings.hedge = {.on = state.range(1) != 0, .delay = Nanos{1'000'000'000}};
  const auto pool = ServerPool::make(host, addresses, settings);
  if (!pool) std::abort();
  measure(state, host, **pool, {});
}

BENCHMARK(direct)->UseRealTime();
BENCHMARK(pooled)
    ->ArgNames({"servers", "hedged"})
    ->Args({1, 0})
    ->Args({1, 1})
    ->Args({2, 0})
    ->Args({2, 1})
    ->UseRealTime();

}  // namespace
}  // namespace warpline::rpc
