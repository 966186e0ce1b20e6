// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "base/counter.h"
#include "base/histogram.h"
#include "memory/recycler.h"
#include "packet/responder.h"
#include "pipeline/stage.h"
#include "runtime/port_queue.h"

namespace warpline {

/// Written by the lcore that receives.
struct alignas(64) ReceiveCounters {
  Counter packets;
  Counter bytes;  ///< see Stream::counts_bytes
  Counter bursts;
  Counter ring_full;  ///< polls that found no free burst: the engine or the transmit side is behind
  StageSamples receive;
};

/// Written by the lcore that transmits.
struct alignas(64) TransmitCounters {
  Counter packets;
  Counter bytes;    ///< see Stream::counts_bytes
  Counter replies;  ///< of these, answers that went back out of the receiving port
  Counter retries;  ///< fruitless transmit calls
  DropCounters drops;
  StageSamples work;  ///< of inline work; a thread engine counts its own
  StageSamples transmit;
  Histogram latency;  ///< nanoseconds from a batch closed to its work seen done
};

/// One queue pair's way through the program: what it receives, where that leaves, and what was counted on the way.
struct Stream {
  PortQueue rx;
  PortQueue tx;
  PortQueue reply;  ///< a transmit queue of the receiving port
  std::uint16_t burst;
  std::uint64_t deadline_ticks;
  std::uint32_t tx_retries;
  std::optional<Responder> responder;  ///< set: ARP, ND and echo for the port's address are answered
  bool counts_bytes = true;            ///< false: as far as no stage looks at the packets anyway
  Recycler* recycler = nullptr;        ///< of the lcore that receives and sends, if there is anything to recycle
  std::uint16_t recycle_index = 0;     ///< of both rx and tx there
  bool yields = false;                 ///< its lcores share a core with others, so they give it up when idle

  /// Before each receive burst: what has been sent is received into again.
  void recycle() const {
    if (recycler != nullptr) recycler->poll(recycle_index);
  }
  /// After each batch: so many packets left by `tx`.
  void recycle_later(std::uint16_t packets) const {
    if (recycler != nullptr && recycler->watches()) recycler->left(recycle_index, recycle_index, packets);
  }

  /// Set by the receiving lcore after its last publish (release), read by the transmitting one (acquire).
  std::atomic<bool> receive_ended{false};

  ReceiveCounters received;
  TransmitCounters sent;
};

}  // namespace warpline
