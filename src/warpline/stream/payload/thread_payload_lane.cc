// SPDX-License-Identifier: Apache-2.0
#include "warpline/stream/payload/thread_payload_lane.h"

#include <array>
#include <atomic>
#include <thread>
#include <utility>
#include <vector>

#include "warpline/base/give_way.h"
#include "warpline/stream/payload/host_payload.h"
#include "warpline/stream/ring_memory.h"

namespace warpline::stream {
namespace {

class ThreadPayloadLane final : public PayloadLane {
 public:
  ThreadPayloadLane(const PayloadShape& shape, const SeededPayload& payload, RingMemory rings, bool yield)
      : shape_(shape), payload_(payload), rings_(std::move(rings)), yield_(yield) {
    for (Batch& batch : batches_) {
      batch.makes.reserve(shape.connections);
      batch.fills.reserve(kFills);
    }
  }
  ~ThreadPayloadLane() override { stop(); }

  [[nodiscard]] Result<void> start(const StartThread& start_thread) {
    WARPLINE_TRY(thread_, start_thread([this] { run(); }));
    return {};
  }

  [[nodiscard]] const PayloadShape& shape() const override { return shape_; }
  [[nodiscard]] std::uint8_t* ring(std::uint32_t connection) const override { return rings_.ring(connection); }

  [[nodiscard]] bool submit(std::span<const MakeOrder> makes, std::span<const FillOrder> fills) override {
    const std::uint64_t number = submitted_.load(std::memory_order_relaxed);
    if (number - landed_.load(std::memory_order_acquire) == kSlots) return false;
    Batch& batch = batches_[number % kSlots];
    batch.makes.assign(makes.begin(), makes.end());
    batch.fills.assign(fills.begin(), fills.end());
    submitted_.store(number + 1, std::memory_order_release);
    return true;
  }
  [[nodiscard]] std::uint64_t landed() override { return landed_.load(std::memory_order_acquire); }
  [[nodiscard]] std::optional<Error> failure() const override { return std::nullopt; }
  void stop() override {
    if (!thread_.joinable()) return;
    stop_.store(true, std::memory_order_release);
    thread_.join();
  }

 private:
  struct Batch {
    std::vector<MakeOrder> makes;
    std::vector<FillOrder> fills;
  };

  void run() {
    Turns turns(yield_);
    for (std::uint64_t number = 0; !stop_.load(std::memory_order_acquire);) {
      const bool there = number != submitted_.load(std::memory_order_acquire);
      if (there) {
        const Batch& batch = batches_[number % kSlots];
        for (const MakeOrder& order : batch.makes) make_payload(payload_, order);
        for (const FillOrder& order : batch.fills) fill_payload(order);
        landed_.store(++number, std::memory_order_release);
      }
      turns.end(there);
    }
  }

  PayloadShape shape_;
  const SeededPayload& payload_;
  RingMemory rings_;
  bool yield_;
  std::array<Batch, kSlots> batches_;
  alignas(64) std::atomic<std::uint64_t> submitted_{0};  ///< the caller's
  alignas(64) std::atomic<std::uint64_t> landed_{0};     ///< the thread's
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace

Result<std::unique_ptr<PayloadLane>> make_thread_payload_lane(const PayloadShape& shape, const SeededPayload& payload,
                                                              const ThreadLaneSetup& setup) {
  WARPLINE_TRY(RingMemory rings, RingMemory::create(shape.connections, shape.ring_bytes));
  auto lane = std::make_unique<ThreadPayloadLane>(shape, payload, std::move(rings), setup.yield);
  WARPLINE_CHECK(lane->start(setup.start ? setup.start : start_anywhere));
  return std::unique_ptr<PayloadLane>(std::move(lane));
}

}  // namespace warpline::stream
