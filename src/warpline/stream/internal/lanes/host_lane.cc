// SPDX-License-Identifier: Apache-2.0
#include "warpline/stream/internal/lanes/host_lane.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "warpline/packet/frame_bytes.h"
#include "warpline/packet/headers/ethernet.h"

namespace warpline::stream {

HostLane::HostLane(const LaneView& view) : view_(view) {
  if (view.shape.queue_slots != 0) cursor_ = queues::QueueCursor::begin(view.queues);
}

void HostLane::begin(std::uint64_t sequence, const BurstSlot& slot) {
  sequence_ = static_cast<std::uint32_t>(sequence);
  touched_count_ = 0;
  *slot.result = {};
}

void HostLane::take(std::uint64_t sequence, std::uint32_t count) {
  const BurstSlot slot = slot_of(sequence);
  begin(sequence, slot);
  now_ = slot.order->now;
  carry_out_orders(slot);
  for (std::uint32_t i = 0; i < count; ++i) {
    const bool goes_on = i != 0 && slot.segments[i - 1].more != 0;
    slot.outcomes[i] = goes_on ? kGoesOn : take_frame(slot, i, (slot.checksums_right[i / 32] >> i % 32 & 1) != 0);
    if (slot.outcomes[i] == kForHost) {
      ++slot.result->for_host;
    } else if (slot.outcomes[i] != kGoesOn) {
      ++slot.result->dispositions[slot.outcomes[i]];
    }
  }
  write_records(slot);
}

bool HostLane::take_round() {
  if (round_ - load_acquire(&view_.taken->value) == view_.shape.slots) return false;
  // In this order: what was ordered before a frame was posted is ready when that is seen.
  const std::uint32_t count = cursor_.look(view_.queues, slots_at_once(view_.shape));
  const bool ordered = carry_out_ready_orders();
  if (count == 0 && !ordered) return false;
  const BurstSlot slot = slot_of(round_);
  begin(round_, slot);
  now_ = Nanos{static_cast<std::int64_t>(load_acquire(&view_.now->value))};
  slot.result->orders = order_;
  slot.result->now = now_;
  take_posted(slot, slots_in_one_piece(view_.queues.receive, cursor_.next, count));
  ++round_;
  return true;
}

bool HostLane::carry_out_ready_orders() {
  const std::uint64_t before = order_;
  for (;; ++order_) {
    LaneWord& ready = view_.ready[order_ & (view_.shape.slots - 1)];
    if (load_acquire(&ready.value) != order_ << 32) return order_ != before;
    carry_out_orders(slot_of(order_));
  }
}

/// Takes the frames that begin in the next `count` slots, and tells of the round.
void HostLane::take_posted(BurstSlot slot, std::uint32_t count) {
  const queues::ReceiveQueueView& receive = view_.queues.receive;
  const std::uint64_t begin = cursor_.next;
  slot.segments = receive.at(begin);
  marks_ = receive.marks + (begin & receive.slot_mask);
  std::uint32_t end = 0;
  for (; end < count; end += slot.segments[end].more + 1U) {
    outcomes_[end] = take_frame(slot, end, (marks_[end] & kRightMark) != 0);
    posted_[end] = false;
  }
  write_records(slot);
  store_release(&view_.done[round_ & (view_.shape.slots - 1)].value, round_ << 32);
  view_.queues.transmit.ring(cursor_.sent);
  // Behind the round's word: who sees a slot released finds there what its frame has changed.
  for (std::uint32_t i = 0; i < end;) {
    const std::uint16_t more = slot.segments[i].more;  // the slot may be another frame's as soon as it is released
    receive.release(begin + i, posted_[i] ? Verdict::forward : Verdict::reply,
                    static_cast<std::uint16_t>(outcomes_[i] + 1));
    i += more + 1U;
  }
  cursor_.next = begin + end;
}

/// Writes the acknowledgement over the connection's last frame, whose bytes are in their place.
void HostLane::post(const BurstSlot& slot, const LaneConnection& connection, const WrittenReply& reply) {
  const std::uint32_t i = connection.frame - 1;
  const auto length = static_cast<std::uint16_t>(std::max<std::uint32_t>(reply.length, kShortestFrame));
  std::memcpy(slot.segments[i].data, reply.bytes, reply.length);
  std::memset(slot.segments[i].data + reply.length, 0, length - reply.length);
  view_.queues.transmit.at(cursor_.sent++) = queues::TransmitDescriptor(cursor_.next + i, length);
  posted_[i] = true;
}

void HostLane::carry_out_orders(const BurstSlot& slot) {
  const std::uint32_t changes = std::min(slot.order->changes, view_.shape.changes);
  for (std::uint32_t i = 0; i < changes; ++i) carry_out(view_, slot.changes[i]);
  const std::uint32_t tells = std::min(slot.order->tells, view_.shape.connections);
  for (std::uint32_t i = 0; i < tells; ++i) {
    const WindowTell& tell = slot.tells[i];
    view_.connections[tell.connection].learn(tell);
  }
}

bool HostLane::is_for_us(FrameRef frame) const {
  if (frame.head_length() < packet::EthernetView::kHeaderLength) return false;
  const packet::EthernetView ethernet(frame.data());
  return (ethernet.source()[0] & 1) == 0 &&
         std::memcmp(ethernet.destination(), view_.station.own.mac.bytes.data(), 6) == 0;
}

std::uint8_t HostLane::take_frame(const BurstSlot& slot, std::uint32_t i, bool checksums_are_right) {
  const FrameRef frame = frame_at(slot.segments + i);
  SynOptions offered;
  const SegmentReading reading = read_segment(frame, checksums_are_right, offered);
  if (!is_for_us(frame)) return kForHost;
  if (reading.disposition == Disposition::wrong_checksum) return static_cast<std::uint8_t>(reading.disposition);
  const bool special = (reading.flags & (packet::kTcpSyn | packet::kTcpRst)) != 0;
  if (reading.disposition != Disposition::stored || special) return kForHost;
  const std::uint32_t index = places().find(reading.key, key_of());
  if (index == KeyPlaces::kNone) return kForHost;
  LaneConnection& connection = view_.connections[index];
  if (connection.burst != sequence_) {
    connection.burst = sequence_;
    connection.notes = {};
    connection.frame = 0;
    touched_[touched_count_++] = index;
  }
  if (marks_ != nullptr && (marks_[i] & kRoomMark) != 0) connection.frame = i + 1;
  return static_cast<std::uint8_t>(take_bytes(slot, connection, frame, reading));
}

Disposition HostLane::take_bytes(const BurstSlot& slot, LaneConnection& connection, FrameRef frame,
                                 const SegmentReading& reading) {
  if (is_forgotten(connection.last_heard, now_)) connection.state.timestamp = reading.timestamp;
  const Acceptance acceptance = take_segment(connection.state, reading, connection.notes);
  if (connection.notes.heard) connection.last_heard = now_;
  const std::uint64_t ring_bytes = view_.shape.ring_bytes;
  std::uint8_t* const ring = view_.rings + 2 * ring_bytes * static_cast<std::uint64_t>(&connection - view_.connections);
  for (std::uint32_t k = 0; k < acceptance.count; ++k) {
    const SegmentPiece& piece = acceptance.pieces[k];
    if (!view_.station.discards) [[likely]] {
      // The parser has seen that the payload lies in the frame.
      static_cast<void>(packet::gather(frame, reading.payload_offset + piece.skip, piece.length,
                                       ring + (piece.offset & (ring_bytes - 1))));
    }
    slot.result->bytes += piece.length;
  }
  return acceptance.disposition;
}

void HostLane::write_records(const BurstSlot& slot) {
  for (std::uint32_t i = 0; i < touched_count_; ++i) {
    LaneConnection& connection = view_.connections[touched_[i]];
    ReceiveState& state = connection.state;
    // The bytes are there: consumers that look at this word read them behind it.
    store_release(&view_.board.places[touched_[i]].reach, LaneView::reach_word(state));
    ConnectionRecord& record = slot.records[i];
    const std::size_t bytes = offsetof(ReceiveState, ranges) + ReceivedRanges::bytes(state.ranges.count());
    std::memcpy(static_cast<void*>(&record.state), &state, bytes);
    const bool writes = view_.station.acknowledges && (marks_ == nullptr || connection.frame != 0);
    connection.report(view_.station, touched_[i], now_, writes, record, record.reply);
    if (marks_ != nullptr && record.written) post(slot, connection, record.reply);
  }
  slot.result->records = touched_count_;
}

}  // namespace warpline::stream
