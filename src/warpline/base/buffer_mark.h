// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace warpline {

/// A number for the buffer at that address. XORed over all receptions, an odd number of times leaves it in and an even
/// number takes it out: what remains says of all buffers at once whether each was received oddly often, and two
/// different sets of buffers have the same XOR once in some 2^40 at most. One multiplication by a constant that fits
/// the instruction; a product is not linear in XOR as the address itself would be.
[[nodiscard]] inline std::uint64_t buffer_mark(const void* buffer) {
  constexpr std::uint64_t kOdd = 0x5bd1'e995;
  return reinterpret_cast<std::uintptr_t>(buffer) * kOdd;
}

}  // namespace warpline
