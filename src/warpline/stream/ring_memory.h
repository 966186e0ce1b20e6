// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "warpline/base/result.h"

namespace warpline::stream {

/// Rings of equal size in host memory, each mapped twice, one mapping behind the other: bytes that go around a ring's
/// end lie in one piece. Pages are taken from the system as they are first written, unless that was done before.
/// Move-only owner; made on a control thread.
class RingMemory {
 public:
  /// Maps `count` rings of `bytes` each, a multiple of the page size; `populate`: takes their pages at once. Errors:
  /// environment, if the system has no room.
  [[nodiscard]] static Result<RingMemory> create(std::uint32_t count, std::size_t bytes, bool populate = false);
  RingMemory(RingMemory&& other) noexcept;  ///< owns what the other did, which owns nothing then
  RingMemory& operator=(RingMemory&& other) noexcept;
  ~RingMemory();

  /// Returns the first of `2 * bytes` bytes of ring `i`: byte k and byte k + `bytes` are the same.
  [[nodiscard]] std::uint8_t* ring(std::uint32_t i) const { return begin_ + 2 * bytes_ * i; }

 private:
  RingMemory(std::uint8_t* begin, std::uint32_t count, std::size_t bytes)
      : begin_(begin), count_(count), bytes_(bytes) {}

  std::uint8_t* begin_;
  std::uint32_t count_;
  std::size_t bytes_;
};

}  // namespace warpline::stream
