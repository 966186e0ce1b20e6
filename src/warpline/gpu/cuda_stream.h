// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>

#include "warpline/base/result.h"
#include "warpline/base/units.h"

struct CUstream_st;
struct CUevent_st;

namespace warpline::gpu {

/// Owns a CUDA stream that does not wait for the default one. One thread at a time.
class CudaStream {
 public:
  enum class State : std::uint8_t {
    idle,  ///< all that was put in has been done
    busy,
    failed,  ///< a kernel fault, or the GPU is lost: nothing on this GPU works in this process any more
  };

  /// On the calling thread's GPU.
  [[nodiscard]] static Result<CudaStream> create();

  [[nodiscard]] CUstream_st* get() const { return stream_.get(); }
  /// Never waits.
  [[nodiscard]] State query() const;
  /// A kernel of ours that takes longer hangs.
  static constexpr Nanos kTimeout{30'000'000'000};
  /// For kernels that are the program's own: they take as long as they need.
  static constexpr Nanos kNoTimeout{std::numeric_limits<std::int64_t>::max()};

  /// Waits until idle, at most for `timeout`, then abandons the GPUs. The environment error of whatever failed, here or
  /// earlier on this GPU, or that the GPUs were abandoned meanwhile.
  [[nodiscard]] Result<void> wait(Nanos timeout = kTimeout) const;
  /// Why query() said failed; nothing when it did not.
  [[nodiscard]] std::optional<Error> failure() const;

  /// Queues a copy between host and GPU memory, either way: both stay as they are until it has been done. Host memory
  /// that is not pinned makes it wait.
  [[nodiscard]] Result<void> copy(void* to, const void* from, std::size_t bytes) const;

  // For the data path: false when CUDA refuses; failure() may say why.

  /// Queues a copy of pinned host memory into GPU memory.
  [[nodiscard]] bool queue_copy(void* to, const void* from, std::size_t bytes) const;
  /// Queues that `word`, in GPU or pinned memory, gets that value behind all that was queued before. Needs
  /// check_words().
  [[nodiscard]] bool queue_word(std::uint64_t* word, std::uint64_t value) const {
    return queue_word(stream_.get(), word, value);
  }
  /// The same on a cudaStream_t that somebody else owns.
  [[nodiscard]] static bool queue_word(CUstream_st* stream, std::uint64_t* word, std::uint64_t value);
  /// Queues that what is put on that cudaStream_t from now on waits until `word`, in GPU or pinned memory, is `least`
  /// or up to 2^63 - 1 more. What its writer wrote before is visible then. Needs check_words().
  [[nodiscard]] static bool queue_wait(CUstream_st* stream, const std::uint64_t* word, std::uint64_t least);
  /// An environment error where the driver cannot write words so, and wait for them.
  [[nodiscard]] static Result<void> check_words();

 private:
  struct Destroy {
    void operator()(CUstream_st* stream) const;
  };
  explicit CudaStream(CUstream_st* stream) : stream_(stream) {}

  std::unique_ptr<CUstream_st, Destroy> stream_;
};

/// Owns a CUDA event without a time: it marks a place on a stream. One thread at a time.
class CudaEvent {
 public:
  /// On the calling thread's GPU.
  [[nodiscard]] static Result<CudaEvent> create();

  // For the data path: false when CUDA refuses.

  /// Marks what is on the stream so far.
  [[nodiscard]] bool record(const CudaStream& stream) const { return record(stream.get()); }
  /// The same for a cudaStream_t that somebody else owns.
  [[nodiscard]] bool record(CUstream_st* stream) const;
  /// What is put on that stream from now on waits for what was marked.
  [[nodiscard]] bool hold_back(const CudaStream& stream) const;
  /// Never waits: idle once all that was marked has been done.
  [[nodiscard]] CudaStream::State query() const;

 private:
  struct Destroy {
    void operator()(CUevent_st* event) const;
  };
  explicit CudaEvent(CUevent_st* event) : event_(event) {}

  std::unique_ptr<CUevent_st, Destroy> event_;
};

/// Copies from any host memory into that of a GPU, or back, by cudaMemcpy: waits also for what the program has queued
/// on streams that wait for the default one, without a limit. For set-up. False when CUDA refuses.
[[nodiscard]] bool copy_and_wait(void* to, const void* from, std::size_t bytes);
/// Fills GPU memory with zeros, and waits for that alone, not for other streams.
[[nodiscard]] Result<void> clear_and_wait(void* memory, std::size_t bytes);

}  // namespace warpline::gpu
