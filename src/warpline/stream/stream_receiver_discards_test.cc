// SPDX-License-Identifier: Apache-2.0
// A receiver that keeps no bytes, beside one that does: peers and events do not tell them apart.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "warpline/stream/stream_receiver_fixture_testing.h"

namespace warpline::stream {
namespace {

using testing::milliseconds;
using testing::Peer;
using testing::receiver_with;
using testing::replies_of;
using testing::Reply;
using testing::small_settings;

ReceiverSettings discarding_settings() {
  ReceiverSettings settings = small_settings();
  settings.discards = true;
  return settings;
}

void expect_same_written(const std::vector<Reply>& a, const std::vector<Reply>& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].tcp().acknowledgement, b[i].tcp().acknowledgement);
    EXPECT_EQ(a[i].tcp().window, b[i].tcp().window);
    EXPECT_EQ(a[i].tcp().flags, b[i].tcp().flags);
    EXPECT_EQ(a[i].blocks, b[i].blocks);
  }
}

TEST(DiscardingReceiver, AcknowledgesAsOneThatKeepsBytes) {
  StreamReceiver keeping = receiver_with(small_settings());
  StreamReceiver discarding = receiver_with(discarding_settings());
  Peer one(keeping, 40'000, 0xffff'0000), other(discarding, 40'000, 0xffff'0000);
  Nanos now = milliseconds(1);
  ASSERT_TRUE(one.open(now));
  ASSERT_TRUE(other.open(now));
  constexpr std::uint32_t kSegment = 1000;
  std::uint64_t released = 0;
  Random random(3);
  for (int turn = 0; turn < 300; ++turn) {
    now.value += 1'000'000;
    for (std::uint64_t i = random.below(6); i != 0; --i) {
      const std::uint64_t offset = (released / kSegment + random.below(20)) * kSegment;  // also twice
      one.send(offset, kSegment, now);
      other.send(offset, kSegment, now);
    }
    keeping.end_burst(now);
    discarding.end_burst(now);
    const auto event = keeping.poll();
    const auto same = discarding.poll();
    ASSERT_EQ(event.has_value(), same.has_value());
    if (event) {
      ASSERT_EQ(event->readable, same->readable);
      ASSERT_EQ(event->readable, keeping.view(event->connection)->bytes.size());
      EXPECT_TRUE(discarding.view(same->connection)->bytes.empty());
      const std::uint64_t part = random.below(event->readable + 1);
      EXPECT_TRUE(keeping.release(event->connection, part));
      EXPECT_TRUE(discarding.release(same->connection, part));
      released += part;
    }
    ASSERT_NO_FATAL_FAILURE(expect_same_written(replies_of(keeping, now), replies_of(discarding, now)));
  }
  EXPECT_GT(released, 100'000U);
  EXPECT_EQ(keeping.counters().bytes.get(), discarding.counters().bytes.get());
  for (std::size_t i = 0; i < kDispositions; ++i) {
    EXPECT_EQ(keeping.counters().dispositions[i].get(), discarding.counters().dispositions[i].get()) << i;
  }
}

TEST(DiscardingReceiver, HasNothingForWhoWantsBytes) {
  const auto refused = [](auto change) {
    ReceiverSettings settings = discarding_settings();
    change(settings);
    const auto made = StreamReceiver::create(settings, milliseconds(1));
    return !made.ok() && made.error().kind == ErrorKind::usage &&
           made.error().what.find("discards") != std::string::npos;
  };
  EXPECT_FALSE(refused([](ReceiverSettings&) {}));
  EXPECT_TRUE(refused([](ReceiverSettings& s) { s.consumers = true; }));
  EXPECT_TRUE(refused([](ReceiverSettings& s) { s.populate_rings = true; }));
}

}  // namespace
}  // namespace warpline::stream
