// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>

#include "warpline/base/statistics/counter.h"
#include "warpline/base/units.h"
#include "warpline/route/route_set.h"
#include "warpline/stream/stream_sender.h"
#include "warpline/stream_port/payload/payload_stage.h"
#include "warpline/stream_port/queue_frames.h"

namespace warpline::stream_port {

/// What a SendQueue counts, in frames. Its thread writes, any thread reads. Every frame received is answered, not
/// answered, a neighbour's, in too many pieces, of another VLAN, or counted by the StreamSender under its disposition.
struct SendQueueCounters : FrameCounters {
  Counter neighbours;  ///< told where a neighbour is
  Counter asked;       ///< questions for the next hop among those sent
};

/// The frames of a StreamSender by one queue pair of an ethdev, and the question where its next hop is. One thread
/// makes all calls: receive(), then what the application does with its sender(), then send(). No call waits, allocates
/// or enters the kernel but in the device's driver.
class SendQueue {
 public:
  /// `pool` is where frames to be sent come from, with room for StreamSender::frame_bytes() in each buffer; `self` is
  /// the port, whose first address is the sender's, and `next_hop` a neighbour on its link. `vlan`: as of QueueFrames.
  /// `payload`: what payload comes from, where the sender's source is not asked.
  SendQueue(port::PortQueue place, rte_mempool* pool, stream::StreamSender sender, const route::RouterPort& self,
            const IpAddress& next_hop, std::uint16_t vlan = 0, std::unique_ptr<PayloadStage> payload = {});

  /// Takes a burst from the device, and has done what is due. True if there was a frame.
  bool receive(Nanos now);
  /// Sends what is to be sent, as much as the device takes: the rest waits for the next call. Asks for the next hop
  /// five times a second until it has answered. True if the device took a frame.
  bool send(Nanos now);
  /// Gives the buffers back that it holds, and ends what payload comes from. At the end; nothing is sent any more.
  void close();

  /// Returns the station to which segments go; none before it has answered.
  [[nodiscard]] const std::optional<MacAddress>& next_hop() const { return next_hop_mac_; }
  [[nodiscard]] stream::StreamSender& sender() { return sender_; }              ///< by the queue's thread
  [[nodiscard]] const stream::StreamSender& sender() const { return sender_; }  ///< its counters: any thread
  [[nodiscard]] const SendQueueCounters& counters() const { return counters_; }
  [[nodiscard]] PayloadStage* payload() { return payload_.get(); }              ///< null: there is none
  [[nodiscard]] const PayloadStage* payload() const { return payload_.get(); }  ///< its counters: any thread

 private:
  [[nodiscard]] bool learn(FrameRef frame);
  void ask(Nanos now);

  stream::StreamSender sender_;
  route::RouterPort self_;
  IpAddress next_hop_;
  std::optional<MacAddress> next_hop_mac_;
  Nanos ask_at_{};
  SendQueueCounters counters_;
  QueueFrames frames_;
  std::unique_ptr<PayloadStage> payload_;
};

}  // namespace warpline::stream_port
