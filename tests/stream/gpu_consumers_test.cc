// SPDX-License-Identifier: Apache-2.0
// Consumers on a GPU beside a lane there: by a kernel that stays, and by kernels that know of no board, in the order of
// a CUDA stream. Skipped where there is no GPU.
#include <gtest/gtest.h>

#include <atomic>
#include <utility>

#include "gpu_lane_fixture.h"
#include "warpline/gpu/kernel_launch.h"
#include "warpline/gpu/memory/device_buffer.h"
#include "warpline/gpu/memory/mirrored_rings.h"
#include "warpline/stream_port/stream_order.h"

namespace warpline::gpu_lane_test {
namespace {

constexpr std::uint32_t kSegment = 1400;

class GpuConsumers : public GpuLanes {
 protected:
  [[nodiscard]] stream::ReceiverSettings receiver_settings() const override {
    stream::ReceiverSettings settings = gpu_lane_settings();
    settings.consumers = true;
    return settings;
  }
  void prepare() override {
    stop_memory_.emplace(*gpu::PinnedBuffer::create(Bytes{sizeof(std::uint64_t)}));
    counts_.emplace(*gpu::DeviceBuffer::create(Bytes{sizeof(ConsumedCounts)}));
    for (const void* kernel : {consume_kernel(), compare_kernel()}) {
      ASSERT_TRUE(gpu::KernelLaunch(kernel, 1, kConsumerThreads).ctas_per_multiprocessor().ok());
    }
    ASSERT_TRUE(stream_port::check_stream_order().ok());
  }
  /// Also behind a failure nothing is left that waits on the GPU.
  void TearDown() override {
    if (!receiver_) return;
    std::atomic_ref(*stop()).store(1, std::memory_order_release);
    if (connection_) receiver_->abort(*connection_, now_);
    while (stream_->query() == gpu::CudaStream::State::busy && !receiver_->lane_failure(now_)) turn();
    GpuLanes::TearDown();
  }
  [[nodiscard]] std::uint64_t* stop() const { return reinterpret_cast<std::uint64_t*>(stop_memory_->data()); }
  [[nodiscard]] ConsumedCounts* counts() const { return reinterpret_cast<ConsumedCounts*>(counts_->data()); }
  /// What consumers counted; nothing runs on the stream any more.
  [[nodiscard]] ConsumedCounts counted() const {
    ConsumedCounts counts;
    EXPECT_TRUE(gpu::copy_and_wait(&counts, counts_->data(), sizeof(counts)));
    return counts;
  }
  void drop_replies() {
    std::array<std::uint8_t, StreamReceiver::kReplyBytes> reply;
    while (next_reply(reply) != 0) {
    }
  }
  /// Gives as many segments as its window takes of a stream of `segments`. Returns how many have been given in all.
  std::uint32_t give_some(std::uint16_t port, std::uint64_t window_end, std::uint32_t given, std::uint32_t segments) {
    while (given < segments && receiver_->room() != 0 && (given + 1) * std::uint64_t{kSegment} <= window_end) {
      give(1 + std::uint64_t{given} * kSegment, kSegment, packet::kTcpAck, port);
      ++given;
    }
    return given;
  }

