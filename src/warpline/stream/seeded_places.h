// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "warpline/base/host_device.h"
#include "warpline/base/random.h"

namespace warpline::stream {

/// Where in its table SeededPayload has the bytes of a stream.
struct SeededPlaces {
  static constexpr std::uint32_t kPiece = 4096;              ///< bytes from one place of the table
  static constexpr std::uint32_t kPlaces = 128 * 1024;       ///< of which a hash chooses
  static constexpr std::uint32_t kTable = kPlaces + kPiece;  ///< bytes of the table

  /// Returns the place of the piece that has byte `offset` of the stream. `seed` is mixed.
  [[nodiscard]] WARPLINE_HD static constexpr std::uint32_t of(std::uint64_t seed, std::uint64_t stream,
                                                              std::uint64_t offset) {
    return static_cast<std::uint32_t>(mix64(mix64(seed ^ stream) ^ offset / kPiece) % kPlaces);
  }
};

}  // namespace warpline::stream
