// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "warpline/base/enum_names.h"
#include "warpline/base/random.h"
#include "warpline/base/units.h"
#include "warpline/rpc/pool/back_off.h"

namespace warpline::rpc {

/// What a pool thinks of a server.
enum class ServerState : std::uint8_t {
  connecting,  ///< a hello is on its way: the first one, or one that asks whether it is back
  up,          ///< it gets calls
  trial,       ///< after having been left out it answered a hello: it gets one call at a time until one was answered
  left_out,    ///< it gets no calls, and a hello when its wait is over
  leaving,     ///< it said that it goes away: it gets no calls, and ends those that it has
};
/// Names for reports.
constexpr auto names_of(ServerState) {
  return enum_names<ServerState>({"connecting", "up", "trial", "left_out", "leaving"});
}

/// When a server is left out, and for how long.
struct HealthSettings {
  std::uint32_t failures = 5;  ///< calls in a row without an answer after which it is left out
  /// Waits before hellos: the first after a failure, doubled with each further one until it answers a call.
  BackOff back_off{.first = Nanos{100'000'000}, .longest = Nanos{10'000'000'000}};
};

/// What is known of one server's health, and what follows from it: a circuit breaker (M. Nygard, "Release It!", 2007)
/// whose half-open state has two steps, a hello and then one call at a time. No I/O; one thread.
class ServerHealth {
 public:
  explicit ServerHealth(const HealthSettings& settings) : settings_(settings) {}

  [[nodiscard]] ServerState state() const { return state_; }
  /// Its first hello has not been answered yet.
  [[nodiscard]] bool untried() const { return state_ == ServerState::connecting && times_out_ == 0; }
  /// When its wait ends; of the state `left_out`.
  [[nodiscard]] Nanos due() const { return due_; }
  /// The wait is over, and a hello leaves.
  void connect() { state_ = ServerState::connecting; }

  // What happened.
  void connected();                        ///< a hello was answered
  void lost(Nanos now, Random& random);    ///< a session that was there is gone, or a hello was not answered
  void answered();                         ///< a call was answered
  void failed(Nanos now, Random& random);  ///< a call was not answered until its deadline
  void leaves();                           ///< it said that it goes away

 private:
  void leave_out(Nanos now, Random& random);

  HealthSettings settings_;
  ServerState state_ = ServerState::connecting;
  std::uint32_t failures_ = 0;   ///< in a row
  std::uint32_t times_out_ = 0;  ///< in a row, without an answered call between
  Nanos due_{};
};

}  // namespace warpline::rpc
