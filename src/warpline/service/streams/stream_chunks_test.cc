// SPDX-License-Identifier: Apache-2.0
#include "warpline/service/streams/stream_chunks.h"

#include <gtest/gtest.h>

namespace warpline::service {
namespace {

TEST(StreamChunks, HandOnWhatIsWhole) {
  StreamChunks chunks(2, 100);
  chunks.begin(1);
  EXPECT_EQ(chunks.reach(1, 40, false, Nanos{10}), 0U);
  EXPECT_EQ(chunks.reach(1, 99, false, Nanos{20}), 0U);
  EXPECT_EQ(chunks.times().count(), 0U);
  EXPECT_EQ(chunks.reach(1, 130, false, Nanos{50}), 100U);
  EXPECT_EQ(chunks.times().count(), 1U);
  EXPECT_EQ(chunks.times().max(), 40U);  // from its first byte on
  EXPECT_EQ(chunks.reach(1, 430, false, Nanos{60}), 400U);
  EXPECT_EQ(chunks.times().count(), 4U);
  EXPECT_EQ(chunks.times().quantile(0.5), 0U);  // those that came at once
  EXPECT_EQ(chunks.reach(1, 430, false, Nanos{70}), 400U);
  EXPECT_EQ(chunks.reach(1, 430, true, Nanos{80}), 430U);
  EXPECT_EQ(chunks.times().count(), 4U);
  // The next connection at that place.
  chunks.begin(1);
  EXPECT_EQ(chunks.reach(1, 100, false, Nanos{1000}), 100U);
  EXPECT_EQ(chunks.times().count(), 5U);
  EXPECT_EQ(chunks.reach(1, 150, false, Nanos{1100}), 100U);
  chunks.finish();
  EXPECT_EQ(chunks.reach(1, 150, false, Nanos{1200}), 150U);
}

TEST(StreamChunks, AreNotAskedFor) {
  StreamChunks chunks(2, 0);
  chunks.begin(1);
  EXPECT_EQ(chunks.reach(1, 7, false, Nanos{10}), 7U);
  EXPECT_EQ(chunks.times().count(), 0U);
}

}  // namespace
}  // namespace warpline::service
