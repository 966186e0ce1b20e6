// SPDX-License-Identifier: Apache-2.0
#include "gpu/resident_kernel.h"

#include <gmock/gmock.h>

#include <vector>

namespace warpline {
namespace {

TEST(ResidentKernel, RefusesWhatTheGpuHasNoPlaceForUntilOneGoes) {
  std::vector<ResidentKernel> kernels;
  for (std::uint32_t i = 0; i < kResidentKernels; ++i) {
    Result<ResidentKernel> kernel = ResidentKernel::claim(0);
    ASSERT_TRUE(kernel);
    kernels.push_back(*std::move(kernel));
  }
  const Result<ResidentKernel> refused = ResidentKernel::claim(0);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::environment);
  EXPECT_THAT(refused.error().message(), testing::HasSubstr("32 kernels stay on it"));
  EXPECT_TRUE(ResidentKernel::claim(1));
  kernels.pop_back();
  EXPECT_TRUE(ResidentKernel::claim(0));
}

}  // namespace
}  // namespace warpline
