// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "warpline/stream/sender_settings.h"

namespace warpline::stream {

/// What a wire does to frames, in each direction.
struct WireFaults {
  double loss = 0;              ///< probability
  double burst_begin = 0;       ///< Gilbert-Elliott: of a frame to begin a burst in which all are lost
  double burst_end = 0.3;       ///< of a frame in a burst to end it
  double reorder = 0;           ///< of a frame to be late by up to `lateness`
  double duplicate = 0;         ///< of a frame to come twice
  double corrupt = 0;           ///< of a frame to come with a bit turned over
  std::int64_t delay = 0;       ///< ns, one way
  std::int64_t jitter = 0;      ///< ns more, at most, in order
  std::int64_t lateness = 0;    ///< ns
  double bytes_per_second = 0;  ///< 0: any number
  std::uint32_t queue = 0;      ///< frames that wait for the wire; more are lost. 0: any number
};

/// What a host does beside its work.
struct HostHabits {
  std::int64_t turn = 1000;     ///< ns that a turn takes
  double pause = 0;             ///< probability of a turn to be followed by a pause
  std::int64_t pause_time = 0;  ///< ns, at most
  std::uint32_t burst = 64;     ///< frames that a turn takes, and sends
  double in_parts = 0;          ///< probability that bytes are offered, or released, only in part
};

/// Who ends the first connection early, if anybody.
enum class Breaker : std::uint8_t { nobody, sender, receiver };

/// A run: connections from one host to another.
struct StreamScenario {
  std::uint64_t seed = 0;
  std::uint32_t connections = 1;
  std::uint64_t bytes = 0;  ///< of each connection
  std::uint64_t chunk = 0;  ///< offered at a time, when all before is acknowledged; 0: as it comes
  std::uint16_t sender_mtu = 1500;
  std::uint16_t receiver_mtu = 1500;
  std::uint64_t window = 1 << 20;
  std::uint64_t ring = 64 << 10;
  std::uint32_t half_open = 64;
  CongestionKind congestion = CongestionKind::cubic;
  bool nagle = false;
  bool wraps = false;  ///< sequence numbers of the first connection pass 2^32
  Breaker breaker = Breaker::nobody;
  WireFaults wire;
  HostHabits sender;
  HostHabits receiver;
  bool lane = false;               ///< the receiver's segments are taken by a lane
  bool lane_acknowledges = false;  ///< and writes their acknowledgements
  bool lane_queues = false;        ///< and takes frames out of queues
  double lane_pace = 1;            ///< probability of the lane to take a burst that waits, at each look in a turn
};

/// How a run went.
struct StreamOutcome {
  std::vector<std::string> failures;  ///< none: every byte arrived once and in order, and all connections ended
  double seconds = 0;                 ///< of simulated time, until the last connection ended
  std::uint64_t frames = 0;           ///< that were sent
  std::uint64_t retransmitted = 0;    ///< segments
  std::uint64_t timeouts = 0;
  std::uint64_t lane_acknowledgements = 0;  ///< that the receiver's lane wrote
};

/// Returns whether no segment may arrive in the 128 s that a cookie is good for: a connection opened by one is then
/// reset, as it must be, and its bytes are lost.
[[nodiscard]] bool may_outlast_cookies(const StreamScenario& scenario);
/// Draws a scenario of everything, without cookies where they are outlasted.
[[nodiscard]] StreamScenario draw_stream_scenario(std::uint64_t seed);
/// One line.
[[nodiscard]] std::string describe(const StreamScenario& scenario);
/// Runs StreamSender and StreamReceiver against each other in virtual time. A function of the scenario.
[[nodiscard]] StreamOutcome run(const StreamScenario& scenario);

}  // namespace warpline::stream
