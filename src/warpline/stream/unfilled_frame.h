// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "warpline/stream/stream_events.h"

namespace warpline::stream {

/// A frame that a StreamSender wrote without its payload, which is the frame's last bytes.
struct UnfilledFrame {
  std::uint32_t length = 0;    ///< bytes of the frame, payload among them; 0: there is none
  std::uint32_t payload = 0;   ///< bytes that are not there yet, nor in the TCP checksum; 0: the frame is complete
  std::uint32_t checksum = 0;  ///< with payload: where in the frame the TCP checksum is, of all but the payload
  ConnectionId connection;     ///< whose payload it is
  std::uint64_t offset = 0;    ///< of its first byte in the connection's stream
};

}  // namespace warpline::stream
