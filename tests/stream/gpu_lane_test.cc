// SPDX-License-Identifier: Apache-2.0
// A receiver whose segments a GPU takes: bytes are in its rings, around their ends too, and the peer sees TCP.
#include "warpline/stream_port/gpu_lane.h"

#include <gtest/gtest.h>

#include <array>
#include <optional>
#include <vector>

#include "gpu_lane_fixture.h"
#include "warpline/gpu/gpu_place.h"
#include "warpline/stream/seeded_payload.h"
#include "warpline/stream_port/payload/gpu_payload_lane.h"
#include "warpline/stream_port/seeded_comparer.h"

namespace warpline::gpu_lane_test {
namespace {

TEST_P(GpuLanes, ReceiveAConnection) {
  constexpr std::uint32_t kSegment = 1400;
  constexpr std::uint32_t kSegments = 3200;  // more than two rings
  ASSERT_NO_FATAL_FAILURE(open());
  std::array<std::uint8_t, StreamReceiver::kReplyBytes> reply;
  std::uint64_t released = 0;
  std::optional<stream::ConnectionId> id;
  for (std::uint32_t i = 0; i < kSegments; i += 32) {
    // Each burst comes from its end on, but for its last part.
    for (std::uint32_t k = 0; k < 32; ++k) {
      const std::uint32_t segment = i + (k < 16 ? 15 - k : k);
      give(1 + std::uint64_t{segment} * kSegment, kSegment, packet::kTcpAck);
    }
    settle();
    // The lane has written what the peer is told.
    std::uint32_t acknowledged = 0;
    while (next_reply(reply) != 0) acknowledged = packet::load_be32(reply.data() + 42);
    ASSERT_EQ(acknowledged, 1 + (i + 32) * kSegment);
    while (const auto event = receiver_->poll()) id = event->connection;
    ASSERT_TRUE(id);
    const auto view = receiver_->view(*id);
    ASSERT_TRUE(view);
    ASSERT_EQ(view->begin, released);
    ASSERT_EQ(view->bytes.size(), std::size_t{32} * kSegment);
    std::vector<std::uint8_t> bytes(view->bytes.size());
    ASSERT_TRUE(stream_->copy(bytes.data(), view->bytes.data(), bytes.size()).ok());
    ASSERT_TRUE(stream_->wait().ok());
    for (std::size_t k = 0; k < bytes.size(); ++k) ASSERT_EQ(bytes[k], streamed_byte(released + k)) << released + k;
    ASSERT_TRUE(receiver_->release(*id, bytes.size()));
    released += bytes.size();
    while (next_reply(reply) != 0) {  // that there is room again
    }
  }
  give(1 + released, 0, packet::kTcpAck | packet::kTcpFin);
  settle();
  EXPECT_EQ(receiver_->view(*id)->state, stream::ConnectionState::finished);
  EXPECT_EQ(receiver_->counters().bytes.get(), released);
  // Where the queue ends a round does, too.
  EXPECT_GE(receiver_->counters().lane_acknowledgements.get(), kSegments / 32);
  EXPECT_LE(receiver_->counters().lane_acknowledgements.get(), kSegments / 32 + (receiver_->has_queues() ? 20 : 0));
  EXPECT_EQ(receiver_->counters().get(stream::Disposition::stored), kSegments);
}

INSTANTIATE_TEST_SUITE_P(Kinds, GpuLanes,
                         testing::Values(GpuLaneKind{EngineKind::persistent, MemoryKind::device},
                                         GpuLaneKind{EngineKind::launch, MemoryKind::device},
                                         GpuLaneKind{EngineKind::persistent, MemoryKind::pinned},
                                         GpuLaneKind{EngineKind::persistent, MemoryKind::device, 256},
                                         GpuLaneKind{EngineKind::persistent, MemoryKind::pinned, 256}));

TEST(GpuLane, IsNotMadeOfWhatDoesNotGoTogetherNorWithoutAGpu) {
  const stream::LaneShape shape = stream::lane_shape(gpu_lane_settings());
  EXPECT_FALSE(stream_port::make_gpu_stream_lane(shape, {.engine = EngineKind::graph}).ok());
  EXPECT_FALSE(stream_port::make_gpu_stream_lane(shape, {.rings = MemoryKind::host}).ok());
  EXPECT_FALSE(stream_port::make_gpu_stream_lane(stream::lane_shape(gpu_lane_settings(), 64, 4, 256),
                                                 {.engine = EngineKind::launch})
                   .ok());
  if (gpu::list_gpus().ok()) GTEST_SKIP() << "there is a GPU";
  const auto lane = stream_port::make_gpu_stream_lane(shape, {});
  ASSERT_FALSE(lane.ok());
  EXPECT_EQ(lane.error().kind, ErrorKind::environment);
}

/// CUDA C++ Programming Guide, technical specifications: 128 resident grids from compute capability 7.0 on. One more
/// kernel would wait for one that stays.
TEST(GpuLane, ClaimsPlaceForItsKernelBeforeItStarts) {
  if (!gpu::list_gpus().ok()) GTEST_SKIP() << "no GPU";
  constexpr std::size_t kGrids = 128;
  stream::ReceiverSettings settings = gpu_lane_settings();
  settings.connections = 1;
  const stream::LaneShape shape = stream::lane_shape(settings, 64, 4);
  const stream::SeededPayload payload(1);
  const stream::PayloadShape rings{.connections = 1, .ring_bytes = kRing};
  std::vector<std::unique_ptr<stream::SegmentLane>> lanes;
  std::optional<Error> refused;
  while (!refused && lanes.size() <= kGrids) {
    auto lane = stream_port::make_gpu_stream_lane(shape, {.rings = MemoryKind::pinned});
    if (lane.ok()) {
      lanes.push_back(std::move(lane).value());
    } else {
      refused = lane.error();
    }
  }
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->kind, ErrorKind::environment) << refused->message();
  // A slice of a GPU may have place for fewer.
  if (gpu::find_gpu(0)->multiprocessors >= static_cast<int>(kGrids)) {
    EXPECT_EQ(lanes.size(), kGrids);
  }
  EXPECT_FALSE(stream_port::make_gpu_comparer(0, payload).ok());
  EXPECT_FALSE(stream_port::make_gpu_payload_lane(rings, payload, 0, MemoryKind::device).ok());
  lanes.clear();
  EXPECT_TRUE(stream_port::make_gpu_comparer(0, payload).ok());
  EXPECT_TRUE(stream_port::make_gpu_payload_lane(rings, payload, 0, MemoryKind::device).ok());
}

}  // namespace
}  // namespace warpline::gpu_lane_test
