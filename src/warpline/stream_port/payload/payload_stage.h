// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <rte_mbuf.h>

#include "warpline/base/result.h"
#include "warpline/base/statistics/counter.h"
#include "warpline/base/units.h"
#include "warpline/stream/lanes/lane_watch.h"
#include "warpline/stream/payload/payload_lane.h"
#include "warpline/stream/stream_sender.h"
#include "warpline/stream_port/queue_frames.h"

namespace warpline::stream_port {

/// What a PayloadStage counts. Its thread writes, any thread reads.
struct PayloadCounters {
  Counter made_bytes;    ///< that the lane was told to make in its rings
  Counter filled;        ///< segments whose payload and checksum it was told to put in, those sent again among them
  Counter filled_bytes;  ///< of these
};

/// Frames of a StreamSender between when their headers are written and when a lane has put their payload in: bursts,
/// which are sent in the order of their writing. Belongs to a SendQueue, whose thread makes all calls; none waits,
/// but close().
class PayloadStage {
 public:
  /// Frames that it may hold.
  static constexpr std::uint32_t kInHand = stream::PayloadLane::kSlots * stream::PayloadLane::kFills;

  /// `patience`: a lane that lets bursts wait, and does none, for so long has failed.
  PayloadStage(std::unique_ptr<stream::PayloadLane> lane, Nanos patience);
  ~PayloadStage() { close(); }
  PayloadStage(const PayloadStage&) = delete;
  PayloadStage& operator=(const PayloadStage&) = delete;

  /// Returns the bytes of each connection's ring: no byte is made a ring's length or more behind the oldest one that
  /// the peer has not acknowledged.
  [[nodiscard]] std::uint64_t ring_bytes() const { return lane_->shape().ring_bytes; }
  /// Has the next bytes of a connection made, which are `[offset, offset + length)` of that seeded stream. They may be
  /// offered to the sender at once.
  void make(stream::ConnectionId connection, std::uint64_t stream, std::uint64_t offset, std::uint64_t length);

  /// Writes frames, hands them to the lane, and has those sent that it is through with. True if there was a frame.
  bool send(stream::StreamSender& sender, QueueFrames& frames, Nanos now);
  /// Returns why no payload comes any more, if so. Frames with payload are thrown away from then on.
  [[nodiscard]] const std::optional<Error>& failure() const { return failure_; }
  /// Ends the lane and frees all frames.
  void close();

  [[nodiscard]] const PayloadCounters& counters() const { return counters_; }

 private:
  static constexpr std::uint32_t kNone = ~0U;
  struct Burst {
    std::array<rte_mbuf*, stream::PayloadLane::kFills> frames;
    std::uint32_t count = 0;
    std::uint32_t sent = 0;
    std::uint64_t batch = 0;  ///< batches that must have landed before it may be sent
  };

  [[nodiscard]] bool write_burst(stream::StreamSender& sender, QueueFrames& frames, Nanos now);
  [[nodiscard]] stream::FillOrder fill_order(std::uint8_t* frame, const stream::UnfilledFrame& unfilled);
  void release(QueueFrames& frames);
  void watch(Nanos now);
  [[nodiscard]] bool send_without_payload(stream::StreamSender& sender, QueueFrames& frames, Nanos now);

  std::unique_ptr<stream::PayloadLane> lane_;
  stream::LaneWatch watch_;
  Nanos looked_{};
  std::optional<Error> failure_;
  PayloadCounters counters_;

  std::vector<stream::MakeOrder> makes_;    ///< for the next batch, one a connection
  std::vector<std::uint32_t> make_places_;  ///< among these, by connection, or kNone
  std::vector<std::uint32_t> makers_;       ///< whose they are
  std::array<Burst, stream::PayloadLane::kSlots> bursts_;
  std::uint64_t written_ = 0;   ///< bursts
  std::uint64_t released_ = 0;  ///< of these
  std::uint64_t batches_ = 0;   ///< handed to the lane
};

}  // namespace warpline::stream_port
