// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "warpline/base/host_device.h"

namespace warpline::stream {

/// Bytes `[offset, offset + length)` of a seeded stream, to be made where `to` is.
struct MakeOrder {
  std::uint8_t* to = nullptr;
  std::uint64_t stream = 0;  ///< as SeededPayload numbers it
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
};

/// The payload of a frame, to be copied to its place there and added to the TCP checksum.
struct FillOrder {
  std::uint8_t* to = nullptr;          ///< in the frame, at any address; the payload begins at an even offset of TCP's
  const std::uint8_t* from = nullptr;  ///< at any address
  std::uint8_t* checksum = nullptr;    ///< in the frame, at an even address
  std::uint32_t length = 0;            ///< bytes, 1 to 65535
  std::uint16_t sum = 0;               ///< over all else that the checksum covers, in the machine's byte order
};

/// Returns the checksum of a segment, as two bytes in the machine's order: `sum` as FillOrder has it, and `payload` a
/// sum of 16-bit words as they lie in memory, the first of them at an even offset of the segment (RFC 1071).
[[nodiscard]] WARPLINE_HD constexpr std::uint16_t completed_checksum(std::uint16_t sum, std::uint64_t payload) {
  std::uint64_t all = (payload & 0xffff'ffffU) + (payload >> 32) + sum;
  all = (all & 0xffffU) + (all >> 16);
  all = (all & 0xffffU) + (all >> 16);
  all = (all & 0xffffU) + (all >> 16);
  return static_cast<std::uint16_t>(~all);
}

}  // namespace warpline::stream
