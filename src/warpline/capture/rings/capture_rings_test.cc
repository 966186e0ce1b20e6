// SPDX-License-Identifier: Apache-2.0
#include "warpline/capture/rings/capture_rings.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

namespace warpline::capture {
namespace {

constexpr RingShape kShape{4, 100};

TEST(CaptureRings, AreTheSameMemoryForWhoMapsThem) {
  const auto made = CaptureRings::make(2, kShape);
  ASSERT_TRUE(made) << made.error().message();
  const auto mapped = CaptureRings::map(dup(made->descriptor()), 2, kShape);
  ASSERT_TRUE(mapped) << mapped.error().message();
  CaptureRingInput input = made->input(1);
  CaptureRingOutput output = mapped->output(1);
  CaptureRingOutput other = mapped->output(0);
  input.free_slot()->port = 7;
  input.put();
  ASSERT_NE(output.front(), nullptr);
  EXPECT_EQ(output.front()->port, 7);
  EXPECT_EQ(other.front(), nullptr);
}

TEST(CaptureRings, OfAnotherShapeAreRefused) {
  const auto made = CaptureRings::make(2, kShape);
  ASSERT_TRUE(made);
  for (const auto& [count, shape] : {std::pair{1U, kShape},
                                     {0U, kShape},
                                     {2U, RingShape{8, 100}},
                                     {2U, RingShape{4, 300}},
                                     {CaptureRings::kMost + 1, kShape},
                                     {2U, RingShape{3, 100}},
                                     {2U, RingShape{0, 100}}}) {
    EXPECT_FALSE(CaptureRings::map(dup(made->descriptor()), count, shape)) << count << " " << shape.slots;
  }
}

TEST(CaptureRings, MemoryThatCouldShrinkIsRefused) {
  const int descriptor = memfd_create("test", MFD_CLOEXEC);
  ASSERT_EQ(ftruncate(descriptor, static_cast<off_t>(kShape.bytes())), 0);
  EXPECT_FALSE(CaptureRings::map(descriptor, 1, kShape));
  EXPECT_FALSE(CaptureRings::map(-1, 1, kShape));
}

TEST(CaptureRings, TheirSizeIsSealed) {
  const auto made = CaptureRings::make(1, kShape);
  ASSERT_TRUE(made);
  EXPECT_NE(ftruncate(made->descriptor(), 0), 0);
}

}  // namespace
}  // namespace warpline::capture
