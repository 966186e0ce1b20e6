// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "warpline/gpu/cuda_stream.h"
#include "warpline/gpu/device.h"
#include "warpline/gpu/kernel_launch.h"
#include "warpline/gpu/memory/pinned_buffer.h"
#include "warpline/handoff/lanes/launched_copies.h"
#include "warpline/handoff/lanes/launched_lane.h"

namespace warpline::handoff {
namespace {

constexpr std::uint32_t kPieces = 1 << 14;   ///< that wait or are copied, at most
constexpr std::uint32_t kBatches = 1 << 12;  ///< likewise, one less: ends_ has the one before, too
constexpr std::size_t kLongest = 2048;       ///< bytes that a warp copies: a longer piece is several
/// Launches under way: while one runs the next is made, with whatever came meanwhile.
constexpr std::uint32_t kLaunches = 2;
/// Grids of so many CTAs, of which the smallest that has a warp for each piece is taken, else the last.
constexpr std::array<unsigned, 4> kGrids = {1, 4, 16, 64};
/// The stream is asked whether it has failed once in so many looks that saw nothing land.
constexpr std::uint32_t kLooks = 1 << 10;

class Lane final : public LaunchedLane {
 public:
  Lane(gpu::CudaStream stream, gpu::PinnedBuffer pieces, gpu::PinnedBuffer word)
      : stream_(std::move(stream)), pieces_(std::move(pieces)), word_(std::move(word)) {
    const PieceRing ring{piece(0), kPieces - 1};
    for (const unsigned ctas : kGrids) {
      kernels_.emplace_back(launched_copies_kernel(), ctas, kLaunchedThreads, ring, std::uint32_t{0}, std::uint32_t{0});
    }
  }
  ~Lane() override { stop(); }

  [[nodiscard]] CUstream_st* stream() const override { return stream_.get(); }

  [[nodiscard]] bool submit(std::span<const Piece> batch) override {
    if (submitted_ - landed_ == kBatches - 1) return false;
    std::uint32_t end = pieces_end_;
    for (const Piece& added : batch) {
      // A warp takes long for a long piece, while others have nothing to do.
      for (std::size_t begin = 0; begin < added.length; begin += kLongest) {
        if (end - pieces_begin_ == kPieces) return false;
        *piece(end++) = {static_cast<std::byte*>(added.to) + begin, static_cast<const std::byte*>(added.from) + begin,
                         std::min(kLongest, added.length - begin)};
      }
    }
    pieces_end_ = end;
    ends_[submitted_++ % kBatches] = end;
    return true;
  }

  [[nodiscard]] std::uint64_t landed() override {
    const std::uint64_t landed = std::atomic_ref(*word()).load(std::memory_order_acquire);
    if (landed != landed_) {
      landed_ = landed;
      pieces_begin_ = ends_[(landed - 1) % kBatches];
      looks_ = 0;
    } else if (submitted_ != landed_ && ++looks_ % kLooks == 0 && !failure_) {
      failure_ = stream_.failure();
    }
    launch();
    return landed_;
  }

  [[nodiscard]] std::optional<Error> failure() const override { return failure_; }

  /// Waits for the launches in flight; a GPU that hangs is abandoned.
  void stop() override {
    stopped_ = true;
    if (!gpu::gpus_abandoned()) (void)stream_.wait();
  }

 private:
  [[nodiscard]] Piece* piece(std::uint32_t number) const {
    return reinterpret_cast<Piece*>(pieces_.data()) + number % kPieces;
  }
  [[nodiscard]] std::uint64_t* word() const { return reinterpret_cast<std::uint64_t*>(word_.data()); }

  /// Launches a kernel for all that waits, if there may be one more.
  void launch() {
    if (launched_ == submitted_ || stopped_ || failure_) return;
    // The one before the last has landed, then, or there are fewer.
    if (launches_.front() > landed_) return;
    const std::uint32_t first = launched_ == 0 ? 0 : ends_[(launched_ - 1) % kBatches];
    const std::uint32_t count = pieces_end_ - first;
    const auto fits = std::ranges::find_if(kGrids, [&](unsigned ctas) { return ctas * kLaunchedWarps >= count; });
    gpu::KernelLaunch& kernel = kernels_[fits == kGrids.end() ? kGrids.size() - 1 : fits - kGrids.begin()];
    kernel.set(1, first);
    kernel.set(2, count);
    if (!kernel(stream_) || !stream_.queue_word(word(), submitted_)) {
      failure_ = stream_.failure();
      if (!failure_) failure_ = environment_error("copies of messages", "CUDA refused a launch", "start again");
      return;
    }
    launched_ = submitted_;
    std::ranges::rotate(launches_, launches_.begin() + 1);
    launches_.back() = launched_;
  }

  gpu::CudaStream stream_;
  gpu::PinnedBuffer pieces_;
  gpu::PinnedBuffer word_;  ///< batches that have landed, written behind each kernel
  std::vector<gpu::KernelLaunch> kernels_;
  std::array<std::uint32_t, kBatches> ends_{};               ///< where the pieces of each batch end
  std::array<std::uint64_t, kLaunches> launches_{};          ///< batches submitted when each of the last was made
  std::uint32_t pieces_begin_ = 0, pieces_end_ = 0;          ///< of those that have not landed
  std::uint64_t submitted_ = 0, launched_ = 0, landed_ = 0;  ///< batches
  std::uint32_t looks_ = 0;
  bool stopped_ = false;
  std::optional<Error> failure_;
};

}  // namespace

Result<std::unique_ptr<LaunchedLane>> make_launched_lane(int gpu) {
  WARPLINE_TRY(const gpu::GpuFacts facts, gpu::find_gpu(gpu));
  WARPLINE_CHECK(gpu::use_gpu(facts.ordinal));
  WARPLINE_CHECK(gpu::CudaStream::check_words());
  WARPLINE_TRY(gpu::CudaStream stream, gpu::CudaStream::create());
  WARPLINE_TRY(gpu::PinnedBuffer pieces, gpu::PinnedBuffer::create(Bytes{kPieces * sizeof(Piece)}));
  WARPLINE_TRY(gpu::PinnedBuffer word, gpu::PinnedBuffer::create(Bytes{sizeof(std::uint64_t)}));
  return std::unique_ptr<LaunchedLane>(new Lane(std::move(stream), std::move(pieces), std::move(word)));
}

}  // namespace warpline::handoff
