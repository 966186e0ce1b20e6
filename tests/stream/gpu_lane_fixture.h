// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <thread>
#include <utility>

#include "consume_on_gpu.h"
#include "warpline/gpu/cuda_stream.h"
#include "warpline/gpu/device.h"
#include "warpline/gpu/memory/pinned_buffer.h"
#include "warpline/packet/tcp_frame.h"
#include "warpline/stream/stream_receiver.h"
#include "warpline/stream_port/gpu_lane.h"

namespace warpline::gpu_lane_test {

using memory::MemoryKind;
using stream::StreamReceiver;

inline constexpr std::uint32_t kRing = 2 << 20;  ///< a page of the GPU

inline stream::ReceiverSettings gpu_lane_settings() {
  stream::ReceiverSettings settings;
  settings.mac = {{2, 0, 0, 0, 0, 1}};
  settings.address = Ipv4Address{{10, 0, 0, 1}};
  settings.ports = {80};
  settings.connections = 4;
  settings.ring_bytes = kRing;
  settings.secret[0] = 1;
  settings.lane_acknowledges = true;
  return settings;
}

struct GpuLaneKind {
  EngineKind engine;
  MemoryKind rings;
  std::uint32_t queue_slots = 0;
};

/// A receiver with a lane on a GPU, and frames of peers, whose sequence numbers begin at 0.
class GpuLanes : public testing::TestWithParam<GpuLaneKind> {
 protected:
  static constexpr std::size_t kFrame = 2048;
  static constexpr std::uint32_t kFrames = 256;

  void SetUp() override {
    if (!gpu::list_gpus().ok()) GTEST_SKIP() << "no GPU";
    ASSERT_TRUE(gpu::use_gpu(0).ok());
    frames_.emplace(*gpu::PinnedBuffer::create(Bytes{kFrames * kFrame}));
    stream_.emplace(*gpu::CudaStream::create());
    ASSERT_NO_FATAL_FAILURE(prepare());
    const stream::ReceiverSettings settings = receiver_settings();
    auto lane = stream_port::make_gpu_stream_lane(stream::lane_shape(settings, 64, 4, GetParam().queue_slots),
                                                  {.engine = GetParam().engine, .gpu = 0, .rings = GetParam().rings});
    ASSERT_TRUE(lane.ok()) << lane.error().message();
    auto made = StreamReceiver::create(settings, now_, std::move(lane).value());
    ASSERT_TRUE(made.ok()) << made.error().message();
    receiver_.emplace(std::move(made).value());
  }

  /// What must be done before there is a kernel that stays: memory, and kernels that CUDA loads as they are first
  /// named.
  virtual void prepare() {}
  [[nodiscard]] virtual stream::ReceiverSettings receiver_settings() const { return gpu_lane_settings(); }

  void TearDown() override {
    if (!receiver_) return;
    EXPECT_FALSE(receiver_->lane_failure(now_));
    receiver_->stop_lane();
  }

  /// A segment whose first byte has that sequence number: byte `sequence - 1` of the stream.
  void give(std::uint64_t sequence, std::uint32_t length, std::uint8_t flags, std::uint16_t port = 40'000) {
    packet::TcpFrame frame;
    frame.destination_mac = {{2, 0, 0, 0, 0, 1}};
    frame.source_mac = {{2, 0, 0, 0, 0, 2}};
    frame.source = Ipv4Address{{10, 0, 0, 2}};
    frame.destination = Ipv4Address{{10, 0, 0, 1}};
    frame.tcp.source_port = port;
    frame.tcp.destination_port = 80;
    frame.tcp.sequence = static_cast<std::uint32_t>(sequence);
    frame.tcp.acknowledgement = acknowledgement_;
    frame.tcp.flags = flags;
    const std::uint32_t headers = packet::tcp_headers_length(frame);
    auto* const at = reinterpret_cast<std::uint8_t*>(frames_->data()) + next_++ % kFrames * kFrame;
    for (std::uint32_t i = 0; i < length; ++i) at[headers + i] = streamed_byte(sequence - 1 + i);
    packet::ChecksumSum sum;
    sum.add(at + headers, length);
    static_cast<void>(packet::emit(frame, {at, headers + length}, length, sum));
    Segment segment{at, headers + length, 0, Verdict::forward};
    receiver_->give(frame_at(&segment), false, at, true);
  }

  void open(std::uint16_t port = 40'000) {
    give(0, 0, packet::kTcpSyn, port);
    settle();
    // Acknowledgements that the lane has posted for other connections may come first.
    std::array<std::uint8_t, StreamReceiver::kReplyBytes> reply;
    do {
      ASSERT_NE(next_reply(reply), 0U);
    } while ((reply[47] & packet::kTcpSyn) == 0);
    acknowledgement_ = packet::load_be32(reply.data() + 38) + 1;
    give(1, 0, packet::kTcpAck, port);
    settle();
  }

  void settle() {
    do {
      turn();
    } while (receiver_->in_flight() != 0 && !receiver_->lane_failure(now_));
  }
  /// Returns the length of the next frame that is sent, whoever wrote it.
  [[nodiscard]] std::uint32_t next_reply(std::span<std::uint8_t> reply) {
    if (posted_.empty()) return receiver_->next_reply(reply, now_);
    const stream::PostedFrame frame = posted_.front();
    posted_.pop_front();
    std::memcpy(reply.data(), frame.token, frame.length);
    return frame.length;
  }
  void turn() {
    receiver_->end_burst(now_);
    stream::PostedFrame posted;
    while (receiver_->has_queues() && receiver_->take_posted({&posted, 1}) != 0) posted_.push_back(posted);
    if (!receiver_->collect(nullptr, now_)) std::this_thread::yield();
    std::array<void*, kFrames> tokens;
    while (receiver_->take_back(tokens) != 0) {
    }
  }

  Nanos now_{1'000'000'000};
  std::uint32_t acknowledgement_ = 0;
  std::uint32_t next_ = 0;
  std::deque<stream::PostedFrame> posted_;  ///< each lies in its buffer until that is used again
  std::optional<gpu::PinnedBuffer> frames_;
  std::optional<gpu::CudaStream> stream_;
  std::optional<StreamReceiver> receiver_;
};

}  // namespace warpline::gpu_lane_test
