// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <optional>

#include "warpline/base/statistics/counter.h"
#include "warpline/base/units.h"
#include "warpline/route/route_set.h"
#include "warpline/stream/stream_sender.h"
#include "warpline/stream_port/payload/payload_stage.h"
#include "warpline/stream_port/queue_frames.h"
#include "warpline/stream_port/send/frame_exchange.h"
#include "warpline/stream_port/send/shared_next_hop.h"

namespace warpline::stream_port {

/// What a SendQueue counts, in frames. Its thread writes, any thread reads. Every frame received is answered, not
/// answered, a neighbour's, in too many pieces, of another VLAN, not taken over, or counted by the StreamSender under
/// its disposition: that of the queue whose connection it was for.
struct SendQueueCounters : FrameCounters {
  Counter neighbours;      ///< told where a neighbour is
  Counter asked;           ///< questions for the next hop among those sent
  Counter handed_over;     ///< were for connections of another queue, which counts what became of them
  Counter not_taken_over;  ///< likewise, and dropped: too many waited there
};

/// What the queues of a port that send streams share. Any thread.
struct SendShared {
  /// For so many queues, whose connections have ports from `first_port` on.
  SendShared(std::uint16_t queues, std::uint16_t first_port) : exchange(queues, first_port), busy(queues) {}
  SharedNextHop next_hop;
  FrameExchange exchange;
  std::atomic<std::uint16_t> busy;  ///< queues that have not retired
};

/// The frames of a StreamSender by one queue pair of an ethdev, and the question where its next hop is. It asks again
/// where segments are not answered, and all connections follow a next hop that is another station now. One thread makes
/// all calls: receive(), then what the application does with its sender(), then send(). No call waits, allocates
/// or enters the kernel but in the device's driver.
class SendQueue {
 public:
  /// `pool` is where frames to be sent come from, with room for StreamSender::frame_bytes() in each buffer; `self` is
  /// the port, whose first address is the sender's, and `next_hop` a neighbour on its link. `vlan`: as of QueueFrames.
  /// `watch`, of that address, notes other stations that have it, unless null.
  /// `payload`: what payload comes from, where the sender's source is not asked. `shared`: by all queues of the port;
  /// the sender's ports are its part of them.
  SendQueue(port::PortQueue place, rte_mempool* pool, stream::StreamSender sender, const route::RouterPort& self,
            const IpAddress& next_hop, std::shared_ptr<SendShared> shared, std::uint16_t vlan = 0,
            std::unique_ptr<PayloadStage> payload = {}, packet::AddressWatch* watch = nullptr);

  /// Takes a burst from the device, and has done what is due. True if there was a frame.
  bool receive(Nanos now);
  /// Sends what is to be sent, as much as the device takes: the rest waits for the next call. Asks for the next hop
  /// five times a second until it has answered. True if the device took a frame.
  bool send(Nanos now);
  /// Has send() send what `announcer` has, too; null: nothing. At set-up.
  void set_announcer(port::Announcer* announcer) { frames_.set_announcer(announcer); }
  /// Says that it has nothing more to do of its own. What the device brings it for other queues it still hands over, as
  /// long as receive() is called: while is_needed().
  void retire() { shared_->busy.fetch_sub(1, std::memory_order_release); }
  [[nodiscard]] bool is_needed() const { return shared_->busy.load(std::memory_order_acquire) != 0; }
  /// Gives the buffers back that it holds, and ends what payload comes from. At the end; nothing is sent any more.
  void close();

  /// Returns the station to which segments go; none before it has answered.
  [[nodiscard]] std::optional<MacAddress> next_hop() const { return shared_->next_hop.get(); }
  [[nodiscard]] stream::StreamSender& sender() { return sender_; }              ///< by the queue's thread
  [[nodiscard]] const stream::StreamSender& sender() const { return sender_; }  ///< its counters: any thread
  [[nodiscard]] const SendQueueCounters& counters() const { return counters_; }
  [[nodiscard]] PayloadStage* payload() { return payload_.get(); }              ///< null: there is none
  [[nodiscard]] const PayloadStage* payload() const { return payload_.get(); }  ///< its counters: any thread

 private:
  [[nodiscard]] bool learn(FrameRef frame, Nanos now);
  [[nodiscard]] bool hand_over(FrameRef frame, rte_mbuf* mbuf);
  [[nodiscard]] bool take_over(Nanos now);
  void follow_next_hop(Nanos now);
  void ask(Nanos now);

  stream::StreamSender sender_;
  route::RouterPort self_;
  IpAddress next_hop_;
  std::shared_ptr<SendShared> shared_;
  std::uint16_t number_;             ///< of the queue
  std::uint64_t next_hop_seen_ = 0;  ///< as of SharedNextHop::news()
  std::uint64_t timeouts_ = 0;       ///< of the sender, and its questions for windows, so far
  Nanos ask_at_{};
  SendQueueCounters counters_;
  QueueFrames frames_;
  std::unique_ptr<PayloadStage> payload_;
};

}  // namespace warpline::stream_port
