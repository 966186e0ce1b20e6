// SPDX-License-Identifier: Apache-2.0
#include "warpline/stream/internal/accept_segment.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "warpline/base/property_testing.h"
#include "warpline/base/random.h"
#include "warpline/stream/overlap_testing.h"

namespace warpline::stream {
namespace {

using testing::for_each_overlap;

constexpr std::uint32_t kInitial = 0xffff'fff0;  // sequence numbers wrap at byte 16

SegmentReading segment_of(std::uint64_t begin, std::uint32_t length, std::uint8_t flags = packet::kTcpAck) {
  SegmentReading segment;
  segment.sequence = sequence_of(begin, kInitial);
  segment.payload_length = length;
  segment.flags = flags;
  return segment;
}

ReceiveState state_with_window(std::uint64_t window) {
  ReceiveState state;
  state.initial = kInitial;
  state.window_end = window;
  return state;
}

/// A stream in which every byte is the number of the segment that brought it, 0 where none has. Says what is right
/// byte by byte.
class ByteOracle {
 public:
  explicit ByteOracle(std::size_t window) : bytes_(window, 0) {}

  void take(std::uint64_t begin, std::uint64_t end, std::uint8_t segment) {
    for (std::uint64_t at = begin; at < end && at < bytes_.size(); ++at) {
      if (bytes_[at] == 0) bytes_[at] = segment;
    }
  }
  [[nodiscard]] std::uint64_t next() const {
    return static_cast<std::uint64_t>(std::ranges::find(bytes_, 0) - bytes_.begin());
  }
  [[nodiscard]] std::vector<ByteRange> ranges() const {
    std::vector<ByteRange> ranges;
    for (std::uint64_t at = next(); at < bytes_.size(); ++at) {
      if (bytes_[at] == 0) continue;
      if (!ranges.empty() && ranges.back().end == at) {
        ++ranges.back().end;
      } else {
        ranges.push_back({at, at + 1});
      }
    }
    return ranges;
  }
  [[nodiscard]] const std::vector<std::uint8_t>& bytes() const { return bytes_; }

