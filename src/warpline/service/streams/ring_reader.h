// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "warpline/base/result.h"
#include "warpline/gpu/cuda_stream.h"
#include "warpline/gpu/memory/pinned_buffer.h"

namespace warpline::service {

/// Brings bytes of rings in a GPU's memory to the CPU, by way of pinned memory of its own. One thread at a time.
class RingReader {
 public:
  static constexpr std::size_t kPiece = 1 << 20;  ///< bytes that are copied at a time

  /// On that GPU; before kernels that stay run there. Errors: environment, if there is no GPU or no memory.
  [[nodiscard]] static Result<RingReader> create(int gpu);

  /// Calls take(std::span<const std::uint8_t>), which returns whether to go on, with one piece of `bytes` after the
  /// other. False if it did not get to the end; failure() says if that was the GPU's fault.
  template <typename F>
  [[nodiscard]] bool read(std::span<const std::uint8_t> bytes, F&& take) {
    while (!bytes.empty()) {
      const std::size_t length = std::min(bytes.size(), kPiece);
      if (!fetch(bytes.data(), length)) return false;
      if (!take(std::span(reinterpret_cast<const std::uint8_t*>(staging_.data()), length))) return false;
      bytes = bytes.subspan(length);
    }
    return true;
  }
  /// Why the GPU gave no bytes, if so.
  [[nodiscard]] const std::optional<Error>& failure() const { return failure_; }

 private:
  RingReader(int gpu, gpu::PinnedBuffer staging, gpu::CudaStream stream)
      : gpu_(gpu), staging_(std::move(staging)), stream_(std::move(stream)) {}
  [[nodiscard]] bool fetch(const std::uint8_t* from, std::size_t length);

  int gpu_;
  gpu::PinnedBuffer staging_;
  gpu::CudaStream stream_;
  std::optional<Error> failure_;
};

}  // namespace warpline::service
