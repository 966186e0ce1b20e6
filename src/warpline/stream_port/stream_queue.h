// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "warpline/base/units.h"
#include "warpline/stream/stream_receiver.h"
#include "warpline/stream_port/queue_frames.h"

namespace warpline::stream_port {

/// What a StreamQueue counts, in frames. Every frame received is answered, not answered, in too many pieces, of
/// another VLAN, or counted by the StreamReceiver under its disposition.
using StreamQueueCounters = FrameCounters;

/// The frames of a StreamReceiver by one queue pair of an ethdev. One thread makes all calls: receive(), then what the
/// application does with its receiver(), then send(). No call waits, allocates or enters the kernel but in the device's
/// driver.
class StreamQueue {
 public:
  /// `pool` is where frames to be sent come from, with room for StreamReceiver::kReplyBytes in each buffer; `responder`
  /// answers for the receiver's address. `vlan`: as of QueueFrames.
  StreamQueue(port::PortQueue place, rte_mempool* pool, stream::StreamReceiver receiver,
              const packet::Responder& responder, std::uint16_t vlan = 0);

  /// Takes a burst from the device, and has done what is due. True if there was a frame.
  bool receive(Nanos now);
  /// Sends replies, as many as the device takes: the others wait for the next call. True if it took a frame.
  bool send(Nanos now);
  /// Gives the buffers back that it holds. At the end; nothing is sent any more.
  void close() { frames_.close(); }

  [[nodiscard]] stream::StreamReceiver& receiver() { return receiver_; }              ///< by the queue's thread
  [[nodiscard]] const stream::StreamReceiver& receiver() const { return receiver_; }  ///< its counters: any thread
  [[nodiscard]] const StreamQueueCounters& counters() const { return counters_; }

 private:
  stream::StreamReceiver receiver_;
  StreamQueueCounters counters_;
  QueueFrames frames_;
};

}  // namespace warpline::stream_port
