// SPDX-License-Identifier: Apache-2.0
#include "warpline/message/internal/parts/sent_packets.h"

#include <gtest/gtest.h>

#include <map>

#include "warpline/base/property_testing.h"
#include "warpline/base/random.h"

namespace warpline::message {
namespace {

WARPLINE_PROPERTY(SentPackets, remembers_what_waits_and_gives_back_the_rest, ()) {
  // One number of rapidcheck's a case: thousands of them take longer than what is tested.
  Random random(*rc::gen::arbitrary<std::uint64_t>());
  const auto between = [&](int low, int high) {
    return low + static_cast<int>(random.below(static_cast<std::uint64_t>(high - low)));
  };
  SentBlocks pool(39, 2);
  SentPackets sent;
  std::map<std::uint64_t, std::uint32_t> waiting;
  const auto keep_all = [](const SentPacket&) { return false; };
  for (std::uint32_t step = 0; step < 600; ++step) {
    const auto kind = between(0, 10);
    if (kind < 5) {
      if (sent.reserve(pool, 0, 0) != SentPackets::Place::ready) continue;
      waiting[sent.next()] = step;
      SentPacket& packet = sent.add(pool);
      packet.message = step;
      packet.state = SentState::in_flight;
    } else if (kind < 6) {
      if (sent.may_skip(0)) sent.skip(pool);
    } else if (!waiting.empty()) {
      auto any = waiting.begin();
      std::advance(any, between(0, static_cast<int>(std::min<std::size_t>(waiting.size(), 40))));
      sent.settle(pool, any->first);
      waiting.erase(any);
      sent.raise_floor(pool, keep_all);
      RC_ASSERT(sent.floor() == (waiting.empty() ? sent.next() : waiting.begin()->first));
    }
    RC_ASSERT(sent.span() < SentPackets::kSpan);
    for (const auto& [number, message] : waiting) {
      RC_ASSERT(sent.at(pool, number).message == message);
      RC_ASSERT((sent.unsettled(pool, number) >> (number % 32) & 1) == 1U);
    }
  }
  sent.clear(pool);
  RC_ASSERT(pool.available() == 39U);
  RC_ASSERT(sent.held() == 0U);
}

TEST(SentPackets, have_a_first_block_when_other_sessions_hold_all_shared_ones) {
  SentBlocks pool(2, 2);
  SentPackets many;
  SentPackets few;
  while (many.reserve(pool, 0, 0) == SentPackets::Place::ready) many.add(pool);
  EXPECT_EQ(many.span(), 3 * SentBlock::kPackets);
  EXPECT_EQ(pool.available(), 0U);
  std::uint32_t sent = 0;
  for (; few.reserve(pool, 0, 0) == SentPackets::Place::ready; ++sent) few.add(pool);
  EXPECT_EQ(sent, SentBlock::kPackets);
  // Packets that want no acknowledgement need no block.
  for (std::uint32_t i = 0; i < 3 * SentBlock::kPackets; ++i) {
    ASSERT_TRUE(few.may_skip(0));
    EXPECT_EQ(few.skip(pool), sent + i);
  }
  for (std::uint32_t i = 0; i < sent; ++i) few.settle(pool, i);
  few.raise_floor(pool, [](const SentPacket&) { return false; });
  EXPECT_EQ(few.held(), 0U);
  EXPECT_EQ(few.floor(), few.next());
  EXPECT_EQ(few.reserve(pool, 0, 0), SentPackets::Place::ready);
  many.clear(pool);
  few.clear(pool);
  EXPECT_EQ(pool.available(), 2U);
}

}  // namespace
}  // namespace warpline::message
