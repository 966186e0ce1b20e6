// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <optional>
#include <utility>

#include "warpline/base/units.h"
#include "warpline/gpu/cuda_stream.h"
#include "warpline/gpu/device.h"
#include "warpline/gpu/gpu_place.h"
#include "warpline/gpu/kernel_launch.h"
#include "warpline/gpu/memory/device_buffer.h"
#include "warpline/gpu/memory/pinned_buffer.h"
#include "warpline/stream_port/seeded_comparer.h"

namespace warpline::stream_port {
namespace {

using stream::SeededPiece;
using stream::SeededVerdict;

/// CTAs of a launch: enough for what PCIe brings, few enough to leave room for lanes.
constexpr unsigned kCtas = 16;

/// What CPU and GPU share.
struct Shared {
  SeededVerdict verdict;
  SeededPiece pieces[SeededComparer::kMostPieces];
};

class GpuComparer final : public SeededComparer {
 public:
  static Result<std::unique_ptr<SeededComparer>> create(int gpu, const stream::SeededPayload& payload) {
    WARPLINE_CHECK(gpu::use_gpu(gpu));
    const std::span<const std::uint8_t> table = payload.table();
    WARPLINE_TRY(gpu::PinnedBuffer shared, gpu::PinnedBuffer::create(Bytes{sizeof(Shared)}));
    WARPLINE_TRY(gpu::DeviceBuffer on_gpu, gpu::DeviceBuffer::create(Bytes{kEndedBytes + table.size()}));
    WARPLINE_TRY(gpu::CudaStream stream, gpu::CudaStream::create());
    WARPLINE_CHECK(stream.copy(on_gpu.data() + kEndedBytes, table.data(), table.size()));
    WARPLINE_CHECK(stream.wait());
    std::unique_ptr<GpuComparer> made(
        new GpuComparer(gpu, payload.mixed_seed(), std::move(shared), std::move(on_gpu), std::move(stream)));
    // It is launched again and again, and may not wait for a lane that stays.
    WARPLINE_TRY(made->place_, gpu::GpuPlace::claim(gpu, made->launch_, 1));
    // The first launch takes what no later one does: code is loaded, which waits for kernels that stay.
    made->submit({});
    WARPLINE_CHECK(made->stream_.wait());
    made->bound_ = false;  // by the thread that will call
    return std::unique_ptr<SeededComparer>(std::move(made));
  }

  void submit(std::span<const SeededPiece> pieces) override {
    if (!bound_) bound_ = gpu::use_gpu(gpu_).ok();
    std::ranges::copy(pieces, shared().pieces);
    launch_.set(3, static_cast<std::uint32_t>(pieces.size()));
    launch_.set(6, ++launched_);
    refused_ = refused_ || !launch_(stream_);
  }
  [[nodiscard]] bool idle() const override {
    return std::atomic_ref(shared().verdict.done).load(std::memory_order_acquire) == launched_;
  }
  [[nodiscard]] std::uint64_t wrong() const override {
    return std::atomic_ref(shared().verdict.wrong).load(std::memory_order_relaxed);
  }
  [[nodiscard]] std::optional<Error> failure() const override {
    if (auto error = stream_.failure()) return error;
    if (!refused_) return std::nullopt;
    return environment_error("bytes of streams cannot be compared", "CUDA refuses to launch the kernel",
                             "run `warpline doctor`");
  }

  /// Waits for the launch in flight; a GPU that hangs is abandoned, and its memory with it.
  ~GpuComparer() override {
    if (!gpu::gpus_abandoned()) static_cast<void>(stream_.wait(kPatience));
  }

 private:
  static constexpr Nanos kPatience{5'000'000'000};
  static constexpr std::size_t kEndedBytes = 256;  ///< of the word that CTAs count themselves in, ahead of the table

  GpuComparer(int gpu, std::uint64_t seed, gpu::PinnedBuffer shared_memory, gpu::DeviceBuffer on_gpu,
              gpu::CudaStream stream)
      : gpu_(gpu),
        shared_(std::move(shared_memory)),
        on_gpu_(std::move(on_gpu)),
        stream_(std::move(stream)),
        launch_(stream::seeded_compare_kernel(), kCtas, stream::kCompareThreads,
                reinterpret_cast<const std::uint8_t*>(on_gpu_.data() + kEndedBytes), seed,
                static_cast<const SeededPiece*>(shared().pieces), std::uint32_t{0},
                reinterpret_cast<std::uint32_t*>(on_gpu_.data()), &shared().verdict, std::uint64_t{0}) {}

  [[nodiscard]] Shared& shared() const { return *reinterpret_cast<Shared*>(shared_.data()); }

  int gpu_;
  gpu::PinnedBuffer shared_;
  gpu::DeviceBuffer on_gpu_;
  gpu::CudaStream stream_;
  gpu::KernelLaunch launch_;
  std::optional<gpu::GpuPlace> place_;
  std::uint64_t launched_ = 0;
  bool bound_ = false;    ///< the calling thread uses the GPU
  bool refused_ = false;  ///< CUDA took no launch
};

}  // namespace

Result<std::unique_ptr<SeededComparer>> make_gpu_comparer(int gpu, const stream::SeededPayload& payload) {
  return GpuComparer::create(gpu, payload);
}

}  // namespace warpline::stream_port