 private:
  std::vector<std::uint8_t> bytes_;
};

/// Copies as an acceptance says. A byte that is written twice is an error.
void place(const Acceptance& acceptance, std::uint64_t begin, std::uint8_t segment, std::vector<std::uint8_t>& bytes) {
  for (std::uint32_t i = 0; i < acceptance.count; ++i) {
    const SegmentPiece& piece = acceptance.pieces[i];
    ASSERT_EQ(piece.offset, begin + piece.skip);
    ASSERT_LE(piece.offset + piece.length, bytes.size());
    for (std::uint32_t k = 0; k < piece.length; ++k) {
      ASSERT_EQ(bytes[piece.offset + k], 0) << "written twice";
      bytes[piece.offset + k] = segment;
    }
  }
}

void expect_as_oracle(const ReceiveState& state, const ByteOracle& oracle, const std::vector<std::uint8_t>& bytes) {
  ASSERT_EQ(bytes, oracle.bytes());
  ASSERT_EQ(state.next, oracle.next());
  const std::vector<ByteRange> ranges = oracle.ranges();
  ASSERT_EQ(state.ranges.count(), ranges.size());
  for (std::uint32_t i = 0; i < ranges.size(); ++i) ASSERT_EQ(state.ranges[i], ranges[i]);
}

void expect_overlaps_right(std::uint32_t segments, std::size_t known_count) {
  // The first point at the stream's first byte, or behind a hole; points apart by more than a byte.
  for (const std::uint64_t origin : {0U, 3U}) {
    const std::size_t count = for_each_overlap(segments, [&](const std::vector<std::uint32_t>& at) {
      constexpr std::uint64_t kUnit = 3;
      ReceiveState state = state_with_window(64);
      ByteOracle oracle(64);
      std::vector<std::uint8_t> bytes(64, 0);
      for (std::uint32_t i = 0; i < segments; ++i) {
        const std::uint64_t begin = origin + at[2 * i] * kUnit;
        const std::uint64_t end = origin + at[2 * i + 1] * kUnit;
        const auto number = static_cast<std::uint8_t>(i + 1);
        const bool is_new = std::any_of(oracle.bytes().begin() + static_cast<std::ptrdiff_t>(begin),
                                        oracle.bytes().begin() + static_cast<std::ptrdiff_t>(end),
                                        [](std::uint8_t byte) { return byte == 0; });
        const Acceptance acceptance =
            SegmentAcceptor(state).accept(segment_of(begin, static_cast<std::uint32_t>(end - begin)));
        ASSERT_EQ(acceptance.disposition, is_new ? Disposition::stored : Disposition::duplicate);
        oracle.take(begin, end, number);
        place(acceptance, begin, number, bytes);
        expect_as_oracle(state, oracle, bytes);
      }
    });
    EXPECT_EQ(count, known_count);
  }
}

// The numbers of ways are those of OEIS A055203.
TEST(SegmentAcceptor, TakesEveryOverlapOfTwoSegments) { expect_overlaps_right(2, 13); }
TEST(SegmentAcceptor, TakesEveryOverlapOfThreeSegments) { expect_overlaps_right(3, 409); }
TEST(SegmentAcceptor, TakesEveryOverlapOfFourSegments) { expect_overlaps_right(4, 23917); }

WARPLINE_PROPERTY(SegmentAcceptor, DoesAsTheOracleInAnyOrder, (std::uint64_t seed)) {
  Random random(seed);
  constexpr std::uint64_t kWindow = 300;
  ReceiveState state = state_with_window(kWindow);
  ByteOracle oracle(kWindow);
  std::vector<std::uint8_t> bytes(kWindow, 0);
  for (int i = 0; i < 60; ++i) {
    const std::uint64_t begin = random.below(kWindow + 40);
    const auto length = static_cast<std::uint32_t>(1 + random.below(40));
    const auto number = static_cast<std::uint8_t>(1 + i % 255);
    const ReceiveState before = state;
    const Acceptance acceptance = SegmentAcceptor(state).accept(segment_of(begin, length));
    RC_ASSERT(state.next >= before.next);
    if (acceptance.disposition == Disposition::stored) {
      std::uint64_t end = begin + length;
      if (acceptance.count == Acceptance::kMaxPieces) {
        const SegmentPiece& last = acceptance.pieces[acceptance.count - 1];
        const std::uint64_t cut = last.offset + last.length;
        if (cut < end) end = cut;
      }
      oracle.take(begin, end, number);
    }
    place(acceptance, begin, number, bytes);
    expect_as_oracle(state, oracle, bytes);
  }
}

/// Segments of a stream that come in any order, most of them one behind the other.
std::vector<SegmentFields> segments_in_disorder(Random& random, std::size_t count) {
  std::vector<SegmentFields> segments;
  std::uint64_t at = 0;
  std::uint32_t timestamp = 1000;
  while (segments.size() < count) {
    const std::uint64_t fate = random.below(40);
    if (fate == 0) at += 1 + random.below(60);
    if (fate == 1) at -= random.below(std::min<std::uint64_t>(at, 60) + 1);
    const auto length = static_cast<std::uint32_t>(fate == 2 ? 0 : 1 + random.below(30));
    SegmentFields segment = segment_of(at, length);
    timestamp += static_cast<std::uint32_t>(random.below(3));
    segment.has_timestamp = fate != 3;
    segment.timestamp = fate == 4 ? 990 : timestamp;
    segment.acknowledgement = fate == 5 ? 7 : 0;
    if (fate == 6) segment.flags |= packet::kTcpUrg;
    if (fate == 7 && random.below(10) == 0) segment.flags |= packet::kTcpFin;
    segments.push_back(segment);
    at += length;
    if (fate == 8) std::swap(segments.back(), segments[random.below(segments.size())]);
    if (fate == 9) segments.push_back(segments[random.below(segments.size())]);
  }
  return segments;
}

/// Returns how many segments from `first` on are one run, and describes it; 0 if not even the first is plain.
std::size_t find_run(const ReceiveState& state, const std::vector<SegmentFields>& segments, std::size_t first,
                     SegmentRun& run) {
  std::size_t end = first;
  while (end < segments.size() && end - first < SegmentAcceptor::kLongestRun &&
         SegmentAcceptor::plain(state, segments[end]) &&
         (end == first || SegmentAcceptor::joins(state, segments[end - 1], segments[end]))) {
    ++end;
  }
  if (end == first) return 0;
  run.sequence = segments[first].sequence;
  run.timestamp = segments[first].timestamp;
  for (std::size_t i = first; i < end; ++i) {
    run.length += segments[i].payload_length;
    run.largest = std::max(run.largest, segments[i].payload_length);
  }
  for (std::size_t i = end; i > first && run.last_count < ReceiveState::kRecent; --i) {
    run.last_begins[run.last_count++] = segments[i - 1].sequence - run.sequence;
  }
  return end - first;
}

bool same_states(const ReceiveState& a, const ReceiveState& b) {
  bool same = a.next == b.next && a.end == b.end && a.timestamp == b.timestamp && a.end_reached == b.end_reached &&
              a.acknowledge_now == b.acknowledge_now && a.largest == b.largest && a.duplicate == b.duplicate &&
              std::ranges::equal(a.recent, b.recent) && a.ranges.count() == b.ranges.count();
  for (std::uint32_t i = 0; same && i < a.ranges.count(); ++i) same = a.ranges[i] == b.ranges[i];
  return same;
}

/// Returns how many segments were accepted in runs.
std::size_t expect_runs_right(std::uint64_t seed) {
  Random random(seed);
  ReceiveState one = state_with_window(200 + random.below(3000));
  one.timestamps = random.below(2) == 0;
  one.timestamp = 1000;
  ReceiveState by_runs = one;
  const std::vector<SegmentFields> segments = segments_in_disorder(random, 400);
  std::size_t in_runs = 0;
  for (std::size_t at = 0; at < segments.size();) {
    SegmentRun run;
    const std::size_t count = find_run(by_runs, segments, at, run);
    const bool taken = count != 0 && SegmentAcceptor(by_runs).accept_run(run);
    const std::size_t end = at + (taken ? count : 1);
    if (!taken) static_cast<void>(SegmentAcceptor(by_runs).accept(segments[at]));
    if (taken) in_runs += count;
    for (; at < end; ++at) {
      const std::uint64_t begin = static_cast<std::uint64_t>(offset_near(one.next, segments[at].sequence, kInitial));
      const Acceptance acceptance = SegmentAcceptor(one).accept(segments[at]);
      if (!taken) continue;
      EXPECT_EQ(acceptance.disposition, Disposition::stored);
      EXPECT_EQ(acceptance.count, 1U);
      EXPECT_EQ(acceptance.pieces[0].offset, begin);
      EXPECT_EQ(acceptance.pieces[0].length, segments[at].payload_length);
    }
    EXPECT_TRUE(same_states(one, by_runs));
    if (random.below(4) == 0) {
      one.acknowledged = by_runs.acknowledged = one.next;
      one.acknowledge_now = by_runs.acknowledge_now = false;
      one.duplicate = by_runs.duplicate = {};
    }
  }
  return in_runs;
}

TEST(SegmentAcceptor, AcceptsRunsAsOneSegmentAfterTheOther) {
  std::size_t in_runs = 0;
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    SCOPED_TRACE(seed);
    in_runs += expect_runs_right(seed);
    ASSERT_FALSE(HasFailure());
  }
  EXPECT_GT(in_runs, 20'000U);
}

TEST(SegmentAcceptor, CutsASegmentThatCoversTooManyGaps) {
  ReceiveState state = state_with_window(1000);
  for (std::uint64_t i = 0; i < 10; ++i) {
    ASSERT_EQ(SegmentAcceptor(state).accept(segment_of(10 * i + 5, 5)).disposition, Disposition::stored);
  }
  const Acceptance acceptance = SegmentAcceptor(state).accept(segment_of(0, 100));
  EXPECT_EQ(acceptance.count, Acceptance::kMaxPieces);
  EXPECT_EQ(state.next, 40U);
  EXPECT_EQ(state.ranges.count(), 6U);
  EXPECT_EQ(SegmentAcceptor(state).accept(segment_of(40, 60)).count, Acceptance::kMaxPieces);
  EXPECT_EQ(state.next, 80U);
}

TEST(SegmentAcceptor, RefusesOneHoleTooMany) {
  ReceiveState state = state_with_window(10000);
  for (std::uint64_t i = 0; i < ReceivedRanges::kMax; ++i) {
    ASSERT_EQ(SegmentAcceptor(state).accept(segment_of(10 * i + 5, 5)).disposition, Disposition::stored);
  }
  const ReceivedRanges full = state.ranges;
  const Acceptance refused = SegmentAcceptor(state).accept(segment_of(5000, 5));
  EXPECT_EQ(refused.disposition, Disposition::too_many_holes);
  EXPECT_EQ(refused.count, 0U);
  EXPECT_EQ(state.ranges.count(), full.count());
  EXPECT_EQ(SegmentAcceptor(state).accept(segment_of(0, 5)).disposition, Disposition::stored);
  EXPECT_EQ(state.next, 10U);
}

TEST(SegmentAcceptor, StoresNothingOutsideTheWindow) {
  ReceiveState state = state_with_window(100);
  EXPECT_EQ(SegmentAcceptor(state).accept(segment_of(100, 1)).disposition, Disposition::outside_window);
  EXPECT_EQ(SegmentAcceptor(state).accept(segment_of(0x7fff'ffff, 10)).disposition, Disposition::outside_window);
  const Acceptance cut = SegmentAcceptor(state).accept(segment_of(90, 20));
  ASSERT_EQ(cut.count, 1U);
  EXPECT_EQ(cut.pieces[0].length, 10U);
  // Before the stream's first byte: its end counts, as it would on the wire.
  SegmentReading early = segment_of(0, 20);
  early.sequence -= 10;
  const Acceptance trimmed = SegmentAcceptor(state).accept(early);
  ASSERT_EQ(trimmed.count, 1U);
  EXPECT_EQ(trimmed.pieces[0].skip, 10U);
  EXPECT_EQ(state.next, 10U);
}

TEST(SegmentAcceptor, AnswersProbesOfAClosedWindow) {
  ReceiveState state = state_with_window(10);
  ASSERT_EQ(SegmentAcceptor(state).accept(segment_of(0, 10)).disposition, Disposition::stored);
  state.acknowledge_now = false;
  EXPECT_EQ(SegmentAcceptor(state).accept(segment_of(10, 1)).disposition, Disposition::outside_window);
  EXPECT_TRUE(state.acknowledge_now);
  state.acknowledge_now = false;
  EXPECT_EQ(SegmentAcceptor(state).accept(segment_of(9, 0)).disposition, Disposition::duplicate);  // a keepalive
  EXPECT_TRUE(state.acknowledge_now);
}

TEST(SegmentAcceptor, TakesTheEndWithAClosedWindowAndInAnyOrder) {
  constexpr std::uint8_t kFin = packet::kTcpFin | packet::kTcpAck;
  ReceiveState state = state_with_window(10);
  EXPECT_EQ(SegmentAcceptor(state).accept(segment_of(5, 5, kFin)).disposition, Disposition::stored);
  EXPECT_FALSE(state.end_reached);
  EXPECT_EQ(SegmentAcceptor(state).accept(segment_of(10, 1)).disposition, Disposition::outside_window);
  EXPECT_EQ(SegmentAcceptor(state).accept(segment_of(0, 5)).disposition, Disposition::stored);
  EXPECT_TRUE(state.end_reached);
  EXPECT_EQ(state.next, 10U);
  state.acknowledge_now = false;
  EXPECT_EQ(SegmentAcceptor(state).accept(segment_of(5, 5, kFin)).disposition, Disposition::duplicate);
  EXPECT_TRUE(state.acknowledge_now);
  EXPECT_EQ(SegmentAcceptor(state).accept(segment_of(11, 0)).disposition, Disposition::no_payload);

  ReceiveState full = state_with_window(10);
  ASSERT_EQ(SegmentAcceptor(full).accept(segment_of(0, 10)).disposition, Disposition::stored);
  EXPECT_EQ(SegmentAcceptor(full).accept(segment_of(10, 0, kFin)).disposition, Disposition::no_payload);
  EXPECT_TRUE(full.end_reached);
}

TEST(SegmentAcceptor, BelievesOneEndOnly) {
  constexpr std::uint8_t kFin = packet::kTcpFin | packet::kTcpAck;
  ReceiveState state = state_with_window(100);
  ASSERT_EQ(SegmentAcceptor(state).accept(segment_of(50, 10)).disposition, Disposition::stored);
  EXPECT_EQ(SegmentAcceptor(state).accept(segment_of(0, 20, kFin)).disposition, Disposition::behind_end);
  EXPECT_EQ(SegmentAcceptor(state).accept(segment_of(60, 10, kFin)).disposition, Disposition::stored);
  EXPECT_EQ(SegmentAcceptor(state).accept(segment_of(70, 10)).disposition, Disposition::behind_end);
  EXPECT_EQ(SegmentAcceptor(state).accept(segment_of(60, 11, kFin)).disposition, Disposition::behind_end);
  EXPECT_EQ(state.end, 70U);
}

TEST(SegmentAcceptor, DoesNotBelieveAnEndBehindTheWindow) {
  constexpr std::uint8_t kFin = packet::kTcpFin | packet::kTcpAck;
  ReceiveState state = state_with_window(10);
  EXPECT_EQ(SegmentAcceptor(state).accept(segment_of(0, 20, kFin)).disposition, Disposition::stored);
  EXPECT_EQ(state.next, 10U);
  EXPECT_EQ(state.end, ReceiveState::kNoEnd);
  state.window_end = 30;
  EXPECT_EQ(SegmentAcceptor(state).accept(segment_of(0, 20, kFin)).disposition, Disposition::stored);
  EXPECT_TRUE(state.end_reached);
  EXPECT_EQ(state.next, 20U);
}

TEST(SegmentAcceptor, RefusesOldTimestampsAndKeepsThoseOfTheLeftEdge) {
  ReceiveState state = state_with_window(100);
  state.timestamps = true;
  state.timestamp = 1000;
  SegmentReading segment = segment_of(0, 10);
  EXPECT_EQ(SegmentAcceptor(state).accept(segment).disposition, Disposition::no_timestamp);
  segment.has_timestamp = true;
  segment.timestamp = 999;
  EXPECT_EQ(SegmentAcceptor(state).accept(segment).disposition, Disposition::old_timestamp);
  EXPECT_EQ(state.next, 0U);
  segment.timestamp = 1001;
  EXPECT_EQ(SegmentAcceptor(state).accept(segment).disposition, Disposition::stored);
  EXPECT_EQ(state.timestamp, 1001U);
  // The next one was sent later, but the peer measures the round trip of the first that is not acknowledged.
  segment = segment_of(10, 10);
  segment.has_timestamp = true;
  segment.timestamp = 1002;
  EXPECT_EQ(SegmentAcceptor(state).accept(segment).disposition, Disposition::stored);
  EXPECT_EQ(state.timestamp, 1001U);
}

TEST(SegmentAcceptor, BelievesAcknowledgementsOfWhatWasSentOnly) {
  ReceiveState state = state_with_window(100);
  state.oldest_acknowledgement = 0xffff'0000;
  state.newest_acknowledgement = 5;
  SegmentReading segment = segment_of(0, 10);
  for (const std::uint32_t wrong : {6U, 0x7fff'ffffU, 0xfffe'ffffU}) {
    segment.acknowledgement = wrong;
    EXPECT_EQ(SegmentAcceptor(state).accept(segment).disposition, Disposition::wrong_acknowledgement);
  }
  segment.flags = 0;
  EXPECT_EQ(SegmentAcceptor(state).accept(segment).disposition, Disposition::no_acknowledgement);
  segment.flags = packet::kTcpAck;
  segment.acknowledgement = 5;
  EXPECT_EQ(SegmentAcceptor(state).accept(segment).disposition, Disposition::stored);
}

TEST(SegmentAcceptor, TellsWhatCameTwice) {
  ReceiveState state = state_with_window(100);
  ASSERT_EQ(SegmentAcceptor(state).accept(segment_of(0, 10)).disposition, Disposition::stored);
  ASSERT_EQ(SegmentAcceptor(state).accept(segment_of(20, 10)).disposition, Disposition::stored);
  ASSERT_EQ(SegmentAcceptor(state).accept(segment_of(22, 4)).disposition, Disposition::duplicate);
  EXPECT_EQ(state.duplicate, (ByteRange{22, 26}));
  ASSERT_EQ(SegmentAcceptor(state).accept(segment_of(5, 3)).disposition, Disposition::duplicate);
  EXPECT_EQ(state.duplicate, (ByteRange{22, 26}));  // the first since the last acknowledgement
  state.duplicate = {};
  ASSERT_EQ(SegmentAcceptor(state).accept(segment_of(5, 10)).disposition, Disposition::stored);
  EXPECT_EQ(state.duplicate, (ByteRange{5, 10}));
}

}  // namespace
}  // namespace warpline::stream
