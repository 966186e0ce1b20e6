// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "warpline/base/host_device.h"
#include "warpline/packet/headers/tcp.h"
#include "warpline/stream/disposition.h"
#include "warpline/stream/internal/receive_state.h"
#include "warpline/stream/internal/segment_reading.h"
#include "warpline/stream/internal/sequence.h"

namespace warpline::stream {

/// Bytes of a segment that are to be copied to their place.
struct SegmentPiece {
  std::uint64_t offset = 0;  ///< of the stream
  std::uint32_t skip = 0;    ///< bytes of the payload before it
  std::uint32_t length = 0;  ///< bytes
};

/// What is to be done with a segment. No two pieces, of this or another segment, are the same byte of a stream.
struct Acceptance {
  /// A segment that covers more gaps than this is cut behind the last of them, as if the rest had been lost.
  static constexpr std::uint32_t kMaxPieces = 4;

  Disposition disposition = Disposition::stored;
  std::uint32_t count = 0;  ///< of pieces
  SegmentPiece pieces[kMaxPieces];
};

/// Segments of one connection that came one after the other, each of which begins where the one before it ended. All of
/// them are plain() ones, and each joins() the one before it.
struct SegmentRun {
  std::uint32_t sequence = 0;    ///< of the first byte
  std::uint32_t timestamp = 0;   ///< of the first segment
  std::uint32_t length = 0;      ///< bytes of all segments, below 2^31
  std::uint32_t largest = 0;     ///< bytes of the largest segment
  std::uint32_t last_count = 0;  ///< how many of `last_begins` there are: as many as there are segments, if they fit
  std::uint32_t
      last_begins[ReceiveState::kRecent]{};  ///< where the last segments begin, from the run's begin; latest first
};

/// Decides on the segments of one connection (RFC 9293, 3.10.7.4, from the sequence number's check on), for host and
/// device. SYN and RST are for who owns the connection: they do not come here.
class SegmentAcceptor {
 public:
  WARPLINE_HD explicit SegmentAcceptor(ReceiveState& state) : state_(state) {}

  /// Decides, and enters what is to be copied as arrived: the caller copies before anybody is told of `next`.
  [[nodiscard]] WARPLINE_HD Acceptance accept(const SegmentFields& segment) {
    if (state_.timestamps) {
      if (!segment.has_timestamp) return {Disposition::no_timestamp, 0, {}};
      if (serial_distance(state_.timestamp, segment.timestamp) < 0) return refuse(Disposition::old_timestamp);
    }
    const std::int64_t begin = offset_near(state_.next, segment.sequence, state_.initial);
    const std::int64_t end = begin + segment.payload_length;
    if (const Disposition outside = check_window(begin, end, has(segment, packet::kTcpFin)); is_drop(outside)) {
      if (outside == Disposition::duplicate) note_duplicate(begin, end);
      return refuse(outside);
    }
    if (!has(segment, packet::kTcpAck)) return {Disposition::no_acknowledgement, 0, {}};
    if (segment.acknowledgement - state_.oldest_acknowledgement >
        state_.newest_acknowledgement - state_.oldest_acknowledgement) {
      return refuse(Disposition::wrong_acknowledgement);
    }
    if (state_.timestamps && begin <= static_cast<std::int64_t>(state_.acknowledged)) {
      state_.timestamp = segment.timestamp;
    }
    if (has(segment, packet::kTcpFin) && !take_end(end)) return refuse(Disposition::behind_end);
    const Acceptance acceptance = take_bytes(begin, end);
    const bool ends = state_.next == state_.end && !state_.end_reached;
    state_.end_reached |= ends;
    // The end may have been told before: bytes up to it close a gap, too.
    if (ends || has(segment, packet::kTcpFin)) state_.acknowledge_now = true;
    return acceptance;
  }

  /// Whether a segment may be part of a run: nothing but bytes, with an acknowledgement that is believed.
  [[nodiscard]] WARPLINE_HD static bool plain(const ReceiveState& state, const SegmentFields& segment) {
    return segment.payload_length != 0 && (segment.flags & kSpecialFlags) == packet::kTcpAck &&
           (segment.has_timestamp || !state.timestamps) &&
           segment.acknowledgement - state.oldest_acknowledgement <=
               state.newest_acknowledgement - state.oldest_acknowledgement;
  }

