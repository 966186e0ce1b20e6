// SPDX-License-Identifier: Apache-2.0
// What a GPU makes and puts into frames against what the host does. Skipped where there is no GPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include "warpline/base/random.h"
#include "warpline/gpu/gpu_testing.cuh"
#include "warpline/stream/gpu/payload_kernels.h"
#include "warpline/stream/payload/host_payload.h"
#include "warpline/stream/seeded_payload.h"

namespace warpline::stream {
namespace {

constexpr std::size_t kOrders = 64;
constexpr std::size_t kFrameRoom = 10'240;
constexpr std::size_t kMade = 400'000;  // room for an order's bytes

using gpu::testing::managed_array;
using gpu::testing::no_gpu;

TEST(PayloadKernels, MakeWhatTheHostMakes) {
  if (no_gpu()) GTEST_SKIP() << "no GPU";
  const SeededPayload payload(7);
  const auto table = managed_array<std::uint8_t>(payload.table().size());
  std::copy(payload.table().begin(), payload.table().end(), table.get());
  const auto made = managed_array<std::uint8_t>(kOrders * kMade);
  const auto orders = managed_array<MakeOrder>(kOrders);
  std::vector<std::uint8_t> right(kOrders * kMade);
  Random random(1);
  for (int round = 0; round < 10; ++round) {
    std::fill_n(made.get(), kOrders * kMade, std::uint8_t{0xee});
    std::fill(right.begin(), right.end(), std::uint8_t{0xee});
    for (std::size_t i = 0; i < kOrders; ++i) {
      const std::uint64_t skip = random.below(32);
      orders[i] = {made.get() + i * kMade + skip, random.below(1000), random.below(std::uint64_t{1} << 40),
                   random.below(i % 4 == 0 ? kMade - 32 : 9000)};
      MakeOrder host = orders[i];
      host.to = right.data() + i * kMade + skip;
      make_payload(payload, host);
    }
    gpu::testing::launch(make_payload_kernel(), kMakeCtas, kMakeThreads, table.get(), payload.mixed_seed(),
                         orders.get(), std::uint32_t{kOrders});
    ASSERT_EQ(std::memcmp(made.get(), right.data(), right.size()), 0) << round;
  }
}

TEST(PayloadKernels, FillFramesAsTheHostDoes) {
  if (no_gpu()) GTEST_SKIP() << "no GPU";
  constexpr std::size_t kSource = 100'000;
  const auto source = managed_array<std::uint8_t>(kSource);
  const auto frames = managed_array<std::uint8_t>(kOrders * kFrameRoom);
  const auto orders = managed_array<FillOrder>(kOrders);
  const auto ended = managed_array<std::uint32_t>(1);
  const auto done = managed_array<std::uint64_t>(1);
  std::vector<std::uint8_t> right(kOrders * kFrameRoom);
  Random random(2);
  for (std::size_t i = 0; i < kSource; ++i) source[i] = static_cast<std::uint8_t>(random.next());
  std::fill_n(source.get(), 9000, std::uint8_t{0xff});      // sums that are carried around
  std::fill_n(source.get() + 9000, 9000, std::uint8_t{0});  // and those that are nothing
  for (std::uint64_t number = 1; number <= 200; ++number) {
    std::fill_n(frames.get(), kOrders * kFrameRoom, std::uint8_t{0xdd});
    std::fill(right.begin(), right.end(), std::uint8_t{0xdd});
    std::uint32_t count = number % 5 == 0 ? static_cast<std::uint32_t>(random.below(kOrders)) : kOrders;
    for (std::size_t i = 0; i < count; ++i) {
      // At any place, whichever alignment that has.
      const std::size_t at = i * kFrameRoom + 64 + random.below(64);
      const std::size_t checksum = i * kFrameRoom + 2 * random.below(16);
      const auto length = static_cast<std::uint32_t>(1 + random.below(i % 3 == 0 ? 70 : 8948));
      orders[i] = {frames.get() + at, source.get() + random.below(kSource - length), frames.get() + checksum, length,
                   static_cast<std::uint16_t>(1 + random.below(0xffff))};
      FillOrder host = orders[i];
      host.to = right.data() + at;
      host.checksum = right.data() + checksum;
      fill_payload(host);
    }
    gpu::testing::launch(fill_payload_kernel(), kFillCtas, kFillThreads, orders.get(), count, ended.get(), done.get(),
                         number);
    ASSERT_EQ(done[0], number);
    ASSERT_EQ(std::memcmp(frames.get(), right.data(), right.size()), 0) << number;
  }
}

}  // namespace
}  // namespace warpline::stream
