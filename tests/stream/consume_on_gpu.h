// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "warpline/base/host_device.h"

namespace warpline::gpu_lane_test {

/// Byte `offset` of every stream.
WARPLINE_HD inline std::uint8_t streamed_byte(std::uint64_t offset) {
  return static_cast<std::uint8_t>(offset * 31 + offset / 256);
}

/// What consumers have seen, in memory of the GPU.
struct ConsumedCounts {
  unsigned long long bytes = 0;
  unsigned long long wrong = 0;
  unsigned long long finished = 0;
};

inline constexpr unsigned kConsumerThreads = 128;

/// How many rounds were written and read by the kernel below, in memory of the GPU.
struct AliasRounds {
  std::uint64_t written = 0;
  std::uint64_t read = 0;
};
inline constexpr std::uint64_t kAliasBytes = 4096;  ///< of a round

/// Returns the address of the __global__ function (std::uint8_t* ring, std::uint64_t ring_bytes, std::uint64_t rounds,
/// AliasRounds*, ConsumedCounts*), for two CTAs of kConsumerThreads: one writes the ring's first bytes by one of its
/// two mappings, the other one, which read them before, reads them by the other mapping, as lanes and StreamReaders do.
[[nodiscard]] const void* alias_kernel();

/// Returns the address of the __global__ function (StreamBoard, std::uint64_t* stop, ConsumedCounts*), for CTAs of
/// kConsumerThreads: CTA i reads the connections that have place i, some of what has come at a time, until *stop is not
/// 0.
[[nodiscard]] const void* consume_kernel();

/// What hold_kernel() reads and counts, in memory of the host.
struct HeldPlaces {
  std::uint64_t stop = 0;
  std::uint64_t held = 0;  ///< CTAs that have begun
};

/// Returns the address of the __global__ function (HeldPlaces*), whose CTAs count themselves in `held`, and keep their
/// places until `stop` is not 0.
[[nodiscard]] const void* hold_kernel();

/// Returns the address of the __global__ function (const std::uint8_t* bytes, std::uint64_t begin, std::uint64_t count,
/// ConsumedCounts*), for one CTA: compares bytes of a stream, and knows of no board.
[[nodiscard]] const void* compare_kernel();

}  // namespace warpline::gpu_lane_test
