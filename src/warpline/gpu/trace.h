// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

#include "warpline/base/result.h"

namespace warpline::gpu {

/// Whether ranges are marked. Set before workers start; read by all of them.
inline std::atomic<bool> trace_enabled{false};

/// From now on, TraceRanges show in NVIDIA's profilers, and cost some 10 ns each where none is attached. An environment
/// error in a program built without CUDA or without NVTX.
[[nodiscard]] Result<void> start_tracing();

/// Marks from here to the end of the scope as a range of that name on the calling thread's line. `name` is a literal.
class TraceRange {
 public:
  explicit TraceRange(const char* name) : marked_(trace_enabled.load(std::memory_order_relaxed)) {
    if (marked_) [[unlikely]]
      push(name);
  }
  TraceRange(const TraceRange&) = delete;
  TraceRange& operator=(const TraceRange&) = delete;
  ~TraceRange() {
    if (marked_) [[unlikely]]
      pop();
  }

 private:
  static void push(const char* name);
  static void pop();

  bool marked_;
};

/// What a profiler started with --capture-range=cudaProfilerApi (nsys) or --profile-from-start off (ncu) records: from
/// the one to the other. Nothing without a GPU.
void start_profiler_capture();
void stop_profiler_capture();

}  // namespace warpline::gpu
