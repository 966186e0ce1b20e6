// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "warpline/base/statistics/run_totals.h"

namespace warpline::traffic {

/// One direction of a queue pair, in so many seconds from before its first burst to behind its last.
struct QueueFlow {
  Tally tally;
  double seconds = 0;
};

/// What one queue pair of a generator did.
struct QueueTotals {
  std::string port;
  std::uint16_t queue = 0;
  std::uint32_t header_bytes = 0;  ///< of a frame, Ethernet to UDP: the rest is payload
  QueueFlow tx;                    ///< given to the queue, wherever it is now
  std::uint64_t stalls = 0;        ///< transmit calls that found the ring full
  QueueFlow rx;
  /// From before the first burst until the device had reported the last of `tx`; unset where the driver does not tell.
  std::optional<double> left_s;
  std::uint32_t unreported = 0;  ///< descriptors behind the device's last report
};

}  // namespace warpline::traffic
