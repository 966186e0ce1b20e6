// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "warpline/base/enum_names.h"

namespace warpline::copies {

/// CopyKind is a way to copy the same bytes.
enum class CopyKind : std::uint8_t {
  host_memcpy,   ///< memcpy from host to host memory: no GPU
  pageable,      ///< cudaMemcpy of ordinary host memory, one after the other
  pinned,        ///< cudaMemcpy of pinned host memory, one after the other
  stream,        ///< cudaMemcpyAsync of pinned memory on one stream, waited for once
  stream_again,  ///< the same once more: the control, which says what two equals differ by
  streams,       ///< the same on four streams in turn
  batch,         ///< cudaMemcpyBatchAsync of pinned memory on one stream, waited for once
};

constexpr auto names_of(CopyKind) {
  return enum_names<CopyKind>(
      {"host memcpy", "pageable", "pinned", "one stream", "one stream again", "four streams", "batch"});
}

/// CopyDirection is where bytes go.
enum class CopyDirection : std::uint8_t { to_gpu, from_gpu };
constexpr auto names_of(CopyDirection) { return enum_names<CopyDirection>({"to GPU", "from GPU"}); }

inline constexpr std::size_t kStreams = 4;

/// CopyCase is what is timed: `count` copies of `size` bytes each, side by side.
struct CopyCase {
  CopyKind kind = CopyKind::host_memcpy;
  CopyDirection direction = CopyDirection::to_gpu;  ///< of no meaning to host_memcpy
  std::size_t size = 0;
  std::size_t count = 1;

  [[nodiscard]] std::size_t bytes() const { return size * count; }
  bool operator==(const CopyCase&) const = default;
};

inline constexpr std::size_t kSameBytes = 2 << 20;     ///< moved by each case of the table by count
inline constexpr std::size_t kLargestCopy = 64 << 20;  ///< of the table by size
inline constexpr std::size_t kSmallestCopy = 64;

/// Returns the cases of the table by count: the same 2 MiB in 1 to 32768 copies.
[[nodiscard]] std::vector<CopyCase> cases_by_count(bool with_gpu);
/// Returns the cases of the table by size: one copy of 64 B to 64 MiB.
[[nodiscard]] std::vector<CopyCase> cases_by_size(bool with_gpu);

}  // namespace warpline::copies
