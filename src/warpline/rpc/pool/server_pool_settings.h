// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>

#include "warpline/base/address.h"
#include "warpline/base/result.h"
#include "warpline/base/statistics/counter.h"
#include "warpline/base/units.h"
#include "warpline/rpc/pool/back_off.h"
#include "warpline/rpc/pool/retry_budget.h"
#include "warpline/rpc/pool/server_health.h"

namespace warpline::rpc {

/// When a call that may be handled twice is sent to another server again.
struct RetrySettings {
  std::uint32_t attempts = 3;  ///< of one call that may have been handled, the first one included; 1: no retries
  BackOff back_off{.first = Nanos{5'000'000}, .longest = Nanos{1'000'000'000}};  ///< between them
};

/// Whether, and when, a call that may be handled twice is sent to a second server while the first has not answered: the
/// hedged requests of J. Dean and L. A. Barroso, "The Tail at Scale", CACM 56(2), 2013.
struct HedgeSettings {
  bool on = false;
  /// So long after the first copy. None: as long as 95 of 100 of the latest answers took that came without a hedge's
  /// help, `least` at least.
  std::optional<Nanos> delay{};
  Nanos least{1'000'000};  ///< of a measured delay
};

/// A server's state changed.
struct ServerChange {
  std::size_t server = 0;  ///< its number among the pool's
  ServerState from{};      ///< what it was
  ServerState to{};        ///< what it is
};

/// What a ServerPool is made with.
struct ServerPoolSettings {
  std::uint32_t calls = 1024;            ///< that may be under way at once
  std::uint32_t sessions = 1;            ///< with each server
  std::uint32_t calls_per_session = 64;  ///< under way; a session sends no more at once. What is beyond waits in the
                                         ///< pool, in order, for the first server that has room
  /// How long there may be no server before calls end at once, as `peer_lost` and never sent, until there is one. 0: at
  /// once; kNever: calls wait until their own deadline.
  Nanos server_wait{2'000'000'000};
  HealthSettings health{};
  RetrySettings retry{};
  HedgeSettings hedge{};
  RetryBudgetSettings budget{};  ///< of retries and hedges together
  /// Told of changes, on the host's thread, until the pool ends; throws nothing, and may submit calls.
  std::function<void(const ServerChange& change)> on_change{};
  std::optional<std::uint64_t> seed{};  ///< of random choices. None: drawn from the kernel, as it should be
};

/// A server of a pool as it is now.
struct ServerFacts {
  SocketAddress address{};           ///< as given
  ServerState state{};               ///< what the pool thinks of it
  std::uint32_t calls = 0;           ///< under way, hedges too
  std::uint64_t answered = 0;        ///< attempts that it answered
  std::uint64_t failed = 0;          ///< attempts that it did not answer: lost, too late, or overtaken by their hedge
  std::uint64_t times_left_out = 0;  ///< since the pool was made
};

/// Written by the host's thread, read by any.
struct PoolCounters {
  Counter calls;        ///< taken from submit()
  Counter ended;        ///< of these, those that have ended
  Counter moved;        ///< attempts that no server had handled and that went on elsewhere
  Counter retries;      ///< attempts after one that may have been handled
  Counter hedges;       ///< second copies
  Counter hedges_won;   ///< of these, those that were answered first
  Counter over_budget;  ///< retries and hedges that there were no tokens for
};

}  // namespace warpline::rpc
