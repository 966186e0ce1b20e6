// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>

#include "warpline/base/frame.h"
#include "warpline/base/time/pacing_wheel.h"
#include "warpline/packet/tcp_frame.h"
#include "warpline/stream/internal/connection_queue.h"
#include "warpline/stream/internal/connection_table.h"
#include "warpline/stream/internal/send/peer_header.h"
#include "warpline/stream/internal/send/send_connection.h"
#include "warpline/stream/internal/stranger_queue.h"
#include "warpline/stream/stream_sender.h"
#include "warpline/stream/unfilled_frame.h"

namespace warpline::stream {

/// What a StreamSender is made of. What arrives goes to take_segment.cc, its acknowledgement to loss_recovery.cc; a
/// connection's beginning, end and timers are in send_life.cc, and what is sent is chosen and written by
/// write_segment.cc.
class SenderCore {
 public:
  SenderCore(const SenderSettings& settings, const PayloadSource& source, Nanos now);

  [[nodiscard]] std::optional<ConnectionId> connect(const SocketAddress& peer, const MacAddress& next_hop, Nanos now,
                                                    std::uint16_t port);
  bool offer(ConnectionId id, std::uint64_t bytes);
  void close(ConnectionId id);
  bool set_user_timeout(ConnectionId id, Nanos timeout, Nanos now);
  void set_next_hop(const MacAddress& next_hop);
  void abort(ConnectionId id, Nanos now);
  void receive(FrameRef frame, bool checksums_are_right, Nanos now);
  void advance(Nanos now);
  [[nodiscard]] Nanos next_deadline() const { return wheel_.next_deadline(); }
  [[nodiscard]] std::uint32_t next_frame(std::span<std::uint8_t> out, Nanos now);
  [[nodiscard]] UnfilledFrame next_unfilled(std::span<std::uint8_t> out, Nanos now);
  [[nodiscard]] std::uint32_t frame_bytes() const;
  [[nodiscard]] std::optional<SendEvent> poll();
  [[nodiscard]] std::optional<SendView> view(ConnectionId id) const;
  [[nodiscard]] const SenderCounters& counters() const { return counters_; }
  [[nodiscard]] std::uint32_t connections() const { return table_.size(); }
  [[nodiscard]] std::uint32_t lingering() const { return lingering_; }

 private:
  using Phase = SendConnection::Phase;
  using Recovery = SendConnection::Recovery;

  static constexpr std::uint32_t kNobody = std::numeric_limits<std::uint32_t>::max();

  /// What an acknowledgement brought.
  struct Delivery {
    std::uint64_t bytes = 0;      ///< that were not known to have arrived
    Nanos round_trip{};           ///< of the oldest segment that was sent once; 0: there is none
    bool ambiguous = false;       ///< some of it was sent again, or had been taken for lost
    bool told_duplicate = false;  ///< it told of bytes that came twice (RFC 2883)
  };

  // take_segment.cc
  [[nodiscard]] Disposition take(FrameRef frame, bool checksums_are_right, Nanos now);
  [[nodiscard]] Disposition take_answer(SendConnection& connection, const SegmentReading& segment,
                                        const PeerHeader& header, Nanos now);
  [[nodiscard]] Disposition take_reset(SendConnection& connection, const SegmentReading& segment, Nanos now);
  [[nodiscard]] Disposition take_in_sequence(SendConnection& connection, const SegmentReading& segment,
                                             const PeerHeader& header, Nanos now);
  [[nodiscard]] Disposition take_content(SendConnection& connection, const SegmentReading& segment);
  [[nodiscard]] Disposition take_crossed_syn(SendConnection& connection, const SegmentReading& segment,
                                             const PeerHeader& header, Nanos now);
  void refuse(const SendConnection& connection, const SegmentReading& segment, Nanos now);
  [[nodiscard]] bool finish_crossed_handshake(SendConnection& connection, const SegmentReading& segment, Nanos now);
  void agree(SendConnection& connection, const SegmentReading& segment, const PeerHeader& header);
  void update_window(SendConnection& connection, const SegmentReading& segment, const PeerHeader& header,
                     std::uint64_t acknowledged);

