// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "warpline/base/result.h"
#include "warpline/base/units.h"
#include "warpline/flow/frame_core.h"
#include "warpline/flow/frame_plan.h"

namespace warpline::flow {

/// `AssemblerMemory` is the memory of an assembler, each part aligned to FrameLayout::kAlignment.
struct AssemblerMemory {
  std::span<std::byte> frames;  ///< payloads and masks: where the consumer wants them, say on a GPU
  std::span<std::byte> state;   ///< zeroed; where the assembler runs
  std::span<std::byte> queue;   ///< what assembler and consumer share: host memory that both reach
};

/// `FrameLayout` says how an assembler's memory is laid out: as many frames as a budget has room for.
class FrameLayout {
 public:
  static constexpr std::size_t kAlignment = 256;

  /// `batch` is how many packets a batch has at most, 0 for an assembler that is given packets one at a time. A usage
  /// error if the budget has no room for the windows of all streams and one frame for the consumer.
  [[nodiscard]] static Result<FrameLayout> fit(const FramePlan& plan, Bytes budget, std::uint32_t batch = 0);

  [[nodiscard]] std::uint32_t frames() const { return frames_; }
  [[nodiscard]] std::uint64_t frame_memory() const { return frames_ * (data_stride_ + mask_stride_); }  ///< bytes
  [[nodiscard]] std::uint64_t state_memory() const;                                                     ///< bytes
  [[nodiscard]] std::uint64_t queue_memory() const;                                                     ///< bytes
  /// Returns the bytes of all parts: at most the budget.
  [[nodiscard]] std::uint64_t total() const { return frame_memory() + state_memory() + queue_memory(); }

  /// Cuts one piece of host memory, aligned and of total() bytes at least, into the parts.
  [[nodiscard]] AssemblerMemory parts_of(std::span<std::byte> memory) const;

  /// Makes the view of memory that has the sizes above, and writes the queue's beginning: all frames are free. The
  /// state and the frames are not touched, so that they may be a GPU's.
  [[nodiscard]] AssemblerView view(const AssemblerMemory& memory) const;
  /// Makes the view and touches nothing: all of the memory may be a GPU's.
  [[nodiscard]] AssemblerView place(const AssemblerMemory& memory) const;
  /// Writes the queue's beginning to `queue`, queue_memory() bytes that may be copied to where the queue is.
  void begin_queue(std::span<std::byte> queue) const;

 private:
  explicit FrameLayout(const FramePlan& plan, std::uint32_t batch, std::uint64_t frames);

  FramePlan plan_;
  std::uint32_t batch_;
  std::uint32_t frames_;
  std::uint64_t data_stride_;
  std::uint64_t mask_stride_;
};

}  // namespace warpline::flow
