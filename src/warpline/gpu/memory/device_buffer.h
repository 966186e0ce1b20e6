// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>

#include "warpline/base/result.h"
#include "warpline/base/units.h"

namespace warpline::gpu {

/// Owns zeroed memory of one GPU. The CPU must not touch it: CudaStream::copy moves bytes in and out.
class DeviceBuffer {
 public:
  /// On the calling thread's GPU, aligned to `alignment`, a power of two of at least 256. Too little memory is an
  /// environment error that names what was wanted and what is free.
  [[nodiscard]] static Result<DeviceBuffer> create(Bytes size, Bytes alignment = {256});

  /// The GPU's address, the same for every GPU and for NICs that its memory is opened to.
  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] std::size_t size() const { return size_; }

 private:
  struct Free {
    void operator()(void* allocation) const;
  };
  DeviceBuffer(void* allocation, std::byte* data, std::size_t size)
      : allocation_(allocation), data_(data), size_(size) {}

  std::unique_ptr<void, Free> allocation_;
  std::byte* data_;
  std::size_t size_;
};

}  // namespace warpline::gpu
