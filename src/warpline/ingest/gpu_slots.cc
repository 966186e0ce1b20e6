// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#include "warpline/gpu/cuda_stream.h"
#include "warpline/gpu/device.h"
#include "warpline/gpu/memory/device_buffer.h"
#include "warpline/gpu/memory/pinned_buffer.h"
#include "warpline/ingest/batch_slots.h"

namespace warpline::ingest {
namespace {

/// What both kinds of GPU slots have: places for packets and ready words in GPU memory.
class GpuSlots : public BatchSlots {
 public:
  [[nodiscard]] std::optional<Error> failure() const override {
    if (!refused_.load(std::memory_order_acquire)) return std::nullopt;
    if (std::optional<Error> error = cause()) return error;
    return environment_error("a copy into GPU memory", "CUDA refused it", "start the program again");
  }
  [[nodiscard]] RingWord* ready_words() const override { return reinterpret_cast<RingWord*>(words_.data()); }
  [[nodiscard]] Bytes gpu_bytes() const override { return {memory_.size() + words_.size()}; }

 protected:
  GpuSlots(const BatchSlotsShape& shape, gpu::DeviceBuffer memory, gpu::DeviceBuffer words)
      : BatchSlots(shape), memory_(std::move(memory)), words_(std::move(words)) {
    places_ = memory_.data();
  }
  [[nodiscard]] virtual std::optional<Error> cause() const { return std::nullopt; }
  [[nodiscard]] bool took(bool taken) {
    if (!taken) refused_.store(true, std::memory_order_release);
    return taken;
  }
  /// The submitting thread's GPU is this one from its first batch on.
  [[nodiscard]] bool on_gpu() {
    if (!chosen_) [[unlikely]]
      chosen_ = gpu::use_gpu(*shape_.gpu).ok();
    return chosen_;
  }
  [[nodiscard]] std::uint64_t* word_of(std::uint64_t slot) const { return &ready_words()[slot].value; }

 private:
  gpu::DeviceBuffer memory_;
  gpu::DeviceBuffer words_;
  std::atomic<bool> refused_{false};
  bool chosen_ = false;
};

/// One asynchronous copy a batch out of pinned memory, on one of several streams; a slot always has the same one. The
/// stream itself writes the ready word, which costs less than a second copy.
class StreamSlots final : public GpuSlots {
 public:
  static constexpr unsigned kStreams = 4;

  StreamSlots(const BatchSlotsShape& shape, gpu::DeviceBuffer memory, gpu::DeviceBuffer words,
              gpu::PinnedBuffer staging, std::vector<gpu::CudaStream> streams)
      : GpuSlots(shape, std::move(memory), std::move(words)),
        pinned_(std::move(staging)),
        streams_(std::move(streams)) {
    staging_ = pinned_.data();
  }

  bool submit(std::uint64_t slot, std::size_t bytes, std::uint64_t word) override {
    const gpu::CudaStream& stream = streams_[slot % kStreams];
    return took(on_gpu() && (bytes == 0 || stream.queue_copy(place(slot), staging(slot), bytes)) &&
                stream.queue_word(word_of(slot), word));
  }

 protected:
  [[nodiscard]] std::optional<Error> cause() const override {
    for (const gpu::CudaStream& stream : streams_) {
      if (std::optional<Error> error = stream.failure()) return error;
    }
    return std::nullopt;
  }

 private:
  gpu::PinnedBuffer pinned_;
  std::vector<gpu::CudaStream> streams_;
};

/// One asynchronous copy a batch, by the consumer's own kernel, which waits for the batch in any case: no stream, no
/// copy engine and no driver is between, so to submit one costs the CPU nothing, and none waits for another's turn.
class PulledSlots final : public BatchSlots {
 public:
  PulledSlots(const BatchSlotsShape& shape, gpu::DeviceBuffer memory, gpu::PinnedBuffer staging)
      : BatchSlots(shape), memory_(std::move(memory)), pinned_(std::move(staging)) {
    places_ = memory_.data();
    staging_ = pinned_.data();
  }

  bool submit(std::uint64_t /*slot*/, std::size_t /*bytes*/, std::uint64_t /*word*/) override { return true; }
  [[nodiscard]] std::ptrdiff_t pull() const override { return staging_ - places_; }
  [[nodiscard]] Bytes gpu_bytes() const override { return {memory_.size()}; }

 private:
  gpu::DeviceBuffer memory_;
  gpu::PinnedBuffer pinned_;
};

/// The loop of the study of 2020: pageable memory, a synchronous copy of the batch, a second one of how many packets
/// that was (here the ready word, which says so), and the staging memory cleared.
class NaiveSlots final : public GpuSlots {
 public:
  using Pages = std::unique_ptr<std::byte, decltype(&std::free)>;

  NaiveSlots(const BatchSlotsShape& shape, gpu::DeviceBuffer memory, gpu::DeviceBuffer words, Pages pages)
      : GpuSlots(shape, std::move(memory), std::move(words)), pages_(std::move(pages)) {
    staging_ = pages_.get();
  }

  bool submit(std::uint64_t slot, std::size_t bytes, std::uint64_t word) override {
    const bool taken = took(on_gpu() && gpu::copy_and_wait(place(slot), staging(slot), bytes) &&
                            gpu::copy_and_wait(word_of(slot), &word, sizeof(word)));
    std::memset(staging(slot), 0, shape_.slot_bytes);
    return taken;
  }

 private:
  Pages pages_;
};

}  // namespace

Result<std::unique_ptr<BatchSlots>> create_gpu_slots(const BatchSlotsShape& shape) {
  const std::uint64_t bytes = shape.slots * shape.slot_bytes;
  WARPLINE_CHECK(gpu::use_gpu(*shape.gpu));
  WARPLINE_TRY(gpu::DeviceBuffer memory, gpu::DeviceBuffer::create(Bytes{bytes}));
  if (shape.pulled) {
    WARPLINE_TRY(gpu::PinnedBuffer staging, gpu::PinnedBuffer::create(Bytes{bytes}));
    return {std::make_unique<PulledSlots>(shape, std::move(memory), std::move(staging))};
  }
  WARPLINE_TRY(gpu::DeviceBuffer words, gpu::DeviceBuffer::create(Bytes{shape.slots * sizeof(RingWord)}));
  if (shape.naive) {
    NaiveSlots::Pages pages(static_cast<std::byte*>(std::calloc(1, bytes)), &std::free);
    if (!pages) {
      return environment_error(fmt::format("{} bytes for batches", bytes), "there is not enough memory",
                               "use a smaller --gpu-memory or --batch");
    }
    return {std::make_unique<NaiveSlots>(shape, std::move(memory), std::move(words), std::move(pages))};
  }
  WARPLINE_TRY(gpu::PinnedBuffer staging, gpu::PinnedBuffer::create(Bytes{bytes}));
  WARPLINE_CHECK(gpu::CudaStream::check_words());
  std::vector<gpu::CudaStream> streams;
  for (unsigned i = 0; i < StreamSlots::kStreams; ++i) {
    WARPLINE_TRY(gpu::CudaStream stream, gpu::CudaStream::create());
    streams.push_back(std::move(stream));
  }
  return {std::make_unique<StreamSlots>(shape, std::move(memory), std::move(words), std::move(staging),
                                        std::move(streams))};
}

}  // namespace warpline::ingest
