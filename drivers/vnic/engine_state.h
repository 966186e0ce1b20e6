// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "device.h"
#include "engine.h"

namespace warpline::vnic {

/// What the device has in hand for a transmit queue. Owner: whoever serves the queue.
struct Engine::TxState {
  /// Frames on their way in by registered operations, which may take their time.
  static constexpr std::uint32_t kStaged = 64;
  static constexpr std::uint32_t kStageBytes = 64 * 1024;

  struct Staged {
    std::uint32_t begin;
    std::uint32_t length;
    std::uint64_t word;  ///< of the first descriptor
  };

  Iommu::Cache memory;
  bool skipping = false;  ///< in a chain that is too long, up to its end
  std::uint32_t staged_count = 0;
  std::uint32_t staged_bytes = 0;
  std::uint32_t staged_pieces = 0;  ///< descriptors
  std::array<Staged, kStaged> staged;
  alignas(64) std::array<std::uint8_t, kStageBytes> bytes;  ///< or one frame, while its faults and checksums are made
};

/// The same for a receive queue.
struct Engine::RxState {
  Iommu::Cache memory;
  std::uint64_t now_nanos = 0;  ///< when the clock was read last
  // Filled by registered operations that are not known to be done.
  std::uint32_t flying = 0;         ///< descriptors
  std::uint32_t flying_frames = 0;  ///< that they hold
};

inline void Engine::copy_in(void* device, const void* buffer, std::uint32_t length) const {
  if (ops_.copy_in != nullptr) [[unlikely]] {
    ops_.copy_in(ops_.context, device, buffer, length);
  } else {
    copy_bytes(device, buffer, length);
  }
}

inline void Engine::copy_out(void* buffer, const void* device, std::uint32_t length) const {
  if (ops_.copy_out != nullptr) [[unlikely]] {
    ops_.copy_out(ops_.context, buffer, device, length);
  } else {
    copy_bytes(buffer, device, length);
  }
}

}  // namespace warpline::vnic
