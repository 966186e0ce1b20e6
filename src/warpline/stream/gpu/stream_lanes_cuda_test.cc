// SPDX-License-Identifier: Apache-2.0
// A GPU's lanes against the host's. Skipped where there is no GPU.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "warpline/gpu/gpu_testing.cuh"
#include "warpline/stream/gpu/copy_by_warp_testing.h"
#include "warpline/stream/gpu/lane_testing.h"
#include "warpline/stream/gpu/stream_lanes.h"
#include "warpline/stream/overlap_testing.h"

namespace warpline::stream::testing {
namespace {

using gpu::testing::launch;
using gpu::testing::managed;
using gpu::testing::no_gpu;
using gpu::testing::pinned;

/// A lane of a GPU and one of a host, of the same shape.
struct LanePair {
  explicit LanePair(const LaneShape& shape, bool discards = false)
      : on_gpu(shape, pinned, managed, discards),
        on_host(shape, zeroed, zeroed, discards),
        host(on_host.view()),
        views_(pinned(sizeof(LaneView))) {
    std::memcpy(views_.get(), &on_gpu.view(), sizeof(LaneView));
  }

  /// Both take a burst, whose answers are compared.
  void take(std::uint64_t sequence, std::uint32_t count) {
    on_gpu.make_ready(sequence, count);
    launch(stream_lanes_kernel(), 1, kLaneThreads, reinterpret_cast<const LaneView*>(views_.get()), sequence,
           sequence + 1);
    host.take(sequence, count);
    expect_same_answers(on_gpu.slot(sequence), on_host.slot(sequence), count);
  }
  void expect_same_rings() const {
    ASSERT_EQ(std::memcmp(on_gpu.rings().data(), on_host.rings().data(), on_host.rings_bytes()), 0);
  }

  TestLane on_gpu;
  TestLane on_host;
  HostLane host;

