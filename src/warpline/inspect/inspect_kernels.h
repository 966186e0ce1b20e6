// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "warpline/inspect/pattern_set.h"
#include "warpline/inspect/sha256.h"

namespace warpline::inspect {

/// The next bytes of a stream, in memory that the GPU reaches.
struct StreamPiece {
  const std::uint8_t* bytes = nullptr;  ///< first byte
  std::uint64_t count = 0;              ///< bytes
  std::uint32_t stream = 0;             ///< whose: its place among the states that a kernel is given
};

/// Threads of a CTA of search_kernel().
inline constexpr unsigned kSearchThreads = 256;
/// Bytes that each thread of search_kernel() looks through at a time.
inline constexpr std::uint32_t kSearchSpan = 128;

/// Returns the address of the __global__ function (const StreamPiece*, std::uint32_t count, Sha256* streams): a thread
/// for each piece adds it to the digest of its stream. No two pieces are of one stream. Where no device code is built
/// it is not defined.
[[nodiscard]] const void* digest_kernel();

/// Returns the address of the __global__ function (PatternTable, const StreamPiece*, std::uint32_t count,
/// std::uint16_t* states, unsigned long long* found), for CTAs of kSearchThreads: a CTA takes a piece, and the next one
/// when it is through. `states` are those of the streams, 0 at their beginning; `found[p]` is raised by the places
/// where pattern p ends. No two pieces are of one stream. Where no device code is built it is not defined.
[[nodiscard]] const void* search_kernel();

}  // namespace warpline::inspect
