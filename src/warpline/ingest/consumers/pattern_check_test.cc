// SPDX-License-Identifier: Apache-2.0
#include "warpline/ingest/consumers/pattern_check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <thread>
#include <vector>

#include "warpline/base/property_testing.h"
#include "warpline/ingest/consumers/pattern_memory.h"
#include "warpline/traffic/traffic.h"

namespace warpline::ingest {
namespace {

using Frame = std::vector<std::uint8_t>;

traffic::TrafficPlan plan_of(const std::string& size, std::uint32_t flows = 5) {
  traffic::TrafficSettings settings;
  settings.size = size;
  settings.flows = flows;
  return *traffic::TrafficPlan::make(settings, 3);
}

Frame frame_of(const traffic::TrafficPlan& plan, std::uint16_t stream, std::uint64_t sequence,
               std::uint64_t ticks = 9) {
  const traffic::FramePlace place = plan.place(sequence);
  const traffic::Stamp stamp = plan.stamp(stream, sequence, ticks);
  Frame frame(plan.frame_bytes(place));
  plan.write_head(place, stamp, frame.data());
  std::copy_n(plan.pattern(stamp), frame.size() - plan.head_bytes(), frame.begin() + plan.head_bytes());
  return frame;
}

/// The verdict on a frame in pieces of `piece` bytes.
Verdict check(PatternCheck& check, Frame frame, std::size_t piece = 9014) {
  std::vector<Segment> segments;
  for (std::size_t at = 0; at < frame.size(); at += piece) {
    segments.push_back(
        {frame.data() + at, static_cast<std::uint32_t>(std::min(piece, frame.size() - at)), 0, Verdict::forward});
  }
  if (segments.empty()) segments.push_back({frame.data(), 0, 0, Verdict::forward});
  return check(
      {segments.data(), static_cast<std::uint16_t>(segments.size()), static_cast<std::uint32_t>(frame.size())});
}

TEST(PatternCheck, TakesWhatTheGeneratorSendsOnce) {
  for (const char* size : {"60", "61", "64", "1514", "9014", "imix"}) {
    const traffic::TrafficPlan plan = plan_of(size);
    const auto memory = *PatternMemory::create(plan, {.streams = 2});
    PatternCheck work(memory->source());
    std::uint64_t bytes = 0;
    for (const std::uint64_t sequence : {0, 1, 7, 6, 100'000}) {
      for (const std::uint16_t stream : {std::uint16_t{0}, std::uint16_t{1}}) {
        const Frame frame = frame_of(plan, stream, sequence);
        EXPECT_EQ(check(work, frame, 600), Verdict::forward) << size;
        EXPECT_EQ(check(work, frame), Verdict::duplicate) << size;
        bytes += frame.size();
      }
    }
    EXPECT_EQ(work.tally().packets, 10U);
    EXPECT_EQ(work.tally().bytes, bytes);
  }
}

TEST(PatternCheck, FindsEveryWrongBit) {
  for (const char* size : {"60", "61", "200"}) {
    const traffic::TrafficPlan plan = plan_of(size);
    const auto memory = *PatternMemory::create(plan, {});
    PatternCheck work(memory->source());
    const Frame frame = frame_of(plan, 0, 3);
    for (std::size_t bit = 0; bit < frame.size() * 8; ++bit) {
      Frame wrong = frame;
      wrong[bit / 8] ^= static_cast<std::uint8_t>(1U << bit % 8);
      EXPECT_NE(check(work, wrong), Verdict::forward) << "bit " << bit;
      EXPECT_NE(check(work, wrong), Verdict::duplicate) << "bit " << bit;
    }
    EXPECT_EQ(check(work, frame), Verdict::forward);
    EXPECT_EQ(work.tally().packets, 1U);
  }
}

TEST(PatternCheck, TellsStrangersAndEarlierRunsFromDamage) {
  const traffic::TrafficPlan plan = plan_of("100");
  const auto memory = *PatternMemory::create(plan, {.streams = 2, .started = 50});
  PatternCheck work(memory->source());
  EXPECT_EQ(check(work, Frame(100)), Verdict::unstamped);
  EXPECT_EQ(check(work, Frame(10)), Verdict::unstamped);
  EXPECT_EQ(check(work, {}), Verdict::unstamped);
  EXPECT_EQ(check(work, frame_of(plan, 0, 0, 49)), Verdict::unstamped);
  EXPECT_EQ(check(work, frame_of(plan, 2, 0, 60)), Verdict::unstamped);
  Frame damaged = frame_of(plan, 0, 0, 60);
  damaged[50] ^= 1U;  // in the stamp
  EXPECT_EQ(check(work, damaged), Verdict::corrupt);
  Frame cut = frame_of(plan, 0, 0, 60);
  cut.resize(99);
  EXPECT_EQ(check(work, cut), Verdict::corrupt);
  Frame longer = frame_of(plan, 0, 0, 60);
  longer.push_back(0);
  EXPECT_EQ(check(work, longer), Verdict::corrupt);
}

TEST(PatternCheck, WithoutATableTakesFramesAgainAndAgain) {
  const traffic::TrafficPlan plan = plan_of("64");
  const auto memory = *PatternMemory::create(plan, {.finds_duplicates = false});
  PatternCheck work(memory->source());
  for (int i = 0; i < 3; ++i) EXPECT_EQ(check(work, frame_of(plan, 0, 1)), Verdict::forward);
}

WARPLINE_PROPERTY(ArrivalTable, IsASetWithinItsWindow, (const std::vector<std::uint32_t>& offsets)) {
  std::vector<std::uint32_t> rounds(ArrivalTable::kWindow * 2);
  const ArrivalTable table{rounds.data(), 2};
  std::set<std::uint64_t> seen;
  for (const std::uint32_t offset : offsets) {
    const std::uint64_t sequence = ArrivalTable::kWindow / 2 + offset % 1000 * (ArrivalTable::kWindow / 1000);
    RC_ASSERT(table.mark(1, sequence) == seen.insert(sequence).second);
  }
}

TEST(ArrivalTable, CountsEachNumberOnceForSeveralThreads) {
  constexpr std::uint64_t kNumbers = 3 * ArrivalTable::kWindow / 2;
  std::vector<std::uint32_t> rounds(ArrivalTable::kWindow);
  const ArrivalTable table{rounds.data(), 1};
  std::vector<std::uint64_t> fresh(4);
  std::vector<std::thread> threads;
  for (std::uint64_t& count : fresh) {
    threads.emplace_back([&table, &count] {
      for (std::uint64_t sequence = 0; sequence < ArrivalTable::kWindow; ++sequence) count += table.mark(0, sequence);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(fresh[0] + fresh[1] + fresh[2] + fresh[3], ArrivalTable::kWindow);
  for (std::uint64_t sequence = ArrivalTable::kWindow; sequence < kNumbers; ++sequence)
    EXPECT_TRUE(table.mark(0, sequence));
  EXPECT_FALSE(table.mark(0, 0)) << "its entry was taken by a later round";
}

}  // namespace
}  // namespace warpline::ingest