  /// Whether a plain segment goes on where the one before it ended, with a timestamp that follows on that one's.
  [[nodiscard]] WARPLINE_HD static bool joins(const ReceiveState& state, const SegmentFields& before,
                                              const SegmentFields& segment) {
    if (before.sequence + before.payload_length != segment.sequence) return false;
    return !state.timestamps || segment.timestamp - before.timestamp < kTimestampStep;
  }

  /// Accepts a run of at most kLongestRun segments as if accept() had had one after the other: all of them are
  /// `stored`, whole. False, and nothing changed, where that is not so, or is not plain to see.
  [[nodiscard]] WARPLINE_HD bool accept_run(const SegmentRun& run) {
    if (state_.end != ReceiveState::kNoEnd) return false;
    if (state_.timestamps && run.timestamp - state_.timestamp >= kTimestampStart) return false;
    const std::int64_t offset = offset_near(state_.next, run.sequence, state_.initial);
    if (offset < static_cast<std::int64_t>(state_.next)) return false;
    const auto begin = static_cast<std::uint64_t>(offset);
    const ByteRange taken{begin, begin + run.length};
    if (taken.end > state_.window_end) return false;
    ReceivedRanges& ranges = state_.ranges;
    const bool had_holes = ranges.count() != 0;
    if (begin == state_.next) {
      if (had_holes && ranges[0].begin < taken.end) return false;
      if (state_.timestamps && begin == state_.acknowledged) state_.timestamp = run.timestamp;
      state_.next = had_holes ? ranges.absorb_up_to(taken.end) : taken.end;
    } else {
      const std::uint32_t before = ranges.first_reaching(begin);
      const bool grows = before < ranges.count() && ranges[before].begin < begin;
      if (grows && ranges[before].end != begin) return false;
      const std::uint32_t behind = before + (grows ? 1 : 0);
      if (behind < ranges.count() && ranges[behind].begin < taken.end) return false;
      if (!grows && ranges.count() == ReceivedRanges::kMax) return false;
      (void)ranges.insert(taken);
      for (std::uint32_t i = run.last_count; i != 0; --i) note_recent(begin + run.last_begins[i - 1]);
    }
    if (run.largest > state_.largest) state_.largest = run.largest;
    if (had_holes || ranges.count() != 0 || !state_.duplicate.empty()) state_.acknowledge_now = true;
    return true;
  }

  static constexpr std::uint32_t kLongestRun = 64;

 private:
  static constexpr std::uint8_t kSpecialFlags =
      packet::kTcpAck | packet::kTcpFin | packet::kTcpSyn | packet::kTcpRst | packet::kTcpUrg;
  // The timestamps of a run are none older than that of the state, if its first lies so far behind that one at most,
  // and each other one so far behind the one before it: the sum stays below 2^31.
  static constexpr std::uint32_t kTimestampStart = 1U << 30;
  static constexpr std::uint32_t kTimestampStep = (1U << 30) / kLongestRun;

  [[nodiscard]] WARPLINE_HD static bool has(const SegmentFields& segment, std::uint8_t flag) {
    return (segment.flags & flag) != 0;
  }

  /// Who sends what is refused learns by an acknowledgement what is awaited.
  [[nodiscard]] WARPLINE_HD Acceptance refuse(Disposition disposition) {
    state_.acknowledge_now = true;
    return {disposition, 0, {}};
  }

  /// A FIN takes no place in the ring, so that it needs no window. It takes a sequence number, which all that the peer
  /// sends behind it has, too.
  [[nodiscard]] WARPLINE_HD Disposition check_window(std::int64_t begin, std::int64_t end, bool fin) const {
    const auto next = static_cast<std::int64_t>(state_.next);
    const auto window_end = static_cast<std::int64_t>(state_.window_end);
    if (begin == end) {
      if (state_.end_reached) return !fin && begin == next + 1 ? Disposition::no_payload : Disposition::duplicate;
      if (begin < next) return Disposition::duplicate;
      return begin <= window_end ? Disposition::no_payload : Disposition::outside_window;
    }
    const bool new_fin = fin && !state_.end_reached && end == next;
    if (end <= next && !new_fin) return Disposition::duplicate;
    return begin < window_end || new_fin ? Disposition::stored : Disposition::outside_window;
  }

