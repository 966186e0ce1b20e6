// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "warpline/base/device/shared_words.h"
#include "warpline/flow/frame.h"
#include "warpline/flow/frame_core.h"

namespace warpline::flow {

/// `FrameQueue` is the consumer's side of an assembler: it receives frames as they are handed over and gives them back
/// when they were used, in any order, say when a CUDA event tells that a kernel has read one. One thread at a time
/// calls next(), and one release(), the same or another, the assembler's too.
class FrameQueue {
 public:
  explicit FrameQueue(const FrameQueueView& view) : view_(view), freed_(*view.freed_to) {}

  /// Returns the oldest frame that next() has not returned, or nullptr. It is the caller's until release(), while the
  /// pointer itself is valid until the next call.
  [[nodiscard]] const Frame* next() {
    if (taken_ == seen_) {
      seen_ = load_acquire(view_.handed_to);
      if (taken_ == seen_) return nullptr;
    }
    frame_ = view_.handed[taken_ & view_.mask];
    ++taken_;
    return &frame_;
  }

  /// Gives the memory of a frame back, once, by its `Frame::buffer`. The assembler may write there from now on.
  void release(std::uint32_t buffer) {
    view_.freed[freed_ & view_.mask] = buffer;
    store_release(view_.freed_to, ++freed_);
  }

 private:
  FrameQueueView view_;
  std::uint64_t taken_ = 0;
  std::uint64_t seen_ = 0;
  std::uint64_t freed_;
  Frame frame_{};
};

}  // namespace warpline::flow
