// SPDX-License-Identifier: Apache-2.0
// Queue pairs on one thread, step by step, and then with a poster, a consumer and a sender on threads of their own.
#include "warpline/queues/packet_queues.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "warpline/base/property_testing.h"
#include "warpline/handoff/queues/queue_engine.h"
#include "warpline/handoff/queues/queue_engine_testing.h"
#include "warpline/handoff/queues/queue_watch.h"
#include "warpline/handoff/queues/queue_work.h"
#include "warpline/handoff/queues/thread_queue_engine.h"

namespace warpline::handoff {
namespace {

using namespace testing;

static_assert(QueueEngine<ThreadQueueEngine<Touch>>);

constexpr LanePlacement kAnywhere{std::nullopt, true};

/// A queue pair whose consumer is the test itself.
class PacketQueuesTest : public ::testing::Test {
 protected:
  void start(std::uint32_t slots, std::uint64_t first = 1) {
    queues_ = make_queues(slots, first);
    cursor_ = queues::QueueCursor::begin(queues_->view());
  }
  /// A packet of so many pieces that is for work.
  Packet& packet(std::uint16_t pieces = 1) {
    packets_.push_back(
        std::make_unique<Packet>(Packet{static_cast<std::uint32_t>(5 * packets_.size() + 1), pieces, {}}));
    return *packets_.back();
  }
  void post_one(std::uint16_t pieces = 1) {
    ASSERT_TRUE(post(*queues_, packet(pieces), queues_->slots()));
    queues_->publish(0);
  }
  std::uint32_t serve(std::uint32_t most) {
    const std::uint32_t count = cursor_.look(queues_->view(), most);
    if (count != 0) serve_queue(queues_->view(), cursor_, count, touch_, counters_);
    return count;
  }

