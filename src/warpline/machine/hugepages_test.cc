// SPDX-License-Identifier: Apache-2.0
#include "warpline/machine/hugepages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "warpline/base/scratch_folder_testing.h"

namespace warpline::machine {
namespace {

using testing::HasSubstr;

void reserve(ScratchFolder& root, const std::string& folder, int reserved, int free) {
  root.write(folder + "/nr_hugepages", std::to_string(reserved) + "\n");
  root.write(folder + "/free_hugepages", std::to_string(free) + "\n");
}

TEST(Hugepages, AreReadNodeByNode) {
  ScratchFolder root;
  root.write("sys/devices/system/node/online", "0-1\n");
  reserve(root, "sys/devices/system/node/node0/hugepages/hugepages-2048kB", 100, 40);
  reserve(root, "sys/devices/system/node/node1/hugepages/hugepages-2048kB", 10, 10);
  reserve(root, "sys/devices/system/node/node1/hugepages/hugepages-1048576kB", 2, 1);
  const auto pools = read_hugepages(root.path());
  EXPECT_EQ(pools.size(), 3U);
  EXPECT_EQ(free_bytes(pools).value, (50ULL << 21) + (1ULL << 30));
  // 60 are in use already; 5 MiB more take 3 pages.
  EXPECT_THAT(reserve_advice(pools, Bytes{5 << 20}), HasSubstr("echo 63 "));
}

TEST(Hugepages, OfAKernelWithoutNuma) {
  ScratchFolder root;
  reserve(root, "sys/kernel/mm/hugepages/hugepages-2048kB", 8, 8);
  EXPECT_EQ(free_bytes(read_hugepages(root.path())).value, 8ULL << 21);
}

// cgroup-v2.rst, "HugeTLB": hugetlb.<hugepagesize>.max and .current, in bytes, "max" for no limit; each ancestor's
// counts.
TEST(Hugepages, ThatTheCgroupWithholdsAreNotFree) {
  ScratchFolder root;
  root.write("sys/devices/system/node/online", "0-1\n");
  reserve(root, "sys/devices/system/node/node0/hugepages/hugepages-2048kB", 8, 8);
  reserve(root, "sys/devices/system/node/node1/hugepages/hugepages-2048kB", 8, 8);
  reserve(root, "sys/devices/system/node/node0/hugepages/hugepages-1048576kB", 2, 2);
  root.write("proc/self/cgroup", "0::/kubepods/pod7\n");
  root.write("sys/fs/cgroup/kubepods/hugetlb.2MB.max", "20971520\n");
  root.write("sys/fs/cgroup/kubepods/hugetlb.2MB.current", "2097152\n");
  root.write("sys/fs/cgroup/kubepods/pod7/hugetlb.2MB.max", "max\n");
  root.write("sys/fs/cgroup/kubepods/pod7/hugetlb.1GB.max", "0\n");
  const auto pools = read_hugepages(root.path());
  EXPECT_EQ(free_bytes(pools).value, 9ULL << 21);  // 20 MiB less the 2 MiB that are used
  EXPECT_THAT(reserve_advice(pools, Bytes{5 << 20}), HasSubstr("hugetlb limit of the container by 6 MiB"));
}

// hugetlb.rst of cgroup-v1: hugetlb.<hugepagesize>.limit_in_bytes and .usage_in_bytes; -1 in a limit is a large number.
TEST(Hugepages, ThatACgroupOfVersion1Withholds) {
  ScratchFolder root;
  reserve(root, "sys/kernel/mm/hugepages/hugepages-2048kB", 8, 8);
  root.write("proc/self/cgroup", "9:name=systemd:/\n4:cpuset,hugetlb:/docker/a1\n0::/\n");
  root.write("sys/fs/cgroup/hugetlb/hugetlb.2MB.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(free_bytes(read_hugepages(root.path())).value, 8ULL << 21);
  // A container sees its own cgroup at the top, under the path that the host has for it.
  root.write("sys/fs/cgroup/hugetlb/hugetlb.2MB.limit_in_bytes", "4194304\n");
  root.write("sys/fs/cgroup/hugetlb/hugetlb.2MB.usage_in_bytes", "0\n");
  EXPECT_EQ(free_bytes(read_hugepages(root.path())).value, 2ULL << 21);
}

TEST(Hugepages, OfAKernelWithoutAny) {
  EXPECT_TRUE(read_hugepages("/nonexistent").empty());
  EXPECT_THAT(reserve_advice({}, Bytes{1 << 20}), HasSubstr("echo 1 "));
}

}  // namespace
}  // namespace warpline::machine
