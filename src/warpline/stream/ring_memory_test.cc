// SPDX-License-Identifier: Apache-2.0
#include "warpline/stream/ring_memory.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

namespace warpline::stream {
namespace {

#if defined(__has_feature)
constexpr bool kIsSanitized = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer);
#else
constexpr bool kIsSanitized = false;
#endif

TEST(RingMemory, NamesTheLimitOfMappings) {
  if (kIsSanitized) GTEST_SKIP() << "a sanitizer needs mappings of its own when the process has used up all of them";
  std::uint32_t most = 0;
  std::ifstream("/proc/sys/vm/max_map_count") >> most;
  if (most == 0 || most > 1U << 18) GTEST_SKIP() << "the limit of mappings is " << most << ", too many to reach it";
  const auto bytes = static_cast<std::size_t>(getpagesize());
  const auto refused = RingMemory::create(most, bytes);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, ErrorKind::environment);
  EXPECT_NE(refused.error().message().find("vm.max_map_count"), std::string::npos) << refused.error().message();
  EXPECT_EQ(refused.error().message().find("smaller rings"), std::string::npos) << "these do not help";
  EXPECT_TRUE(RingMemory::create(most / 4, bytes).ok());
}

}  // namespace
}  // namespace warpline::stream
