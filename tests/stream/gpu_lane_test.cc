// SPDX-License-Identifier: Apache-2.0
// A receiver whose segments a GPU takes: bytes are in its rings, around their ends too, and the peer sees TCP.
#include "warpline/stream_port/gpu_lane.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "warpline/gpu/cuda_stream.h"
#include "warpline/gpu/device.h"
#include "warpline/gpu/memory/pinned_buffer.h"
#include "warpline/packet/tcp_frame.h"
#include "warpline/stream/stream_receiver.h"

namespace warpline {
namespace {

using memory::MemoryKind;
using stream::StreamReceiver;

constexpr std::uint32_t kRing = 2 << 20;  ///< a page of the GPU

stream::ReceiverSettings gpu_lane_settings() {
  stream::ReceiverSettings settings;
  settings.mac = {{2, 0, 0, 0, 0, 1}};
  settings.address = Ipv4Address{{10, 0, 0, 1}};
  settings.ports = {80};
  settings.connections = 4;
  settings.ring_bytes = kRing;
  settings.secret[0] = 1;
  return settings;
}

std::uint8_t byte_at(std::uint64_t offset) { return static_cast<std::uint8_t>(offset * 31 + offset / 256); }

class GpuLanes : public testing::TestWithParam<std::pair<EngineKind, MemoryKind>> {
 protected:
  static constexpr std::size_t kFrame = 2048;
  static constexpr std::uint32_t kFrames = 256;

  void SetUp() override {
    if (!gpu::list_gpus().ok()) GTEST_SKIP() << "no GPU";
    ASSERT_TRUE(gpu::use_gpu(0).ok());
    frames_.emplace(*gpu::PinnedBuffer::create(Bytes{kFrames * kFrame}));
    stream_.emplace(*gpu::CudaStream::create());
    const stream::ReceiverSettings settings = gpu_lane_settings();
    auto lane = stream_port::make_gpu_stream_lane(stream::lane_shape(settings, 64, 4),
                                                  {.engine = GetParam().first, .gpu = 0, .rings = GetParam().second});
    ASSERT_TRUE(lane.ok()) << lane.error().message();
    auto made = StreamReceiver::create(settings, now_, std::move(lane).value());
    ASSERT_TRUE(made.ok()) << made.error().message();
    receiver_.emplace(std::move(made).value());
  }

  void TearDown() override {
    if (!receiver_) return;
    EXPECT_FALSE(receiver_->lane_failure());
    receiver_->stop_lane();
  }

  void give(std::uint64_t offset, std::uint32_t length, std::uint8_t flags) {
    packet::TcpFrame frame;
    frame.destination_mac = {{2, 0, 0, 0, 0, 1}};
    frame.source_mac = {{2, 0, 0, 0, 0, 2}};
    frame.source = Ipv4Address{{10, 0, 0, 2}};
    frame.destination = Ipv4Address{{10, 0, 0, 1}};
    frame.tcp.source_port = 40'000;
    frame.tcp.destination_port = 80;
    frame.tcp.sequence = static_cast<std::uint32_t>(offset);
    frame.tcp.acknowledgement = acknowledgement_;
    frame.tcp.flags = flags;
    const std::uint32_t headers = packet::tcp_headers_length(frame);
    auto* const at = reinterpret_cast<std::uint8_t*>(frames_->data()) + next_++ % kFrames * kFrame;
    for (std::uint32_t i = 0; i < length; ++i) at[headers + i] = byte_at(offset - 1 + i);
    packet::ChecksumSum sum;
    sum.add(at + headers, length);
    static_cast<void>(packet::emit(frame, {at, headers + length}, length, sum));
    Segment segment{at, headers + length, 0, Verdict::forward};
    receiver_->give(frame_at(&segment), false, at);
  }

