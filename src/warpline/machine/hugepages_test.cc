// SPDX-License-Identifier: Apache-2.0
#include "warpline/machine/hugepages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "warpline/base/scratch_folder_testing.h"

namespace warpline::machine {
namespace {

using testing::HasSubstr;

void reserve(ScratchFolder& sys, const std::string& folder, int reserved, int free) {
  sys.write(folder + "/nr_hugepages", std::to_string(reserved) + "\n");
  sys.write(folder + "/free_hugepages", std::to_string(free) + "\n");
}

TEST(Hugepages, AreReadNodeByNode) {
  ScratchFolder sys;
  sys.write("devices/system/node/online", "0-1\n");
  reserve(sys, "devices/system/node/node0/hugepages/hugepages-2048kB", 100, 40);
  reserve(sys, "devices/system/node/node1/hugepages/hugepages-2048kB", 10, 10);
  reserve(sys, "devices/system/node/node1/hugepages/hugepages-1048576kB", 2, 1);
  const auto pools = read_hugepages(sys.path());
  EXPECT_EQ(pools.size(), 3U);
  EXPECT_EQ(free_bytes(pools).value, (50ULL << 21) + (1ULL << 30));
  // 60 are in use already; 5 MiB more take 3 pages.
  EXPECT_THAT(reserve_command(pools, Bytes{5 << 20}), HasSubstr("echo 63 "));
}

TEST(Hugepages, OfAKernelWithoutNuma) {
  ScratchFolder sys;
  reserve(sys, "kernel/mm/hugepages/hugepages-2048kB", 8, 8);
  EXPECT_EQ(free_bytes(read_hugepages(sys.path())).value, 8ULL << 21);
}

TEST(Hugepages, OfAKernelWithoutAny) {
  EXPECT_TRUE(read_hugepages("/nonexistent").empty());
  EXPECT_THAT(reserve_command({}, Bytes{1 << 20}), HasSubstr("echo 1 "));
}

}  // namespace
}  // namespace warpline::machine