  std::unique_ptr<queues::PacketQueues> queues_;
  queues::QueueCursor cursor_{};
  Touch touch_;
  LaneCounters counters_;
  std::vector<std::unique_ptr<Packet>> packets_;
};

TEST_F(PacketQueuesTest, NoShapeButPowersOfTwoThatHoldAFrame) {
  for (const std::uint32_t slots : {0U, 8U, 17U, 1000U, 1U << 21})
    EXPECT_FALSE(queues::PacketQueues::create({slots}).ok());
  EXPECT_TRUE(queues::PacketQueues::create({kMaxSegments}).ok());
}

TEST_F(PacketQueuesTest, NothingIsSeenBeforeItIsPublished) {
  start(16);
  ASSERT_TRUE(post(*queues_, packet(), 16));
  EXPECT_EQ(serve(16), 0U);
  queues_->publish(0);
  EXPECT_EQ(serve(16), 1U);
}

TEST_F(PacketQueuesTest, FramesOfSeveralPiecesBeginInAnySlot) {
  start(16, kRingSequenceMask - 20);
  Left left;
  for (std::uint32_t i = 0; i < 200; ++i) {
    const auto pieces = static_cast<std::uint16_t>(i % 2 == 0 ? 1 : 3);
    post_one(pieces);
    EXPECT_EQ(serve(1), 1U);
    ASSERT_TRUE(take(*queues_, left, 4));
    ASSERT_EQ(left.sent.back(), packets_.back()->number);
    for (std::uint16_t s = 0; s < kMaxPieces; ++s) ASSERT_EQ(packets_.back()->bytes[s], s < pieces ? 1 : 0);
    ASSERT_EQ(queues_->in_flight(), 0U);
  }
  EXPECT_EQ(left.bad, 0U);
}

TEST_F(PacketQueuesTest, AFullQueueTakesNoMoreUntilSlotsAreBack) {
  start(16);
  for (int i = 0; i < 5; ++i) post_one(3);
  EXPECT_FALSE(post(*queues_, packet(3), 16));
  post_one(1);
  EXPECT_FALSE(post(*queues_, packet(1), 16));
  EXPECT_EQ(queues_->in_flight(), 16U);
  while (serve(4) != 0) continue;
  EXPECT_EQ(queues_->room(16, 16), 0U) << "released, but not sent";
  Left left;
  while (take(*queues_, left, 2)) continue;
  EXPECT_EQ(left.sent.size(), 6U);
  EXPECT_EQ(queues_->room(16, 16), 16U);
}

TEST_F(PacketQueuesTest, LessThanTheQueueHoldsMayBeUsed) {
  start(16);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(post(*queues_, packet(), 3));
  EXPECT_FALSE(post(*queues_, packet(), 3));
}

TEST_F(PacketQueuesTest, APartOfWhatIsThereIsTaken) {
  start(16);
  for (int i = 0; i < 10; ++i) post_one();
  EXPECT_EQ(serve(3), 3U);
  Left left;
  EXPECT_TRUE(take(*queues_, left, 2));
  EXPECT_EQ(left.sent.size(), 2U);
  EXPECT_EQ(left.released, 2U) << "of the third the slot is back only with the packet";
  EXPECT_TRUE(take(*queues_, left, 2));
  EXPECT_EQ(left.sent.size(), 3U);
  EXPECT_EQ(queues_->in_flight(), 7U);
}

TEST_F(PacketQueuesTest, AConsumerWaitsForRoomToSend) {
  start(16);
  cursor_.sent += 14;  // as if so many were on their way
  for (int i = 0; i < 5; ++i) post_one();
  EXPECT_EQ(cursor_.look(queues_->view(), 16), 2U);
  cursor_.sent += 2;
  EXPECT_EQ(cursor_.look(queues_->view(), 16), 0U);
  store_release(queues_->view().transmit.completed, 2);
  EXPECT_EQ(cursor_.look(queues_->view(), 16), 1U);
}

TEST_F(PacketQueuesTest, SlotsReleasedInAnyOrderComeBackInTheirs) {
  start(16);
  for (int i = 0; i < 3; ++i) post_one();
  const queues::ReceiveQueueView& receive = queues_->view().receive;
  Left left;
  receive.release(3, Verdict::giant, true);
  receive.release(2, Verdict::runt, true);
  EXPECT_FALSE(take(*queues_, left, 8));
  EXPECT_EQ(queues_->waiting().any, true);
  EXPECT_EQ(queues_->waiting().sequence, 1U);
  receive.release(1, Verdict::user_drop, true);
  EXPECT_FALSE(queues_->waiting().any);
  EXPECT_TRUE(take(*queues_, left, 8));
  ASSERT_EQ(left.dropped.size(), 3U);
  EXPECT_EQ(left.dropped[0].verdict, Verdict::user_drop);
  EXPECT_EQ(left.dropped[2].verdict, Verdict::giant);
  EXPECT_EQ(queues_->in_flight(), 0U);
}

TEST_F(PacketQueuesTest, AFrameThatWasPassedOverIsSeen) {
  start(16);
  for (int i = 0; i < 2; ++i) post_one();
  queues_->view().receive.release(1, Verdict::user_drop, false);
  queues_->view().receive.release(2, Verdict::user_drop, true);
  Left left;
  EXPECT_TRUE(take(*queues_, left, 8));
  EXPECT_EQ(left.checked, 2U);
  EXPECT_EQ(left.bad, 1U);
}

TEST_F(PacketQueuesTest, NoFrameIsSentTwiceAndNoneThatIsNotInHand) {
  start(16);
  for (int i = 0; i < 2; ++i) post_one(2);
  const queues::TransmitQueueView& transmit = queues_->view().transmit;
  std::uint64_t end = 1;
  for (const std::uint64_t sequence : {1U, 1U, 2U, 0U, 5U, 17U, 3U})
    transmit.at(end++) = queues::TransmitDescriptor(sequence);
  transmit.ring(end);
  Left left;
  EXPECT_TRUE(take(*queues_, left, 8));
  EXPECT_EQ(left.sent, (std::vector<std::uint32_t>{packets_[0]->number, packets_[1]->number}));
  EXPECT_EQ(left.bad, 5U);
  EXPECT_EQ(transmit.load_completed(), end);
}

TEST_F(PacketQueuesTest, AStampGoesWithTheFirstOfEachLot) {
  start(16);
  std::vector<std::uint64_t> stamps;
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(post(*queues_, packet(), 16));
  queues_->publish(77);
  queues_->publish(78);  // nothing more was posted
  post_one();
  while (serve(8) != 0) continue;
  std::array<void*, 8> sent;
  EXPECT_EQ(queues_->take_sent(sent.data(), 8), 4U);
  queues_->take_released(8, [&](const auto& released) { stamps.push_back(released.stamp); });
  EXPECT_EQ(stamps, (std::vector<std::uint64_t>{77, 0, 0, 0}));
}

TEST_F(PacketQueuesTest, WhatAConsumerLeavesIsAccountedFor) {
  start(16);
  for (int i = 0; i < 4; ++i) post_one(2);
  EXPECT_EQ(serve(2), 2U);                                                    // dropped as giant
  queues_->view().receive.release(3, Verdict::forward, true);                 // and never posted
  queues_->view().transmit.at(cursor_.sent) = queues::TransmitDescriptor(7);  // never released
  queues_->view().transmit.ring(cursor_.sent + 1);
  Left left;
  while (take(*queues_, left, 8)) continue;
  EXPECT_EQ(left.sent, (std::vector<std::uint32_t>{packets_[3]->number}));
  ASSERT_EQ(left.dropped.size(), 1U);
  EXPECT_EQ(left.dropped[0].verdict, Verdict::giant);
  std::vector<Received> reclaimed;
  queues_->reclaim([&](const queues::PacketQueues::Released& released) {
    if (released.packet == nullptr) return;
    reclaimed.push_back({static_cast<Packet*>(released.packet)->number, released.verdict});
  });
  ASSERT_EQ(reclaimed.size(), 2U);
  EXPECT_EQ(reclaimed[0].number, packets_[1]->number);
  EXPECT_EQ(reclaimed[1].number, packets_[2]->number);
  EXPECT_EQ(reclaimed[0].verdict, Verdict::engine_stopped);
  EXPECT_EQ(queues_->in_flight(), 0U);
}

TEST_F(PacketQueuesTest, AWatchTellsStuckFromIdle) {
  start(16);
  QueueWatch watch(*queues_, 100);
  for (std::uint64_t now = 0; now < 1000; now += 90) EXPECT_FALSE(watch.stalled(now));
  post_one();
  post_one();
  EXPECT_FALSE(watch.stalled(1000));
  EXPECT_FALSE(watch.stalled(1090));
  EXPECT_EQ(serve(1), 1U);
  EXPECT_FALSE(watch.stalled(1180)) << "released, if not sent yet";
  Left left;
  EXPECT_TRUE(take(*queues_, left, 1));
  EXPECT_FALSE(watch.stalled(1270));
  post_one();
  EXPECT_TRUE(watch.stalled(1371)) << "that more is posted is no progress";
}

WARPLINE_PROPERTY(PacketQueuesProperty, EveryPacketOnceInOrderWithItsVerdict, ()) {
  const auto slots = 1U << *rc::gen::inRange(4, 8);
  const auto most = *rc::gen::inRange<std::uint32_t>(1, 64);
  const auto bursts = *rc::gen::container<std::vector<std::uint16_t>>(*rc::gen::inRange<std::size_t>(1, 200),
                                                                      rc::gen::inRange<std::uint16_t>(1, 40));
  const auto first =
      *rc::gen::element<std::uint64_t>(1, kRingSequenceMask - 30, (std::uint64_t{1} << 48) - 30);  // where words wrap
  PacketStream stream = make_stream(bursts, *rc::gen::arbitrary<std::uint64_t>());
  const auto queues = make_queues(slots, first);
  ThreadQueueEngine engine(*queues, Touch{}, most, kAnywhere, "consumer");
  expect_all_through(*queues, engine, stream);
}

// The sender may hear of a packet from the consumer sooner than from the poster, who was held up.
TEST(PacketQueuesRace, WhatIsNamedAtOnceIsInHand) {
  constexpr std::uint64_t kPackets = 200'000;
  const auto queues = make_queues(1024);
  std::vector<Packet> packets(kPackets);
  std::atomic<bool> failed{false};
  std::thread poster([&] {
    for (Packet& packet : packets) {
      packet.number = 1;
      while (!post(*queues, packet, 1024)) {
        if (failed.load()) return;
        std::this_thread::yield();
      }
      queues->publish(0);
    }
  });
  queues::QueueCursor cursor = queues::QueueCursor::begin(queues->view());
  Touch touch;
  LaneCounters counters;
  std::array<void*, 16> sent{};
  while (cursor.next <= kPackets && !failed.load()) {
    const std::uint32_t count = cursor.look(queues->view(), 16);
    if (count == 0) {
      std::this_thread::yield();
      continue;
    }
    serve_queue(queues->view(), cursor, count, touch, counters);
    queues->take_sent(sent.data(), 16);
    queues->complete();
    queues->take_released(16, [](const auto&) {});
    if (queues->take_checked().bad != 0) failed.store(true);
  }
  poster.join();
  EXPECT_FALSE(failed.load());
}

TEST(ThreadQueueEngineStop, DrainsWhatWasPosted) {
  PacketStream stream = make_stream({8, 8}, 1);
  const auto queues = make_queues(64);
  ThreadQueueEngine engine(*queues, Touch{}, 4, kAnywhere, "consumer");
  ASSERT_TRUE(engine.start().ok());
  post_stream(*queues, stream);
  engine.stop(Nanos{60'000'000'000});
  EXPECT_FALSE(queues->waiting().any);
  Left left;
  while (take(*queues, left, 8)) continue;
  EXPECT_EQ(left.released, 16U);
}

TEST(ThreadQueueEngineStop, LeavesNoFrameHalfDone) {
  PacketStream stream = make_stream(std::vector<std::uint16_t>(8, 4), 0);
  const auto queues = make_queues(128);
  std::atomic<bool> busy{false};
  const auto until_now = [&view = queues->view(), &busy](FrameRef) {
    busy.store(true);
    while (view.stop_requested() != RingStop::now) std::this_thread::yield();
    return Verdict::forward;
  };
  ThreadQueueEngine engine(*queues, until_now, 3, kAnywhere, "consumer");
  ASSERT_TRUE(engine.start().ok());
  post_stream(*queues, stream);
  while (!busy.load()) std::this_thread::yield();
  engine.stop(Nanos{0});
  Left left;
  while (take(*queues, left, 8)) continue;
  const std::size_t done = left.released;
  EXPECT_GE(done, 1U);
  EXPECT_LE(done, 3U);
  queues->reclaim([&](const auto& released) {
    ASSERT_NE(released.packet, nullptr);
    EXPECT_EQ(released.verdict, Verdict::engine_stopped);
    ++left.released;
  });
  EXPECT_EQ(left.released, 32U);
}

TEST(ThreadQueueEngineStop, BeforeStartAndTwice) {
  const auto queues = make_queues(16);
  ThreadQueueEngine engine(*queues, Touch{}, 16, kAnywhere, "consumer");
  engine.stop(Nanos{0});
  ASSERT_TRUE(engine.start().ok());
  engine.stop(Nanos{0});
  engine.stop(Nanos{0});
  EXPECT_EQ(engine.counters(0).packets.get(), 0U);
}

}  // namespace
}  // namespace warpline::handoff
