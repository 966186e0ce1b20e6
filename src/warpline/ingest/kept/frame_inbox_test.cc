// SPDX-License-Identifier: Apache-2.0
#include "warpline/ingest/kept/frame_inbox.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "warpline/base/random.h"
#include "warpline/flow/batch_testing.h"
#include "warpline/ingest/kept/keeping_frames.h"
#include "warpline/packet/frame_testing.h"

namespace warpline::ingest {
namespace {

constexpr std::uint32_t kPackets = 4;
constexpr std::uint32_t kPayload = 64;

const flow::FrameDescription& kept_description() {
  static const flow::FrameDescription description =
      *flow::parse_frame_description("packets=4,seq=4:64,payload=12:64,window=2");
  return description;
}

/// The inbox of one path, and what puts frames into it.
struct KeptPath {
  explicit KeptPath(std::uint32_t count = 8)
      : inbox(*FrameInbox::make()), frames(*KeepingFrames::create(kept_description(), memory_for(count), inbox, 6)) {}

  /// The least memory that has room for so many frames.
  static Bytes memory_for(std::uint32_t count) {
    const flow::FramePlan plan = *flow::make_frame_plan(kept_description(), flow::PacketForm::ethernet);
    for (std::uint64_t bytes = 256;; bytes += 256) {
      const auto layout = flow::FrameLayout::fit(plan, {bytes});
      if (layout && layout->frames() >= count) return {bytes};
    }
  }
  void send(std::int64_t position) const {
    packet::SegmentedFrame packet(
        packet::ipv4_frame(17, packet::udp_datagram(flow::numbered_packet(kept_description(), 0, position))));
    frames->assemble(packet.ref());
  }
  void send_frames(std::int64_t first, std::int64_t count) const {
    for (std::int64_t i = first * kPackets; i < (first + count) * kPackets; ++i) send(i);
  }

