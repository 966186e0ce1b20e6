// SPDX-License-Identifier: Apache-2.0
#include "warpline/stream/lanes/thread_lane.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <system_error>
#include <utility>

#include "warpline/base/give_way.h"
#include "warpline/stream/internal/lanes/host_lane.h"
#include "warpline/stream/lanes/host_lane_memory.h"

namespace warpline::stream {

Result<std::thread> start_anywhere(std::function<void()> body) {
  try {
    return std::thread(std::move(body));
  } catch (const std::system_error& error) {
    return environment_error("a lane's thread cannot be started", error.code().message(),
                             "raise the limit shown by `ulimit -u`");
  }
}

namespace {

class ThreadLane final : public SegmentLane {
 public:
  ThreadLane(HostLaneMemory memory, ThreadLaneSetup setup) : memory_(std::move(memory)), setup_(std::move(setup)) {
    if (!setup_.start) setup_.start = start_anywhere;
  }
  ~ThreadLane() override { stop({}); }

  [[nodiscard]] const LaneView& view() const override { return memory_.view(); }
  [[nodiscard]] queues::PacketQueues* queues() override { return memory_.queues(); }
  [[nodiscard]] std::shared_ptr<const void> ring_memory() const override { return memory_.rings(); }
  [[nodiscard]] Result<void> start(const LaneStation& station) override {
    memory_.parts().set_station(station);
    WARPLINE_TRY(thread_, setup_.start([this] { view().shape.queue_slots == 0 ? run() : run_by_queues(); }));
    return {};
  }
  void submit(std::uint64_t) override {}  // the thread polls
  [[nodiscard]] std::optional<Error> failure() override { return std::nullopt; }
  /// A thread cannot be given up.
  bool stop(Nanos) override {
    if (!thread_.joinable()) return true;
    memory_.parts().request_stop();
    thread_.join();
    return true;
  }

 private:
  [[nodiscard]] static std::atomic_ref<std::uint64_t> word(LaneWord& word) { return std::atomic_ref(word.value); }

  void run() {
    const LaneView& lane = view();
    HostLane worker(lane);
    Turns turns(setup_.yield);
    for (std::uint64_t sequence = 1;;) {
      const std::uint64_t place = sequence & (lane.shape.slots - 1);
      // Looked at first: what was made ready before the lane was told to stop is taken.
      const bool stop = word(*lane.stop).load(std::memory_order_acquire) != 0;
      const std::uint64_t ready = word(lane.ready[place]).load(std::memory_order_acquire);
      const bool there = ready >> 32 == (sequence & 0xffff'ffff);
      if (there) {
        worker.take(sequence, std::min(static_cast<std::uint32_t>(ready), lane.shape.burst));
        word(lane.done[place]).store(sequence << 32, std::memory_order_release);
        ++sequence;
      } else if (stop) {
        return;
      }
      turns.end(there);
    }
  }

  void run_by_queues() {
    HostLane worker(view());
    Turns turns(setup_.yield);
    for (;;) {
      const bool stop = word(*view().stop).load(std::memory_order_acquire) != 0;
      const bool worked = worker.take_round();
      if (stop && !worked) return;
      turns.end(worked);
    }
  }

  HostLaneMemory memory_;
  ThreadLaneSetup setup_;
  std::thread thread_;
};

}  // namespace

Result<std::unique_ptr<SegmentLane>> make_thread_lane(const LaneShape& shape, ThreadLaneSetup setup) {
  WARPLINE_TRY(HostLaneMemory memory, HostLaneMemory::create(shape, setup.populate));
  return std::unique_ptr<SegmentLane>(std::make_unique<ThreadLane>(std::move(memory), std::move(setup)));
}

}  // namespace warpline::stream
