// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "warpline/flow/frame.h"

struct CUstream_st;

namespace warpline::ingest {

/// So many frames of a path are on a GPU's stream at a time, at most: then the next one waits.
inline constexpr std::uint32_t kMostFramesInWork = 64;

/// A frame that packets have been placed in, for who asked for frames. It lies in the memory of a GPU, or in that of
/// the host where the CPU makes frames.
struct ReadyFrame {
  flow::Frame frame;    ///< data and mask are the GPU's to read, or the CPU's; `time` is in ticks (base/time/clock.h)
  std::uint32_t path;   ///< queue that its packets came from: frames of one path come in the order of flow::FrameQueue
  int gpu;              ///< CUDA ordinal, the calling thread's; -1: the frame is in host memory
  CUstream_st* stream;  ///< a cudaStream_t, of one path always the same one; nullptr: the frame is in host memory
};

/// Uses frames. One object for all paths: frames of a path come one at a time, from the lcore or the engine's thread
/// that has the path, and the last ones, which are not complete, from the thread that called IngestRun::run(). With
/// several paths calls come at the same time.
class FrameConsumer {
 public:
  virtual ~FrameConsumer() = default;
  /// On a GPU: puts what is to be done with the frame on its stream and returns without waiting for it. The frame's
  /// memory is another frame's once the stream has passed that work. Kernels and libraries load what they need when
  /// they are first used, which may take longer than the port can wait: use them once before the run. On the host: uses
  /// the frame. Its memory is another frame's when this returns. False: it cannot go on, and the run ends with an
  /// error.
  [[nodiscard]] virtual bool consume(const ReadyFrame& ready) = 0;
};

}  // namespace warpline::ingest