  std::shared_ptr<FrameInbox> inbox;
  std::unique_ptr<KeepingFrames> frames;
};

/// Whether the frame has what was sent in it.
bool as_sent(const KeptFrame& kept) {
  for (std::uint32_t slot = 0; slot < kPackets; ++slot) {
    if (kept.frame().mask[slot] == 0) continue;
    const std::int64_t position = kept.frame().index * kPackets + slot;
    const auto sent = packet::udp_datagram(flow::numbered_packet(kept_description(), 0, position));
    if (!std::equal(sent.end() - kPayload, sent.end(), kept.frame().data + std::size_t{slot} * kPayload)) return false;
  }
  return true;
}

TEST(FrameInbox, GivesFramesInTheirOrder) {
  const KeptPath path;
  EXPECT_EQ(path.inbox->take(), nullptr);
  path.send_frames(0, 3);
  for (std::int64_t index = 0; index < 3; ++index) {
    const auto kept = path.inbox->take();
    ASSERT_NE(kept, nullptr);
    EXPECT_EQ(kept->frame().index, index);
    EXPECT_EQ(kept->path(), 6U);
    EXPECT_EQ(kept->packets(), kPackets);
    EXPECT_EQ(kept->bytes(), kPackets * kPayload);
    EXPECT_TRUE(as_sent(*kept));
  }
  EXPECT_EQ(path.inbox->take(), nullptr);
}

TEST(FrameInbox, GivesPartialFramesOfASilentSource) {
  constexpr Nanos kTimeout{1'000'000'000};
  const auto inbox = *FrameInbox::make();
  const auto frames = *KeepingFrames::create(kept_description(), KeptPath::memory_for(8), inbox, 6, kTimeout);
  for (const int position : {0, 1}) {
    packet::SegmentedFrame packet(
        packet::ipv4_frame(17, packet::udp_datagram(flow::numbered_packet(kept_description(), 0, position))));
    frames->assemble(packet.ref());
  }
  std::uint64_t now = ticks_now() + nanos_to_ticks(kTimeout);  // one call, before which the thread was elsewhere
  frames->tick(now);
  EXPECT_EQ(inbox->take(), nullptr);
  for (int call = 0; call < 2048; ++call) frames->tick(now += nanos_to_ticks({kTimeout.value / 1024}));
  const auto kept = inbox->take();
  ASSERT_NE(kept, nullptr);
  EXPECT_EQ(kept->frame().present, 2U);
  EXPECT_TRUE(as_sent(*kept));
}

TEST(FrameInbox, TakesTurnsAmongPaths) {
  const KeptPath path;
  const auto other = *KeepingFrames::create(kept_description(), KeptPath::memory_for(8), path.inbox, 7);
  for (std::int64_t i = 0; i < 8; ++i) {
    path.send(i);
    packet::SegmentedFrame packet(
        packet::ipv4_frame(17, packet::udp_datagram(flow::numbered_packet(kept_description(), 0, i))));
    other->assemble(packet.ref());
  }
  std::vector<std::shared_ptr<KeptFrame>> taken;
  EXPECT_EQ(path.inbox->take_many(taken, 3), 3U);
  EXPECT_NE(taken[0]->path(), taken[1]->path());
  EXPECT_EQ(path.inbox->take_many(taken, 3), 1U);
}

TEST(FrameInbox, KeepsAFrameAsItIsWhileOthersComeAndGo) {
  const KeptPath path;
  path.send_frames(0, 1);
  const auto first = path.inbox->take();
  for (std::int64_t frame = 1; frame < 100; ++frame) {
    path.send_frames(frame, 1);
    const auto kept = path.inbox->take();
    ASSERT_NE(kept, nullptr);
    ASSERT_TRUE(as_sent(*kept));
  }
  EXPECT_EQ(first->frame().index, 0);
  EXPECT_TRUE(as_sent(*first));
}

TEST(FrameInbox, FramesOutliveAllElse) {
  std::vector<std::shared_ptr<KeptFrame>> taken;
  {
    KeptPath path;
    path.send_frames(0, 2);
    path.send(2 * kPackets + 1);
    const Result<FrameTotals> totals = path.frames->end();
    ASSERT_TRUE(totals.ok());
    EXPECT_EQ(totals->counts.complete, 2U);
    EXPECT_EQ(totals->consumed.packets, 2U * kPackets + 1);
    path.inbox->end();
    EXPECT_TRUE(path.inbox->ended());
    EXPECT_EQ(path.inbox->take_many(taken, 10), 3U);
    EXPECT_EQ(path.inbox->take(), nullptr);
  }
  ASSERT_EQ(taken.size(), 3U);
  EXPECT_EQ(taken[2]->frame().missing, kPackets - 1);
  for (const auto& kept : taken) EXPECT_TRUE(as_sent(*kept));
  std::thread elsewhere([&] { taken.clear(); });
  elsewhere.join();
}

TEST(FrameInbox, AClosedOneHasNoFramesAndKeepsNobodyWaiting) {
  const KeptPath path(4);
  path.send_frames(0, 4);  // all memory
  path.inbox->close();
  path.send_frames(4, 2);
  EXPECT_EQ(path.inbox->take(), nullptr);
  EXPECT_TRUE(path.inbox->ended());
  const Result<FrameTotals> totals = path.frames->end();
  ASSERT_TRUE(totals.ok());
  EXPECT_EQ(totals->counts.placements[static_cast<std::size_t>(flow::Placement::no_frame)], 2U * kPackets);
}

TEST(FrameInbox, LanesWaitWhileAllFramesAreKept) {
  const KeptPath path(4);
  constexpr std::int64_t kFrames = 200;
  std::thread lane([&] {
    path.send_frames(0, kFrames);
    EXPECT_TRUE(path.frames->end().ok());
    path.inbox->end();
  });
  std::vector<std::shared_ptr<KeptFrame>> kept;
  while (!path.inbox->starved()) {
    if (auto frame = path.inbox->take()) kept.push_back(std::move(frame));
  }
  while (auto frame = path.inbox->take()) kept.push_back(std::move(frame));
  EXPECT_GE(kept.size(), 2U);
  EXPECT_LE(kept.size(), 4U);
  for (const auto& frame : kept) EXPECT_TRUE(as_sent(*frame));
  std::int64_t seen = static_cast<std::int64_t>(kept.size());
  kept.clear();
  for (bool last = false; !last;) {
    last = path.inbox->ended();
    while (const auto frame = path.inbox->take()) {
      EXPECT_EQ(frame->frame().index, seen++);
      EXPECT_TRUE(as_sent(*frame));
    }
  }
  lane.join();
  EXPECT_EQ(seen, kFrames);
}

TEST(FrameInbox, WaitedForPacketsAreCountedOnce) {
  const KeptPath path(4);
  std::atomic<bool> sent = false;
  std::thread lane([&] {
    path.send_frames(0, 50);
    sent = true;
  });
  while (!sent) {
    while (!path.inbox->starved() && !sent) std::this_thread::yield();
    (void)path.inbox->take();
  }
  lane.join();
  const Result<FrameTotals> totals = path.frames->end();
  ASSERT_TRUE(totals.ok());
  EXPECT_EQ(totals->counts.placements[static_cast<std::size_t>(flow::Placement::no_frame)], 0U);
  EXPECT_EQ(totals->counts.placements[static_cast<std::size_t>(flow::Placement::placed)], 50U * kPackets);
}

TEST(FrameInbox, WakesAConsumerThatSleeps) {
  const KeptPath path(4);
  constexpr std::int64_t kFrames = 500;
  std::thread lane([&] {
    path.send_frames(0, kFrames);
    path.inbox->end();
  });
  std::int64_t seen = 0;
  for (bool last = false; !last;) {
    last = path.inbox->ended();
    while (path.inbox->take() != nullptr) ++seen;
    if (last || !path.inbox->bell().begin_sleep()) continue;
    pollfd readable{path.inbox->bell().descriptor(), POLLIN, 0};
    EXPECT_EQ(::poll(&readable, 1, -1), 1);
    path.inbox->bell().end_sleep();
  }
  lane.join();
  EXPECT_EQ(seen, kFrames);
}

TEST(FrameInbox, FramesComeBackFromAnyThreads) {
  const KeptPath path(16);
  constexpr std::int64_t kFrames = 2000;
  std::vector<std::shared_ptr<KeptFrame>> places[3];
  std::atomic<int> turns[3] = {0, 0, 0};  // odd: the thread's turn
  std::atomic<bool> done = false;
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&, i] {
      while (!done || turns[i] % 2 == 1) {
        if (turns[i].load(std::memory_order_acquire) % 2 == 0) {
          std::this_thread::yield();
          continue;
        }
        for (const auto& frame : places[i]) EXPECT_TRUE(as_sent(*frame));
        places[i].clear();
        turns[i].fetch_add(1, std::memory_order_release);
      }
    });
  }
  std::thread lane([&] {
    path.send_frames(0, kFrames);
    path.inbox->end();
  });
  std::int64_t seen = 0;
  Random random(5);
  for (bool last = false; !last;) {
    last = path.inbox->ended();
    while (auto frame = path.inbox->take()) {
      EXPECT_EQ(frame->frame().index, seen++);
      const auto to = static_cast<std::size_t>(random.below(4));
      if (to == 3 || turns[to].load(std::memory_order_acquire) % 2 == 1) continue;
      places[to].push_back(std::move(frame));
      if (places[to].size() < 3) continue;
      turns[to].fetch_add(1, std::memory_order_release);
    }
    for (int i = 0; i < 3; ++i) {  // what is kept here must not be all there is
      if (turns[i].load(std::memory_order_acquire) % 2 == 0) places[i].clear();
    }
  }
  done = true;
  lane.join();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(seen, kFrames);
}

}  // namespace
}  // namespace warpline::ingest
