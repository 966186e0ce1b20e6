// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "warpline/stream/internal/lanes/lane_burst.cuh"

namespace warpline::stream {

/// What a CTA keeps of its queues and the round in hand, in shared memory.
struct QueueRound {
  LaneBurst burst;
  queues::QueueCursor cursor;  ///< thread 0's
  std::uint64_t round;         ///< its sequence
  std::uint64_t order;         ///< sequence of the next one
  std::uint64_t taken;         ///< rounds before this sequence have been taken in, as last seen
  std::uint64_t now;           ///< ns
  std::uint32_t count;         ///< slots in hand
  std::uint32_t more;          ///< slots behind them that belong to the last frame
  std::uint32_t sends;         ///< frames that are to be sent
  bool ordered;                ///< the next order is ready
  bool ends;                   ///< the lane is to end
  std::uint8_t outcomes[LaneShape::kMostBurst];
  bool posted[LaneShape::kMostBurst];  ///< of each descriptor: an acknowledgement lies in its frame
};

/// A round of a lane with queues, by all threads of the CTA: what HostLane::take_round() does.
class QueueRoundWork : private LaneBurstWork {
 public:
  __device__ QueueRoundWork(const LaneView& lane, QueueRound& round)
      : LaneBurstWork(lane, round.burst, round.round, round.count), round_(round), begin_(round.cursor.next) {
    slot_.segments = lane.queues.receive.at(begin_);
    slot_.outcomes = round.outcomes;
    marks_ = lane.queues.receive.marks + (begin_ & lane.queues.receive.slot_mask);
  }

  /// Carries out an order that is ready. Ends with a barrier.
  static __device__ void carry_out_order(const LaneView& lane, QueueRound& round) {
    LaneBurstWork work(lane, round.burst, round.order, 0);
    work.take_order();
  }

  /// Takes the frames that begin in the slots in hand, and tells of the round. Ends with a barrier.
  __device__ void take() {
    begin();
    const std::uint32_t i = threadIdx.x;
    Segment mine{nullptr, 0, 0, Verdict::forward};
    if (i < count_) mine = slot_.segments[i];
    const std::uint8_t marks = i < count_ ? marks_[i] : 0;
    if (i == 0) {
      round_.now = load_acquire(&lane_.now->value);
      round_.more = 0;
      round_.sends = 0;
    }
    __syncthreads();
    order_.now = Nanos{static_cast<std::int64_t>(round_.now)};
    if (i + 1 == count_) round_.more = mine.more;
    round_.posted[i] = false;
    __syncthreads();
    const std::uint32_t in_hand = count_;
    count_ += round_.more;
    if (i >= in_hand && i < count_) mine = slot_.segments[i];
    read_frames(mine, (marks & kRightMark) != 0 ? 1U << i % 32 : 0);
    place_bytes();
    fence_aliases();  // rings are mapped twice, and read by either address
    __threadfence();
    __syncthreads();
    publish_reach();
    // The last of a connection's frames is the one that its acknowledgement is written over: its bytes are copied.
    const bool written_to = i < in_hand && (marks & kRoomMark) != 0 && burst_.connection[i] != KeyPlaces::kNone;
    if (written_to) atomicMax(&lane_.connections[burst_.connection[i]].frame, i + 1);
    __syncthreads();
    write_round();
    __syncthreads();
    if (i == 0) {
      store_release(&lane_.done[round_.round & (lane_.shape.slots - 1)].value, round_.round << 32);
      round_.cursor.next += count_;
      round_.cursor.sent += round_.sends;
      if (round_.sends != 0) lane_.queues.transmit.ring(round_.cursor.sent);
      ++round_.round;
    }
    __syncthreads();
    // Behind the round's word: who sees a slot released finds there what its frame has changed.
    if (i < count_ && round_.outcomes[i] != kGoesOn) {
      lane_.queues.receive.release(begin_ + i, round_.posted[i] ? Verdict::forward : Verdict::reply,
                                   static_cast<std::uint16_t>(round_.outcomes[i] + 1));
    }
    __syncthreads();
  }

 private:
  /// A warp a record; then the result.
  __device__ void write_round() {
    const unsigned lane = threadIdx.x % kWarp;
    const unsigned warps = blockDim.x / kWarp;
    for (std::uint32_t i = threadIdx.x / kWarp; i < burst_.touched_count; i += warps) {
      const std::uint32_t frame = lane_.connections[burst_.touched[i]].frame;
      const WrittenReply& reply = write_record(i, lane_.station.acknowledges && frame != 0);
      if (reply.length != 0) post(reply, frame - 1);
      if (lane == 0 && reply.length != 0) slot_.records[i].reply.announced = reply.announced;
      __syncwarp();
    }
    if (threadIdx.x != 0) return;
    slot_.result->orders = round_.order;
    slot_.result->now = order_.now;
    slot_.result->records = burst_.touched_count;
    slot_.result->bytes = burst_.bytes;
  }

  /// By one warp: writes the acknowledgement over a frame and lists it.
  __device__ void post(const WrittenReply& reply, std::uint32_t frame) {
    const unsigned lane = threadIdx.x % kWarp;
    const std::uint32_t length = max(std::uint32_t{reply.length}, kShortestFrame);
    std::uint8_t* const to = lane_.segments[frame].data;
    for (std::uint32_t k = lane; k < length; k += kWarp) to[k] = k < reply.length ? reply.bytes[k] : 0;
    if (lane != 0) return;
    round_.posted[frame] = true;
    lane_.queues.transmit.at(round_.cursor.sent + atomicAdd(&round_.sends, 1)) =
        queues::TransmitDescriptor(begin_ + frame, static_cast<std::uint16_t>(length));
  }

  QueueRound& round_;
  std::uint64_t begin_;  ///< sequence of the first slot in hand
  const std::uint8_t* marks_;
};

}  // namespace warpline::stream
