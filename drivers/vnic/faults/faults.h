// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "vnic/common/counters.h"
#include "warpline/base/random.h"

namespace warpline::vnic {

/// What goes wrong on the wire, each a devarg (fault_args.h) and changeable at run time. Probabilities in 0..1.
struct FaultConfig {
  double loss = 0;                      ///< uniform
  double burst_loss_enter = 0;          ///< Gilbert-Elliott: good to bad, a frame
  double burst_loss_leave = 0;          ///< bad to good
  double burst_loss = 1;                ///< loss in the bad state
  double duplicate = 0;                 ///< a second one follows, to meet the faults below on its own
  double reorder = 0;                   ///< a frame is held back ...
  std::uint32_t reorder_depth = 4;      ///< ... until so many others have come by; at most Faults::kMaxReorderDepth
  double corrupt = 0;                   ///< one bit flipped
  double truncate = 0;                  ///< cut at a random place, at least one byte is left
  std::uint64_t delay_nanos = 0;        ///< `delay=10us`; so long frames lie in the receiver's packet buffers
  std::uint64_t jitter_nanos = 0;       ///< added, uniform; never changes the order
  std::uint64_t bits_per_s = 0;         ///< `rate=`: of layer 1; 0: no limit
  std::uint32_t queue_bytes = 1 << 18;  ///< before the rate limit, in layer-1 bytes; what does not fit is lost
  std::uint32_t ecn_bytes = 0;     ///< queue depth from which ECN-capable IP packets are marked CE (RFC 3168); 0: never
  double stall = 0;                ///< a poll of a receive queue brings nothing
  double rx_out = 0;               ///< a poll finds no descriptor posted
  double tx_full = 0;              ///< a transmit call finds the ring full
  std::uint64_t flap_frames = 0;   ///< the link goes down after every so many frames; 0: never ...
  std::uint64_t flap_lost = 16;    ///< ... and comes up when so many were lost
  std::uint64_t reset_frames = 0;  ///< the device resets after so many frames, and nothing passes any more; 0: never
  [[nodiscard]] bool any() const { return *this != FaultConfig{}; }
  bool operator==(const FaultConfig&) const = default;
};

/// Where a frame that has passed the faults goes.
class FrameSink {
 public:
  virtual ~FrameSink() = default;
  /// Around a burst of deliver(): what is dear to do for each frame is done once here.
  virtual void begin() {}
  virtual void end() {}
  /// `frame` may be read until the call returns. `release_nanos`: device time of its arrival.
  virtual void deliver(const std::uint8_t* frame, std::uint32_t length, std::uint64_t release_nanos) = 0;
};

/// Applies a FaultConfig to a sequence of frames. The same seed and the same frames (and, for rate, delay and jitter,
/// the same times) give the same result on every machine, and what one fault does depends on no other's probability.
/// Owner: the holder of the egress lock, but for what says otherwise. No I/O, no clock; allocates in configure() only.
///
/// Order: reset, link flap, loss, duplicate, truncate, corrupt, rate limit and ECN, delay, reorder. So that
///   frames in + fault_duplicate = delivered + fault_reset + fault_flap + fault_loss + tx_queue_full + held().
class Faults {
 public:
  static constexpr std::uint32_t kMaxReorderDepth = 64;
  /// A longer frame is neither duplicated nor held back.
  static constexpr std::uint32_t kMaxFrame = 16384;

  Faults(const FaultConfig& config, std::uint64_t seed);
  /// Changes what goes wrong from the next frame on. What is held back or queued stays so.
  void configure(const FaultConfig& config);
  [[nodiscard]] const FaultConfig& config() const { return config_; }
  /// False: pass() would only deliver.
  [[nodiscard]] bool active() const { return active_ || held() != 0; }

  /// One frame of at least one byte to the wire, `frame` writable and changed. Every frame in is delivered, counted as
  /// lost, or held back. The caller brackets calls with the sink's begin() and end().
  void pass(std::uint8_t* frame, std::uint32_t length, std::uint64_t now_nanos, FrameSink& sink, Counters& counts);
  /// Delivers what is held back: when the sender is idle or stops.
  void flush(std::uint64_t now_nanos, FrameSink& sink);
  [[nodiscard]] std::size_t held() const { return held_end_ - held_begin_; }
  /// Layer-1 bytes that wait for the rate-limited line at that time, the one on it included.
  [[nodiscard]] std::uint64_t queued_bytes(std::uint64_t now_nanos) const;

