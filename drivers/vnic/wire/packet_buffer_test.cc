// SPDX-License-Identifier: Apache-2.0
#include "vnic/wire/packet_buffer.h"

#include <gtest/gtest.h>

#include <deque>
#include <thread>
#include <vector>

#include "warpline/base/property_testing.h"
#include "warpline/base/random.h"

namespace warpline::vnic {
namespace {

std::uint8_t byte_of(std::uint64_t frame, std::uint32_t at) { return static_cast<std::uint8_t>(mix64(frame) + at * 7); }

FrameInfo info_of(std::uint64_t frame, std::uint32_t length) {
  return {frame, length, static_cast<std::uint32_t>(frame * 3), static_cast<std::uint32_t>(frame * 5), 14, frame << 50};
}

std::vector<std::uint8_t> frame_of(std::uint64_t frame, std::uint32_t length) {
  std::vector<std::uint8_t> bytes(length + 1);  // so that none has a null pointer
  for (std::uint32_t i = 0; i < length; ++i) bytes[i] = byte_of(frame, i);
  return bytes;
}

::testing::AssertionResult is_frame(PacketBuffer::Front front, std::uint64_t frame, std::uint32_t length) {
  if (front.info == nullptr) return ::testing::AssertionFailure() << "no frame";
  const FrameInfo expected = info_of(frame, length);
  if (std::memcmp(front.info, &expected, sizeof expected) != 0) {
    return ::testing::AssertionFailure() << "frame " << front.info->release_nanos << " of " << front.info->length
                                         << " bytes instead of " << frame << " of " << length;
  }
  for (std::uint32_t i = 0; i < length; ++i) {
    if (front.frame[i] != byte_of(frame, i)) return ::testing::AssertionFailure() << "wrong byte at " << i;
  }
  return ::testing::AssertionSuccess();
}

TEST(PacketBuffer, GivesNothingWhenEmpty) {
  PacketBuffer buffer(4096);
  EXPECT_EQ(buffer.front().info, nullptr);
  EXPECT_EQ(buffer.frames(), 0U);
}

TEST(PacketBuffer, TakesFramesUpToItsBytes) {
  PacketBuffer buffer(1024);
  const std::vector<std::uint8_t> frame = frame_of(0, 64);
  std::uint64_t fit = 0;
  while (buffer.push(info_of(fit, 64), frame.data())) ++fit;
  EXPECT_EQ(fit, 1024 / PacketBuffer::record_bytes(64));
  EXPECT_EQ(buffer.frames(), fit);
  buffer.pop();
  EXPECT_TRUE(buffer.push(info_of(fit, 64), frame.data()));
  EXPECT_FALSE(buffer.push(info_of(fit, 64), frame.data()));
}

TEST(PacketBuffer, RefusesWhatNeverFits) {
  PacketBuffer buffer(1 << 20);
  EXPECT_EQ(buffer.reserve(info_of(0, PacketBuffer::kMaxFrame + 1)), nullptr);
  EXPECT_EQ(buffer.reserve(info_of(0, 0xffffffff)), nullptr);
  EXPECT_NE(buffer.reserve(info_of(0, PacketBuffer::kMaxFrame)), nullptr);
  EXPECT_EQ(PacketBuffer(64).reserve(info_of(0, 60)), nullptr);
}

TEST(PacketBuffer, AReservedFrameIsThereOnceCommitted) {
  PacketBuffer buffer(4096);
  ASSERT_NE(buffer.reserve(info_of(9, 100)), nullptr);
  EXPECT_EQ(buffer.front().info, nullptr);
  std::uint8_t* const room = buffer.reserve(info_of(1, 50));  // takes the other one back
  for (std::uint32_t i = 0; i < 50; ++i) room[i] = byte_of(1, i);
  buffer.commit();
  EXPECT_TRUE(is_frame(buffer.front(), 1, 50));
}

TEST(PacketBuffer, RoomComesBackOnlyWhenGivenBack) {
  PacketBuffer buffer(96);
  const std::vector<std::uint8_t> frame = frame_of(0, 64);
  ASSERT_TRUE(buffer.push(info_of(0, 64), frame.data()));
  ASSERT_NE(buffer.front().info, nullptr);
  buffer.take();
  EXPECT_EQ(buffer.front().info, nullptr);
  EXPECT_FALSE(buffer.push(info_of(1, 64), frame.data()));
  buffer.give_back();
  EXPECT_TRUE(buffer.push(info_of(1, 64), frame.data()));
}

TEST(PacketBuffer, AQueueThatKeepsUpStaysInFewBytes) {
  PacketBuffer buffer(1 << 20);
  const std::vector<std::uint8_t> frame = frame_of(0, 64);
  const std::uint8_t* lowest = nullptr;
  const std::uint8_t* highest = nullptr;
  for (std::uint64_t i = 0; i < 10000; ++i) {
    ASSERT_TRUE(buffer.push(info_of(i, 64), frame.data()));
    const PacketBuffer::Front front = buffer.front();
    if (lowest == nullptr || front.frame < lowest) lowest = front.frame;
    if (front.frame > highest) highest = front.frame;
    buffer.pop();
  }
  EXPECT_LT(highest - lowest, 32 * 1024);
}

TEST(PacketBuffer, ClearForgetsAllFrames) {
  PacketBuffer buffer(4096);
  const std::vector<std::uint8_t> frame = frame_of(0, 64);
  while (buffer.push(info_of(0, 64), frame.data())) {
  }
  buffer.pop();
  buffer.clear();
  EXPECT_EQ(buffer.front().info, nullptr);
  EXPECT_EQ(buffer.frames(), 0U);
  ASSERT_TRUE(buffer.push(info_of(1, 64), frame_of(1, 64).data()));
  EXPECT_TRUE(is_frame(buffer.front(), 1, 64));
}

/// Against a deque and a count of bytes: the same frames fit, and come out the same.
WARPLINE_PROPERTY(PacketBuffer, IsAQueueOfBoundedBytes, ()) {
  const auto bytes = *rc::gen::inRange<std::size_t>(1, 70000);
  PacketBuffer buffer(bytes);
  const std::uint64_t size = (bytes + 63) / 64 * 64;
  struct Entry {
    std::uint64_t frame;
    std::uint32_t length;
  };
  std::deque<Entry> model;
  std::deque<std::uint64_t> taken;  // bytes not given back
  std::uint64_t used = 0;
  Random random(*rc::gen::arbitrary<std::uint64_t>());
  const auto longest = *rc::gen::element<std::uint64_t>(1, 64, 300, 9000, 65535);
  const auto pushes_of_8 = *rc::gen::inRange<std::uint64_t>(2, 7);
  for (std::uint64_t step = 0; step < 600; ++step) {
    if (random.below(8) < pushes_of_8) {
      const auto length = static_cast<std::uint32_t>(random.below(longest + 1));
      const bool fits = used + PacketBuffer::record_bytes(length) <= size;
      RC_ASSERT(buffer.push(info_of(step, length), frame_of(step, length).data()) == fits);
      if (!fits) continue;
      model.push_back({step, length});
      used += PacketBuffer::record_bytes(length);
    } else if (model.empty()) {
      RC_ASSERT(buffer.front().info == nullptr);
    } else {
      RC_ASSERT(is_frame(buffer.front(), model.front().frame, model.front().length));
      buffer.take();
      taken.push_back(PacketBuffer::record_bytes(model.front().length));
      model.pop_front();
    }
    if (random.below(4) == 0) {
      buffer.give_back();
      for (; !taken.empty(); taken.pop_front()) used -= taken.front();
    }
    RC_ASSERT(buffer.frames() == model.size());
  }
}

TEST(PacketBuffer, PassesFramesBetweenTwoThreads) {
  constexpr std::uint64_t kFrames = 20000;
  PacketBuffer buffer(8192);
  const auto length_of = [](std::uint64_t frame) { return static_cast<std::uint32_t>(mix64(frame ^ 1) % 700); };
  std::thread producer([&] {
    for (std::uint64_t i = 0; i < kFrames;) {
      std::uint8_t* const room = buffer.reserve(info_of(i, length_of(i)));
      if (room == nullptr) {
        std::this_thread::yield();
        continue;
      }
      for (std::uint32_t at = 0; at < length_of(i); ++at) room[at] = byte_of(i, at);
      buffer.commit();
      ++i;
    }
  });
  std::uint64_t wrong = 0;
  for (std::uint64_t i = 0; i < kFrames;) {
    const PacketBuffer::Front front = buffer.front();
    if (front.info == nullptr) {
      buffer.give_back();
      std::this_thread::yield();
      continue;
    }
    wrong += is_frame(front, i, length_of(i)) ? 0 : 1;
    buffer.take();
    if (i % 5 == 0) buffer.give_back();
    ++i;
  }
  producer.join();
  EXPECT_EQ(wrong, 0U);
  EXPECT_EQ(buffer.frames(), 0U);
}

}  // namespace
}  // namespace warpline::vnic
