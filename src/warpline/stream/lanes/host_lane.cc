// SPDX-License-Identifier: Apache-2.0
#include "warpline/stream/lanes/host_lane.h"

#include <algorithm>
#include <cstring>

#include "warpline/packet/frame_bytes.h"
#include "warpline/packet/headers/ethernet.h"

namespace warpline::stream {

void HostLane::take(std::uint64_t sequence, std::uint32_t count) {
  const BurstSlot slot = SlotLayout(view_.shape).slot(view_.slots, sequence);
  sequence_ = static_cast<std::uint32_t>(sequence);
  touched_count_ = 0;
  *slot.result = {};
  carry_out_orders(slot);
  for (std::uint32_t i = 0; i < count; ++i) {
    slot.outcomes[i] = i != 0 && slot.segments[i - 1].more != 0 ? kGoesOn : take_frame(slot, i);
    if (slot.outcomes[i] == kForHost) {
      ++slot.result->for_host;
    } else if (slot.outcomes[i] != kGoesOn) {
      ++slot.result->dispositions[slot.outcomes[i]];
    }
  }
  write_records(slot);
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

std::uint8_t HostLane::take_frame(const BurstSlot& slot, std::uint32_t i) {
  const FrameRef frame = frame_at(slot.segments + i);
  SynOptions offered;
  const SegmentReading reading = read_segment(frame, (slot.checksums_right[i / 32] >> i % 32 & 1) != 0, offered);
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
    touched_[touched_count_++] = index;
  }
  return static_cast<std::uint8_t>(take_bytes(slot, connection, frame, reading));
}

Disposition HostLane::take_bytes(const BurstSlot& slot, LaneConnection& connection, FrameRef frame,
                                 const SegmentReading& reading) {
  if (is_forgotten(connection.last_heard, slot.order->now)) connection.state.timestamp = reading.timestamp;
  const Acceptance acceptance = take_segment(connection.state, reading, connection.notes);
  if (connection.notes.heard) connection.last_heard = slot.order->now;
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
    connection.report(view_.station, touched_[i], slot.order->now, record, record.reply);
  }
  slot.result->records = touched_count_;
}

}  // namespace warpline::stream