  void settle() {
    do {
      receiver_->end_burst(now_);
      if (!receiver_->collect(nullptr, now_)) std::this_thread::yield();
    } while (receiver_->in_flight() != 0 && !receiver_->lane_failure());
    std::array<void*, kFrames> tokens;
    while (receiver_->take_back(tokens) != 0) {
    }
  }

  Nanos now_{1'000'000'000};
  std::uint32_t acknowledgement_ = 0;
  std::uint32_t next_ = 0;
  std::optional<gpu::PinnedBuffer> frames_;
  std::optional<gpu::CudaStream> stream_;
  std::optional<StreamReceiver> receiver_;
};

TEST_P(GpuLanes, ReceiveAConnection) {
  constexpr std::uint32_t kSegment = 1400;
  constexpr std::uint32_t kSegments = 3200;  // more than two rings
  give(0, 0, packet::kTcpSyn);
  settle();
  std::array<std::uint8_t, StreamReceiver::kReplyBytes> reply;
  ASSERT_GT(receiver_->next_reply(reply, now_), 54U);
  acknowledgement_ = packet::load_be32(reply.data() + 38) + 1;
  give(1, 0, packet::kTcpAck);
  settle();
  std::uint64_t released = 0;
  std::optional<stream::ConnectionId> id;
  for (std::uint32_t i = 0; i < kSegments; i += 32) {
    // Each burst comes from its end on, but for its last part.
    for (std::uint32_t k = 0; k < 32; ++k) {
      const std::uint32_t segment = i + (k < 16 ? 15 - k : k);
      give(1 + std::uint64_t{segment} * kSegment, kSegment, packet::kTcpAck);
    }
    settle();
    while (receiver_->next_reply(reply, now_) != 0) {
    }
    while (const auto event = receiver_->poll()) id = event->connection;
    ASSERT_TRUE(id);
    const auto view = receiver_->view(*id);
    ASSERT_TRUE(view);
    ASSERT_EQ(view->begin, released);
    ASSERT_EQ(view->bytes.size(), std::size_t{32} * kSegment);
    std::vector<std::uint8_t> bytes(view->bytes.size());
    ASSERT_TRUE(stream_->copy(bytes.data(), view->bytes.data(), bytes.size()).ok());
    ASSERT_TRUE(stream_->wait().ok());
    for (std::size_t k = 0; k < bytes.size(); ++k) ASSERT_EQ(bytes[k], byte_at(released + k)) << released + k;
    ASSERT_TRUE(receiver_->release(*id, bytes.size()));
    released += bytes.size();
  }
  give(1 + released, 0, packet::kTcpAck | packet::kTcpFin);
  settle();
  EXPECT_EQ(receiver_->view(*id)->state, stream::ConnectionState::finished);
  EXPECT_EQ(receiver_->counters().bytes.get(), released);
  EXPECT_EQ(receiver_->counters().get(stream::Disposition::stored), kSegments);
}

INSTANTIATE_TEST_SUITE_P(Kinds, GpuLanes,
                         testing::Values(std::pair(EngineKind::persistent, MemoryKind::device),
                                         std::pair(EngineKind::launch, MemoryKind::device),
                                         std::pair(EngineKind::persistent, MemoryKind::pinned)));

TEST(GpuLane, IsNotMadeOfWhatDoesNotGoTogetherNorWithoutAGpu) {
  const stream::LaneShape shape = stream::lane_shape(gpu_lane_settings());
  EXPECT_FALSE(stream_port::make_gpu_stream_lane(shape, {.engine = EngineKind::graph}).ok());
  EXPECT_FALSE(stream_port::make_gpu_stream_lane(shape, {.rings = MemoryKind::host}).ok());
  if (gpu::list_gpus().ok()) GTEST_SKIP() << "there is a GPU";
  const auto lane = stream_port::make_gpu_stream_lane(shape, {});
  ASSERT_FALSE(lane.ok());
  EXPECT_EQ(lane.error().kind, ErrorKind::environment);
}

}  // namespace
}  // namespace warpline