  /// False if the segment announces another end than one before it, or one before bytes that arrived.
  [[nodiscard]] WARPLINE_HD bool take_end(std::int64_t segment_end) {
    const auto end = static_cast<std::uint64_t>(segment_end);
    if (state_.end != ReceiveState::kNoEnd) return state_.end == end;
    const std::uint32_t ranges = state_.ranges.count();
    const std::uint64_t arrived = ranges == 0 ? state_.next : state_.ranges[ranges - 1].end;
    if (end < arrived) return false;
    // An end behind the window is not believed yet: it comes again with the bytes before it.
    if (end <= state_.window_end) state_.end = end;
    return true;
  }

  [[nodiscard]] WARPLINE_HD Acceptance take_bytes(std::int64_t begin, std::int64_t end) {
    if (begin == end) return {Disposition::no_payload, 0, {}};
    note_duplicate(begin, end);
    ByteRange taken{begin < static_cast<std::int64_t>(state_.next) ? state_.next : static_cast<std::uint64_t>(begin),
                    static_cast<std::uint64_t>(end)};
    if (taken.end > state_.window_end) taken.end = state_.window_end;
    if (taken.end > state_.end) taken.end = state_.end;
    if (taken.begin >= taken.end) {
      // A FIN came again behind bytes that had all arrived, or bytes behind the end.
      return state_.next == static_cast<std::uint64_t>(end) ? Acceptance{Disposition::no_payload, 0, {}}
                                                            : refuse(Disposition::behind_end);
    }
    Acceptance acceptance = find_gaps(taken, begin);
    if (acceptance.count == 0) return refuse(Disposition::duplicate);
    const auto length = static_cast<std::uint32_t>(end - begin);
    if (length > state_.largest) state_.largest = length;
    const bool had_holes = state_.ranges.count() != 0;
    if (taken.begin == state_.next) {
      state_.next = state_.ranges.absorb_up_to(taken.end);
    } else {
      if (!state_.ranges.insert(taken)) return refuse(Disposition::too_many_holes);
      note_recent(taken.begin);
    }
    if (had_holes || state_.ranges.count() != 0 || !state_.duplicate.empty()) state_.acknowledge_now = true;
    return acceptance;
  }

  /// The parts of `taken` that have not arrived; cuts it behind the last one that is kept. The first to bring a byte
  /// wins.
  [[nodiscard]] WARPLINE_HD Acceptance find_gaps(ByteRange& taken, std::int64_t segment_begin) const {
    Acceptance acceptance;
    const ReceivedRanges& ranges = state_.ranges;
    std::uint64_t at = taken.begin;
    std::uint32_t i = ranges.first_reaching(at);
    while (at < taken.end) {
      const std::uint64_t gap_end = i < ranges.count() && ranges[i].begin < taken.end ? ranges[i].begin : taken.end;
      if (gap_end > at) {
        if (acceptance.count == Acceptance::kMaxPieces) {
          taken.end = at;
          break;
        }
        acceptance.pieces[acceptance.count++] = {
            at, static_cast<std::uint32_t>(static_cast<std::int64_t>(at) - segment_begin),
            static_cast<std::uint32_t>(gap_end - at)};
      }
      if (gap_end == taken.end) break;
      at = ranges[i].end;
      ++i;
    }
    return acceptance;
  }

  /// RFC 2883: the first part of the segment that had arrived.
  WARPLINE_HD void note_duplicate(std::int64_t begin, std::int64_t end) {
    if (begin >= end || !state_.duplicate.empty()) return;
    const std::uint64_t first = begin < 0 ? 0 : static_cast<std::uint64_t>(begin);
    if (end <= 0) return;
    const auto last = static_cast<std::uint64_t>(end);
    if (first < state_.next) {
      state_.duplicate = {first, last < state_.next ? last : state_.next};
      return;
    }
    const std::uint32_t i = state_.ranges.first_reaching(first + 1);
    if (i == state_.ranges.count() || state_.ranges[i].begin >= last) return;
    const ByteRange& range = state_.ranges[i];
    state_.duplicate = {range.begin > first ? range.begin : first, range.end < last ? range.end : last};
  }

  WARPLINE_HD void note_recent(std::uint64_t offset) {
    for (std::uint32_t i = ReceiveState::kRecent - 1; i > 0; --i) state_.recent[i] = state_.recent[i - 1];
    state_.recent[0] = offset;
  }

  ReceiveState& state_;
};

}  // namespace warpline::stream
