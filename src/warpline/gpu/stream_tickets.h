// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <utility>

#include "warpline/base/result.h"
#include "warpline/gpu/cuda_stream.h"
#include "warpline/gpu/memory/pinned_buffer.h"

struct CUctx_st;

namespace warpline::gpu {

/// When memory that others' streams read may be used again: whoever is done with it says which stream read it, draws a
/// ticket, and the ticket is done once the GPU has passed all that such streams had been given until then. Any threads,
/// one at a time by a lock; is_done() takes none. Its destruction waits until the GPU has passed all that, however long
/// it takes: that work is not ours. Only where the GPUs are abandoned it does not.
class StreamTickets {
 public:
  /// A ticket that is never done.
  static constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();

  /// On the calling thread's GPU. An environment error where the driver cannot write words in a stream's order.
  [[nodiscard]] static Result<std::unique_ptr<StreamTickets>> create();
  StreamTickets(const StreamTickets&) = delete;
  StreamTickets& operator=(const StreamTickets&) = delete;
  ~StreamTickets();

  /// Has tickets drawn from now on wait for what that cudaStream_t, which is somebody else's, was given so far. False
  /// when CUDA refuses, as for a stream that is gone: nobody knows then when its work is done.
  [[nodiscard]] bool wait_for(CUstream_st* stream);
  /// Draws the next ticket; kNever when CUDA refuses.
  [[nodiscard]] std::uint64_t draw();
  /// Whether the GPU has come to it. 0 always is.
  [[nodiscard]] bool is_done(std::uint64_t ticket) const {
    return ticket <= std::atomic_ref(*word()).load(std::memory_order_acquire);
  }

 private:
  StreamTickets(CUctx_st* context, PinnedBuffer done, CudaStream stream, CudaEvent event)
      : context_(context), done_(std::move(done)), stream_(std::move(stream)), event_(std::move(event)) {}
  [[nodiscard]] std::uint64_t* word() const { return reinterpret_cast<std::uint64_t*>(done_.data()); }

  CUctx_st* context_;
  PinnedBuffer done_;  ///< the last ticket that is done
  std::mutex mutex_;
  CudaStream stream_;  ///< waits for all those streams
  CudaEvent event_;
  std::uint64_t drawn_ = 0;
};

}  // namespace warpline::gpu
