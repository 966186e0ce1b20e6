// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <optional>
#include <utility>

#include "warpline/base/units.h"
#include "warpline/gpu/cuda_stream.h"
#include "warpline/gpu/device.h"
#include "warpline/gpu/gpu_place.h"
#include "warpline/gpu/kernel_launch.h"
#include "warpline/gpu/memory/device_buffer.h"
#include "warpline/gpu/memory/pinned_buffer.h"
#include "warpline/stream/gpu/payload_kernels.h"
#include "warpline/stream_port/gpu_rings.h"
#include "warpline/stream_port/payload/gpu_payload_lane.h"

namespace warpline::stream_port {
namespace {

using stream::FillOrder;
using stream::MakeOrder;
using stream::PayloadLane;

constexpr std::size_t kLine = 256;  ///< bytes between what CPU and GPU write

/// What CPU and GPU share, in pinned memory: a word that says how many batches have landed, and the orders of those
/// under way.
class OrderMemory {
 public:
  static Result<OrderMemory> create(std::uint32_t connections) {
    WARPLINE_TRY(gpu::PinnedBuffer memory,
                 gpu::PinnedBuffer::create(Bytes{kLine + PayloadLane::kSlots * slot_bytes(connections)}));
    return OrderMemory(std::move(memory), connections);
  }

  [[nodiscard]] std::uint64_t* done() const { return reinterpret_cast<std::uint64_t*>(memory_.data()); }
  [[nodiscard]] FillOrder* fills(std::uint64_t number) const { return reinterpret_cast<FillOrder*>(slot(number)); }
  [[nodiscard]] MakeOrder* makes(std::uint64_t number) const {
    return reinterpret_cast<MakeOrder*>(slot(number) + PayloadLane::kFills * sizeof(FillOrder));
  }

 private:
  OrderMemory(gpu::PinnedBuffer memory, std::uint32_t connections)
      : memory_(std::move(memory)), slot_bytes_(slot_bytes(connections)) {}

  static std::size_t slot_bytes(std::uint32_t connections) {
    const std::size_t bytes = PayloadLane::kFills * sizeof(FillOrder) + connections * sizeof(MakeOrder);
    return (bytes + kLine - 1) / kLine * kLine;
  }
  [[nodiscard]] std::byte* slot(std::uint64_t number) const {
    return memory_.data() + kLine + number % PayloadLane::kSlots * slot_bytes_;
  }

  gpu::PinnedBuffer memory_;
  std::size_t slot_bytes_;
};

class GpuPayloadLane final : public PayloadLane {
 public:
  static Result<std::unique_ptr<PayloadLane>> create(const stream::PayloadShape& shape,
                                                     const stream::SeededPayload& payload, int gpu,
                                                     memory::MemoryKind kind) {
    WARPLINE_CHECK(gpu::use_gpu(gpu));
    const std::span<const std::uint8_t> table = payload.table();
    WARPLINE_TRY(GpuRings rings, GpuRings::create(gpu, kind, shape.connections, shape.ring_bytes));
    WARPLINE_TRY(OrderMemory orders, OrderMemory::create(shape.connections));
    WARPLINE_TRY(gpu::DeviceBuffer own, gpu::DeviceBuffer::create(Bytes{kLine + table.size()}));
    WARPLINE_TRY(gpu::CudaStream stream, gpu::CudaStream::create());
    WARPLINE_CHECK(stream.copy(own.data() + kLine, table.data(), table.size()));
    WARPLINE_CHECK(stream.wait());
    std::unique_ptr<GpuPayloadLane> made(new GpuPayloadLane(shape, gpu, payload.mixed_seed(), std::move(rings),
                                                            std::move(orders), std::move(own), std::move(stream)));
    // Both are launched again and again: neither may wait for a kernel that stays.
    WARPLINE_TRY(made->make_place_, gpu::GpuPlace::claim(gpu, made->make_, 1));
    WARPLINE_TRY(made->fill_place_, gpu::GpuPlace::claim(gpu, made->fill_, 1));
    // The first launches take what no later ones do: code is loaded.
    if (!made->make_(made->stream_) || !made->fill_(made->stream_)) return made->gave_up();
    WARPLINE_CHECK(made->stream_.wait());
    return std::unique_ptr<PayloadLane>(std::move(made));
  }
  ~GpuPayloadLane() override { stop(); }