  // Any thread.
  [[nodiscard]] bool link_up() const { return link_up_.load(std::memory_order_relaxed); }
  [[nodiscard]] bool was_reset() const { return was_reset_.load(std::memory_order_relaxed); }
  [[nodiscard]] double stall() const { return stall_.load(std::memory_order_relaxed); }
  [[nodiscard]] double rx_out() const { return rx_out_.load(std::memory_order_relaxed); }
  [[nodiscard]] double tx_full() const { return tx_full_.load(std::memory_order_relaxed); }

  /// Draws for a poll, each from a stream of its own so that polling does not disturb what happens to frames.
  /// Owners: the queue's.
  class PollDraw {
   public:
    explicit PollDraw(std::uint64_t seed) : random_(seed) {}
    [[nodiscard]] bool happens(double probability) {
      return probability > 0 && static_cast<double>(random_.next() >> 11) * 0x1p-53 < probability;
    }

   private:
    Random random_;
  };

 private:
  /// What a random number is for.
  enum class Draw : std::uint8_t {
    loss,
    burst_turn,
    burst_loss,
    duplicate,
    truncate,
    truncate_at,
    corrupt,
    corrupt_at,
    jitter,
    reorder,
    count_
  };
  struct Held {
    std::uint64_t due;  ///< delivered when so many frames have come to this stage
    std::uint64_t release_nanos;
    std::uint32_t length;
  };

  [[nodiscard]] std::uint64_t draw(Draw what) const;
  [[nodiscard]] std::uint64_t draw_below(Draw what, std::uint64_t bound) const;
  [[nodiscard]] bool happens(Draw what, double probability) const;
  /// True: the frame is lost, and counted.
  bool lose(Counters& counts);
  void one(std::uint8_t* frame, std::uint32_t length, std::uint64_t now_nanos, FrameSink& sink, Counters& counts);
  /// The time at which the frame has left the line; false when the queue is full.
  bool limit(std::uint8_t* frame, std::uint32_t length, std::uint64_t& time_nanos, Counters& counts);
  void order(const std::uint8_t* frame, std::uint32_t length, std::uint64_t release_nanos, FrameSink& sink,
             Counters& counts);
  void deliver_oldest(std::uint64_t earliest_nanos, FrameSink& sink);
  [[nodiscard]] std::uint8_t* held_bytes(std::uint64_t index) {
    return held_bytes_.get() + index % kMaxReorderDepth * kMaxFrame;
  }

  FaultConfig config_;
  bool active_ = false;
  std::atomic<bool> link_up_{true};
  std::atomic<bool> was_reset_{false};
  std::atomic<double> stall_{0}, rx_out_{0}, tx_full_{0};

  std::uint64_t streams_[static_cast<std::size_t>(Draw::count_)];  ///< where each kind's numbers begin
  std::uint64_t frames_ = 0;                                       ///< that came in
  std::uint64_t copy_ = 0;                                         ///< 1 while a duplicate is at work

  bool bad_state_ = false;
  std::uint64_t flap_at_ = 0;   ///< frames since the link last came up
  std::uint64_t reset_at_ = 0;  ///< frames since the reset was asked for

  // When the line is free: line_free_nanos_ + line_rest_ / bits_per_s.
  std::uint64_t line_free_nanos_ = 0;
  std::uint64_t line_rest_ = 0;

  std::unique_ptr<std::uint8_t[]> copy_bytes_;  ///< kMaxFrame; a frame before a duplicate's first came through
  std::unique_ptr<std::uint8_t[]> held_bytes_;  ///< kMaxReorderDepth frames
  std::vector<Held> held_;                      ///< index % kMaxReorderDepth
  std::uint64_t held_begin_ = 0;                ///< free-running
  std::uint64_t held_end_ = 0;
  std::uint64_t ordered_ = 0;  ///< frames that came to the last stage
};

}  // namespace warpline::vnic
