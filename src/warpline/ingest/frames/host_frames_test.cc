// SPDX-License-Identifier: Apache-2.0
#include "warpline/ingest/frames/host_frames.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "warpline/flow/batch_testing.h"
#include "warpline/packet/frame_testing.h"

namespace warpline::ingest {
namespace {

constexpr const char* kFourPackets = "packets=4,seq=4:64,payload=12:8,window=2";

/// Keeps what it is given of each frame; stops taking them when told to.
class KeptFrames final : public FrameConsumer {
 public:
  bool consume(const ReadyFrame& ready) override {
    EXPECT_EQ(ready.path, 6U);
    EXPECT_EQ(ready.gpu, -1);
    EXPECT_EQ(ready.stream, nullptr);
    if (frames.size() == most) return false;
    frames.push_back(ready.frame);
    masks.emplace_back(ready.frame.mask, ready.frame.mask + 4);
    payloads.emplace_back(ready.frame.data, ready.frame.data + 4 * 8);
    return true;
  }

  std::size_t most = 1000;
  std::vector<flow::Frame> frames;
  std::vector<std::vector<std::uint8_t>> masks;
  std::vector<std::vector<std::uint8_t>> payloads;
};

packet::FrameBytes packet_of_frames(std::int64_t position) {
  const flow::FrameDescription description = *flow::parse_frame_description(kFourPackets);
  return packet::ipv4_frame(17, packet::udp_datagram(flow::numbered_packet(description, 0, position)));
}

std::unique_ptr<HostFrames> frames_for(FrameConsumer& consumer, Nanos timeout = {}) {
  return *HostFrames::create(*flow::parse_frame_description(kFourPackets), Bytes{1U << 16}, &consumer, 6, timeout);
}

TEST(FramesForAConsumer, ComeCompleteAndAtTheEndWithWhatTheyLack) {
  KeptFrames kept;
  const auto frames = frames_for(kept);
  for (const int position : {0, 1, 2, 3, 4, 6, 7}) {
    EXPECT_EQ(kept.frames.size(), position < 4 ? 0U : 1U);
    packet::SegmentedFrame packet(packet_of_frames(position));
    EXPECT_TRUE(frames->assemble(packet.ref()));
  }
  const Result<FrameTotals> totals = frames->end();
  ASSERT_TRUE(totals.ok());
  EXPECT_EQ(totals->counts.complete, 1U);
  EXPECT_EQ(totals->counts.missing, 1U);
  EXPECT_EQ(totals->consumed.packets, 7U);
  ASSERT_EQ(kept.frames.size(), 2U);
  EXPECT_EQ(kept.frames[1].missing, 1U);
  EXPECT_EQ(kept.masks[1], (std::vector<std::uint8_t>{1, 0, 1, 1}));
  const packet::FrameBytes sent = packet_of_frames(6);
  EXPECT_TRUE(std::equal(sent.end() - 8, sent.end(), kept.payloads[1].begin() + 2 * 8));
}

/// Calls tick() as an idle engine does, for so long by its time.
void stay_idle(HostFrames& frames, std::uint64_t& now, Nanos time) {
  const std::uint64_t step = std::max<std::uint64_t>(nanos_to_ticks(time) / 4096, 1);
  for (const std::uint64_t end = now + nanos_to_ticks(time); now < end; now += step) frames.tick(now);
}

/// A source that pauses for good: what came is consumed by the engine's calls between packets.
TEST(FramesForAConsumer, ComeWithWhatTheyLackWhenTheSourceIsSilent) {
  constexpr Nanos kTimeout{1'000'000'000};
  for (const Nanos timeout : {kTimeout, Nanos{0}}) {
    KeptFrames kept;
    const auto frames = frames_for(kept, timeout);
    for (const int position : {0, 1, 2}) {
      packet::SegmentedFrame packet(packet_of_frames(position));
      EXPECT_TRUE(frames->assemble(packet.ref()));
    }
    std::uint64_t now = ticks_now();
    stay_idle(*frames, now, {kTimeout.value * 7 / 8});
    now += 100 * nanos_to_ticks(kTimeout);  // in which the thread did something else
    frames->tick(now);
    EXPECT_TRUE(kept.frames.empty());
    stay_idle(*frames, now, {kTimeout.value * 4 / 8});
    using Masks = std::vector<std::vector<std::uint8_t>>;
    const Masks expected = timeout.value == 0 ? Masks{} : Masks{{1, 1, 1, 0}};
    EXPECT_EQ(kept.masks, expected);
  }
}

TEST(FramesForAConsumer, ThatDoesNotGoOnAreAFailure) {
  KeptFrames kept;
  kept.most = 1;
  const auto frames = frames_for(kept);
  EXPECT_FALSE(frames->failure());
  for (int position = 0; position < 12; ++position) {
    packet::SegmentedFrame packet(packet_of_frames(position));
    EXPECT_EQ(frames->assemble(packet.ref()), position < 7);
  }
  ASSERT_TRUE(frames->failure());
  EXPECT_EQ(frames->failure()->kind, ErrorKind::environment);
  EXPECT_FALSE(frames->end().ok());
  EXPECT_EQ(kept.frames.size(), 1U);
}

}  // namespace
}  // namespace warpline::ingest
