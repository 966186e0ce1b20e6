// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "warpline/base/result.h"

namespace warpline::gpu {

/// Owns rings of equal size in the memory of one GPU, each mapped twice, one mapping behind the other: bytes that go
/// around a ring's end lie in one piece. The CPU must not touch them.
class MirroredRings {
 public:
  /// Maps `count` zeroed rings of `bytes` each on that GPU, which becomes the calling thread's. Errors: usage, if
  /// `bytes` is no multiple of the GPU's pages (2 MiB); environment, if it has no room, or no such mappings.
  [[nodiscard]] static Result<MirroredRings> create(int gpu, std::uint32_t count, std::size_t bytes);

  /// Returns the first of `2 * bytes` bytes of ring `i`, of the GPU's addresses: byte k and byte k + `bytes` are the
  /// same.
  [[nodiscard]] std::uint8_t* ring(std::uint32_t i) const { return mapping_->begin() + 2 * mapping_->bytes() * i; }

 private:
  /// What is mapped so far: it is unmapped when this goes.
  class Mapping {
   public:
    Mapping(std::uint8_t* begin, std::uint32_t count, std::size_t bytes)
        : begin_(begin), count_(count), bytes_(bytes) {}
    Mapping(const Mapping&) = delete;
    Mapping& operator=(const Mapping&) = delete;
    ~Mapping();

    [[nodiscard]] std::uint8_t* begin() const { return begin_; }
    [[nodiscard]] std::size_t bytes() const { return bytes_; }
    [[nodiscard]] std::size_t total() const { return 2 * bytes_ * count_; }
    std::uint32_t mapped = 0;  ///< halves, from the first on

   private:
    std::uint8_t* begin_;
    std::uint32_t count_;
    std::size_t bytes_;
  };

  explicit MirroredRings(std::unique_ptr<Mapping> mapping) : mapping_(std::move(mapping)) {}

  std::unique_ptr<Mapping> mapping_;
};

}  // namespace warpline::gpu
