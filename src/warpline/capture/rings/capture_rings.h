// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "warpline/base/result.h"
#include "warpline/capture/rings/capture_ring.h"

namespace warpline::capture {

/// CaptureRings own the memory of the rings of a capture. Another process can map it by its descriptor; its size is
/// sealed, so none can take it from under the other. Control thread.
class CaptureRings {
 public:
  static constexpr std::uint32_t kMost = 4096;  ///< rings
  static constexpr std::uint32_t kLargestSnaplen = 16'384;

  /// Makes `count` rings whose memory is there, so that no thread that puts packets in waits for the kernel.
  /// Environment error: there is no memory.
  [[nodiscard]] static Result<CaptureRings> make(std::uint32_t count, RingShape shape);
  /// Maps rings that another process has made, and takes `descriptor` over. Peer error: it is not the memory of such
  /// rings.
  [[nodiscard]] static Result<CaptureRings> map(int descriptor, std::uint32_t count, RingShape shape);
  CaptureRings(CaptureRings&& other) noexcept
      : descriptor_(std::exchange(other.descriptor_, -1)),
        memory_(std::exchange(other.memory_, nullptr)),
        count_(other.count_),
        shape_(other.shape_) {}
  CaptureRings& operator=(CaptureRings&&) = delete;
  ~CaptureRings();

  /// Returns an end of a ring. Each once; these do not outlive the rings.
  [[nodiscard]] CaptureRingInput input(std::uint32_t ring) const { return {memory_of(ring), shape_}; }
  [[nodiscard]] CaptureRingOutput output(std::uint32_t ring) const { return {memory_of(ring), shape_}; }

  [[nodiscard]] std::uint32_t count() const { return count_; }
  [[nodiscard]] RingShape shape() const { return shape_; }
  [[nodiscard]] int descriptor() const { return descriptor_; }

 private:
  CaptureRings(int descriptor, std::uint32_t count, RingShape shape)
      : descriptor_(descriptor), count_(count), shape_(shape) {}
  [[nodiscard]] std::size_t bytes() const { return count_ * shape_.bytes(); }
  [[nodiscard]] std::byte* memory_of(std::uint32_t ring) const { return memory_ + ring * shape_.bytes(); }
  [[nodiscard]] bool map_memory();

  int descriptor_;
  std::byte* memory_ = nullptr;
  std::uint32_t count_;
  RingShape shape_;
};

}  // namespace warpline::capture