 private:
  std::shared_ptr<std::byte> views_;
};

std::uint64_t expect_lane_as_host(const LaneShape& shape, std::uint64_t seed, const LaneFaults& faults,
                                  std::uint32_t longest, std::uint64_t bursts, bool discards = false) {
  LanePair lanes(shape, discards);
  const TestLane& on_gpu = lanes.on_gpu;
  const TestLane& on_host = lanes.on_host;
  LaneTraffic traffic(shape, seed, faults, longest, pinned);
  std::uint64_t stored = 0;
  std::uint64_t replies = 0;
  for (std::uint64_t sequence = 1; sequence <= bursts; ++sequence) {
    SCOPED_TRACE(sequence);
    const BurstSlot slot = on_gpu.slot(sequence);
    const std::uint32_t count = traffic.fill(slot, on_host.slot(sequence));
    lanes.take(sequence, count);
    EXPECT_EQ(on_gpu.view().done[sequence & (shape.slots - 1)].value, sequence << 32);
    if (::testing::Test::HasFatalFailure()) return 0;
    stored += slot.result->dispositions[0];
    for (std::uint32_t i = 0; i < slot.result->records; ++i) replies += slot.records[i].written ? 1 : 0;
    traffic.learn(slot);
  }
  for (std::uint32_t i = 0; i < shape.connections; ++i) {
    SCOPED_TRACE(i);
    EXPECT_EQ(on_gpu.view().board.places[i].reach, on_host.view().board.places[i].reach);
    EXPECT_EQ(on_gpu.view().board.places[i].name, on_host.view().board.places[i].name);
    expect_same_states(on_gpu.view().connections[i].state, on_host.view().connections[i].state);
  }
  EXPECT_GT(replies, bursts / 4);
  lanes.expect_same_rings();
  return stored;
}

TEST(StreamLanes, DoAsTheHostDoes) {
  if (no_gpu()) GTEST_SKIP() << "no GPU";
  std::uint64_t stored = 0;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    const LaneFaults faults = random_faults(random);
    const LaneShape shape{.connections = 1 + static_cast<std::uint32_t>(random.below(seed % 2 == 0 ? 3 : 100)),
                          .burst = static_cast<std::uint32_t>(32 + random.below(481)),
                          .slots = 2,
                          .changes = 100,
                          .ring_bytes = 1U << (10 + random.below(7))};
    stored += expect_lane_as_host(shape, seed, faults, static_cast<std::uint32_t>(1 + random.below(1448)), 40);
    if (HasFailure()) return;
  }
  EXPECT_GT(stored, 10'000U);
}

TEST(StreamLanes, PutNoBytesIntoRingsWhereTheyAreDiscarded) {
  if (no_gpu()) GTEST_SKIP() << "no GPU";
  const LaneFaults faults{100, 100, 100, 50};
  for (const std::uint32_t connections : {2U, 40U}) {
    const LaneShape shape{.connections = connections, .burst = 256, .slots = 2, .changes = 40, .ring_bytes = 1 << 14};
    // The rings of both are compared, and those of the host's stay as they were: see HostLane's test.
    EXPECT_GT(expect_lane_as_host(shape, connections, faults, 1448, 60, true), 100U);
  }
}

/// Every way in which four segments, or fewer, can lie to each other: each way is a connection of its own.
TEST(StreamLanes, TakeEveryOverlapAsTheHostDoes) {
  if (no_gpu()) GTEST_SKIP() << "no GPU";
  constexpr std::uint32_t kUnit = 3;
  constexpr std::uint32_t kAtOnce = 128;
  const std::size_t known[] = {13, 409, 23917};
  for (std::uint32_t segments = 2; segments <= 4; ++segments) {
    std::vector<std::vector<std::uint32_t>> ways;
    for_each_overlap(segments, [&](const std::vector<std::uint32_t>& at) { ways.push_back(at); });
    ASSERT_EQ(ways.size(), known[segments - 2]);
    const LaneShape shape{.connections = kAtOnce, .burst = 512, .slots = 2, .changes = kAtOnce, .ring_bytes = 64};
    LanePair lanes(shape);
    OverlapTraffic traffic(pinned);
    std::uint64_t sequence = 0;
    for (std::size_t first = 0; first < ways.size(); first += kAtOnce) {
      ++sequence;
      const std::span<const std::vector<std::uint32_t>> some(ways.data() + first,
                                                             std::min<std::size_t>(kAtOnce, ways.size() - first));
      const std::uint32_t count = traffic.fill(lanes.on_gpu.slot(sequence), lanes.on_host.slot(sequence), some, kUnit);
      lanes.take(sequence, count);
      lanes.expect_same_rings();
      if (HasFailure()) return;
    }
  }
}

TEST(CopyByWarp, CopiesFromAnyPlaceToAnyPlaceAndNothingElse) {
  if (no_gpu()) GTEST_SKIP() << "no GPU";
  constexpr std::uint32_t kRoom = 9216;
  const std::uint32_t lengths[] = {1, 2, 15, 16, 17, 31, 33, 511, 512, 513, 1448, 2047, 2048, 2049, 8944};
  const std::size_t count = 16 * 16 * std::size(lengths);
  const std::shared_ptr<std::byte> from = managed(kRoom);
  const std::shared_ptr<std::byte> to = managed(count * kRoom);
  const std::shared_ptr<std::byte> list = managed(count * sizeof(CopyPiece));
  for (std::uint32_t i = 0; i < kRoom; ++i) from.get()[i] = static_cast<std::byte>(mix64(i) | 1);
  auto* const pieces = reinterpret_cast<CopyPiece*>(list.get());
  std::uint32_t made = 0;
  for (std::uint32_t a = 0; a < 16; ++a) {
    for (std::uint32_t b = 0; b < 16; ++b) {
      for (const std::uint32_t length : lengths) {
        pieces[made] = {reinterpret_cast<std::uint8_t*>(to.get()) + std::size_t{made} * kRoom + 32 + a,
                        reinterpret_cast<const std::uint8_t*>(from.get()) + b, length};
        ++made;
      }
    }
  }
  launch(copy_pieces_kernel(), (made + 15) / 16, 512, pieces, made);
  for (std::uint32_t i = 0; i < made; ++i) {
    const auto* const room = reinterpret_cast<const std::uint8_t*>(to.get()) + std::size_t{i} * kRoom;
    const CopyPiece& piece = pieces[i];
    ASSERT_EQ(std::memcmp(piece.to, piece.from, piece.length), 0) << i;
    const bool clean =
        std::all_of(room, static_cast<const std::uint8_t*>(piece.to), [](std::uint8_t byte) { return byte == 0; }) &&
        std::all_of(piece.to + piece.length, const_cast<std::uint8_t*>(room) + kRoom,
                    [](std::uint8_t byte) { return byte == 0; });
    ASSERT_TRUE(clean) << i;
  }
}

}  // namespace
}  // namespace warpline::stream::testing
