// SPDX-License-Identifier: Apache-2.0
// Each malformed frame on its way through the workloads that look into frames.
#include <gtest/gtest.h>

#include "frames/malformed_frames.h"
#include "warpline/packet/frame_testing.h"
#include "warpline/workload/with_workload.h"

namespace warpline {
namespace {

constexpr std::uint16_t kMtu = 1500;

TEST(MalformedWorkload, ChecksumDropsEachForItsReasonAndChangesNone) {
  workload::with_workload(WorkloadKind::checksum, Nanos{0}, kMtu, [](auto work) {
    for (const MalformedFrame& malformed : malformed_frames()) {
      packet::SegmentedFrame frame(malformed.bytes);
      EXPECT_EQ(name(work(frame.ref())), name(malformed.verdict)) << malformed.name;
      EXPECT_EQ(frame.bytes(), malformed.bytes) << malformed.name;
    }
  });
}

TEST(MalformedWorkload, CountForwardsAllButRunts) {
  workload::with_workload(WorkloadKind::count, Nanos{0}, kMtu, [](auto work) {
    for (const MalformedFrame& malformed : malformed_frames()) {
      packet::SegmentedFrame frame(malformed.bytes);
      const Verdict expected = malformed.verdict == Verdict::runt ? Verdict::runt : Verdict::forward;
      EXPECT_EQ(name(work(frame.ref())), name(expected)) << malformed.name;
    }
  });
}

}  // namespace
}  // namespace warpline
