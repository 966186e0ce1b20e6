// SPDX-License-Identifier: Apache-2.0
#include "warpline/machine/cgroups.h"

#include <gtest/gtest.h>

#include "warpline/base/scratch_folder_testing.h"

namespace warpline::machine {
namespace {

const CgroupFile kMemoryLimit{"memory.limit_in_bytes", "memory.max"};
const CgroupFile kMemoryUsage{"memory.usage_in_bytes", "memory.current"};

// cgroup-v2.rst: memory.max, memory.current; each ancestor limits its descendants.
TEST(Cgroups, TheTightestAncestorCounts) {
  ScratchFolder root;
  root.write("proc/self/cgroup", "0::/kubepods/pod7/c1\n");
  root.write("sys/fs/cgroup/kubepods/memory.max", "1000\n");
  root.write("sys/fs/cgroup/kubepods/memory.current", "900\n");
  root.write("sys/fs/cgroup/kubepods/pod7/memory.max", "500\n");
  root.write("sys/fs/cgroup/kubepods/pod7/memory.current", "100\n");
  root.write("sys/fs/cgroup/kubepods/pod7/c1/memory.max", "max\n");
  EXPECT_EQ(cgroup_bytes_left("memory", kMemoryLimit, kMemoryUsage, root.path()), 100U);
}

TEST(Cgroups, MoreThanTheLimitMayBeUsedAlready) {
  ScratchFolder root;
  root.write("proc/self/cgroup", "0::/\n");
  root.write("sys/fs/cgroup/memory.max", "1000\n");
  root.write("sys/fs/cgroup/memory.current", "1200\n");
  EXPECT_EQ(cgroup_bytes_left("memory", kMemoryLimit, kMemoryUsage, root.path()), 0U);
}

TEST(Cgroups, WithoutLimitsThereIsNone) {
  ScratchFolder root;
  EXPECT_EQ(cgroup_bytes_left("memory", kMemoryLimit, kMemoryUsage, root.path()), std::nullopt);
  root.write("proc/self/cgroup", "nonsense\n::\n0\n5:memory:/\n0::/a\n");
  root.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(cgroup_bytes_left("memory", kMemoryLimit, kMemoryUsage, root.path()), std::nullopt);
  EXPECT_EQ(cgroup_processors(root.path()), std::nullopt);
}

// proc_meminfo(5): MemAvailable is "an estimate of how much memory is available for starting new applications, without
// swapping", in kB of 1024 bytes.
TEST(Cgroups, ObtainableMemoryIsWhatTheSystemAndTheTightestLimitHave) {
  ScratchFolder root;
  EXPECT_EQ(obtainable_memory(root.path()), UINT64_MAX);
  root.write("proc/meminfo", "MemTotal: 4096 kB\nMemFree: 1 kB\nMemAvailable:    2048 kB\nSwapFree:   1024 kB\n");
  EXPECT_EQ(obtainable_memory(root.path()), 3072U << 10);
  root.write("proc/self/cgroup", "0::/pod\n");
  root.write("sys/fs/cgroup/memory.max", "max\n");
  root.write("sys/fs/cgroup/pod/memory.max", "1000000\n");
  root.write("sys/fs/cgroup/pod/memory.current", "999999\n");  // caches, perhaps
  EXPECT_EQ(obtainable_memory(root.path()), 1'000'000U);
}

// cgroup-v2.rst: cpu.max has "$MAX $PERIOD". sched-bwc.rst: cpu.cfs_quota_us of -1 is no limit.
TEST(Cgroups, ProcessorTime) {
  ScratchFolder root;
  root.write("proc/self/cgroup", "0::/a\n3:cpu,cpuacct:/a\n");
  root.write("sys/fs/cgroup/a/cpu.max", "250000 100000\n");
  EXPECT_EQ(cgroup_processors(root.path()), 2.5);
  root.write("sys/fs/cgroup/a/cpu.max", "max 100000\n");
  EXPECT_EQ(cgroup_processors(root.path()), std::nullopt);
  root.write("sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us", "-1\n");
  root.write("sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cgroup_processors(root.path()), std::nullopt);
  root.write("sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us", "50000\n");
  EXPECT_EQ(cgroup_processors(root.path()), 0.5);
}

}  // namespace
}  // namespace warpline::machine
