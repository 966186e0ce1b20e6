// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "vnic/common/counters.h"
#include "vnic/common/spin_lock.h"
#include "vnic/faults/faults.h"
#include "vnic/rings/queue.h"
#include "vnic/steering/flow_rules.h"
#include "vnic/steering/mac_filter.h"
#include "vnic/steering/rss.h"
#include "vnic/wire/packet_buffer.h"
#include "vnic/wire/tx_checksum.h"

namespace warpline::vnic {

/// The receiving half of a port's hardware: checks, MAC filter, flow rules, RSS, and a packet buffer a queue. Counts
/// what it loses, and bad checksums; packets and bytes are counted by who takes them out of the packet buffers.
///
/// Threads: any number of senders, a burst at a time, and the control thread; begin()/end() and Change lock each other
/// out. Locks are taken in this order: registry, sender's egress, ingress.
class Ingress final : public FrameSink {
 public:
  /// Held around every change of the public members below, which takes effect when it ends. Not while inside
  /// begin()/end(). A port that closes takes one to be sure that no sender is at work in it.
  class Change {
   public:
    explicit Change(Ingress& ingress) : ingress_(ingress) { ingress_.lock_.lock(); }
    ~Change() {
      ingress_.plan();
      ingress_.lock_.unlock();
    }
    Change(const Change&) = delete;
    Change& operator=(const Change&) = delete;

   private:
    Ingress& ingress_;
  };

  /// `buffer_bytes` of packet buffer for each of `queues`, all empty; no queue is started. Takes its own Change.
  /// 0 or -ENOMEM. No queue may be polled meanwhile.
  [[nodiscard]] int configure(std::uint16_t queues, std::size_t buffer_bytes);

  void begin() override { lock_.lock(); }
  void end() override { lock_.unlock(); }
  /// Only between begin() and end().
  void deliver(const std::uint8_t* frame, std::uint32_t length, std::uint64_t release_nanos) override {
    deliver(frame, length, release_nanos, {});
  }
  /// The same for a frame that nothing has changed since its sender's device stored `sums`: none of them is checked by
  /// summing up all over again.
  void deliver(const std::uint8_t* frame, std::uint32_t length, std::uint64_t release_nanos, const DeviceSums& sums) {
    Segment segment{const_cast<std::uint8_t*>(frame), length, 0, Verdict::forward};  // only read
    static_cast<void>(take({&segment, 1, length}, sums, true, release_nanos));
  }
  enum class Taken : std::uint8_t {
    yes,         ///< or lost, and counted as such
    unfit,       ///< has no place for the checksums that are asked for
    unfinished,  ///< headers lie in several pieces, or checksums are wrong: has to come in one piece, as it will be
  };
  /// The same for a frame in pieces, which are gathered here, and whose checksums, as flagged in `word` (enum TxFlag),
  /// are filled in on the way.
  [[nodiscard]] Taken deliver(FrameRef frame, std::uint64_t word, std::uint64_t release_nanos);

  /// queue < queues().
  [[nodiscard]] PacketBuffer& buffer(std::uint16_t queue) { return *buffers_[queue]; }
  [[nodiscard]] std::uint16_t queues() const { return queues_; }

  MacFilter macs;  ///< unicast and multicast addresses, promiscuous, allmulticast
  FlowRules flows;
  Rss rss;
  std::uint32_t max_frame = 1518;       ///< bytes without FCS, from the MTU
  std::uint64_t checksum_offloads = 0;  ///< RTE_ETH_RX_OFFLOAD_*_CKSUM in force on any queue
  bool needs_header_length = false;     ///< some queue splits at headers
  bool reports_kind = false;            ///< packet types are wanted (descriptor.h, rx_kind)
  bool reports_hash = true;             ///< the hash is wanted even where there is one queue only
  bool reports_time = false;            ///< times of arrival are wanted
  // Atomic so that others may read them without a Change.
  std::atomic<bool> started{false};  ///< the port; while it is not, frames count as rx_stopped
  std::atomic<bool> link_up{true};   ///< while it is not, as rx_link_down
  std::array<std::atomic<bool>, kMaxQueues> queue_started{};
  Counters counts;

 private:
  struct Known;
  /// What deliver() can do without, from the members above.
  void plan();
  [[nodiscard]] bool passes(FrameRef frame);
  template <typename Copy>
  Taken store(std::uint16_t queue, const FrameInfo& info, Copy&& copy);
  [[nodiscard]] Taken take(FrameRef frame, const DeviceSums& sums, bool stored, std::uint64_t release_nanos);
  static constexpr std::uint16_t kNoQueue = kMaxQueues;
  [[nodiscard]] std::uint16_t choose_queue(FrameRef frame, const packet::ParsedFrame& parsed, FrameInfo& info);
  [[nodiscard]] std::uint64_t verify(FrameRef frame, const packet::ParsedFrame& parsed, const Known& known);

  SpinLock lock_;
  std::uint16_t queues_ = 0;
  bool parses_ = false;       ///< frames have to be looked into
  bool steers_ = false;       ///< ... by RSS
  bool knows_plain_ = false;  ///< all that is asked of a plain UDP datagram is to verify it
  std::array<std::unique_ptr<PacketBuffer>, kMaxQueues> buffers_;
};

}  // namespace warpline::vnic
