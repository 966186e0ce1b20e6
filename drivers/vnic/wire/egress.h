// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include "vnic/args/devargs.h"
#include "vnic/common/counters.h"
#include "vnic/common/spin_lock.h"
#include "vnic/faults/faults.h"
#include "vnic/wire/ingress.h"
#include "vnic/wire/link.h"

namespace warpline::vnic {

/// The sending half of a port: one wire for all its queues. What stands below lock() is for the lock's holder.
class Egress {
 public:
  /// For the port with that link; `ingress` is its receiving half, where made frames come in.
  Egress(const Devargs& args, Link& link, Ingress& ingress);

  /// Taken once a burst: the wire, and with it the ingress at its other end.
  void lock();
  void unlock();

  /// One frame in contiguous memory, written to by faults only: when changes_frames(). False: it could not leave and is
  /// counted (no peer, link down). Faults that lose it count it themselves. `sums`: what the device filled in.
  bool send(std::uint8_t* frame, std::uint32_t length, std::uint64_t now_nanos, const DeviceSums& sums = {}) {
    if (way_ == Way::swallow) return true;
    if (way_ == Way::blocked) [[unlikely]]
      return block();
    if (changes_frames_) [[unlikely]] {
      faults_.pass(frame, length, now_nanos, *other_end_, counts);
    } else {
      other_end_->deliver(frame, length, now_nanos, sums);
    }
    return true;
  }
  /// Frames may go as they lie, in pieces and without their checksums.
  [[nodiscard]] bool takes_pieces() const { return way_ == Way::deliver && !changes_frames_; }
  /// Such a frame: see Ingress::deliver(). Only if takes_pieces().
  [[nodiscard]] Ingress::Taken send(FrameRef frame, std::uint64_t word, std::uint64_t now_nanos) {
    return other_end_->deliver(frame, word, now_nanos);
  }
  /// A made frame, on its way to this port; it passes this port's faults, there being no other.
  void receive(std::uint8_t* frame, std::uint32_t length, std::uint64_t now_nanos);
  /// True: frames pass faults, which write to them.
  [[nodiscard]] bool changes_frames() const { return changes_frames_; }
  /// False: nobody asks when a frame left, which then goes with the time 0. Reading the clock takes as long as much
  /// else that a frame costs.
  [[nodiscard]] bool needs_time() const {
    return changes_frames_ || (other_end_ != nullptr && other_end_->reports_time);
  }
  /// What faults hold back goes on its way.
  void flush(std::uint64_t now_nanos);
  /// The other end is gone. (Called between lock() and unlock(), as the other end's memory goes next.)
  void disconnect() { connect(nullptr); }

  // ---- not under the lock

  /// Joins the other end; null while it is absent. Under the registry's lock.
  void connect(Ingress* other_end) { sink_.store(other_end, std::memory_order_release); }
  /// Changes the faults, from the next burst on. 0 or -ENOMEM.
  int set_faults(const FaultConfig& config);
  /// A poll that found nothing to receive: after some in a row without a burst sent, the sender counts as idle and what
  /// faults hold back is flushed. Any thread.
  void idle_poll() {
    if (holds_back_.load(std::memory_order_relaxed)) [[unlikely]]
      count_idle_poll();
  }

  /// Only what faults.h allows any thread, unless the lock is held.
  [[nodiscard]] const Faults& faults() const { return faults_; }
  Counters counts;

 private:
  enum class Way : std::uint8_t { deliver, swallow, blocked };

  bool block();
  void count_idle_poll();

  SpinLock lock_;
  Link& link_;
  Faults faults_;
  Ingress* made_end_;                    ///< where made frames come in, with wire=source; or null
  bool swallows_;                        ///< by the devargs: nothing is at the other end
  std::atomic<Ingress*> sink_{nullptr};  ///< the other end's, or null

  // From lock() to unlock().
  Way way_ = Way::blocked;
  bool changes_frames_ = false;
  Ingress* other_end_ = nullptr;
  bool carrier_ = true;  ///< what faults had made of the link when an interrupt was last raised

  std::atomic<bool> holds_back_{false};
  std::atomic<std::uint32_t> idle_polls_{0};
};

}  // namespace warpline::vnic
