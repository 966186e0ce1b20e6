// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include <rte_mbuf.h>

#include "warpline/base/statistics/counter.h"
#include "warpline/base/units.h"
#include "warpline/packet/responder.h"
#include "warpline/port/port_queue.h"
#include "warpline/route/route_set.h"
#include "warpline/stream/stream_sender.h"

namespace warpline::stream_port {

/// What a SendQueue counts, in frames. Its thread writes, any thread reads. Every frame received is answered, not
/// answered, a neighbour's, in too many pieces, or counted by the StreamSender under its disposition.
struct SendQueueCounters {
  Counter received;         ///< from the device
  Counter received_bytes;   ///< of these, without FCS
  Counter answered;         ///< asked by ARP, neighbour discovery or echo, and turned into their answers
  Counter not_answered;     ///< asked likewise, while the device took no more frames
  Counter neighbours;       ///< told where a neighbour is
  Counter too_many_pieces;  ///< came in more pieces than are looked at
  Counter sent;             ///< that the device took: segments, answers and questions
  Counter sent_bytes;       ///< of these, without FCS
  Counter asked;            ///< questions for the next hop among them
  Counter no_mbuf;          ///< turns that ended since no buffer was left for a frame
};

/// The frames of a StreamSender by one queue pair of an ethdev, and the question where its next hop is. One thread
/// makes all calls: receive(), then what the application does with its sender(), then send(). No call waits, allocates
/// or enters the kernel but in the device's driver.
class SendQueue {
 public:
  static constexpr std::uint16_t kBurst = 64;

  /// `pool` is where frames to be sent come from, with room for StreamSender::frame_bytes() in each buffer; `self` is
  /// the port, whose first address is the sender's, and `next_hop` a neighbour on its link.
  SendQueue(port::PortQueue place, rte_mempool* pool, stream::StreamSender sender, const route::RouterPort& self,
            const IpAddress& next_hop);
  SendQueue(const SendQueue&) = delete;
  SendQueue& operator=(const SendQueue&) = delete;
  ~SendQueue() { close(); }

  /// Takes a burst from the device, and has done what is due. True if there was a frame.
  bool receive(Nanos now);
  /// Sends what is to be sent, as much as the device takes: the rest waits for the next call. Asks for the next hop
  /// five times a second until it has answered. True if the device took a frame.
  bool send(Nanos now);
  /// Gives the buffers back that it holds. At the end; nothing is sent any more.
  void close();

  /// Returns the station to which segments go; none before it has answered.
  [[nodiscard]] const std::optional<MacAddress>& next_hop() const { return next_hop_mac_; }
  [[nodiscard]] stream::StreamSender& sender() { return sender_; }              ///< by the queue's thread
  [[nodiscard]] const stream::StreamSender& sender() const { return sender_; }  ///< its counters: any thread
  [[nodiscard]] const SendQueueCounters& counters() const { return counters_; }

 private:
  void take(rte_mbuf* mbuf, Nanos now);
  [[nodiscard]] bool learn(FrameRef frame);
  void ask(Nanos now);
  void write_frames(Nanos now);
  void append(rte_mbuf* mbuf, std::uint32_t length);

  port::PortQueue place_;
  rte_mempool* pool_;
  stream::StreamSender sender_;
  route::RouterPort self_;
  packet::Responder responder_;
  IpAddress next_hop_;
  std::optional<MacAddress> next_hop_mac_;
  Nanos ask_at_{};
  rte_mbuf* spare_ = nullptr;                 ///< the buffer that the next frame is written into
  std::array<rte_mbuf*, 2 * kBurst> unsent_;  ///< [unsent_at_, unsent_end_): that the device has not taken yet
  std::uint16_t unsent_at_ = 0;
  std::uint16_t unsent_end_ = 0;
  SendQueueCounters counters_;
};

}  // namespace warpline::stream_port
