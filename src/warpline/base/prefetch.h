// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace warpline {

/// Bytes to prefetch for a copy that follows; the hardware prefetcher fetches the rest.
inline constexpr std::uint32_t kPrefetched = 2048;  // bytes

/// Begins to fetch the cache lines of `bytes` from `at` on, to be read or, `for_write`, to be written; any address.
/// Worth it for what is wanted some hundred instructions later: a processor does not look so far ahead by itself.
template <bool for_write>
inline void prefetch_bytes(const std::uint8_t* at, std::size_t bytes) {
  constexpr std::size_t kLine = 64;
  for (std::size_t i = 0; i < bytes; i += kLine) __builtin_prefetch(at + i, for_write ? 1 : 0);
}

}  // namespace warpline
