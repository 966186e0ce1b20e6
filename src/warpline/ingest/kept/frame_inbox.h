// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "warpline/base/result.h"
#include "warpline/base/spsc_ring.h"
#include "warpline/flow/frame.h"
#include "warpline/flow/frame_plan.h"
#include "warpline/flow/frame_queue.h"
#include "warpline/gpu/stream_tickets.h"
#include "warpline/transport/wake_up.h"

namespace warpline::ingest {

/// The frames of one path, in host memory or in that of a GPU: they live as long as anybody has one of them. The path's
/// lane assembles, one thread takes frames, any threads give them back.
class FrameHome {
 public:
  /// The GPU whose memory frames lie in.
  struct Gpu {
    int ordinal = 0;           ///< of CUDA
    std::uint32_t frames = 0;  ///< that there is memory for
    std::unique_ptr<gpu::StreamTickets> tickets;
  };

  /// `memory` is what frames and `queue` lie in; the home keeps it. Without `gpu` it is the host's.
  FrameHome(std::shared_ptr<const void> memory, const flow::FramePlan& plan, const flow::FrameQueue& queue,
            std::uint32_t path, std::optional<Gpu> gpu = std::nullopt);
  FrameHome(const FrameHome&) = delete;
  FrameHome& operator=(const FrameHome&) = delete;

  [[nodiscard]] const flow::FramePlan& plan() const { return plan_; }
  [[nodiscard]] std::uint32_t path() const { return path_; }  ///< queue that the frames' packets came from
  [[nodiscard]] std::optional<int> gpu() const { return gpu_ ? std::optional(gpu_->ordinal) : std::nullopt; }

  /// Returns the oldest frame that it has not returned, or nullptr. The one thread that takes.
  [[nodiscard]] const flow::Frame* next();
  /// Has memory that is given back from now on wait for what that cudaStream_t was given so far. Of a frame on a GPU.
  /// False: nobody knows when that is done. Any thread.
  [[nodiscard]] bool wait_for(CUstream_st* stream) { return gpu_->tickets->wait_for(stream); }
  /// Gives a frame's memory back, once, by its `Frame::buffer`; `lost`: it is not to be used again. Any thread.
  void release(std::uint32_t buffer, bool lost = false);
  /// Has memory that came back used again, as far as no stream reads it. Of frames on a GPU: the lane.
  void collect();
  /// Returns how many frames came back so far, and may be used again. Any thread.
  [[nodiscard]] std::uint64_t released() const { return released_.load(std::memory_order_acquire); }
  /// Returns the longest time from a frame's first packet to its being taken, of those taken so far. Any thread.
  [[nodiscard]] std::uint64_t longest_open_nanos() const;

 private:
  struct Returned {
    std::uint32_t buffer = 0;
    std::uint64_t ticket = 0;
  };

  std::shared_ptr<const void> memory_;
  flow::FramePlan plan_;
  flow::FrameQueue queue_;
  std::uint32_t path_;
  std::optional<Gpu> gpu_;
  std::mutex releasing_;
  SpscRing<Returned> returned_;  ///< on a GPU: to the lane
  std::deque<Returned> unread_;  ///< on a GPU, the lane's: what streams may read yet
  std::atomic<std::uint64_t> released_{0};
  std::atomic<std::uint64_t> longest_open_{0};  ///< ticks
};

/// A frame whose memory stays its owner's until it is destroyed, by any thread, whatever became of the run.
class KeptFrame {
 public:
  KeptFrame(std::shared_ptr<FrameHome> home, const flow::Frame& frame) : home_(std::move(home)), frame_(frame) {}
  KeptFrame(const KeptFrame&) = delete;
  KeptFrame& operator=(const KeptFrame&) = delete;
  ~KeptFrame() { home_->release(frame_.buffer, lost_.load(std::memory_order_relaxed)); }

  /// Notes that the stream, a cudaStream_t, may read the frame, which lies on a GPU, by what it was given so far: its
  /// memory is used again after that. Any thread.
  void used_by(CUstream_st* stream) {
    if (!home_->wait_for(stream)) lost_.store(true, std::memory_order_relaxed);
  }

  [[nodiscard]] const flow::Frame& frame() const { return frame_; }  ///< `time` is in ticks
  [[nodiscard]] std::uint32_t path() const { return home_->path(); }
  /// CUDA ordinal of the GPU in whose memory data and mask are; nothing: they are the host's.
  [[nodiscard]] std::optional<int> gpu() const { return home_->gpu(); }
  [[nodiscard]] std::uint64_t bytes() const { return home_->plan().frame_bytes(); }  ///< of frame().data
  [[nodiscard]] std::uint32_t packets() const { return home_->plan().packets; }      ///< bytes of frame().mask

 private:
  std::shared_ptr<FrameHome> home_;
  flow::Frame frame_;
  std::atomic<bool> lost_{false};
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
