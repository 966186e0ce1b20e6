// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace warpline::stream {

/// Bytes of a stream in memory that the GPU reaches, and which of SeededPayload's they should be.
struct SeededPiece {
  const std::uint8_t* bytes = nullptr;
  std::uint64_t length = 0;
  std::uint64_t stream = 0;  ///< as SeededPayload numbers it
  std::uint64_t offset = 0;  ///< of the first byte
};

/// What a launch came to, in pinned memory. `done` is written last.
struct SeededVerdict {
  std::uint64_t wrong = 0;  ///< bytes, of all launches so far
  std::uint64_t done = 0;   ///< number of the last launch that has ended
};

/// Threads of a CTA of seeded_compare_kernel().
inline constexpr unsigned kCompareThreads = 1024;

/// Returns the address of the __global__ function (const std::uint8_t* table, std::uint64_t seed, const SeededPiece*,
/// std::uint32_t count, std::uint32_t* ended, SeededVerdict*, std::uint64_t number), of any number of CTAs: compares
/// the pieces with SeededPayload's bytes, whose table and mixed seed these are, and says in the verdict what came of
/// launch `number`. `ended` is a word of the GPU's, 0 at first. One launch at a time. Where no device code is built it
/// is not defined.
[[nodiscard]] const void* seeded_compare_kernel();

}  // namespace warpline::stream