  [[nodiscard]] const stream::PayloadShape& shape() const override { return shape_; }
  [[nodiscard]] std::uint8_t* ring(std::uint32_t connection) const override { return rings_.ring(connection); }

  [[nodiscard]] bool submit(std::span<const MakeOrder> makes, std::span<const FillOrder> fills) override {
    if (submitted_ - landed() == kSlots || refused_) return false;
    if (!bound_) bound_ = gpu::use_gpu(gpu_).ok();
    std::ranges::copy(makes, orders_.makes(submitted_));
    std::ranges::copy(fills, orders_.fills(submitted_));
    if (!makes.empty()) {
      make_.set(2, static_cast<const MakeOrder*>(orders_.makes(submitted_)));
      make_.set(3, static_cast<std::uint32_t>(makes.size()));
      refused_ = !make_(stream_);
    }
    fill_.set(0, static_cast<const FillOrder*>(orders_.fills(submitted_)));
    fill_.set(1, static_cast<std::uint32_t>(fills.size()));
    fill_.set(4, submitted_ + 1);
    refused_ = refused_ || !fill_(stream_);
    ++submitted_;
    return true;
  }
  [[nodiscard]] std::uint64_t landed() override {
    return std::atomic_ref(*orders_.done()).load(std::memory_order_acquire);
  }
  [[nodiscard]] std::optional<Error> failure() const override {
    if (refused_) return gave_up();
    return stream_.failure();
  }
  /// Waits for the batches in flight; a GPU that hangs is abandoned.
  void stop() override {
    if (!gpu::gpus_abandoned()) static_cast<void>(stream_.wait(kPatience));
  }

 private:
  static constexpr Nanos kPatience{5'000'000'000};

  GpuPayloadLane(const stream::PayloadShape& shape, int gpu, std::uint64_t seed, GpuRings rings, OrderMemory orders,
                 gpu::DeviceBuffer own, gpu::CudaStream stream)
      : shape_(shape),
        gpu_(gpu),
        rings_(std::move(rings)),
        orders_(std::move(orders)),
        own_(std::move(own)),
        stream_(std::move(stream)),
        make_(stream::make_payload_kernel(), stream::kMakeCtas, stream::kMakeThreads,
              reinterpret_cast<const std::uint8_t*>(own_.data() + kLine), seed,
              static_cast<const MakeOrder*>(orders_.makes(0)), std::uint32_t{0}),
        fill_(stream::fill_payload_kernel(), stream::kFillCtas, stream::kFillThreads,
              static_cast<const FillOrder*>(orders_.fills(0)), std::uint32_t{0},
              reinterpret_cast<std::uint32_t*>(own_.data()), orders_.done(), std::uint64_t{0}) {}

  [[nodiscard]] Error gave_up() const {
    if (auto error = stream_.failure()) return *error;
    return environment_error("payload is put into frames no more", "CUDA refuses to launch its kernel",
                             "run `warpline doctor`");
  }

  stream::PayloadShape shape_;
  int gpu_;
  GpuRings rings_;
  OrderMemory orders_;
  gpu::DeviceBuffer own_;  ///< the word that CTAs count themselves in, and the table
  gpu::CudaStream stream_;
  gpu::KernelLaunch make_;
  gpu::KernelLaunch fill_;
  std::optional<gpu::GpuPlace> make_place_;
  std::optional<gpu::GpuPlace> fill_place_;
  std::uint64_t submitted_ = 0;
  bool bound_ = false;    ///< the sender's thread uses the GPU
  bool refused_ = false;  ///< CUDA took no launch
};

}  // namespace

Result<std::unique_ptr<PayloadLane>> make_gpu_payload_lane(const stream::PayloadShape& shape,
                                                           const stream::SeededPayload& payload, int gpu,
                                                           memory::MemoryKind rings) {
  if (rings == memory::MemoryKind::host) {
    return usage_error("cannot make a lane on a GPU", "it does not reach ordinary host memory",
                       "have its rings in pinned or device memory");
  }
  return GpuPayloadLane::create(shape, payload, gpu, rings);
}

}  // namespace warpline::stream_port
