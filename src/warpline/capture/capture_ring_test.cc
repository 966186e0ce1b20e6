// SPDX-License-Identifier: Apache-2.0
#include "warpline/capture/capture_ring.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <deque>
#include <thread>
#include <vector>

namespace warpline::capture {
namespace {

constexpr std::uint32_t kSnaplen = 100;

TEST(CaptureRing, TakesAPowerOfTwoOfSlotsOutOfItsMemory) {
  EXPECT_EQ(CaptureRing(0, kSnaplen).slots(), 2U);
  EXPECT_EQ(CaptureRing(128 * 7, kSnaplen).slots(), 4U);  // of 128 bytes each
  EXPECT_EQ(CaptureRing(128 * 8, kSnaplen).slots(), 8U);
}

RC_GTEST_PROP(CaptureRing, GivesBackWhatFitsInOrder, (const std::vector<bool>& puts)) {
  CaptureRing ring(0x200, kSnaplen);
  std::deque<std::uint64_t> model;
  std::uint64_t number = 0;
  for (const bool put : puts) {
    if (put) {
      CapturedPacket* const slot = ring.free_slot();
      RC_ASSERT((slot == nullptr) == (model.size() == ring.slots()));
      if (slot == nullptr) continue;
      RC_ASSERT(ring.free_slot() == slot);  // until it is put
      slot->ticks = ++number;
      std::fill_n(slot->bytes(), kSnaplen, static_cast<std::uint8_t>(number));
      ring.put();
      model.push_back(number);
    } else {
      const CapturedPacket* const packet = ring.front();
      RC_ASSERT((packet == nullptr) == model.empty());
      if (packet == nullptr) continue;
      RC_ASSERT(packet->ticks == model.front());
      const auto is_its_own = [&](std::uint8_t byte) { return byte == static_cast<std::uint8_t>(packet->ticks); };
      RC_ASSERT(std::all_of(packet->bytes(), packet->bytes() + kSnaplen, is_its_own));
      ring.pop();
      model.pop_front();
    }
  }
}

TEST(CaptureRing, EachPacketIsTakenOrRefusedAndNoneIsTorn) {
  constexpr std::uint64_t kPackets = 200'000;
  CaptureRing ring(0x400, kSnaplen);
  std::uint64_t refused = 0;
  std::atomic<bool> ended{false};
  std::thread putter([&] {
    for (std::uint64_t i = 1; i <= kPackets; ++i) {
      CapturedPacket* const slot = ring.free_slot();
      if (slot == nullptr) {
        ++refused;
        continue;
      }
      slot->ticks = i;
      std::fill_n(slot->bytes(), kSnaplen, static_cast<std::uint8_t>(i));
      ring.put();
    }
    ended.store(true, std::memory_order_release);
  });
  std::uint64_t taken = 0;
  std::uint64_t before = 0;
  std::uint64_t wrong = 0;
  for (;;) {
    const bool last = ended.load(std::memory_order_acquire);
    while (const CapturedPacket* const packet = ring.front()) {
      wrong += packet->ticks > before ? 0 : 1;
      before = packet->ticks;
      for (std::uint32_t i = 0; i < kSnaplen; ++i)
        wrong += packet->bytes()[i] == static_cast<std::uint8_t>(packet->ticks) ? 0 : 1;
      ++taken;
      ring.pop();
    }
    if (last) break;
    std::this_thread::yield();
  }
  putter.join();
  EXPECT_EQ(wrong, 0U);
  EXPECT_EQ(taken + refused, kPackets);
}

}  // namespace
}  // namespace warpline::capture
