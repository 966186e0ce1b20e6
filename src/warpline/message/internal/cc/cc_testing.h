// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "warpline/message/internal/cc/sample.h"

namespace warpline::message {

/// One full packet acknowledged, its window full.
inline CcSample packet_acked(std::int64_t now_us, std::int64_t rtt_us, std::uint32_t mtu) {
  return {.now = Nanos{now_us * 1000},
          .rtt = Nanos{rtt_us * 1000},
          .remote_delay = Nanos{0},
          .acked_bytes = mtu,
          .acked_packets = 1,
          .ecn_marked_packets = 0,
          .in_flight_bytes = 1 << 30};
}

}  // namespace warpline::message
