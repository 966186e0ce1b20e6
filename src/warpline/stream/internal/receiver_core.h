// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "warpline/base/frame.h"
#include "warpline/base/time/pacing_wheel.h"
#include "warpline/stream/internal/connection.h"
#include "warpline/stream/internal/connection_queue.h"
#include "warpline/stream/internal/connection_table.h"
#include "warpline/stream/internal/handshake_cookie.h"
#include "warpline/stream/internal/link/burst_link.h"
#include "warpline/stream/internal/link/queue_link.h"
#include "warpline/stream/internal/reply.h"
#include "warpline/stream/internal/segment_reading.h"
#include "warpline/stream/internal/stranger_queue.h"
#include "warpline/stream/internal/take_segment.h"
#include "warpline/stream/known_connections.h"
#include "warpline/stream/lanes/lane_watch.h"
#include "warpline/stream/ring_memory.h"
#include "warpline/stream/stream_receiver.h"

namespace warpline::stream {

/// What a StreamReceiver is made of. A connection's segments go to receive.cc, its beginning to handshake.cc, its end
/// and its timers to connection_life.cc, and what is sent is written by replies.cc. With a lane, lane_bursts.cc hands
/// frames to it and takes in what became of them, or lane_queues.cc does if it takes frames by itself: then a
/// connection's ReceiveState here follows that of the lane from when the connection is established until it ends, or
/// all its bytes came and it is closed.
class ReceiverCore {
 public:
  /// Has rings of its own or a lane, which has them.
  ReceiverCore(const ReceiverSettings& settings, std::shared_ptr<const RingMemory> rings,
               std::unique_ptr<SegmentLane> lane, Nanos now);

  /// Begins with the lane, if there is one.
  [[nodiscard]] Result<void> start();

  void receive(FrameRef frame, bool checksums_are_right, Nanos now);
  void end_burst(Nanos now);
  void advance(Nanos now);
  [[nodiscard]] Nanos next_deadline() const { return wheel_.next_deadline(); }
  [[nodiscard]] std::uint32_t next_reply(std::span<std::uint8_t> out, Nanos now);
  [[nodiscard]] std::optional<StreamEvent> poll();
  [[nodiscard]] std::optional<StreamView> view(ConnectionId id) const;
  bool release(ConnectionId id, std::uint64_t bytes);
  void close(ConnectionId id, Nanos now);
  void abort(ConnectionId id, Nanos now);
  [[nodiscard]] const ReceiverCounters& counters() const { return counters_; }
  [[nodiscard]] std::uint32_t connections() const { return table_.size(); }

  [[nodiscard]] const std::shared_ptr<const RingMemory>& ring_memory() const { return ring_memory_; }
  [[nodiscard]] LaneLink* link() { return link_; }  ///< null without a lane
  [[nodiscard]] const LaneLink* link() const { return link_; }
  [[nodiscard]] QueueLink* queues() { return queues_ ? &*queues_ : nullptr; }  ///< null without queues
  bool collect(OtherFrames* others, Nanos now);
  [[nodiscard]] const std::optional<Error>& lane_failure(Nanos now);
  void stop_lane();

 private:
  using Phase = Connection::Phase;
  /// What became of a frame; nothing yet, if the lane is to have it.
  using Outcome = std::optional<Disposition>;

  static constexpr std::size_t kStrangerReplies = 256;

  // receive.cc
  [[nodiscard]] Outcome take(FrameRef frame, bool checksums_are_right, Nanos now);
  [[nodiscard]] Outcome deliver(Connection& connection, const SegmentReading& segment, FrameRef frame, Nanos now);
  [[nodiscard]] Outcome take_reset(Connection& connection, const SegmentReading& segment, Nanos now);
  void note(Connection& connection, const BurstNotes& notes, const ReceiveState::Reach& before, Nanos heard, Nanos now);
  void touch(Connection& connection);
  void acknowledge_touched(Nanos now);
  void count(Disposition disposition) { counters_.dispositions[static_cast<std::size_t>(disposition)].add(1); }

  // lane_bursts.cc
  void submit_burst(Nanos now);
  [[nodiscard]] bool collect_bursts(OtherFrames* others, Nanos now);
  [[nodiscard]] Connection* take_state(const ConnectionRecord& record, Nanos heard, Nanos now);
  void take_burst(const BurstLink::DoneBurst& burst, OtherFrames* others, Nanos now);
  void take_record(const ConnectionRecord& record, const BurstLink::DoneBurst& burst, Nanos now);
  void take_left(const BurstLink::DoneBurst& burst, std::uint32_t i, OtherFrames* others, Nanos now);

