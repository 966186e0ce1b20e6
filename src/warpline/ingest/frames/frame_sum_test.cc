// SPDX-License-Identifier: Apache-2.0
#include "warpline/ingest/frames/frame_sum.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <string>
#include <vector>

#include "warpline/base/random.h"
#include "warpline/flow/flow_testing.h"
#include "warpline/ingest/frames/host_frames.h"
#include "warpline/packet/frame_testing.h"

namespace warpline::ingest {
namespace {

constexpr const char* kSpead = "format=spead,packets=6,payload=30,heap=75,first=20";

flow::FramePlan plan_for_sum(const std::string& text) {
  return *flow::make_frame_plan(*flow::parse_frame_description(text), flow::PacketForm::ethernet);
}

/// A frame with all of its packets, of bytes that differ.
struct WholeFrame {
  explicit WholeFrame(const flow::FramePlan& plan) : memory(512), mask(plan.packets, 1) {
    std::uint8_t next = 0;
    for (std::byte& byte : memory.bytes()) byte = std::byte{next += 7};
    frame.data = reinterpret_cast<std::uint8_t*>(memory.bytes().data());
    frame.mask = mask.data();
    frame.present = plan.packets;
  }
  [[nodiscard]] std::uint64_t sum(const flow::FramePlan& plan, std::uint32_t lanes = 1) const {
    std::uint64_t all = frame_head_sum(frame);
    for (std::uint32_t slot = 0; slot < plan.packets; ++slot) {
      if (mask[slot] == 0) continue;
      for (std::uint32_t lane = 0; lane < lanes; ++lane) {
        all += payload_sum(plan, frame, frame_salt(frame), slot, lane, lanes);
      }
    }
    return all;
  }

  flow::AlignedMemory memory;
  std::vector<std::uint8_t> mask;
  flow::Frame frame{};
};

TEST(FrameSum, IsTheSameByAnyNumberOfLanes) {
  for (const char* text : {"packets=9,seq=0:64,payload=8:13", "packets=4,seq=0:32,payload=4:64", kSpead}) {
    const flow::FramePlan plan = plan_for_sum(text);
    const WholeFrame frame(plan);
    for (const std::uint32_t lanes : {2, 7, 32}) EXPECT_EQ(frame.sum(plan, lanes), frame.sum(plan)) << text;
  }
}

TEST(FrameSum, ChangesWithEveryByteThatArrivedAndWithNoOther) {
  for (const char* text : {"packets=9,seq=0:64,payload=8:13", kSpead}) {
    const flow::FramePlan plan = plan_for_sum(text);
    WholeFrame frame(plan);
    frame.mask[2] = 0;
    const std::uint64_t before = frame.sum(plan);
    const std::uint64_t gone = plan.slot_offset(2);
    for (std::uint64_t at = 0; at < frame.memory.bytes().size(); ++at) {
      frame.frame.data[at] ^= 1;
      const bool arrived = at < plan.frame_bytes() && (at < gone || at >= gone + plan.slot_bytes(2));
      EXPECT_EQ(frame.sum(plan) != before, arrived) << text << " at " << at;
      frame.frame.data[at] ^= 1;
    }
  }
}

TEST(FrameSum, ChangesWithWhatIsKnownOfTheFrame) {
  const flow::FramePlan plan = plan_for_sum("packets=9,seq=0:64,payload=8:13");
  WholeFrame frame(plan);
  std::vector<std::uint64_t> sums{frame.sum(plan)};
  ++frame.frame.key;
  sums.push_back(frame.sum(plan));
  ++frame.frame.index;
  sums.push_back(frame.sum(plan));
  ++frame.frame.first_sequence;
  sums.push_back(frame.sum(plan));
  ++frame.frame.epoch;
  sums.push_back(frame.sum(plan));
  ++frame.frame.missing;
  sums.push_back(frame.sum(plan));
  std::ranges::sort(sums);
  EXPECT_EQ(std::ranges::adjacent_find(sums), sums.end());
}

FrameTotals totals_of(const std::vector<int>& positions, const char* text) {
  const flow::FrameDescription description = *flow::parse_frame_description(text);
  const auto frames = *HostFrames::create(description, Bytes{1U << 20});
  for (const int position : positions) {
    packet::SegmentedFrame packet(
        packet::ipv4_frame(17, packet::udp_datagram(flow::numbered_packet(description, 5, position))));
    EXPECT_TRUE(frames->assemble(packet.ref()));
  }
  return *frames->end();
}

TEST(HostFrames, SumTheSameInAnyOrderThatTheWindowAllows) {
  constexpr const char* kText = "packets=8,seq=4:32,payload=12:21,stream=0:32";
  std::vector<int> positions(8 * 12);
  std::iota(positions.begin(), positions.end(), 0);
  const FrameTotals in_order = totals_of(positions, kText);
  EXPECT_EQ(in_order.counts.complete, 12U);
  EXPECT_EQ(in_order.consumed.packets, positions.size());
  EXPECT_EQ(in_order.consumed.bytes, 21 * positions.size());
  Random random(3);
  for (std::size_t i = 8; i + 8 < positions.size(); i += 8) {
    std::swap(positions[i + random.below(8)], positions[i + 8 + random.below(8)]);
  }
  EXPECT_EQ(totals_of(positions, kText).consumed, in_order.consumed);
  positions.erase(positions.begin() + 30);
  const FrameTotals lossy = totals_of(positions, kText);
  EXPECT_EQ(lossy.counts.incomplete, 1U);
  EXPECT_EQ(lossy.consumed.packets, positions.size());
  EXPECT_NE(lossy.consumed.sum, in_order.consumed.sum);
}

}  // namespace
}  // namespace warpline::ingest
