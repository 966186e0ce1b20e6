// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace warpline::capture {

/// PacketTimes say when a packet passed what packets pass, in ticks of the time-stamp counter; 0: nobody says. In a
/// ring they stand where other packets have their bytes.
struct PacketTimes {
  std::uint64_t received = 0;   ///< the first of its batch was seen
  std::uint64_t closed = 0;     ///< its batch was full, or due
  std::uint64_t begun = 0;      ///< the engine began to work on the batch
  std::uint64_t done = 0;       ///< the engine was done with it
  std::uint64_t collected = 0;  ///< the lcore that transmits saw that
  std::uint64_t left = 0;       ///< the batch was sent, or dropped
  std::uint16_t batch = 0;      ///< packets of the batch
};

}  // namespace warpline::capture
