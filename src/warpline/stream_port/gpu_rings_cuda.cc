// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "warpline/stream_port/gpu_rings.h"

namespace warpline::stream_port {

Result<GpuRings> GpuRings::create(int gpu, memory::MemoryKind kind, std::uint32_t count, std::size_t bytes) {
  GpuRings rings;
  if (kind == memory::MemoryKind::device) {
    WARPLINE_TRY(rings.device_, gpu::MirroredRings::create(gpu, count, bytes));
    return rings;
  }
  WARPLINE_TRY(rings.host_, stream::RingMemory::create(count, bytes, true));
  WARPLINE_TRY(rings.pinned_, gpu::HostRegistration::create({reinterpret_cast<std::byte*>(rings.host_->ring(0)),
                                                             2 * std::size_t{count} * bytes}));
  return rings;
}

}  // namespace warpline::stream_port
