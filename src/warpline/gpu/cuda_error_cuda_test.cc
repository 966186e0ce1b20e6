// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cuda_runtime_api.h>

#include "warpline/gpu/cuda_error.h"

namespace warpline::gpu {
namespace {

using testing::HasSubstr;

TEST(CudaError, SaysWhatWhyAndHowToMendIt) {
  for (const int code : {cudaErrorNoDevice, cudaErrorInvalidDevice, cudaErrorMemoryAllocation, cudaErrorUnknown,
                         cudaErrorSystemNotReady, cudaErrorDevicesUnavailable, cudaErrorLaunchFailure,
                         cudaErrorInsufficientDriver, cudaErrorNoKernelImageForDevice, cudaErrorInvalidValue}) {
    const Error error = cuda_error("a thing", code);
    EXPECT_EQ(error.kind, ErrorKind::environment);
    EXPECT_EQ(error.what, "a thing");
    EXPECT_FALSE(error.why.empty());
    EXPECT_FALSE(error.fix.empty());
  }
  EXPECT_THAT(cuda_error("work", cudaErrorIllegalAddress).message(), HasSubstr("cudaErrorIllegalAddress"));
}

TEST(CudaError, PinningBeyondTheMemlockLimitNamesBothFigures) {
  const Error error = pinning_error("a pool", cudaErrorMemoryAllocation, Bytes{64 << 20}, Bytes{8 << 20});
  EXPECT_THAT(error.message(), HasSubstr("64 MiB are to be pinned and the memlock limit is 8 MiB"));
  EXPECT_THAT(error.fix, HasSubstr("ulimit -l"));
  EXPECT_EQ(error.kind, ErrorKind::environment);
}

TEST(CudaError, PinningForOtherReasonsDoesNotBlameTheLimit) {
  const Error full = pinning_error("a pool", cudaErrorMemoryAllocation, Bytes{64 << 20}, Bytes{UINT64_MAX});
  EXPECT_THAT(full.message(), HasSubstr("64 MiB could not be pinned"));
  const Error twice = pinning_error("a pool", cudaErrorHostMemoryAlreadyRegistered, Bytes{64 << 20}, Bytes{8 << 20});
  EXPECT_THAT(twice.message(), HasSubstr("cudaErrorHostMemoryAlreadyRegistered"));
}

}  // namespace
}  // namespace warpline::gpu
