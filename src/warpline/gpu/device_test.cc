// SPDX-License-Identifier: Apache-2.0
#include "warpline/gpu/device.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "warpline/gpu/cuda_stream.h"
#include "warpline/gpu/memory/device_buffer.h"
#include "warpline/gpu/memory/host_registration.h"
#include "warpline/gpu/memory/pinned_buffer.h"

namespace warpline::gpu {
namespace {

using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;

template <typename T>
void expect_environment_error(const Result<T>& result) {
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().kind, ErrorKind::environment);
  EXPECT_FALSE(result.error().why.empty());
  EXPECT_FALSE(result.error().fix.empty());
  EXPECT_THAT(result.error().message(), Not(HasSubstr("\n")));
}

/// Where there is no GPU: every entry point says so in the same way, and nothing hangs or crashes.
TEST(WithoutGpu, EveryEntryPointSaysSo) {
  const auto gpus = list_gpus();
  if (gpus.ok()) GTEST_SKIP() << "there is a GPU";
  expect_environment_error(gpus);
  EXPECT_THAT(gpus.error().message(), AnyOf(HasSubstr("no NVIDIA driver"), HasSubstr("built without CUDA"),
                                            HasSubstr("no CUDA-capable device"), HasSubstr("the driver knows CUDA")));
  expect_environment_error(find_gpu(0));
  expect_environment_error(use_gpu(0));
  expect_environment_error(CudaStream::create());
  expect_environment_error(PinnedBuffer::create(Bytes{4096}));
  expect_environment_error(DeviceBuffer::create(Bytes{4096}));
  std::vector<std::byte> memory(4096);
  expect_environment_error(HostRegistration::create(memory));
}

class WithGpu : public testing::Test {
 protected:
  void SetUp() override {
    auto gpus = list_gpus();
    if (!gpus.ok()) GTEST_SKIP() << gpus.error().message();
    gpus_ = *std::move(gpus);
    ASSERT_TRUE(use_gpu(0).ok());
  }

  std::vector<GpuFacts> gpus_;
};

TEST_F(WithGpu, ListsWhatFindGpuFinds) {
  ASSERT_FALSE(gpus_.empty());
  for (const GpuFacts& gpu : gpus_) {
    const auto found = find_gpu(gpu.ordinal);
    ASSERT_TRUE(found.ok());
    EXPECT_EQ(found->pci, gpu.pci);
    EXPECT_FALSE(gpu.name.empty());
    EXPECT_GT(gpu.multiprocessors, 0);
    EXPECT_GT(gpu.memory.value, 1U << 30);
    EXPECT_GE(gpu.driver_version, 12000);
    EXPECT_GE(gpu.runtime_version, 12080);
  }
}

TEST_F(WithGpu, AWrongOrdinalNamesThoseThatThereAre) {
  for (const int ordinal : {-1, static_cast<int>(gpus_.size()), 1000}) {
    expect_environment_error(find_gpu(ordinal));
    EXPECT_THAT(find_gpu(ordinal).error().message(), HasSubstr("GPU"));
    EXPECT_THAT(find_gpu(ordinal).error().why, HasSubstr(std::to_string(gpus_.size() - 1)));
    expect_environment_error(use_gpu(ordinal));
  }
}

TEST_F(WithGpu, BytesGoToItsMemoryAndBack) {
  const auto stream = CudaStream::create();
  const auto host = PinnedBuffer::create(Bytes{1 << 20});
  const auto device = DeviceBuffer::create(Bytes{1 << 20}, Bytes{65536});
  ASSERT_TRUE(stream.ok() && host.ok() && device.ok());
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(device->data()) % 65536, 0U);
  std::memset(host->data(), 0x5a, host->size());
  ASSERT_TRUE(stream->copy(host->data(), device->data(), 4096).ok());
  ASSERT_TRUE(stream->wait().ok());
  for (std::size_t i = 0; i < 4096; ++i) ASSERT_EQ(host->data()[i], std::byte{0}) << "GPU memory begins zeroed";
  EXPECT_EQ(host->data()[4096], std::byte{0x5a});
  ASSERT_TRUE(stream->copy(device->data(), host->data(), host->size()).ok());
  ASSERT_TRUE(stream->wait().ok());
  std::memset(host->data(), 0, host->size());
  ASSERT_TRUE(stream->copy(host->data(), device->data(), host->size()).ok());
  ASSERT_TRUE(stream->wait().ok());
  EXPECT_EQ(host->data()[8192], std::byte{0x5a});
  EXPECT_EQ(stream->query(), CudaStream::State::idle);
  EXPECT_FALSE(stream->failure().has_value());
}

TEST_F(WithGpu, RegistersWholePagesOnce) {
  std::vector<std::byte> memory(1 << 16);
  const std::span<std::byte> part(memory.data() + 100, 5000);
  {
    const auto first = HostRegistration::create(part);
    ASSERT_TRUE(first.ok()) << first.error().message();
    EXPECT_EQ(first->memory().size() % 4096, 0U);
    EXPECT_LE(first->memory().data(), part.data());
    EXPECT_GE(first->memory().data() + first->memory().size(), part.data() + part.size());
    expect_environment_error(HostRegistration::create(part));
  }
  EXPECT_TRUE(HostRegistration::create(part).ok());
}

TEST_F(WithGpu, TooLittleMemoryIsToldWithBothFigures) {
  const auto buffer = DeviceBuffer::create(Bytes{1ULL << 50});
  expect_environment_error(buffer);
  EXPECT_THAT(buffer.error().message(), HasSubstr("it needs 1073741824 MiB of GPU memory, and of"));
  EXPECT_TRUE(DeviceBuffer::create(Bytes{4096}).ok()) << "the failure leaves nothing behind";
}

}  // namespace
}  // namespace warpline::gpu