  std::optional<gpu::PinnedBuffer> stop_memory_;
  std::optional<gpu::DeviceBuffer> counts_;
  std::optional<stream::ConnectionId> connection_;  ///< the last one
};
class GpuStreamOrder : public GpuConsumers {};

/// More connections than places, each of more bytes than a ring has.
TEST_P(GpuConsumers, ThatStayReadConnectionsAsTheyComeAndGo) {
  constexpr std::uint16_t kPeers = 7;
  constexpr std::uint32_t kSegments = 2500;
  const std::uint32_t places = receiver_->board().count;
  gpu::KernelLaunch launch(consume_kernel(), places, kConsumerThreads, receiver_->board(), stop(), counts());
  ASSERT_TRUE(launch(*stream_));
  for (std::uint16_t peer = 0; peer < kPeers; ++peer) {
    const auto port = static_cast<std::uint16_t>(40'000 + peer);
    connection_.reset();
    ASSERT_NO_FATAL_FAILURE(open(port));
    std::uint32_t given = 0;
    bool fin = false;
    // Some are closed before their consumers are through.
    const bool hasty = peer % 2 == 1;
    for (bool over = false;
         !over && !receiver_->lane_failure(now_) && stream_->query() == gpu::CudaStream::State::busy;) {
      while (const auto event = receiver_->poll()) {
        connection_ = event->connection;
        over = event->consumed || (hasty && event->state == stream::ConnectionState::finished);
        if (over) receiver_->close(event->connection, now_);
      }
      ASSERT_TRUE(connection_);
      if (const auto view = receiver_->view(*connection_)) {
        given = give_some(port, view->begin + kRing, given, kSegments);
      }
      if (given == kSegments && receiver_->room() != 0 && !std::exchange(fin, true)) {
        give(1 + std::uint64_t{given} * kSegment, 0, packet::kTcpAck | packet::kTcpFin, port);
      }
      turn();
      drop_replies();
    }
    // Our FIN is acknowledged, so that the place can be another one's.
    ++acknowledgement_;
    give(2 + std::uint64_t{given} * kSegment, 0, packet::kTcpAck, port);
    settle();
  }
  while (receiver_->connections() != 0 && stream_->query() == gpu::CudaStream::State::busy) turn();
  EXPECT_EQ(receiver_->connections(), 0U);
  std::atomic_ref(*stop()).store(1, std::memory_order_release);
  ASSERT_TRUE(stream_->wait().ok());
  const ConsumedCounts seen = counted();
  EXPECT_EQ(seen.bytes, std::uint64_t{kPeers} * kSegments * kSegment);
  EXPECT_EQ(seen.wrong, 0U);
  EXPECT_EQ(seen.finished, kPeers);
}

/// Every wait and release is put on the stream before the first byte comes.
TEST_P(GpuStreamOrder, AwaitsBytesAndReleasesThem) {
  constexpr std::uint32_t kPiece = 40 * kSegment;
  constexpr std::uint32_t kPieces = 60;  // more than a ring
  ASSERT_NO_FATAL_FAILURE(open());
  const auto event = receiver_->poll();
  ASSERT_TRUE(event);
  connection_ = event->connection;
  const stream::StreamBoard& board = receiver_->board();
  const std::uint8_t* const ring = board.rings + 2 * board.ring_bytes * event->connection.index;
  gpu::KernelLaunch compare(compare_kernel(), 1, kConsumerThreads, ring, std::uint64_t{0}, std::uint64_t{kPiece},
                            counts());
  for (std::uint64_t begin = 0; begin < std::uint64_t{kPieces} * kPiece; begin += kPiece) {
    ASSERT_TRUE(stream_port::wait_for_bytes(stream_->get(), board, event->connection, begin + kPiece));
    compare.set(0, ring + begin % board.ring_bytes);
    compare.set(1, begin);
    ASSERT_TRUE(compare(*stream_));
    ASSERT_TRUE(stream_port::release_behind(stream_->get(), board, event->connection, begin + kPiece));
  }
  // It never comes so far: the end is what it waits for.
  const std::uint64_t all = std::uint64_t{kPieces} * kPiece;
  ASSERT_TRUE(stream_port::wait_for_bytes(stream_->get(), board, event->connection, all + 1));
  ASSERT_TRUE(stream_port::finish_behind(stream_->get(), board, event->connection, all));
  std::uint32_t given = 0;
  bool fin = false;
  bool consumed = false;
  while (!consumed && !receiver_->lane_failure(now_) && !stream_->failure()) {
    const auto view = receiver_->view(event->connection);
    ASSERT_TRUE(view);
    ASSERT_LE(view->begin, std::uint64_t{given} * kSegment);
    given = give_some(40'000, view->begin + kRing, given, kPieces * 40);
    if (given == kPieces * 40 && receiver_->room() != 0 && !std::exchange(fin, true)) {
      EXPECT_EQ(stream_->query(), gpu::CudaStream::State::busy);
      give(1 + all, 0, packet::kTcpAck | packet::kTcpFin);
    }
    turn();
    drop_replies();
    while (const auto next = receiver_->poll()) consumed = next->consumed;
  }
  ASSERT_TRUE(stream_->wait().ok());
  EXPECT_TRUE(consumed);
  EXPECT_EQ(receiver_->view(event->connection)->begin, all);
  EXPECT_EQ(counted().bytes, all);
  EXPECT_EQ(counted().wrong, 0U);
}

INSTANTIATE_TEST_SUITE_P(Kinds, GpuConsumers,
                         testing::Values(GpuLaneKind{EngineKind::persistent, MemoryKind::device},
                                         GpuLaneKind{EngineKind::launch, MemoryKind::device},
                                         GpuLaneKind{EngineKind::persistent, MemoryKind::pinned},
                                         GpuLaneKind{EngineKind::persistent, MemoryKind::device, 256}));

/// CUDA C++ Programming Guide, virtual aliasing support: what a running kernel writes by one mapping shows by another
/// one behind proxy fences alone.
TEST(RingsMappedTwice, ShowBytesByEitherMappingWhileTheirWriterStays) {
  if (!gpu::list_gpus().ok()) GTEST_SKIP() << "no GPU";
  constexpr std::uint64_t kRounds = 20'000;
  const auto rings = gpu::MirroredRings::create(0, 1, kRing);
  ASSERT_TRUE(rings.ok()) << rings.error().message();
  const auto words = gpu::DeviceBuffer::create(Bytes{sizeof(AliasRounds)});
  const auto counts = gpu::DeviceBuffer::create(Bytes{sizeof(ConsumedCounts)});
  ASSERT_TRUE(words.ok() && counts.ok());
  const gpu::CudaStream stream = *gpu::CudaStream::create();
  gpu::KernelLaunch launch(alias_kernel(), 2, kConsumerThreads, rings->ring(0), std::uint64_t{kRing}, kRounds,
                           reinterpret_cast<AliasRounds*>(words->data()),
                           reinterpret_cast<ConsumedCounts*>(counts->data()));
  ASSERT_TRUE(launch(stream));
  ASSERT_TRUE(stream.wait().ok());
  ConsumedCounts seen;
  ASSERT_TRUE(gpu::copy_and_wait(&seen, counts->data(), sizeof(seen)));
  EXPECT_EQ(seen.bytes, kRounds * kAliasBytes);
  EXPECT_EQ(seen.wrong, 0U);
}

// Launches of a lane might stand behind a stream that waits (stream_order.h).
INSTANTIATE_TEST_SUITE_P(Kinds, GpuStreamOrder,
                         testing::Values(GpuLaneKind{EngineKind::persistent, MemoryKind::device},
                                         GpuLaneKind{EngineKind::persistent, MemoryKind::pinned},
                                         GpuLaneKind{EngineKind::persistent, MemoryKind::device, 256}));

}  // namespace
}  // namespace warpline::gpu_lane_test
