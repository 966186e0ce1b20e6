// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>

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
///
/// A receiver with a lane is lent the frames: their buffers go back to the pool when the lane is done with them, and no
/// more are received than the lane has room for, so that those beyond wait in the device. Of frames for a lane with
/// queues nobody here looks at a byte, but of those that the lane leaves.
class StreamQueue : private stream::OtherFrames {
 public:
  /// `pool` is where frames to be sent come from, with room for StreamReceiver::kReplyBytes in each buffer; `responder`
  /// answers for the receiver's address. `vlan`: as of QueueFrames.
  StreamQueue(port::PortQueue place, rte_mempool* pool, stream::StreamReceiver receiver,
              const packet::Responder& responder, std::uint16_t vlan = 0);
  StreamQueue(const StreamQueue&) = delete;
  StreamQueue& operator=(const StreamQueue&) = delete;
  ~StreamQueue() override { close(); }

  /// Takes a burst from the device, and has done what is due. True if there was a frame.
  bool receive(Nanos now);
  /// Sends replies, as many as the device takes: the others wait for the next call. True if it took a frame.
  bool send(Nanos now);
  /// Takes in what the receiver's lane has in hand, without frames from the device. True when that is all; at once
  /// without a lane.
  bool settle(Nanos now);
  /// Has send() send what `announcer` has, too; null: nothing. At set-up.
  void set_announcer(port::Announcer* announcer) { frames_.set_announcer(announcer); }
  /// Returns why no frames are taken any more, if so.
  [[nodiscard]] std::optional<Error> failure(Nanos now) {
    return receiver_.has_lane() ? receiver_.lane_failure(now) : std::nullopt;
  }
  /// Ends the receiver's lane, if it has one, and gives the buffers back that are held. At the end; nothing is sent any
  /// more.
  void close();

  [[nodiscard]] stream::StreamReceiver& receiver() { return receiver_; }              ///< by the queue's thread
  [[nodiscard]] const stream::StreamReceiver& receiver() const { return receiver_; }  ///< its counters: any thread
  [[nodiscard]] const StreamQueueCounters& counters() const { return counters_; }

 private:
  [[nodiscard]] bool receive_by_lane(Nanos now);
  [[nodiscard]] bool collect(Nanos now);
  void free_returned();
  void take_posted();
  void give(FrameRef frame, rte_mbuf* mbuf);
  void lend(FrameRef frame, rte_mbuf* mbuf);
  void lend_waiting();
  [[nodiscard]] bool take(FrameRef frame, void* token) override;

  stream::StreamReceiver receiver_;
  StreamQueueCounters counters_;
  QueueFrames frames_;
  std::array<rte_mbuf*, QueueFrames::kBurst> waiting_{};  ///< frames that a lane had no room for yet
  std::uint16_t waiting_at_ = 0;
  std::uint16_t waiting_end_ = 0;
};

}  // namespace warpline::stream_port
