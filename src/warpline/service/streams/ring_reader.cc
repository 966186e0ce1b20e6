// SPDX-License-Identifier: Apache-2.0
#include "warpline/service/streams/ring_reader.h"

#include "warpline/base/units.h"
#include "warpline/gpu/device.h"

namespace warpline::service {

Result<RingReader> RingReader::create(int gpu) {
  WARPLINE_CHECK(gpu::use_gpu(gpu));
  WARPLINE_TRY(gpu::PinnedBuffer staging, gpu::PinnedBuffer::create(Bytes{kPiece}));
  WARPLINE_TRY(gpu::CudaStream stream, gpu::CudaStream::create());
  return RingReader(gpu, std::move(staging), std::move(stream));
}

/// The GPU is the calling thread's, whichever that is.
bool RingReader::fetch(const std::uint8_t* from, std::size_t length) {
  const auto keep = [this](const Result<void>& result) {
    if (!result.ok() && !failure_) failure_ = result.error();
    return result.ok();
  };
  return keep(gpu::use_gpu(gpu_)) && keep(stream_.copy(staging_.data(), from, length)) && keep(stream_.wait());
}

}  // namespace warpline::service
