// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "warpline/stream/internal/send/sender_core.h"

namespace warpline::stream {
namespace {

constexpr std::uint32_t kDuplicateThreshold = 3;     // RFC 5681, RFC 8985
constexpr std::uint8_t kReorderingPersistence = 16;  // recoveries: RFC 8985, 6.2, step 4
constexpr std::uint8_t kMostReorderingSteps = 255;

}  // namespace

/// `acknowledged` lies between SND.UNA and SND.NXT. `brings_more`: bytes, a FIN or another window, so that it is no
/// duplicate acknowledgement (RFC 5681, section 2).
void SenderCore::take_acknowledgement(SendConnection& connection, const SegmentReading& segment,
                                      const PeerHeader& header, std::uint64_t acknowledged, bool brings_more,
                                      Nanos now) {
  const std::uint64_t moved = acknowledged - connection.acknowledged;
  Delivery delivery;
  if (moved != 0) {
    connection.segments.acknowledge(
        acknowledged, [&](const SentSegment& sent) { note_delivered(connection, sent, segment, delivery, now); });
    connection.acknowledged = acknowledged;
    connection.progress_at = now;
    connection.attempts = 0;
    connection.override_small = false;
    connection.duplicates = 0;
    connection.left_by_duplicates -= std::min(connection.left_by_duplicates, moved);
    if (connection.fin_sent && acknowledged == connection.offered + 1) connection.fin_acknowledged = true;
    counters_.acknowledged.add(moved - (connection.fin_acknowledged ? 1 : 0));
    if (acknowledged > connection.furthest) connection.furthest = acknowledged;
    want_event(connection);
  }
  if (connection.selective && header.block_count != 0) take_blocks(connection, segment, header, delivery, now);
  measure(connection, segment, delivery, moved != 0, now);
  conclude_tail_probe(connection, delivery);
  const Recovery recovering = connection.recovery;
  if (recovering != Recovery::none && acknowledged >= connection.recovery_end) {
    connection.recovery = Recovery::none;
    connection.left_by_duplicates = 0;
  }
  bool lost = false;
  if (connection.selective) {
    if (delivery.bytes != 0) lost = detect_losses(connection, now);
  } else if (moved == 0) {
    if (!brings_more && !connection.segments.empty()) count_duplicate(connection);
  } else if (connection.recovery == Recovery::fast && !connection.segments.empty()) {
    // What follows the hole that was filled is lost, too (RFC 6582, 3.2, step 3).
    const std::uint32_t oldest = connection.segments.oldest();
    if (connection.segments[oldest].fate == SegmentFate::flying) connection.segments.lose(oldest);
  }
  if (lost) begin_recovery(connection);
  if (moved != 0 && connection.recovery != Recovery::fast && connection.window_limited) {
    connection.congestion.on_acknowledged(moved, now, connection.round_trip.smoothed());
  }
  if (connection.segments.empty()) {
    if (moved != 0) connection.retransmit_at = kNever;
    connection.tail_probe_at = kNever;
    connection.reordering_at = kNever;
  } else if (moved != 0) {
    connection.retransmit_at = Nanos{now.value + timeout_of(connection).value};
    watch_tail(connection, now);
  }
  if (moved != 0 || delivery.bytes != 0 || connection.left_by_duplicates != 0) want_turn(connection);
  arm(connection);
}

/// RFC 8985, 6.2, steps 1 to 3, for a segment that arrived.
void SenderCore::note_delivered(SendConnection& connection, const SentSegment& segment, const SegmentReading& by,
                                Delivery& delivery, Nanos now) const {
  if (segment.fate == SegmentFate::stored) return;
  delivery.bytes += segment.length;
  if (segment.again || segment.fate == SegmentFate::lost) delivery.ambiguous = true;
  const std::int64_t round_trip = std::max<std::int64_t>(now.value - segment.sent_at, 1);
  if (!segment.again) {
    if (delivery.round_trip.value == 0) delivery.round_trip = Nanos{round_trip};
    if (segment.end() < connection.furthest) connection.reordered = true;
  }
  connection.furthest = std::max(connection.furthest, segment.end());
  if (segment.again) {
    // The one that was sent first may be what arrived.
    const bool older = connection.timestamps && by.has_timestamp &&
                       serial_distance(timestamp_at(Nanos{segment.sent_at}), by.timestamp_echo) < 0;
    if (older || round_trip < connection.round_trip.min().value) return;
  }
  connection.delivered_round_trip = Nanos{round_trip};
  const Nanos sent_at{segment.sent_at};
  if (sent_at > connection.delivered_sent_at ||
      (sent_at == connection.delivered_sent_at && segment.end() > connection.delivered_end)) {
    connection.delivered_sent_at = sent_at;
    connection.delivered_end = segment.end();
  }
}

/// RFC 2018 and 2883. What a block repeats of the last acknowledgement is not gone through again.
void SenderCore::take_blocks(SendConnection& connection, const SegmentReading& segment, const PeerHeader& header,
                             Delivery& delivery, Nanos now) const {
  ByteRange entered[PeerHeader::kMostBlocks] = {};
  const auto range_of = [&](std::uint32_t i) {
    return std::pair{offset_near(connection.acknowledged, header.blocks[i].begin, connection.initial + 1),
                     offset_near(connection.acknowledged, header.blocks[i].end, connection.initial + 1)};
  };
  const auto una = static_cast<std::int64_t>(connection.acknowledged);
  for (std::uint32_t i = 0; i < header.block_count; ++i) {
    const auto [first, last] = range_of(i);
    if (last <= first || last > static_cast<std::int64_t>(connection.next)) continue;
    if (i == 0) {
      bool twice = last <= una;
      if (!twice && header.block_count > 1) {
        const auto [outer_first, outer_last] = range_of(1);
        twice = outer_first <= first && last <= outer_last;
      }
      if (twice) {
        delivery.told_duplicate = true;
        continue;
      }
    }
    if (first < una) continue;
    ByteRange fresh{static_cast<std::uint64_t>(first), static_cast<std::uint64_t>(last)};
    const std::uint64_t begin = fresh.begin;
    for (const ByteRange& known : connection.known_stored) {
      if (known.begin <= fresh.begin && fresh.begin < known.end) fresh.begin = known.end;
    }
    if (fresh.begin < fresh.end) {
      fresh.begin = connection.segments.store(fresh.begin, fresh.end, [&](const SentSegment& sent) {
        note_delivered(connection, sent, segment, delivery, now);
      });
    }
    entered[i] = {begin, fresh.begin};
  }
  std::copy(std::begin(entered), std::end(entered), std::begin(connection.known_stored));
  if (!delivery.told_duplicate) return;
  // RFC 8985, 6.2, step 4: what was sent again in vain had only been late.
  if (connection.acknowledged < connection.reordering_round_end) return;
  connection.reordering_round_end = connection.next;
  if (connection.reordering_steps < kMostReorderingSteps) ++connection.reordering_steps;
  connection.reordering_persist = kReorderingPersistence;
}

/// RFC 6298, section 3: an acknowledgement that may come from a retransmission gives no sample, since the time of any
/// segment that it covers may contain the wait for that. Its timestamp does if SND.UNA advances, in milliseconds (RFC
/// 7323, 4.1).
void SenderCore::measure(SendConnection& connection, const SegmentReading& segment, const Delivery& delivery,
                         bool advances, Nanos now) {
  constexpr std::uint32_t kMinute = 60'000;
  if (delivery.told_duplicate) counters_.duplicates_told.add(1);
  if (delivery.bytes == 0) return;
  if (delivery.round_trip.value != 0 && !delivery.ambiguous) {
    connection.round_trip.sample(delivery.round_trip);
    counters_.round_trips.record(static_cast<std::uint64_t>(delivery.round_trip.value));
  } else if (advances && connection.timestamps && segment.timestamp_echo != 0) {
    const std::uint32_t elapsed = timestamp_at(now) - segment.timestamp_echo;
    if (elapsed < kMinute) connection.round_trip.sample(Nanos{std::int64_t{elapsed} * 1'000'000 + 1});
  }
}

/// Without SACK: each says that a segment has left the network (RFC 5681, 3.2; RFC 6582).
void SenderCore::count_duplicate(SendConnection& connection) {
  ++connection.duplicates;
  connection.left_by_duplicates += connection.segment_bytes;
  if (connection.duplicates != kDuplicateThreshold || connection.recovery != Recovery::none) return;
  const std::uint32_t oldest = connection.segments.oldest();
  if (connection.segments[oldest].fate != SegmentFate::flying) return;
  connection.segments.lose(oldest);
  begin_recovery(connection);
}

/// RFC 8985, 7.4.2: a probe that filled a hole hid a loss.
void SenderCore::conclude_tail_probe(SendConnection& connection, const Delivery& delivery) {
  if (!connection.tail_probed || connection.acknowledged < connection.tail_probe_end) return;
  const bool waits = connection.tail_probe_was_again && !delivery.told_duplicate &&
                     connection.acknowledged == connection.tail_probe_end;
  if (waits && !connection.segments.empty()) return;
  connection.tail_probed = false;
  const bool hidden = connection.tail_probe_was_again && !delivery.told_duplicate &&
                      connection.acknowledged > connection.tail_probe_end;
  if (hidden && connection.recovery == Recovery::none) connection.congestion.on_loss();
}

/// RFC 8985, 6.2, step 4.
Nanos SenderCore::reordering_window(const SendConnection& connection) const {
  if (!connection.reordered && (connection.recovery != Recovery::none ||
                                connection.segments.count(SegmentFate::stored) >= kDuplicateThreshold)) {
    return Nanos{0};
  }
  const std::int64_t steps = connection.reordering_steps * (connection.round_trip.min().value / 4);
  return Nanos{std::min(steps, connection.round_trip.smoothed().value)};
}

/// RFC 8985, 6.2, step 5: what was sent before something that arrived, and long enough ago, is lost. True if there is
/// such a segment.
bool SenderCore::detect_losses(SendConnection& connection, Nanos now) {
  const std::int64_t patience = connection.delivered_round_trip.value + reordering_window(connection).value;
  bool found = false;
  connection.reordering_at = kNever;
  std::uint32_t place = connection.segments.earliest_sent();
  while (place != SentSegments::kNone) {
    const SentSegment& segment = connection.segments[place];
    const std::uint32_t later = segment.later;
    if (segment.sent_at > connection.delivered_sent_at.value) break;
    const bool before =
        segment.sent_at < connection.delivered_sent_at.value || segment.end() < connection.delivered_end;
    if (before) {
      if (segment.sent_at + patience > now.value) {
        connection.reordering_at = Nanos{segment.sent_at + patience};
        break;
      }
      connection.segments.lose(place);
      found = true;
    }
    place = later;
  }
  return found;
}

void SenderCore::begin_recovery(SendConnection& connection) {
  want_turn(connection);
  if (connection.recovery != Recovery::none) return;
  connection.recovery = Recovery::fast;
  connection.recovery_end = connection.next;
  connection.tail_probe_at = kNever;
  connection.congestion.on_loss();
  counters_.recoveries.add(1);
  if (connection.reordering_persist == 0) return;
  --connection.reordering_persist;
  if (connection.reordering_persist == 0) connection.reordering_steps = 1;
}

/// RFC 6298, section 5; RFC 8985, 6.3. If the peer has thrown away what it had said to have (RFC 2018, section 8), the
/// oldest segment shows that.
void SenderCore::time_out(SendConnection& connection, Nanos now) {
  counters_.timeouts.add(1);
  const bool reneged = connection.segments[connection.segments.oldest()].fate == SegmentFate::stored;
  connection.congestion.on_timeout(connection.attempts == 0);
  connection.segments.lose_all(reneged);
  if (reneged) std::fill(std::begin(connection.known_stored), std::end(connection.known_stored), ByteRange{});
  connection.recovery = Recovery::timeout;
  connection.recovery_end = connection.next;
  connection.tail_probed = false;
  connection.left_by_duplicates = 0;
  connection.duplicates = 0;
  connection.tail_probe_at = kNever;
  connection.reordering_at = kNever;
  if (connection.attempts < 255) ++connection.attempts;
  connection.retransmit_at = Nanos{now.value + timeout_of(connection).value};
  want_turn(connection);
}

}  // namespace warpline::stream
