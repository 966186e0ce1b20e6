// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "warpline/base/prefetch.h"
#include "warpline/packet/frame_bytes.h"
#include "warpline/packet/headers/ethernet.h"
#include "warpline/stream/internal/address_words.h"
#include "warpline/stream/internal/receiver_core.h"
#include "warpline/stream/internal/take_segment.h"

namespace warpline::stream {
void ReceiverCore::receive(FrameRef frame, bool checksums_are_right, Nanos now) {
  // Without a lane every frame has an outcome at once.
  if (const Outcome outcome = take(frame, checksums_are_right, now)) count(*outcome);
}

ReceiverCore::Outcome ReceiverCore::take(FrameRef frame, bool checksums_are_right, Nanos now) {
  if (frame.head_length() < packet::EthernetView::kHeaderLength) return Disposition::malformed;
  const packet::EthernetView ethernet(frame.data());
  const bool from_a_station = (ethernet.source()[0] & 1) == 0;
  if (!from_a_station || std::memcmp(ethernet.destination(), own_.mac.bytes.data(), 6) != 0) {
    return Disposition::unrelated;
  }
  SynOptions offered;
  const SegmentReading segment = read_segment(frame, checksums_are_right, offered);
  if (segment.disposition != Disposition::stored) return segment.disposition;
  if (!is_another_host(segment.key.remote, segment.key.local)) return Disposition::unrelated;
  const bool for_us = segment.key.local[0] == station_.local[0] && segment.key.local[1] == station_.local[1];
  if (!for_us) return Disposition::unrelated;
  Connection* const connection = table_.find(segment.key);
  if (connection == nullptr) return take_stranger(segment, offered, frame, now);
  if ((segment.flags & packet::kTcpRst) != 0) return take_reset(*connection, segment, now);
  if ((segment.flags & packet::kTcpSyn) != 0) return take_syn_again(*connection, segment, frame, now);
  if (connection->phase == Phase::syn_received) return finish_handshake(*connection, segment, frame, now);
  return deliver(*connection, segment, frame, now);
}

ReceiverCore::Outcome ReceiverCore::deliver(Connection& connection, const SegmentReading& segment, FrameRef frame,
                                            Nanos now) {
  if (is_the_lanes(connection)) {
    connection.again_until = link_->next_again();
    return std::nullopt;
  }
  ReceiveState& state = connection.receive;
  if (is_forgotten(connection.last_heard, now)) state.timestamp = segment.timestamp;
  const ReceiveState::Reach before = state.reach();
  std::uint8_t* to = nullptr;
  if (stores_) {
    // Most segments are the next one. Of many connections the processor cannot guess where their bytes go.
    to = ring(table_.index_of(connection));
    prefetch_bytes<true>(to + (state.next & (settings_.ring_bytes - 1)), std::min(segment.payload_length, kPrefetched));
  }
  BurstNotes notes;
  const Acceptance acceptance = take_segment(state, segment, notes);
  // With a lane there are none: what comes here is of connections whose bytes have all come.
  for (std::uint32_t i = 0; i < acceptance.count; ++i) {
    const SegmentPiece& piece = acceptance.pieces[i];
    if (to != nullptr) [[likely]] {
      // The parser has seen that the payload lies in the frame.
      static_cast<void>(packet::gather(frame, segment.payload_offset + piece.skip, piece.length,
                                       to + (piece.offset & (settings_.ring_bytes - 1))));
    }
    counters_.bytes.add(piece.length);
  }
  note(connection, notes, before, now, now);
  if (notes.heard && connection.phase == Phase::last_ack && segment.acknowledgement == connection.send_next()) {
    remove(connection);
    return Disposition::handled;
  }
  return acceptance.disposition;
}

/// Does for a connection what its segments since `before` mean, the last of which came at `heard`.
void ReceiverCore::note(Connection& connection, const BurstNotes& notes, const ReceiveState::Reach& before, Nanos heard,
                        Nanos now) {
  for (std::uint32_t i = 0; i < notes.challenges; ++i) challenge(connection, now);
  if (notes.touched) touch(connection);
  if (!notes.heard) return;
  connection.last_heard = heard;
  connection.probes = 0;
  if (notes.urgent_end > connection.urgent_end) {
    connection.urgent_end = notes.urgent_end;
    want_event(connection);
  }
  const ReceiveState::Reach after = connection.receive.reach();
  if (after.end_reached && !before.end_reached) {
    connection.state = ConnectionState::finished;
    counters_.finished.add(1);
  }
  if (after != before) want_event(connection);
}

ReceiverCore::Outcome ReceiverCore::take_reset(Connection& connection, const SegmentReading& segment, Nanos now) {
  if (is_the_lanes(connection) && connection.again_until > link_->again_done()) {
    // Segments before it are still on their way to the lane: where the stream stands shows behind them. Nobody waits
    // for a reset: two that waited for each other would go around without an end.
    return std::nullopt;
  }
  const ReceiveState& state = connection.receive;
  const std::uint64_t expected = state.next + (state.end_reached ? 1 : 0);
  const std::int64_t offset = offset_near(state.next, segment.sequence, state.initial);
  if (offset != static_cast<std::int64_t>(expected)) {
    const bool in_window =
        offset > static_cast<std::int64_t>(expected) && offset < static_cast<std::int64_t>(state.window_end);
    if (in_window) challenge(connection, now);
    return Disposition::blind_reset;
  }
  if (connection.phase == Phase::established && connection.state == ConnectionState::open) {
    counters_.reset.add(1);
    end_by(connection, ConnectionState::reset);
  } else if (connection.phase == Phase::established) {
    end_by(connection, connection.state);  // all bytes came: nothing is lost but the farewell
  } else {
    remove(connection);
  }
  return Disposition::handled;
}

void ReceiverCore::touch(Connection& connection) {
  if (connection.touched) return;
  connection.touched = true;
  touched_.push(table_.index_of(connection));
}

void ReceiverCore::end_burst(Nanos now) {
  if (link_) {
    submit_burst(now);
  } else {
    acknowledge_touched(now);
  }
}

void ReceiverCore::acknowledge_touched(Nanos now) {
  while (!touched_.empty()) {
    Connection& connection = table_[touched_.pop()];
    if (!connection.touched) continue;
    connection.touched = false;
    // A reset, or the acknowledgement of our FIN, may have ended it in the same burst.
    if (!connection.is_linked()) continue;
    const ReceiveState& state = connection.receive;
    if (wants_acknowledgement(state)) {
      queue_reply(connection);
    } else if (state.next != state.acknowledged && connection.acknowledge_at == kNever) {
      connection.acknowledge_at = Nanos{now.value + settings_.delayed_acknowledgement.value};
      arm(connection, connection.acknowledge_at);
    }
  }
}

}  // namespace warpline::stream
