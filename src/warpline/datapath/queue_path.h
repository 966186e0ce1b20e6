// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>

#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "warpline/base/statistics/counter.h"
#include "warpline/base/statistics/histogram.h"
#include "warpline/base/verdict.h"
#include "warpline/capture/capture_source.h"
#include "warpline/datapath/batch.h"
#include "warpline/datapath/stage.h"
#include "warpline/memory/recycler.h"
#include "warpline/packet/responder.h"
#include "warpline/port/announce/announce.h"
#include "warpline/port/port_queue.h"
#include "warpline/port/send_limits.h"

namespace warpline::datapath {

/// Written by the lcore that receives.
struct alignas(64) ReceiveCounters {
  Counter packets;
  Counter bytes;  ///< see QueuePath::counts_bytes
  Counter bursts;
  Counter ring_full;  ///< polls that found no free burst, or no place in one: the engine or the transmit side is behind
  StageSamples receive;
};

/// Written by the lcore that transmits.
struct alignas(64) TransmitCounters {
  Counter packets;
  Counter bytes;    ///< see QueuePath::counts_bytes
  Counter replies;  ///< of these, answers that went back out of the receiving port
  Counter retries;  ///< fruitless transmit calls
  DropCounters drops;
  Counter checked;   ///< frames of bursts that came back from an engine, which its own count was compared with
  Counter unworked;  ///< of these, frames that the engine did not work on: Burst::unworked
  /// XOR of buffer_mark() of packets that were set aside, so not worked on. Read after the lcores have ended.
  std::uint64_t set_aside_parity = 0;
  StageSamples work;  ///< of inline work; a thread engine counts its own
  StageSamples transmit;
  Histogram latency;  ///< nanoseconds from a batch closed to its work seen done
};

/// Packets that came beyond the room there was, or that wait for a batch to be made of them: the next ones to be
/// received. Owner: the lcore that receives.
struct alignas(64) HeldPackets {
  std::uint16_t first = 0;
  std::uint16_t end = 0;
  std::array<rte_mbuf*, kMaxBurst + port::kLeastRequest> mbufs;
};

/// A packet whose way is told: what becomes of it. Owner: the lcore that transmits.
struct FollowedPacket {
  const rte_mbuf* mbuf = nullptr;  ///< null: none is followed
  Verdict verdict = Verdict::forward;
};

/// One queue pair's way through the program: what it receives, where that leaves, and what was counted on the way.
struct QueuePath {
  QueuePath() = default;
  QueuePath(const QueuePath&) = delete;
  QueuePath& operator=(const QueuePath&) = delete;
  /// Before its packets' pool. What is still held beyond the run's budget goes back unseen, as what waits in a receive
  /// ring does.
  ~QueuePath();

  port::PortQueue rx;
  port::PortQueue tx;
  port::PortQueue reply;         ///< a transmit queue of the receiving port
  port::SendLimits tx_limits{};  ///< of `tx`: longer frames are dropped as giants
  std::uint16_t burst;
  std::uint64_t deadline_ticks;
  bool adapts = false;          ///< batches to an engine close when AdaptiveBatch says, at `burst` packets at most
  std::uint32_t most_held = 0;  ///< packets in bursts that wait for others; 0: as many as the ring of bursts takes
  std::uint32_t tx_retries;
  std::optional<packet::Responder> responder;  ///< set: ARP, ND and echo for the port's address are answered
  port::Announcer* announcer = nullptr;        ///< set: has frames that the lcore that transmits sends by `reply`
  bool counts_bytes = true;                    ///< false: as far as no stage looks at the packets anyway
  memory::Recycler* recycler = nullptr;  ///< of the lcore that receives and sends, if there is anything to recycle
  std::uint16_t recycle_index = 0;       ///< of both rx and tx there
  bool yields = false;                   ///< its lcores share a core with others, so they give it up when idle
  Histogram* batching = nullptr;  ///< set: nanoseconds that the first packet of each batch waited for it to close
  /// Set, by the control thread: takes copies of packets that are dropped, of the lcore that transmits.
  std::atomic<capture::CaptureSource*> capture{nullptr};
  /// Set, by the control thread: is told the way of one packet of a burst, by the lcore that transmits.
  std::atomic<capture::CaptureSource*> trace{nullptr};
  FollowedPacket followed;

  /// Receives up to `room` packets, after what has been sent was recycled. Returns how many. With room for none, it is
  /// a poll all the same: software devices work while they are called.
  std::uint16_t receive(rte_mbuf** mbufs, std::uint16_t room) {
    if (recycler != nullptr) recycler->poll(recycle_index);
    if (room >= port::kLeastRequest && held.first == held.end) [[likely]]
      return rte_eth_rx_burst(rx.port, rx.queue, mbufs, room);
    return receive_few(mbufs, room);
  }
  [[nodiscard]] bool holds_any() const { return held.first != held.end; }
  [[nodiscard]] std::uint16_t held_count() const { return static_cast<std::uint16_t>(held.end - held.first); }
  /// Receives up to `room` packets, or kLeastRequest, behind those that are held. With those they are kMaxBurst at
  /// most.
  void hold(std::uint16_t room);
  /// Up to `room` of the packets that are held, without a look at the queue.
  std::uint16_t take_held(rte_mbuf** mbufs, std::uint16_t room);
  /// After each batch: so many packets left by `tx`.
  void recycle_later(std::uint16_t packets) const {
    if (recycler != nullptr && recycler->watches()) recycler->left(recycle_index, recycle_index, packets);
  }

  /// Set by the receiving lcore after its last publish (release), read by the transmitting one (acquire).
  std::atomic<bool> receive_ended{false};

  ReceiveCounters received;
  TransmitCounters sent;

  HeldPackets held;

 private:
  std::uint16_t receive_few(rte_mbuf** mbufs, std::uint16_t room);
};

}  // namespace warpline::datapath
