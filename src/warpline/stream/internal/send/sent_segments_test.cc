// SPDX-License-Identifier: Apache-2.0
#include "warpline/stream/internal/send/sent_segments.h"

#include <gtest/gtest.h>

#include <deque>
#include <vector>

#include "warpline/base/property_testing.h"

namespace warpline::stream {
namespace {

/// What SentSegments does, in the simplest way.
struct SegmentModel {
  struct Entry {
    std::uint64_t begin, end;
    SegmentFate fate;
    std::int64_t sent_at;
    std::uint32_t place;
  };
  std::deque<Entry> entries;

  [[nodiscard]] std::uint64_t bytes(SegmentFate fate) const {
    std::uint64_t sum = 0;
    for (const Entry& entry : entries) sum += entry.fate == fate ? entry.end - entry.begin : 0;
    return sum;
  }
};

WARPLINE_PROPERTY(SentSegmentsProperty, AgreeWithASimpleList, ()) {
  constexpr std::uint32_t kCapacity = 16;
  std::vector<SentSegment> ring(kCapacity);
  SentSegments segments;
  segments.reset(ring.data(), kCapacity);
  SegmentModel model;
  std::uint64_t next = 0;
  std::int64_t clock = 0;
  for (int step = 0; step < 200; ++step) {
    ++clock;
    const int what = *rc::gen::inRange(0, 6);
    if (what <= 1 && !segments.full()) {
      const auto length = *rc::gen::inRange<std::uint32_t>(1, 100);
      segments.push(next, length, false, Nanos{clock});
      model.entries.push_back({next, next + length, SegmentFate::flying, clock, segments.newest()});
      next += length;
    } else if (what == 2 && !model.entries.empty()) {
      const std::uint64_t offset = *rc::gen::inRange(model.entries.front().begin, next + 1);
      std::size_t removed = 0;
      segments.acknowledge(offset, [&](const SentSegment&) { ++removed; });
      while (!model.entries.empty() && model.entries.front().end <= offset) {
        model.entries.pop_front();
        --removed;
      }
      RC_ASSERT(removed == 0U);
      if (!model.entries.empty() && model.entries.front().begin < offset) model.entries.front().begin = offset;
    } else if (what == 3 && !model.entries.empty()) {
      const std::uint64_t begin = *rc::gen::inRange(model.entries.front().begin, next);
      const std::uint64_t end = *rc::gen::inRange(begin, next + 1);
      std::uint64_t expected = begin;
      for (SegmentModel::Entry& entry : model.entries) {
        if (entry.begin < begin || entry.end > end) continue;
        entry.fate = SegmentFate::stored;
        expected = entry.end;
      }
      RC_ASSERT(segments.store(begin, end, [](const SentSegment&) {}) == expected);
    } else if (what == 4 && segments.earliest_sent() != SentSegments::kNone) {
      const std::uint32_t place = segments.earliest_sent();
      segments.lose(place);
      for (SegmentModel::Entry& entry : model.entries) {
        if (entry.place == place) entry.fate = SegmentFate::lost;
      }
    } else if (what == 5 && segments.first_lost() != SentSegments::kNone) {
      const std::uint32_t place = segments.first_lost();
      segments.resend(place, Nanos{clock});
      for (SegmentModel::Entry& entry : model.entries) {
        if (entry.place != place) continue;
        entry.fate = SegmentFate::flying;
        entry.sent_at = clock;
      }
    }
    RC_ASSERT(segments.size() == model.entries.size());
    std::uint32_t first_lost = SentSegments::kNone;
    const SegmentModel::Entry* earliest = nullptr;
    for (const SegmentModel::Entry& entry : model.entries) {
      RC_ASSERT(segments[entry.place].begin == entry.begin);
      RC_ASSERT(segments[entry.place].fate == entry.fate);
      if (entry.fate == SegmentFate::lost && first_lost == SentSegments::kNone) first_lost = entry.place;
      if (entry.fate != SegmentFate::flying) continue;
      if (earliest == nullptr || entry.sent_at < earliest->sent_at) earliest = &entry;
    }
    RC_ASSERT(segments.first_lost() == first_lost);
    RC_ASSERT(segments.earliest_sent() == (earliest == nullptr ? SentSegments::kNone : earliest->place));
    for (const SegmentFate fate : {SegmentFate::flying, SegmentFate::stored, SegmentFate::lost}) {
      RC_ASSERT(segments.bytes(fate) == model.bytes(fate));
    }
  }
}

}  // namespace
}  // namespace warpline::stream
