// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "warpline/packet/checksum.h"
#include "warpline/stream/stream_events.h"

namespace warpline::stream {

/// Where a StreamSender has the bytes of its connections from. They are read when they are sent, and again when they
/// were lost: until they are acknowledged the same bytes are there whenever they are asked for.
class PayloadSource {
 public:
  PayloadSource() = default;
  PayloadSource(const PayloadSource&) = default;  ///< copies what a derived class refers to
  PayloadSource& operator=(const PayloadSource&) = default;
  virtual ~PayloadSource() = default;

  /// Copies bytes `[offset, offset + length)` of the connection's stream to `to`, and adds them to `sum`. They were
  /// offered by StreamSender::offer(). On the sender's thread, in its calls.
  virtual void read(ConnectionId connection, std::uint64_t offset, std::uint32_t length, std::uint8_t* to,
                    packet::ChecksumSum& sum) const = 0;
};

}  // namespace warpline::stream
