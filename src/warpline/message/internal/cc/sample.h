// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "warpline/base/units.h"

namespace warpline::message {

/// What one acknowledgement tells a congestion controller. Any values are safe, also absurd ones.
struct CcSample {
  Nanos now;                             ///< any origin; may step either way
  Nanos rtt;                             ///< of the newest packet acknowledged, with the time at the peer
  Nanos remote_delay;                    ///< of it at the peer: packet received to acknowledgement sent
  std::uint32_t acked_bytes = 0;         ///< newly acknowledged
  std::uint32_t acked_packets = 0;       ///< newly acknowledged
  std::uint32_t ecn_marked_packets = 0;  ///< of them, marked Congestion Experienced
  std::uint32_t in_flight_bytes = 0;     ///< left unacknowledged
};

/// What a session may send. A window below one MTU means one packet in flight, and pacing_gap between two.
struct CcOutput {
  double window_bytes = 0;
  Nanos pacing_gap;  ///< between packets of one MTU, in proportion for others; 0: not paced
};

}  // namespace warpline::message
