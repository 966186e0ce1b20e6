// SPDX-License-Identifier: Apache-2.0
#include "vnic/faults/faults.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <numeric>
#include <set>

#include "vnic/faults/faults_testing.h"
#include "warpline/base/property_testing.h"

namespace warpline::vnic {
namespace {

struct Input {
  std::vector<std::uint8_t> bytes;
  std::uint64_t now_nanos;
};

rc::Gen<double> probabilities() { return rc::gen::element(0.0, 0.0, 0.01, 0.3, 1.0); }

rc::Gen<FaultConfig> configs() {
  return rc::gen::build<FaultConfig>(
      rc::gen::set(&FaultConfig::loss, rc::gen::element(0.0, 0.1, 0.5)),
      rc::gen::set(&FaultConfig::burst_loss_enter, probabilities()),
      rc::gen::set(&FaultConfig::burst_loss_leave, probabilities()),
      rc::gen::set(&FaultConfig::burst_loss, probabilities()), rc::gen::set(&FaultConfig::duplicate, probabilities()),
      rc::gen::set(&FaultConfig::reorder, probabilities()),
      rc::gen::set(&FaultConfig::reorder_depth, rc::gen::inRange(1U, Faults::kMaxReorderDepth + 1)),
      rc::gen::set(&FaultConfig::corrupt, probabilities()), rc::gen::set(&FaultConfig::truncate, probabilities()),
      rc::gen::set(&FaultConfig::delay_nanos, rc::gen::element<std::uint64_t>(0, 10'000)),
      rc::gen::set(&FaultConfig::jitter_nanos, rc::gen::element<std::uint64_t>(0, 777)),
      rc::gen::set(&FaultConfig::bits_per_s, rc::gen::element<std::uint64_t>(0, 1, 9'999'999, 40'000'000'000)),
      rc::gen::set(&FaultConfig::queue_bytes, rc::gen::element(1U, 2000U, 1U << 18)),
      rc::gen::set(&FaultConfig::ecn_bytes, rc::gen::element(0U, 1U, 1000U)),
      rc::gen::set(&FaultConfig::flap_frames, rc::gen::element<std::uint64_t>(0, 1, 10)),
      rc::gen::set(&FaultConfig::flap_lost, rc::gen::element<std::uint64_t>(1, 5)),
      rc::gen::set(&FaultConfig::reset_frames, rc::gen::element<std::uint64_t>(0, 0, 50)));
}

std::vector<Input> any_frames() {
  std::vector<Input> frames(*rc::gen::inRange<std::size_t>(0, 200));
  std::uint64_t now = 0;
  for (std::uint32_t i = 0; i < frames.size(); ++i) {
    now += *rc::gen::inRange<std::uint64_t>(0, 2000);
    frames[i] = {frame_of_number(i, *rc::gen::inRange<std::size_t>(1, 1600)), now};
  }
  return frames;
}

/// The bits in which two sequences of the same length differ.
unsigned distance(const std::vector<std::uint8_t>& a, const std::vector<std::uint8_t>& b) {
  unsigned bits = 0;
  for (std::size_t i = 0; i < a.size(); ++i) bits += static_cast<unsigned>(std::popcount(unsigned{a[i]} ^ b[i]));
  return bits;
}

WARPLINE_PROPERTY(Faults, NoFrameIsCreatedOrForgotten, (std::uint64_t seed)) {
  Wire wire(*configs(), seed);
  for (const Input& input : any_frames()) {
    wire.send(input.bytes, input.now_nanos);
    RC_ASSERT(wire.conserves());
    RC_ASSERT(wire.faults.held() <= wire.faults.config().reorder_depth);
    RC_ASSERT(wire.faults.queued_bytes(input.now_nanos) <= wire.faults.config().queue_bytes);
  }
  wire.faults.flush(0, wire.sink);
  RC_ASSERT(wire.faults.held() == 0U);
  RC_ASSERT(wire.conserves());
}

WARPLINE_PROPERTY(Faults, ChangesNoMoreBytesThanTheyCount, (std::uint64_t seed)) {
  FaultConfig config = *configs();
  config.ecn_bytes = 0;
  Wire wire(config, seed);
  const std::vector<Input> inputs = any_frames();
  for (const Input& input : inputs) wire.send(input.bytes, input.now_nanos);
  wire.faults.flush(0, wire.sink);
  std::uint64_t truncated = 0;
  std::uint64_t corrupt = 0;
  for (const RecordingSink::Delivery& delivery : wire.sink.deliveries) {
    // Alike inputs leave more than one way to tell what happened: only what happened in all of them counts.
    bool possible = false;
    bool whole = false;
    bool right = false;
    for (const Input& input : inputs) {
      if (delivery.bytes.size() > input.bytes.size()) continue;
      const unsigned wrong = distance(delivery.bytes, input.bytes);
      if (wrong > 1) continue;
      possible = true;
      whole = whole || delivery.bytes.size() == input.bytes.size();
      right = right || wrong == 0;
    }
    RC_ASSERT(possible);
    truncated += whole ? 0 : 1;
    corrupt += right ? 0 : 1;
  }
  RC_ASSERT(truncated <= wire.counts.get(Count::fault_truncate));
  RC_ASSERT(corrupt <= wire.counts.get(Count::fault_corrupt));
}

WARPLINE_PROPERTY(Faults, SameSeedSameResult, (std::uint64_t seed)) {
  const FaultConfig config = *configs();
  Wire one(config, seed);
  Wire other(config, seed);
  for (const Input& input : any_frames()) {
    one.send(input.bytes, input.now_nanos);
    other.send(input.bytes, input.now_nanos);
  }
  RC_ASSERT(one.sink.deliveries == other.sink.deliveries);
}

WARPLINE_PROPERTY(Faults, NothingIsLaterThanTheReorderDepth, (std::uint64_t seed)) {
  FaultConfig config;
  config.reorder = *rc::gen::element(0.01, 0.3, 0.9, 1.0);
  config.reorder_depth = *rc::gen::inRange(1U, Faults::kMaxReorderDepth + 1);
  Wire wire(config, seed);
  const auto frames = *rc::gen::inRange(1U, 500U);
  wire.send_numbered(frames);
  wire.faults.flush(0, wire.sink);
  const std::vector<std::uint32_t> order = wire.numbers();
  RC_ASSERT(order.size() == frames);
  std::set<std::uint32_t> seen;
  for (std::uint32_t place = 0; place < frames; ++place) {
    const std::uint32_t number = order[place];
    RC_ASSERT(seen.insert(number).second);
    RC_ASSERT(place <= number + config.reorder_depth);
  }
}

TEST(Faults, WithoutAnyFramesPassAtOnceAndUnchanged) {
  Wire wire{FaultConfig{}};
  EXPECT_FALSE(wire.faults.active());
  FaultConfig without_effect;
  without_effect.queue_bytes = 1;
  without_effect.flap_lost = 1;
  wire.faults.configure(without_effect);
  EXPECT_FALSE(wire.faults.active());
  wire.send(frame_of_number(3, 1500), 77);
  ASSERT_EQ(wire.sink.deliveries.size(), 1U);
  EXPECT_EQ(wire.sink.deliveries[0], (RecordingSink::Delivery{frame_of_number(3, 1500), 77}));
}

TEST(Faults, WhatOneDoesDependsOnNoOther) {
  FaultConfig alone;
  alone.loss = 0.1;
  alone.corrupt = 0.3;
  FaultConfig together = alone;
  together.duplicate = 0.2;
  together.reorder = 0.5;
  together.jitter_nanos = 100;
  Wire first(alone);
  Wire second(together);
  first.send_numbered(1000);
  second.send_numbered(1000);
  second.faults.flush(0, second.sink);
  EXPECT_EQ(first.counts.get(Count::fault_loss), second.counts.get(Count::fault_loss));
  // All that came through alone came through, with the same bit wrong.
  std::set<std::vector<std::uint8_t>> came;
  for (const RecordingSink::Delivery& delivery : second.sink.deliveries) came.insert(delivery.bytes);
  for (const RecordingSink::Delivery& delivery : first.sink.deliveries) EXPECT_TRUE(came.contains(delivery.bytes));
}

TEST(Faults, TheSameOnEveryMachine) {
  FaultConfig config;
  config.loss = 0.05;
  config.burst_loss_enter = 0.02;
  config.burst_loss_leave = 0.3;
  config.duplicate = 0.1;
  config.reorder = 0.2;
  config.corrupt = 0.1;
  config.truncate = 0.1;
  config.delay_nanos = 1000;
  config.jitter_nanos = 500;
  config.bits_per_s = 999'999'937;
  config.queue_bytes = 4000;
  Wire wire(config, 42);
  wire.send_numbered(2000, 300, 2500);
  wire.faults.flush(5'000'000, wire.sink);
  std::uint64_t digest = 0;
  for (const RecordingSink::Delivery& delivery : wire.sink.deliveries) {
    digest = mix64(digest ^ delivery.release_nanos);
    for (const std::uint8_t byte : delivery.bytes) digest = mix64(digest ^ byte);
  }
  EXPECT_EQ(wire.sink.deliveries.size(), 1970U);
  EXPECT_EQ(digest, 14278370093576885252U);
}

TEST(Faults, UniformLossIsAsOftenAsAsked) {
  FaultConfig config;
  config.loss = 0.01;
  Wire wire(config);
  wire.send_numbered(200'000, 4);
  EXPECT_NEAR(static_cast<double>(wire.counts.get(Count::fault_loss)), 2000, 150);
}

/// Gilbert 1960, Elliott 1963: the share of time in the bad state is enter / (enter + leave), a stay there lasts
/// 1 / leave frames on average.
TEST(Faults, BurstLossHasItsStationaryShareAndLength) {
  constexpr std::uint32_t kFrames = 500'000;
  FaultConfig config;
  config.burst_loss_enter = 0.01;
  config.burst_loss_leave = 0.1;
  Wire wire(config);
  wire.send_numbered(kFrames, 4);
  const auto lost = static_cast<double>(wire.counts.get(Count::fault_loss));
  EXPECT_NEAR(lost / kFrames, 0.01 / 0.11, 0.003);
  std::uint32_t bursts = 0;
  std::uint32_t expected = 0;
  for (const std::uint32_t number : wire.numbers()) {
    bursts += number != expected ? 1 : 0;
    expected = number + 1;
  }
  EXPECT_NEAR(lost / bursts, 10, 0.4);
}

TEST(Faults, InTheBadStateOnlySomeMayBeLost) {
  FaultConfig config;
  config.burst_loss_enter = 1;
  config.burst_loss_leave = 0;
  config.burst_loss = 0.25;
  Wire wire(config);
  wire.send_numbered(100'000, 4);
  EXPECT_NEAR(static_cast<double>(wire.counts.get(Count::fault_loss)), 25'000, 600);
}

TEST(Faults, TheBadStateEndsWhenBurstLossIsTurnedOff) {
  FaultConfig config;
  config.burst_loss_enter = 1;
  Wire wire(config);
  wire.send_numbered(1);
  FaultConfig other;
  other.corrupt = 0.5;
  wire.faults.configure(other);
  wire.send_numbered(10);
  EXPECT_EQ(wire.counts.get(Count::fault_loss), 1U);
  EXPECT_EQ(wire.sink.deliveries.size(), 10U);
}

TEST(Faults, ADuplicateFollowsAndMeetsFaultsOfItsOwn) {
  FaultConfig config;
  config.duplicate = 1;
  Wire wire(config);
  wire.send_numbered(3);
  EXPECT_EQ(wire.numbers(), (std::vector<std::uint32_t>{0, 0, 1, 1, 2, 2}));

  config.corrupt = 1;
  Wire both(config);
  both.send_numbered(1, 1500);
  ASSERT_EQ(both.sink.deliveries.size(), 2U);
  EXPECT_NE(both.sink.deliveries[0].bytes, both.sink.deliveries[1].bytes);
  for (const auto& delivery : both.sink.deliveries) {
    EXPECT_EQ(distance(delivery.bytes, frame_of_number(0, 1500)), 1U);
  }
}

TEST(Faults, CutsAndBitsFallAnywhere) {
  FaultConfig config;
  config.truncate = 1;
  Wire cut(config);
  for (int i = 0; i < 2000; ++i) cut.send(frame_of_number(0, 10));
  std::set<std::size_t> lengths;
  for (const auto& delivery : cut.sink.deliveries) lengths.insert(delivery.bytes.size());
  EXPECT_EQ(lengths, (std::set<std::size_t>{1, 2, 3, 4, 5, 6, 7, 8, 9}));

  config = {};
  config.corrupt = 1;
  Wire flip(config);
  for (int i = 0; i < 2000; ++i) flip.send(std::vector<std::uint8_t>(10));
  std::set<std::vector<std::uint8_t>> results;
  for (const auto& delivery : flip.sink.deliveries) results.insert(delivery.bytes);
  EXPECT_EQ(results.size(), 80U);
}

TEST(Faults, ReorderingEveryFrameKeepsTheOrder) {
  FaultConfig config;
  config.reorder = 1;
  config.reorder_depth = 3;
  Wire wire(config);
  wire.send_numbered(10);
  EXPECT_EQ(wire.numbers(), (std::vector<std::uint32_t>{0, 1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(wire.faults.held(), 3U);
}

TEST(Faults, WhatIsHeldBackStaysWhenReorderingEnds) {
  FaultConfig config;
  config.reorder = 1;
  config.reorder_depth = 2;
  Wire wire(config);
  wire.send_numbered(1);
  wire.faults.configure({});
  EXPECT_TRUE(wire.faults.active());
  wire.send(frame_of_number(1, 64), 50);
  wire.send(frame_of_number(2, 64), 60);
  EXPECT_EQ(wire.numbers(), (std::vector<std::uint32_t>{1, 2, 0}));
  EXPECT_EQ(wire.sink.deliveries[2].release_nanos, 60U);
  EXPECT_FALSE(wire.faults.active());
}

TEST(Faults, FramesBeyondTheLongestAreNeitherDoubledNorHeld) {
  FaultConfig config;
  config.duplicate = 1;
  config.reorder = 1;
  Wire wire(config);
  wire.send(frame_of_number(0, Faults::kMaxFrame + 1));
  EXPECT_EQ(wire.sink.deliveries.size(), 1U);
  EXPECT_TRUE(wire.conserves());
  wire.send(frame_of_number(0, Faults::kMaxFrame));
  EXPECT_EQ(wire.faults.held(), 2U);
}

TEST(Faults, DelayAndJitterStayWithinTheirBounds) {
  FaultConfig config;
  config.delay_nanos = 1000;
  config.jitter_nanos = 3;
  Wire wire(config);
  wire.send_numbered(1000, 64, 10);
  std::set<std::uint64_t> added;
  for (std::uint64_t i = 0; i < 1000; ++i) added.insert(wire.sink.deliveries[i].release_nanos - i * 10);
  EXPECT_EQ(added, (std::set<std::uint64_t>{1000, 1001, 1002, 1003}));
}

TEST(Faults, TheLinkFlapsInItsPattern) {
  FaultConfig config;
  config.flap_frames = 3;
  config.flap_lost = 2;
  Wire wire(config);
  std::vector<bool> up;
  for (std::uint32_t i = 0; i < 12; ++i) {
    up.push_back(wire.faults.link_up());
    wire.send(frame_of_number(i, 64));
  }
  EXPECT_EQ(up, (std::vector<bool>{true, true, true, false, false, true, true, true, false, false, true, true}));
  EXPECT_EQ(wire.numbers(), (std::vector<std::uint32_t>{0, 1, 2, 5, 6, 7, 10, 11}));
  EXPECT_EQ(wire.counts.get(Count::fault_flap), 4U);
  wire.send_numbered(1);
  EXPECT_FALSE(wire.faults.link_up());
  wire.faults.configure({});
  EXPECT_TRUE(wire.faults.link_up());
}

TEST(Faults, NothingPassesAfterAResetUntilOtherFaultsAreSet) {
  FaultConfig config;
  config.reset_frames = 2;
  Wire wire(config);
  wire.send_numbered(2);
  EXPECT_FALSE(wire.faults.was_reset());
  wire.send_numbered(3);
  EXPECT_TRUE(wire.faults.was_reset());
  EXPECT_FALSE(wire.faults.link_up());
  EXPECT_EQ(wire.numbers(), (std::vector<std::uint32_t>{0, 1}));
  EXPECT_EQ(wire.counts.get(Count::fault_reset), 3U);
  wire.faults.configure({});
  EXPECT_TRUE(wire.faults.link_up());
  EXPECT_FALSE(wire.faults.was_reset());
}

TEST(Faults, PollsDrawFromStreamsOfTheirOwn) {
  Faults::PollDraw draw(7);
  EXPECT_FALSE(draw.happens(0));
  EXPECT_TRUE(draw.happens(1));
  int happened = 0;
  for (int i = 0; i < 100'000; ++i) happened += draw.happens(0.3) ? 1 : 0;
  EXPECT_NEAR(happened, 30'000, 600);

  FaultConfig config;
  config.stall = 0.25;
  config.rx_out = 0.5;
  config.tx_full = 0.75;
  const Faults faults(config, 1);
  EXPECT_FALSE(faults.active());
  EXPECT_EQ(faults.stall(), 0.25);
  EXPECT_EQ(faults.rx_out(), 0.5);
  EXPECT_EQ(faults.tx_full(), 0.75);
}

}  // namespace
}  // namespace warpline::vnic
