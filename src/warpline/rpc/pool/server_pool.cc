// SPDX-License-Identifier: Apache-2.0
#include "warpline/rpc/pool/server_pool.h"

#include <array>
#include <cstring>
#include <utility>

#include "warpline/base/secrets/draw_secret.h"
#include "warpline/rpc/call_queue.h"
#include "warpline/rpc/pool/pooled_calls.h"

namespace warpline::rpc {
namespace {

Result<void> check(const ServerPoolSettings& settings) {
  const auto sound = [](const BackOff& waits) { return waits.first.value > 0 && waits.first <= waits.longest; };
  WARPLINE_CHECK(check_calls("ServerPoolSettings::calls", settings.calls));
  if (settings.sessions == 0 || settings.calls_per_session == 0) {
    return usage_error("ServerPool", "ServerPoolSettings::sessions or calls_per_session is 0", "each is at least one");
  }
  if (!sound(settings.health.back_off) || !sound(settings.retry.back_off)) {
    return usage_error("ServerPool", "a BackOff has a first wait of 0, or one above the longest",
                       "0 < first <= longest");
  }
  if (settings.health.failures == 0 || settings.retry.attempts == 0) {
    return usage_error("ServerPool", "HealthSettings::failures or RetrySettings::attempts is 0",
                       "each is at least one");
  }
  const RetryBudgetSettings& budget = settings.budget;
  if (!(budget.per_call >= 0) || !(budget.per_second >= 0) || !(budget.most >= 0))
    return usage_error("ServerPool", "RetryBudgetSettings has a negative number", "each is 0 or more");
  return {};
}

}  // namespace

/// What stays where it is.
struct ServerPool::Parts {
  Parts(MessageHost& loop, std::span<const SocketAddress> servers, const ServerPoolSettings& settings,
        std::uint64_t seed)
      : host(loop), queue(settings.calls, loop.wake_up()), calls(queue, servers, settings, seed, loop.now()) {}

  MessageHost& host;
  CallQueue queue;
  PooledCalls calls;
};

ServerPool::ServerPool(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) { parts_->host.join(parts_->calls); }

Result<std::unique_ptr<ServerPool>> ServerPool::make(MessageHost& host, std::span<const SocketAddress> servers,
                                                     const ServerPoolSettings& settings) {
  if (servers.empty()) return usage_error("ServerPool", "it has no servers", "at least one");
  WARPLINE_CHECK(check(settings));
  std::array<std::uint8_t, sizeof(std::uint64_t)> drawn{};
  if (!settings.seed) WARPLINE_CHECK(draw_secret(drawn));
  std::uint64_t seed = 0;
  std::memcpy(&seed, drawn.data(), sizeof(seed));
  auto parts = std::make_unique<Parts>(host, servers, settings, settings.seed.value_or(seed));
  return std::unique_ptr<ServerPool>(new ServerPool(std::move(parts)));
}

ServerPool::~ServerPool() { parts_->host.leave(parts_->calls); }

void ServerPool::observe(CallObserver* observer) { parts_->calls.observe(observer); }

SubmittedCall ServerPool::submit(const Call& call, const CallDone& done) {
  if (call.response_in_endpoint) return {message::CallStatus::not_allowed, {}};
  return parts_->queue.submit(call, done, parts_->host.now());
}

bool ServerPool::in_callback() const { return parts_->host.in_callback(); }

bool ServerPool::cancel(CallId id) { return parts_->queue.cancel(id); }

std::size_t ServerPool::size() const { return parts_->calls.servers().size(); }

ServerFacts ServerPool::server(std::size_t number) const { return parts_->calls.servers().facts(number); }

const PoolCounters& ServerPool::counters() const { return parts_->calls.counters(); }

}  // namespace warpline::rpc
