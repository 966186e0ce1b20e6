// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "warpline/base/result.h"
#include "warpline/gpu/memory/host_registration.h"
#include "warpline/gpu/memory/mirrored_rings.h"
#include "warpline/memory/pool_settings.h"
#include "warpline/stream/ring_memory.h"

namespace warpline::stream_port {

/// Owns rings of equal size that a GPU reaches, each mapped twice, in its memory or pinned in the host's.
class GpuRings {
 public:
  /// Maps `count` rings of `bytes` each: pinned or device memory. Errors: usage, if rings are no whole pages of the
  /// GPU; environment, if there is no GPU, or no room.
  [[nodiscard]] static Result<GpuRings> create(int gpu, memory::MemoryKind kind, std::uint32_t count,
                                               std::size_t bytes);

  /// Returns the first of `2 * bytes` bytes of ring `i`, of the GPU's addresses.
  [[nodiscard]] std::uint8_t* ring(std::uint32_t i) const { return device_ ? device_->ring(i) : host_->ring(i); }

 private:
  std::optional<gpu::MirroredRings> device_;
  std::optional<stream::RingMemory> host_;
  std::optional<gpu::HostRegistration> pinned_;  ///< goes before `host_`
};

}  // namespace warpline::stream_port
