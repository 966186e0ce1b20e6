// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "warpline/base/frame.h"

struct CUstream_st;

namespace warpline::ingest {

/// A batch of packets that a GPU reads: in its memory, or of a path that lends in pinned memory of the host. It is the
/// consumer's until all that was put on the stream has been done; then its memory is another batch's.
///
/// A packet is one descriptor with `more` == 0, or so many more that follow each other. Those whose verdict is not
/// `forward` were dropped before (`giant`). A kernel drops others by writing a verdict to the first descriptor of a
/// packet; what it leaves is taken.
struct GpuBatch {
  Segment* segments;       ///< descriptors, at one address for host and GPU; Segment::data is the GPU's to read
  std::uint32_t count;     ///< of descriptors
  std::uint32_t path;      ///< queue that the packets come from: batches of one path come in order
  std::uint64_t sequence;  ///< of the batch on its path, from 1
  int gpu;                 ///< CUDA ordinal, the calling thread's
  CUstream_st* stream;     ///< a cudaStream_t: of one path it is always the same one
};

/// Puts work of its own on a stream for every batch. One object for all paths: each path has a thread of its own that
/// calls consume(), so with several paths calls come at the same time. Its kernels are loaded when they are first
/// launched, and beside kernels that stay, as those that play a software NIC's DMA engine (--path device), CUDA may
/// wait with that: there, load them before the run, by asking CUDA for their attributes or with
/// CUDA_MODULE_LOADING=EAGER.
class GpuBatchConsumer {
 public:
  virtual ~GpuBatchConsumer() = default;
  /// Puts what is to be done with the batch on its stream, behind which the packets are there, and returns without
  /// waiting for it. False: it cannot go on, and the run ends with an error; that batch's packets are dropped as
  /// `engine_stopped`.
  [[nodiscard]] virtual bool consume(const GpuBatch& batch) = 0;
};

}  // namespace warpline::ingest
