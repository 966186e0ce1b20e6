// SPDX-License-Identifier: Apache-2.0
// The lane of a host without a receiver: what is done with bytes changes nothing of what is decided.
#include "warpline/stream/internal/lanes/host_lane.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "warpline/stream/gpu/lane_testing.h"

namespace warpline::stream::testing {
namespace {

TEST(HostLane, DecidesTheSameWhereBytesAreDiscarded) {
  const LaneShape shape{.connections = 20, .burst = 256, .slots = 2, .changes = 20, .ring_bytes = 1 << 14};
  const TestLane storing(shape, zeroed, zeroed);
  const TestLane discarding(shape, zeroed, zeroed, true);
  LaneTraffic traffic(shape, 5, {100, 100, 100, 50}, 1448, zeroed);
  HostLane first(storing.view());
  HostLane second(discarding.view());
  std::uint64_t bytes = 0;
  for (std::uint64_t sequence = 1; sequence <= 200; ++sequence) {
    SCOPED_TRACE(sequence);
    const BurstSlot slot = storing.slot(sequence);
    const std::uint32_t count = traffic.fill(slot, discarding.slot(sequence));
    first.take(sequence, count);
    second.take(sequence, count);
    ASSERT_NO_FATAL_FAILURE(expect_same_answers(slot, discarding.slot(sequence), count));
    bytes += slot.result->bytes;
    traffic.learn(slot);
  }
  EXPECT_GT(bytes, 1'000'000U);
  EXPECT_GT(traffic.ended(), 5U);
  const auto clean = [](std::byte byte) { return byte == std::byte{0}; };
  EXPECT_FALSE(std::ranges::all_of(storing.rings(), clean));
  EXPECT_TRUE(std::ranges::all_of(discarding.rings(), clean));
}

}  // namespace
}  // namespace warpline::stream::testing
