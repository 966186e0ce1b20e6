// SPDX-License-Identifier: Apache-2.0
#include "warpline/batching/adaptive_batch.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "warpline/base/property_testing.h"

namespace warpline::batching {
namespace {

using Decision = AdaptiveBatch::Decision;

TEST(AdaptiveBatch, SubmitsAPacketAtOnceWhileTheEngineIsIdle) {
  AdaptiveBatch batch({.largest = 64, .deadline = 100, .most_in_flight = 4});
  EXPECT_EQ(batch.decide(7, 1, 7).count, 1);
}

TEST(AdaptiveBatch, HasNothingToSayWhenNothingWaits) {
  AdaptiveBatch batch({.largest = 64, .deadline = 100, .most_in_flight = 4});
  const Decision decision = batch.decide(7, 0, 0);
  EXPECT_EQ(decision.count, 0);
  EXPECT_EQ(decision.look_again, AdaptiveBatch::kNever);
  EXPECT_EQ(decision.enough, 1);
}

TEST(AdaptiveBatch, SubmitsNothingWhileTheEngineTakesNoMore) {
  AdaptiveBatch batch({.largest = 64, .deadline = 0, .most_in_flight = 1});
  batch.submitted(0, 1);
  EXPECT_EQ(batch.decide(1'000'000, 64, 1).count, 0);
  batch.finished(1'000'001);
  EXPECT_EQ(batch.decide(1'000'001, 64, 1).count, 64);
}

TEST(AdaptiveBatch, SubmitsAFullBatchWhateverIsInFlight) {
  AdaptiveBatch batch({.largest = 64, .deadline = 1'000'000, .most_in_flight = 4});
  for (std::uint32_t i = 0; i < 4; ++i) {
    EXPECT_EQ(batch.decide(i, 64, 0).count, 64);
    batch.submitted(i, 64);
  }
  EXPECT_EQ(batch.decide(4, 64, 0).count, 0);
}

/// What is to hold whatever happens, in whatever order and at whatever time.
WARPLINE_PROPERTY(AdaptiveBatchProperty, KeepsItsBounds, (const std::vector<std::uint32_t>& steps)) {
  const std::uint32_t largest = *rc::gen::inRange<std::uint32_t>(1, 600);
  const std::uint32_t most = *rc::gen::inRange<std::uint32_t>(1, AdaptiveBatch::kMostInFlight + 1);
  const std::uint64_t deadline = *rc::gen::inRange<std::uint64_t>(0, 2000);
  AdaptiveBatch batch({largest, deadline, most});
  std::vector<std::uint64_t> waiting;
  std::uint64_t now = *rc::gen::arbitrary<std::uint32_t>();
  for (const std::uint32_t step : steps) {
    now += step % 512;
    if ((step >> 9) % 4 == 0 && batch.in_flight() > 0) batch.finished(now);
    waiting.insert(waiting.end(), (step >> 11) % 256, now);
    for (;;) {
      const Decision decision =
          batch.decide(now, static_cast<std::uint32_t>(waiting.size()), waiting.empty() ? 0 : waiting.front());
      RC_ASSERT(decision.count <= largest);
      RC_ASSERT(decision.count <= waiting.size());
      RC_ASSERT(batch.depth() >= 1 && batch.depth() <= most);
      if (batch.in_flight() == most) RC_ASSERT(decision.count == 0);
      if (batch.in_flight() == 0 && !waiting.empty()) RC_ASSERT(decision.count > 0);
      if (decision.count == 0) {
        if (batch.in_flight() < most && !waiting.empty()) {
          // It is due by the deadline, as long as no more is in flight than the engine works on side by side.
          RC_ASSERT(waiting.size() < largest);
          if (batch.in_flight() <= batch.depth()) RC_ASSERT(now - waiting.front() < deadline);
          RC_ASSERT(decision.look_again > now);
          RC_ASSERT(decision.enough > waiting.size());
        }
        break;
      }
      batch.submitted(now, decision.count);
      waiting.erase(waiting.begin(), waiting.begin() + decision.count);
    }
  }
}

}  // namespace
}  // namespace warpline::batching
