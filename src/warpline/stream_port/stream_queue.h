// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include <rte_mbuf.h>

#include "warpline/base/statistics/counter.h"
#include "warpline/base/units.h"
#include "warpline/packet/responder.h"
#include "warpline/port/port_queue.h"
#include "warpline/stream/stream_receiver.h"

namespace warpline::stream_port {

/// What a StreamQueue counts, in frames. Its thread writes, any thread reads. Every frame received is answered, not
/// answered, in too many pieces, or counted by the StreamReceiver under its disposition.
struct StreamQueueCounters {
  Counter received;         ///< from the device
  Counter received_bytes;   ///< of these, without FCS
  Counter answered;         ///< asked by ARP, neighbour discovery or echo, and turned into their answers
  Counter not_answered;     ///< asked likewise, while the device took no more frames
  Counter too_many_pieces;  ///< came in more pieces than are looked at
  Counter sent;             ///< that the device took: replies of connections and answers
  Counter sent_bytes;       ///< of these, without FCS
  Counter no_mbuf;          ///< turns that ended since no buffer was left for a reply
};

/// The frames of a StreamReceiver by one queue pair of an ethdev. One thread makes all calls: receive(), then what the
/// application does with its receiver(), then send(). No call waits, allocates or enters the kernel but in the device's
/// driver.
class StreamQueue {
 public:
  static constexpr std::uint16_t kBurst = 64;

  /// `pool` is where frames to be sent come from, with room for StreamReceiver::kReplyBytes in each buffer; `responder`
  /// answers for the receiver's address.
  StreamQueue(port::PortQueue place, rte_mempool* pool, stream::StreamReceiver receiver,
              const packet::Responder& responder);
  StreamQueue(const StreamQueue&) = delete;
  StreamQueue& operator=(const StreamQueue&) = delete;
  ~StreamQueue() { close(); }

  /// Takes a burst from the device, and has done what is due. True if there was a frame.
  bool receive(Nanos now);
  /// Sends replies, as many as the device takes: the others wait for the next call. True if it took a frame.
  bool send(Nanos now);
  /// Gives the buffers back that it holds. At the end; nothing is sent any more.
  void close();

  [[nodiscard]] stream::StreamReceiver& receiver() { return receiver_; }              ///< by the queue's thread
  [[nodiscard]] const stream::StreamReceiver& receiver() const { return receiver_; }  ///< its counters: any thread
  [[nodiscard]] const StreamQueueCounters& counters() const { return counters_; }

 private:
  void take(rte_mbuf* mbuf, Nanos now);
  void write_replies(Nanos now);
  [[nodiscard]] bool has_room() const { return unsent_end_ != unsent_.size(); }

  port::PortQueue place_;
  rte_mempool* pool_;
  stream::StreamReceiver receiver_;
  packet::Responder responder_;
  StreamQueueCounters counters_;
  rte_mbuf* spare_ = nullptr;  ///< for the next reply
  std::array<rte_mbuf*, 2 * kBurst> unsent_{};
  std::uint16_t unsent_at_ = 0;
  std::uint16_t unsent_end_ = 0;
};

}  // namespace warpline::stream_port
