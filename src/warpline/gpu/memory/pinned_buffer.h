// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "warpline/base/result.h"
#include "warpline/base/units.h"

namespace warpline::gpu {

/// Owns zeroed host memory, of whole pages, that every GPU of the process may read and write at the CPU's addresses.
class PinnedBuffer {
 public:
  [[nodiscard]] static Result<PinnedBuffer> create(Bytes size);

  [[nodiscard]] std::byte* data() const { return data_.get(); }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] std::span<std::byte> bytes() const { return {data_.get(), size_}; }

 private:
  struct Free {
    void operator()(std::byte* data) const;
  };
  PinnedBuffer(std::byte* data, std::size_t size) : data_(data), size_(size) {}

  std::unique_ptr<std::byte, Free> data_;
  std::size_t size_;
};

}  // namespace warpline::gpu
