// SPDX-License-Identifier: Apache-2.0
#include "warpline/machine/topology.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

namespace warpline::machine {
namespace {

TEST(CpuList, ParsesWhatTheKernelPrints) {
  EXPECT_EQ(parse_cpu_list("0-3,8,10-11"), (std::vector<int>{0, 1, 2, 3, 8, 10, 11}));
  EXPECT_EQ(parse_cpu_list("5"), (std::vector<int>{5}));
  EXPECT_EQ(parse_cpu_list(""), std::vector<int>{});
}

TEST(CpuList, RefusesOtherText) {
  for (const char* text : {"a", "1-", "3-1", "1;2", "-1", "0-99999999", "1,,2", " 1"}) {
    EXPECT_EQ(parse_cpu_list(text), std::vector<int>{}) << text;
  }
}

TEST(CpuList, FoldsRuns) {
  EXPECT_EQ(format_cpu_list({0, 1, 2, 3, 8, 10, 11}), "0-3,8,10-11");
  EXPECT_EQ(format_cpu_list({}), "");
}

TEST(Topology, OfThisMachineHasAProcessor) {
  const auto topology = Topology::of_machine();
  ASSERT_TRUE(topology.ok());
  EXPECT_GE(topology->cpus.size(), 1U);
  EXPECT_GE(topology->cores(), 1);
  EXPECT_GE(topology->nodes(), 1);
}

TEST(Topology, ReadsCoresAndNodesFromSysfs) {
  const auto machine = Topology::of_machine();
  ASSERT_TRUE(machine.ok());
  const std::filesystem::path sys =
      std::filesystem::temp_directory_path() / ("warpline-sys-" + std::to_string(getpid()));
  const int first = machine->cpus.front().id;
  const auto write = [&sys](const std::string& path, const std::string& text) {
    std::filesystem::create_directories((sys / path).parent_path());
    std::ofstream(sys / path) << text << "\n";
  };
  write("devices/system/node/online", "0,3");
  write("devices/system/node/node3/cpulist", "0-1023");
  for (const Cpu& cpu : machine->cpus) {
    write("devices/system/cpu/cpu" + std::to_string(cpu.id) + "/topology/thread_siblings_list",
          std::to_string(first) + "-1023");
  }
  const auto topology = Topology::of_machine(sys);
  std::filesystem::remove_all(sys);
  ASSERT_TRUE(topology.ok());
  EXPECT_EQ(topology->cores(), 1);
  for (const Cpu& cpu : topology->cpus) {
    EXPECT_EQ(cpu.node, 3);
    EXPECT_EQ(cpu.core, first);
  }
}

TEST(Topology, WithoutSysfsEachProcessorIsACore) {
  const auto topology = Topology::of_machine("/nonexistent");
  ASSERT_TRUE(topology.ok());
  EXPECT_EQ(static_cast<std::size_t>(topology->cores()), topology->cpus.size());
  EXPECT_EQ(topology->nodes(), 1);
}

TEST(Topology, MadeUpMachinesAreNumberedLikeLinux) {
  const Topology topology = Topology::made_up(2, 4, 2);
  ASSERT_EQ(topology.cpus.size(), 16U);
  EXPECT_EQ(topology.cores(), 8);
  EXPECT_EQ(topology.nodes(), 2);
  EXPECT_EQ(topology.cpus[4], (Cpu{4, 4, 1}));
  EXPECT_EQ(topology.cpus[12], (Cpu{12, 4, 1}));
}

}  // namespace
}  // namespace warpline::machine
