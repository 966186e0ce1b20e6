// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "warpline/base/result.h"
#include "warpline/base/units.h"
#include "warpline/gpu/cuda_stream.h"
#include "warpline/gpu/memory/host_registration.h"
#include "warpline/handoff/burst_ring.h"
#include "warpline/handoff/engine.h"
#include "warpline/handoff/lanes/host_lane.h"
#include "warpline/ingest/batches/batch_assembly.h"
#include "warpline/ingest/batches/gpu_batch.h"

namespace warpline::ingest {

/// What a StreamEngine does: it calls a consumer of batches, or what assembles them, one of the two. Neither says of a
/// packet alone what is done with it.
struct BatchWork {
  static constexpr bool kStateless = true;

  GpuBatchConsumer* consumer;
  BatchAssembly* assembly = nullptr;

  Verdict operator()(FrameRef /*frame*/) const { return Verdict::forward; }
  void merge(const BatchWork& /*other*/) {}
};

struct StreamEngineSetup {
  int gpu = 0;
  std::uint32_t path = 0;
  /// Bytes from where the descriptors say that packets are, in GPU memory, to where they lie, in pinned memory: the
  /// engine has them copied, a batch in one piece. 0: they are there.
  std::ptrdiff_t pull = 0;
  Nanos watchdog{1'000'000'000};  ///< longest time without a batch done while batches wait
  handoff::LanePlacement lane{};  ///< the host thread that calls the consumer
  std::string name = "stream";
};

/// An engine whose work is what a GpuBatchConsumer, or a BatchAssembly, puts on a CUDA stream. Each batch is given to
/// it as it comes, while those before it may be in work, and is done when an event behind its work says so. Batches are
/// copied on a stream of their own, so that the next one's copy and this one's work go side by side.
class StreamEngine {
 public:
  StreamEngine(handoff::BurstRing& ring, const BatchWork& work, StreamEngineSetup setup)
      : ring_(ring), work_(work), setup_(std::move(setup)) {}
  StreamEngine(const StreamEngine&) = delete;
  StreamEngine& operator=(const StreamEngine&) = delete;
  ~StreamEngine() { stop(Nanos{0}); }

  [[nodiscard]] Result<void> prepare();
  [[nodiscard]] Result<void> start();
  void on_published() {}
  handoff::EngineLeft stop(Nanos timeout);

  [[nodiscard]] std::string_view name() const { return "stream"; }
  [[nodiscard]] std::uint32_t lanes() const { return 1; }
  [[nodiscard]] std::uint32_t batches_at_once() const { return 1; }
  [[nodiscard]] const handoff::LaneCounters& counters(std::uint32_t /*lane*/) const { return counters_; }
  [[nodiscard]] std::optional<Error> failure() const {
    if (!failed_.load(std::memory_order_acquire)) return std::nullopt;
    return failure_;
  }
  template <typename F>
  void for_each_worker_state(F&& f) const {
    f(work_);
  }

 private:
  /// What the engine needs of a slot of the ring, and what it knows of the batch there.
  struct Slot {
    gpu::CudaEvent copied;
    gpu::CudaEvent done;
    std::uint64_t given = 0;   ///< ticks
    std::uint16_t count = 0;   ///< descriptors
    std::uint16_t worked = 0;  ///< packets that were the consumer's to take
  };

  /// The thread's life, and why it ended early.
  void run();
  [[nodiscard]] std::optional<Error> serve();
  /// Whether the batch at `oldest_` has been done to its end.
  [[nodiscard]] bool took_oldest() const { return work_.assembly == nullptr || work_.assembly->took(oldest_); }
  /// False when CUDA refuses; sets refused_ when the consumer does.
  [[nodiscard]] bool give(std::uint64_t sequence, handoff::BurstView burst);
  [[nodiscard]] bool copy(handoff::BurstView burst, const Slot& slot) const;
  void complete(std::uint64_t sequence);
  [[nodiscard]] Slot& slot_of(std::uint64_t sequence) { return slots_[sequence & ring_.engine_view().slot_mask]; }
  [[nodiscard]] Error fault() const;
  [[nodiscard]] std::string what() const;

  handoff::BurstRing& ring_;
  BatchWork work_;
  StreamEngineSetup setup_;
  std::optional<gpu::HostRegistration> registration_;
  std::optional<gpu::CudaStream> stream_;
  std::optional<gpu::CudaStream> copies_;
  std::vector<Slot> slots_;
  handoff::LaneCounters counters_;
  std::thread thread_;
  std::uint64_t oldest_ = 0;  ///< sequence of the oldest batch that is not complete
  bool prepared_ = false;
  bool refused_ = false;
  std::optional<Error> failure_;  ///< the thread writes it before failed_
  std::atomic<bool> failed_{false};
  std::atomic<bool> called_hung_{false};
  std::atomic<bool> ended_{false};
};

}  // namespace warpline::ingest