  // lane_queues.cc
  [[nodiscard]] bool collect_released(OtherFrames* others, Nanos now);
  [[nodiscard]] bool take_rounds(Nanos now);
  void take_record(const ConnectionRecord& record, Nanos heard, Nanos now);
  void take_released(const queues::PacketQueues::Released& frame, OtherFrames* others, Nanos now);
  void take_releases();
  void take_release(Connection& connection, ReleaseWord word);
  void apply_release(Connection& connection);
  void let_go(const ConnectionChange& change);
  [[nodiscard]] bool is_the_lanes(const Connection& connection) const {
    return link_ && connection.phase == Phase::established;
  }
  void tell_lane(const Connection& connection) {
    if (link_) link_->want_tell(table_.index_of(connection));
  }
  void change_lane(const Connection& connection) {
    if (link_) link_->want_change(table_.index_of(connection));
  }
  [[nodiscard]] std::uint8_t* ring(std::uint32_t connection) const {
    return rings_ + 2 * settings_.ring_bytes * connection;
  }

  // handshake.cc
  [[nodiscard]] Outcome take_stranger(const SegmentReading& segment, const SynOptions& offered, FrameRef frame,
                                      Nanos now);
  [[nodiscard]] Disposition take_first_syn(const SegmentReading& segment, const SynOptions& offered, FrameRef frame,
                                           Nanos now);
  [[nodiscard]] Outcome take_cookie(const SegmentReading& segment, FrameRef frame, Nanos now);
  [[nodiscard]] Disposition take_syn_again(Connection& connection, const SegmentReading& segment, FrameRef frame,
                                           Nanos now);
  [[nodiscard]] std::optional<SynOptions> claim_handshake(const SegmentReading& segment);
  [[nodiscard]] Outcome take_over(const SegmentReading& segment, const SynOptions& agreed, FrameRef frame, Nanos now);
  [[nodiscard]] bool claim_own(Connection& connection);
  [[nodiscard]] Outcome finish_handshake(Connection& connection, const SegmentReading& segment, FrameRef frame,
                                         Nanos now);
  void set_up(Connection& connection, std::uint32_t peer_initial, std::uint32_t own_initial, const SynOptions& offered,
              FrameRef frame);
  void establish(Connection& connection, Nanos now);
  [[nodiscard]] bool listens_on(std::uint16_t port) const;
  [[nodiscard]] std::uint64_t known_hash(const ConnectionKey& key) const { return key.hash(known_secret_); }
  /// Whether another receiver behind the same address may have a connection of these ends, or one that begins; `own`:
  /// this one has.
  [[nodiscard]] bool is_known_elsewhere(const ConnectionKey& key, bool own) const {
    return settings_.known != nullptr && settings_.known->may_know(known_hash(key), own ? 1 : 0);
  }
  void tell_others(const Connection& connection, bool begins);

  // connection_life.cc
  [[nodiscard]] Connection* named(ConnectionId id);
  [[nodiscard]] const Connection* named(ConnectionId id) const;
  [[nodiscard]] Nanos next_due(const Connection& connection) const;
  void arm(Connection& connection, Nanos at);
  void do_what_is_due(Connection& connection, Nanos now);
  void consume(Connection& connection, std::uint64_t bytes);
  void unlink(Connection& connection);
  void end_by(Connection& connection, ConnectionState state);
  void remove(Connection& connection);
  void vacate(Connection& connection);

  // replies.cc
  void want_reply(Connection& connection);
  void queue_reply(Connection& connection);
  void want_event(Connection& connection);
  void challenge(Connection& connection, Nanos now);
  void reset_stranger(const SegmentReading& segment, FrameRef frame, Nanos now);
  void reset_peer(const Connection& connection, Nanos now);
  void write_syn(const SynOptions& agreed, std::uint32_t peer_timestamp, Nanos now, packet::TcpHeader& tcp) const;
  [[nodiscard]] Reply reply_of(Connection& connection, Nanos now);
  [[nodiscard]] std::uint32_t take_written(Connection& connection, std::span<std::uint8_t> out);
  void note_reply(Connection& connection);

  ReceiverSettings settings_;
  OwnEnd own_;
  std::uint64_t known_secret_;                     ///< of the hash that receivers behind one address share
  ConnectionKey station_;                          ///< `local` is the address that is listened on
  std::shared_ptr<const RingMemory> ring_memory_;  ///< null with a lane
  std::optional<BurstLink> bursts_;
  std::optional<QueueLink> queues_;
  LaneLink* link_ = nullptr;  ///< either of them, if there is a lane
  LaneWatch watch_;
  std::optional<Error> lane_failure_;
  bool stores_;          ///< it puts bytes into rings itself: it has no lane, and keeps them
  std::uint8_t* rings_;  ///< of connection i from 2 * ring_bytes * i on, each mapped twice; a lane's may be a GPU's
  HandshakeCookies cookies_;
  ConnectionTable<Connection> table_;
  PacingWheel<std::uint32_t> wheel_;
  ReceiverCounters counters_;
  ConnectionQueue touched_;
  ConnectionQueue events_;
  ConnectionQueue replies_;
  std::vector<WrittenReply> written_;  ///< of each connection, by its lane
  StrangerQueue strangers_;
  std::uint32_t half_open_ = 0;
  std::uint8_t scale_ = 0;  ///< that brings a ring's size into 16 bits
  Nanos cookies_until_{};   ///< until then a first acknowledgement may answer a cookie
};

}  // namespace warpline::stream
