// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "warpline/stream/internal/lanes/host_lane.h"
#include "warpline/stream/lanes/host_lane_memory.h"
#include "warpline/stream/lanes/segment_lane.h"

namespace warpline::stream::testing {

/// A lane that takes a burst, or a round of its queues, when a test says so: they stay in flight for as long as it
/// likes.
class StepLane final : public SegmentLane {
 public:
  [[nodiscard]] static Result<std::unique_ptr<StepLane>> create(const LaneShape& shape) {
    WARPLINE_TRY(HostLaneMemory memory, HostLaneMemory::create(shape));
    return std::unique_ptr<StepLane>(new StepLane(std::move(memory)));
  }

  [[nodiscard]] const LaneView& view() const override { return memory_.view(); }
  [[nodiscard]] queues::PacketQueues* queues() override { return memory_.queues(); }
  [[nodiscard]] std::shared_ptr<const void> ring_memory() const override { return memory_.rings(); }
  [[nodiscard]] Result<void> start(const LaneStation& station) override {
    memory_.parts().set_station(station);
    worker_.emplace(view());
    return {};
  }
  void submit(std::uint64_t sequence) override { submitted_ = sequence; }
  [[nodiscard]] std::optional<Error> failure() override { return std::nullopt; }
  bool stop(Nanos) override {
    while (!hangs && step()) {
    }
    return !hangs;
  }

  bool hangs = false;  ///< it takes nothing by itself at its end

  /// Takes the oldest burst that is ready, or a round; false if there is none.
  bool step() {
    if (queues() != nullptr) return worker_->take_round();
    if (taken_ == submitted_) return false;
    ++taken_;
    const std::uint64_t place = taken_ & (view().shape.slots - 1);
    worker_->take(taken_, static_cast<std::uint32_t>(view().ready[place].value));
    std::atomic_ref(view().done[place].value).store(taken_ << 32, std::memory_order_release);
    return true;
  }

 private:
  explicit StepLane(HostLaneMemory memory) : memory_(std::move(memory)) {}

  HostLaneMemory memory_;
  std::optional<HostLane> worker_;
  std::uint64_t submitted_ = 0;
  std::uint64_t taken_ = 0;
};

}  // namespace warpline::stream::testing
