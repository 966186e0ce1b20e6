// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/applications/rpc_application.h"
#include "sim/host.h"
#include "sim/network.h"

namespace warpline::sim {

/// What happens to a host.
struct Mishap {
  enum class Kind : std::uint8_t { pause, restart, clock_step, mtu, drain, move };
  Kind kind = Kind::pause;
  std::uint32_t host = 0;
  std::int64_t at = 0;         ///< virtual time
  std::int64_t nanos = 0;      ///< how long, or how far
  std::uint32_t bytes = 0;     ///< of the longest datagrams that reach the host from now on
  bool other_address = false;  ///< that the host has from now on; else another port
};

/// A network, what its hosts do and what happens to them.
struct Scenario {
  std::uint64_t seed = 0;
  NetworkConfig network;
  std::vector<HostConfig> hosts;
  std::vector<RpcPlan> plans;  ///< by host
  std::vector<Mishap> mishaps;
  bool authenticated = false;  ///< NICs let damaged packets pass
  std::int64_t longest = 60'000'000'000;

  /// Hosts that drain have the time that all their answers take, and nothing else comes in between.
  [[nodiscard]] bool drains_in_time() const;
  /// Sessions may be given up though both processes live on.
  [[nodiscard]] bool sessions_may_end() const;
};

/// Parameters drawn from the seed.
[[nodiscard]] Scenario draw_scenario(std::uint64_t seed);
/// The same with a host that opens all its sessions itself and has another address or port now and then.
[[nodiscard]] Scenario draw_moving_scenario(std::uint64_t seed);
[[nodiscard]] std::string describe(const Scenario& scenario);

struct Outcome {
  std::vector<std::string> failures;  ///< the first of them
  std::uint64_t failure_count = 0;
  std::string summary;
  double virtual_seconds = 0;
};

[[nodiscard]] Outcome run(const Scenario& scenario, bool trace);

}  // namespace warpline::sim
