// SPDX-License-Identifier: Apache-2.0
// What a GPU makes and puts into frames against what the host does. Skipped where there is no GPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

#include <cuda_runtime_api.h>

#include "warpline/base/random.h"
#include "warpline/stream/gpu/lane_memory_testing.cuh"
#include "warpline/stream/gpu/payload_kernels.h"
#include "warpline/stream/payload/host_payload.h"
#include "warpline/stream/seeded_payload.h"

namespace warpline::stream {
namespace {

constexpr std::size_t kOrders = 64;
constexpr std::size_t kFrameRoom = 10'240;
constexpr std::size_t kMade = 400'000;  // room for an order's bytes

template <typename T>
T* shared_by_both(std::size_t count) {
  void* memory = nullptr;
  EXPECT_EQ(cudaMallocManaged(&memory, count * sizeof(T)), cudaSuccess);
  EXPECT_EQ(cudaMemset(memory, 0, count * sizeof(T)), cudaSuccess);
  EXPECT_EQ(cudaDeviceSynchronize(), cudaSuccess);
  return static_cast<T*>(memory);
}

TEST(PayloadKernels, MakeWhatTheHostMakes) {
  if (testing::no_gpu()) GTEST_SKIP() << "no GPU";
  const SeededPayload payload(7);
  auto* const table = shared_by_both<std::uint8_t>(payload.table().size());
  std::copy(payload.table().begin(), payload.table().end(), table);
  auto* const made = shared_by_both<std::uint8_t>(kOrders * kMade);
  auto* const orders = shared_by_both<MakeOrder>(kOrders);
  std::vector<std::uint8_t> right(kOrders * kMade);
  Random random(1);
  for (int round = 0; round < 10; ++round) {
    std::fill_n(made, kOrders * kMade, std::uint8_t{0xee});
    std::fill(right.begin(), right.end(), std::uint8_t{0xee});
    for (std::size_t i = 0; i < kOrders; ++i) {
      const std::uint64_t skip = random.below(32);
      orders[i] = {made + i * kMade + skip, random.below(1000), random.below(std::uint64_t{1} << 40),
                   random.below(i % 4 == 0 ? kMade - 32 : 9000)};
      MakeOrder host = orders[i];
      host.to = right.data() + i * kMade + skip;
      make_payload(payload, host);
    }
    const std::uint8_t* places = table;
    std::uint64_t seed = payload.mixed_seed();
    const MakeOrder* all = orders;
    std::uint32_t count = kOrders;
    void* arguments[] = {&places, &seed, &all, &count};
    ASSERT_EQ(cudaLaunchKernel(make_payload_kernel(), dim3(kMakeCtas), dim3(kMakeThreads), arguments, 0, nullptr),
              cudaSuccess);
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    ASSERT_EQ(std::memcmp(made, right.data(), right.size()), 0) << round;
  }
  for (void* memory : std::vector<void*>{table, made, orders}) cudaFree(memory);
}

TEST(PayloadKernels, FillFramesAsTheHostDoes) {
  if (testing::no_gpu()) GTEST_SKIP() << "no GPU";
  constexpr std::size_t kSource = 100'000;
  auto* const source = shared_by_both<std::uint8_t>(kSource);
  auto* const frames = shared_by_both<std::uint8_t>(kOrders * kFrameRoom);
  auto* const orders = shared_by_both<FillOrder>(kOrders);
  auto* const ended = shared_by_both<std::uint32_t>(1);
  auto* const done = shared_by_both<std::uint64_t>(1);
  std::vector<std::uint8_t> right(kOrders * kFrameRoom);
  Random random(2);
  for (std::size_t i = 0; i < kSource; ++i) source[i] = static_cast<std::uint8_t>(random.next());
  std::fill_n(source, 9000, std::uint8_t{0xff});      // sums that are carried around
  std::fill_n(source + 9000, 9000, std::uint8_t{0});  // and those that are nothing
  for (std::uint64_t number = 1; number <= 200; ++number) {
    std::fill_n(frames, kOrders * kFrameRoom, std::uint8_t{0xdd});
    std::fill(right.begin(), right.end(), std::uint8_t{0xdd});
    std::uint32_t count = number % 5 == 0 ? static_cast<std::uint32_t>(random.below(kOrders)) : kOrders;
    for (std::size_t i = 0; i < count; ++i) {
      // At any place, whichever alignment that has.
      const std::size_t at = i * kFrameRoom + 64 + random.below(64);
      const std::size_t checksum = i * kFrameRoom + 2 * random.below(16);
      const auto length = static_cast<std::uint32_t>(1 + random.below(i % 3 == 0 ? 70 : 8948));
      orders[i] = {frames + at, source + random.below(kSource - length), frames + checksum, length,
                   static_cast<std::uint16_t>(1 + random.below(0xffff))};
      FillOrder host = orders[i];
      host.to = right.data() + at;
      host.checksum = right.data() + checksum;
      fill_payload(host);
    }
    const FillOrder* all = orders;
    std::uint32_t* ends = ended;
    std::uint64_t* says = done;
    void* arguments[] = {&all, &count, &ends, &says, &number};
    ASSERT_EQ(cudaLaunchKernel(fill_payload_kernel(), dim3(kFillCtas), dim3(kFillThreads), arguments, 0, nullptr),
              cudaSuccess);
    ASSERT_EQ(cudaDeviceSynchronize(), cudaSuccess);
    ASSERT_EQ(*done, number);
    ASSERT_EQ(std::memcmp(frames, right.data(), right.size()), 0) << number;
  }
  for (void* memory : std::vector<void*>{source, frames, orders, ended, done}) cudaFree(memory);
}

}  // namespace
}  // namespace warpline::stream
