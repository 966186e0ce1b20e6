// SPDX-License-Identifier: Apache-2.0
#include "warpline/capture/rings/capture_ring.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <thread>
#include <vector>

#include "warpline/base/property_testing.h"

namespace warpline::capture {
namespace {

constexpr std::uint32_t kSnaplen = 100;

/// A ring in memory of its own, both ends in one process.
struct BothEnds {
  explicit BothEnds(std::size_t bytes)
      : shape(RingShape::within(bytes, kSnaplen)),
        memory(shape.bytes() / RingShape::kLine),
        input(memory.front().bytes, shape),
        output(memory.front().bytes, shape) {}

  struct alignas(RingShape::kLine) Line {
    std::byte bytes[RingShape::kLine] = {};
  };
  RingShape shape;
  std::vector<Line> memory;
  CaptureRingInput input;
  CaptureRingOutput output;
};

TEST(CaptureRing, TakesAPowerOfTwoOfSlotsOutOfItsMemory) {
  EXPECT_EQ(RingShape::within(0, kSnaplen).slots, 2U);
  EXPECT_EQ(RingShape::within(128 * 7, kSnaplen).slots, 4U);  // of 128 bytes each
  EXPECT_EQ(RingShape::within(128 * 8, kSnaplen).slots, 8U);
}

WARPLINE_PROPERTY(CaptureRing, GivesBackWhatFitsInOrder, (const std::vector<bool>& puts)) {
  BothEnds ring(0x200);
  std::deque<std::uint64_t> model;
  std::uint64_t number = 0;
  for (const bool put : puts) {
    if (put) {
      CapturedPacket* const slot = ring.input.free_slot();
      RC_ASSERT((slot == nullptr) == (model.size() == ring.shape.slots));
      if (slot == nullptr) continue;
      RC_ASSERT(ring.input.free_slot() == slot);  // until it is put
      slot->ticks = ++number;
      std::fill_n(slot->bytes(), kSnaplen, static_cast<std::uint8_t>(number));
      ring.input.put();
      model.push_back(number);
    } else {
      const CapturedPacket* const packet = ring.output.front();
      RC_ASSERT((packet == nullptr) == model.empty());
      if (packet == nullptr) continue;
      RC_ASSERT(packet->ticks == model.front());
      const auto is_its_own = [&](std::uint8_t byte) { return byte == static_cast<std::uint8_t>(packet->ticks); };
      RC_ASSERT(std::all_of(packet->bytes(), packet->bytes() + kSnaplen, is_its_own));
      ring.output.pop();
      model.pop_front();
    }
  }
}

TEST(CaptureRing, EachPacketIsTakenOrRefusedAndNoneIsTorn) {
  constexpr std::uint64_t kPackets = 200'000;
  BothEnds ring(0x400);
  std::uint64_t refused = 0;
  std::atomic<bool> ended{false};
  std::thread putter([&] {
    for (std::uint64_t i = 1; i <= kPackets; ++i) {
      CapturedPacket* const slot = ring.input.free_slot();
      if (slot == nullptr) {
        ++refused;
        continue;
      }
      slot->ticks = i;
      std::fill_n(slot->bytes(), kSnaplen, static_cast<std::uint8_t>(i));
      ring.input.put();
    }
    ended.store(true, std::memory_order_release);
  });
  std::uint64_t taken = 0;
  std::uint64_t before = 0;
  std::uint64_t wrong = 0;
  for (;;) {
    const bool last = ended.load(std::memory_order_acquire);
    while (const CapturedPacket* const packet = ring.output.front()) {
      wrong += packet->ticks > before ? 0 : 1;
      before = packet->ticks;
      for (std::uint32_t i = 0; i < kSnaplen; ++i)
        wrong += packet->bytes()[i] == static_cast<std::uint8_t>(packet->ticks) ? 0 : 1;
      ++taken;
      ring.output.pop();
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
