// SPDX-License-Identifier: Apache-2.0
#include "warpline/packet/frame_bytes.h"

#include <gtest/gtest.h>

#include "warpline/base/property_testing.h"
#include "warpline/packet/frame_testing.h"

namespace warpline::packet {
namespace {

TEST(FrameBytes, InPlaceWhenTheFirstSegmentHasThem) {
  SegmentedFrame frame(counting(10), {6});
  std::uint8_t scratch[10];
  EXPECT_EQ(bytes_at(frame.ref(), 2, 4, scratch), frame.ref().data() + 2);
  EXPECT_EQ(bytes_at(frame.ref(), 2, 5, scratch), scratch);
  EXPECT_EQ(scratch[4], 6);
  EXPECT_EQ(bytes_at(frame.ref(), 2, 9, scratch), nullptr);
  EXPECT_EQ(bytes_at(frame.ref(), 11, 1, scratch), nullptr);
}

TEST(FrameBytes, ALengthThatTheSegmentsDoNotHaveIsNotBelieved) {
  SegmentedFrame frame(counting(10), {3, 3});
  FrameRef lying = frame.ref();
  lying.length = 4000;
  std::uint8_t scratch[32];
  EXPECT_EQ(bytes_at(lying, 5, 20, scratch), nullptr);
  EXPECT_EQ(bytes_at(lying, 0xffffffff, 20, scratch), nullptr);
}

WARPLINE_PROPERTY(FrameBytesProperty, WhatIsScatteredIsGathered, (const FrameBytes& bytes, FrameBytes news)) {
  const auto cuts = *rc::gen::container<std::vector<std::uint32_t>>(rc::gen::inRange(0U, 9U));
  const auto offset = *rc::gen::inRange<std::size_t>(0, bytes.size() + 1);
  news.resize(std::min(news.size(), bytes.size() - offset));
  SegmentedFrame frame(bytes, cuts);
  scatter(frame.ref(), static_cast<std::uint32_t>(offset), news.data(), static_cast<std::uint32_t>(news.size()));
  FrameBytes expected = bytes;
  std::copy(news.begin(), news.end(), expected.begin() + static_cast<std::ptrdiff_t>(offset));
  RC_ASSERT(frame.bytes() == expected);
  FrameBytes back(news.size());
  RC_ASSERT(
      gather(frame.ref(), static_cast<std::uint32_t>(offset), static_cast<std::uint32_t>(back.size()), back.data()));
  RC_ASSERT(back == news);
}

}  // namespace
}  // namespace warpline::packet