  // loss_recovery.cc
  void take_acknowledgement(SendConnection& connection, const SegmentReading& segment, const PeerHeader& header,
                            std::uint64_t acknowledged, bool window_moved, Nanos now);
  void note_delivered(SendConnection& connection, const SentSegment& segment, const SegmentReading& by,
                      Delivery& delivery, Nanos now) const;
  void take_blocks(SendConnection& connection, const SegmentReading& segment, const PeerHeader& header,
                   Delivery& delivery, Nanos now) const;
  void measure(SendConnection& connection, const SegmentReading& segment, const Delivery& delivery, bool advances,
               Nanos now);
  void count_duplicate(SendConnection& connection);
  void conclude_tail_probe(SendConnection& connection, const Delivery& delivery);
  [[nodiscard]] Nanos reordering_window(const SendConnection& connection) const;
  [[nodiscard]] bool detect_losses(SendConnection& connection, Nanos now);
  void begin_recovery(SendConnection& connection);
  void time_out(SendConnection& connection, Nanos now);

  // send_life.cc
  [[nodiscard]] std::optional<ConnectionKey> free_ends(const SocketAddress& peer, std::uint16_t port);
  [[nodiscard]] SendConnection* named(ConnectionId id);
  [[nodiscard]] Nanos timeout_of(const SendConnection& connection) const;
  void watch_tail(SendConnection& connection, Nanos now);
  void watch_window(SendConnection& connection, Nanos now);
  void arm(SendConnection& connection);
  void do_what_is_due(SendConnection& connection, Nanos now);
  [[nodiscard]] Nanos gives_up_at(const SendConnection& connection) const;
  [[nodiscard]] Nanos times_out_at(const SendConnection& connection, Nanos now) const;
  void take_timeout(SendConnection& connection, Nanos now);
  void establish(SendConnection& connection, Nanos now);
  void note_end(SendConnection& connection, Nanos now);
  void end_by(SendConnection& connection, SendState state);
  void remove(SendConnection& connection);
  void forget_timer(SendConnection& connection);

  // write_segment.cc
  void want_turn(SendConnection& connection);
  void want_event(SendConnection& connection);
  void want_acknowledgement(SendConnection& connection);
  void challenge(SendConnection& connection, Nanos now);
  void reset_stranger(const SegmentReading& segment, FrameRef frame, Nanos now);
  void reset_peer(const SendConnection& connection, Nanos now);
  [[nodiscard]] std::uint32_t timestamp_at(Nanos now) const;
  [[nodiscard]] packet::TcpFrame frame_to(const ConnectionKey& ends, const MacAddress& peer_mac) const;
  [[nodiscard]] packet::TcpFrame frame_of(SendConnection& connection, Nanos now) const;
  void write_syn(const SendConnection& connection, Nanos now, packet::TcpFrame& frame) const;
  [[nodiscard]] std::uint32_t write_next(SendConnection& connection, std::span<std::uint8_t> out, Nanos now);
  [[nodiscard]] std::uint32_t write_tail_probe(SendConnection& connection, std::span<std::uint8_t> out, Nanos now);
  [[nodiscard]] std::uint32_t write_segment(SendConnection& connection, const SentSegment& segment,
                                            std::span<std::uint8_t> out, Nanos now);
  [[nodiscard]] std::uint32_t write_again(SendConnection& connection, std::uint32_t place, std::span<std::uint8_t> out,
                                          Nanos now);
  [[nodiscard]] std::uint32_t write_new(SendConnection& connection, bool probe, std::span<std::uint8_t> out, Nanos now);
  [[nodiscard]] std::uint32_t new_bytes(SendConnection& connection, bool probe) const;

  SenderSettings settings_;
  const PayloadSource& source_;
  ConnectionKey station_;  ///< `local` is our address
  ConnectionTable<SendConnection> table_;
  std::uint32_t ring_segments_;  ///< of each connection
  std::unique_ptr<SentSegment[]> rings_;
  PacingWheel<std::uint32_t> wheel_;
  SenderCounters counters_;
  ConnectionQueue turns_;
  ConnectionQueue events_;
  StrangerQueue strangers_;
  std::uint32_t timestamp_base_;  ///< so that timestamps do not tell how long the machine is up
  std::uint32_t lingering_ = 0;
  std::uint32_t current_ = kNobody;    ///< whose turn it is to send
  std::uint32_t left_of_turn_ = 0;     ///< segments that it may still send
  UnfilledFrame* unfilled_ = nullptr;  ///< of the call under way: its payload is told there, and not read
  std::uint16_t next_port_;
};

}  // namespace warpline::stream
