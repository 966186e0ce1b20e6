// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "warpline/base/result.h"
#include "warpline/base/units.h"
#include "warpline/flow/frame.h"
#include "warpline/flow/frame_assembler.h"
#include "warpline/flow/frame_description.h"
#include "warpline/flow/frame_plan.h"
#include "warpline/flow/frame_queue.h"
#include "warpline/transport/wake_up.h"

namespace warpline::ingest {

/// The frames of one path in host memory, with their assembler: it lives as long as anybody has one of them. The path's
/// lane assembles, one thread takes frames, any threads give them back.
class FrameHome {
 public:
  /// Takes `memory` bytes at most. A usage error if that is too little for the description.
  [[nodiscard]] static Result<std::shared_ptr<FrameHome>> create(const flow::FrameDescription& description,
                                                                 Bytes memory, std::uint32_t path);
  FrameHome(const FrameHome&) = delete;
  FrameHome& operator=(const FrameHome&) = delete;

  [[nodiscard]] flow::FrameAssembler& assembler() { return assembler_; }  ///< the lane's
  [[nodiscard]] const flow::FramePlan& plan() const { return plan_; }
  [[nodiscard]] std::uint32_t path() const { return path_; }  ///< queue that the frames' packets came from

  /// Returns the oldest frame that it has not returned, or nullptr. The one thread that takes.
  [[nodiscard]] const flow::Frame* next();
  /// Gives a frame's memory back, once, by its `Frame::buffer`. Any thread.
  void release(std::uint32_t buffer);
  /// Returns how many frames came back so far. Any thread.
  [[nodiscard]] std::uint64_t released() const { return released_.load(std::memory_order_acquire); }
  /// Returns the longest time from a frame's first packet to its being taken, of those taken so far. Any thread.
  [[nodiscard]] std::uint64_t longest_open_nanos() const;

 private:
  struct FreeHome {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  using HomeMemory = std::unique_ptr<std::byte, FreeHome>;

  FrameHome(HomeMemory memory, const flow::FramePlan& plan, const flow::FrameAssembler& assembler, std::uint32_t path)
      : memory_(std::move(memory)), plan_(plan), assembler_(assembler), queue_(assembler_.queue()), path_(path) {}

  HomeMemory memory_;
  flow::FramePlan plan_;
  flow::FrameAssembler assembler_;
  flow::FrameQueue queue_;
  std::uint32_t path_;
  std::mutex releasing_;
  std::atomic<std::uint64_t> released_{0};
  std::atomic<std::uint64_t> longest_open_{0};  ///< ticks
};

/// A frame whose memory stays its owner's until it is destroyed, by any thread, whatever became of the run.
class KeptFrame {
 public:
  KeptFrame(std::shared_ptr<FrameHome> home, const flow::Frame& frame) : home_(std::move(home)), frame_(frame) {}
  KeptFrame(const KeptFrame&) = delete;
  KeptFrame& operator=(const KeptFrame&) = delete;
  ~KeptFrame() { home_->release(frame_.buffer); }

  [[nodiscard]] const flow::Frame& frame() const { return frame_; }  ///< `time` is in ticks
  [[nodiscard]] std::uint32_t path() const { return home_->path(); }
  [[nodiscard]] std::uint64_t bytes() const { return home_->plan().frame_bytes(); }  ///< of frame().data
  [[nodiscard]] std::uint32_t packets() const { return home_->plan().packets; }      ///< bytes of frame().mask

 private:
  std::shared_ptr<FrameHome> home_;
  flow::Frame frame_;
};

/// Where a run puts frames for a consumer that keeps them as long as it likes. There is room for as many as there is
/// memory for: while all are kept, the run's lanes wait, and what is too much the ports drop by name. One thread takes
/// frames; close() may be any thread's. It outlives the run, and frames outlive it.
class FrameInbox {
 public:
  /// Environment error: the process has no descriptor left.
  [[nodiscard]] static Result<std::shared_ptr<FrameInbox>> make();

  /// Returns the next frame of any path, or nullptr if none is there now. Frames of a path come in their order.
  [[nodiscard]] std::shared_ptr<KeptFrame> take();
  /// Appends up to `most` frames to `into` and returns how many.
  std::size_t take_many(std::vector<std::shared_ptr<KeptFrame>>& into, std::size_t most);
  /// Returns true once the run has ended or close() was called: what take() does not find then will not come.
  [[nodiscard]] bool ended() const { return ended_.load(std::memory_order_acquire); }
  /// Wants no more frames: those not taken are gone, and lanes that wait for room go on without. Any thread.
  void close();
  /// Returns true while a lane waits for a frame to be given back. Any thread.
  [[nodiscard]] bool starved() const { return waiting_.load(std::memory_order_relaxed) != 0; }

  /// How the consumer sleeps until a frame is there or the run has ended; see WakeUp.
  [[nodiscard]] transport::WakeUp& bell() { return *bell_; }

  // The run's side.

  /// Adds the frames of a path. Control thread.
  void add(std::shared_ptr<FrameHome> home);
  /// Tells the consumer that a frame is there. Lanes.
  void tell() { bell_->wake(); }
  /// Returns true after close(). Any thread.
  [[nodiscard]] bool closed() const { return closed_.load(std::memory_order_relaxed); }
  /// Notes that a lane begins to wait for room, or that it waits no more.
  void wait_begins() { waiting_.fetch_add(1, std::memory_order_relaxed); }
  void wait_ends() { waiting_.fetch_sub(1, std::memory_order_relaxed); }
  /// No frame comes any more. Control thread.
  void end();

 private:
  explicit FrameInbox(std::unique_ptr<transport::WakeUp> bell) : bell_(std::move(bell)) {}

  std::unique_ptr<transport::WakeUp> bell_;
  std::mutex homes_lock_;  ///< consumer and control thread, not the lanes
  std::vector<std::shared_ptr<FrameHome>> homes_;
  std::size_t turn_ = 0;  ///< whose frame is taken next
  std::atomic<std::uint32_t> waiting_{0};
  std::atomic<bool> closed_{false};
  std::atomic<bool> ended_{false};
};

}  // namespace warpline::ingest
