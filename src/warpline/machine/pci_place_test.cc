// SPDX-License-Identifier: Apache-2.0
#include "warpline/machine/pci_place.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "warpline/base/scratch_folder_testing.h"

namespace warpline::machine {
namespace {

using testing::ElementsAre;
using testing::Field;
using testing::IsEmpty;

/// A made-up bus, in a folder.
class PciPlaceTest : public testing::Test {
 protected:
  /// Puts a function at the end of a way such as "pci0000:00/0000:00:01.0".
  PciPlace place(const std::string& way, const std::string& address, int node = -1) {
    const std::string real = "sys/devices/" + way + "/" + address;
    root_.write(real + "/numa_node", std::to_string(node) + "\n");
    std::filesystem::create_directories(root_.path() / "sys/bus/pci/devices");
    std::filesystem::create_directory_symlink(root_.path() / real, device(address));
    return pci_place(root_.path(), address);
  }
  [[nodiscard]] std::filesystem::path device(const std::string& address) const {
    return root_.path() / "sys/bus/pci/devices" / address;
  }

  ScratchFolder root_;
};

TEST_F(PciPlaceTest, AFunctionHasBridgesAndANode) {
  const PciPlace nic = place("pci0000:16/0000:16:01.0/0000:17:00.0/0000:18:04.0", "0000:19:00.0", 1);
  EXPECT_EQ(nic.host_bridge, "pci0000:16");
  EXPECT_THAT(nic.bridges, ElementsAre("0000:16:01.0", "0000:17:00.0", "0000:18:04.0"));
  EXPECT_EQ(nic.node, 1);
  // Behind Intel's VMD there is a bus in a domain of its own.
  const PciPlace hidden = place("pci0000:16/0000:16:05.5/pci10000:00/10000:00:02.0", "10000:01:00.0");
  EXPECT_EQ(hidden.host_bridge, "pci10000:00");
  EXPECT_THAT(hidden.bridges, ElementsAre("10000:00:02.0"));
  const PciPlace none = pci_place(root_.path(), "0000:ff:00.0");
  EXPECT_TRUE(none.host_bridge.empty());
  EXPECT_EQ(none.node, -1);
}

TEST_F(PciPlaceTest, DistancesAreThoseOfNvidiaSmi) {
  const std::string root_port = "pci0000:16/0000:16:01.0";
  const std::string first = root_port + "/0000:17:00.0";            // upstream port of a switch
  const std::string second = first + "/0000:18:02.0/0000:20:00.0";  // of another one below it
  const PciPlace gpu = place(first + "/0000:18:00.0", "0000:19:00.0", 0);
  const PciPlace beside = place(first + "/0000:18:01.0", "0000:1a:00.0", 0);
  const PciPlace below = place(second + "/0000:21:00.0", "0000:22:00.0", 0);
  const PciPlace other_port = place("pci0000:16/0000:16:02.0", "0000:30:00.0", 0);
  const PciPlace other_bridge = place("pci0000:40/0000:40:01.0", "0000:41:00.0", 0);
  const PciPlace other_node = place("pci0000:80/0000:80:01.0", "0000:81:00.0", 1);
  EXPECT_EQ(distance_between(gpu, beside), PciDistance::pix);
  EXPECT_EQ(distance_between(gpu, gpu), PciDistance::pix);
  EXPECT_EQ(distance_between(gpu, below), PciDistance::pxb);
  EXPECT_EQ(distance_between(below, gpu), PciDistance::pxb);
  EXPECT_EQ(distance_between(gpu, other_port), PciDistance::phb);
  EXPECT_EQ(distance_between(gpu, other_bridge), PciDistance::node);
  EXPECT_EQ(distance_between(gpu, other_node), PciDistance::sys);
  EXPECT_EQ(name(distance_between(other_node, gpu)), "SYS");

  EXPECT_THAT(bridges_between(gpu, beside), ElementsAre("0000:18:00.0", "0000:18:01.0"));
  EXPECT_THAT(bridges_between(gpu, below), ElementsAre("0000:18:00.0", "0000:18:02.0", "0000:20:00.0", "0000:21:00.0"));
  EXPECT_THAT(bridges_between(gpu, other_port), IsEmpty());
}

TEST_F(PciPlaceTest, WhatSysfsDoesNotShowIsUnknown) {
  const PciPlace gpu = place("pci0000:16/0000:16:01.0", "0000:17:00.0", -1);
  const PciPlace elsewhere = place("pci0000:40/0000:40:01.0", "0000:41:00.0", 0);
  EXPECT_EQ(distance_between(gpu, elsewhere), PciDistance::unknown) << "the firmware tells no node of the GPU";
  EXPECT_EQ(distance_between(gpu, {}), PciDistance::unknown);
  EXPECT_EQ(
      distance_between({.host_bridge = {}, .bridges = {}, .node = 0}, {.host_bridge = {}, .bridges = {}, .node = 1}),
      PciDistance::sys);
  // In most virtual machines all functions are on the first bus.
  EXPECT_EQ(distance_between(place("pci0000:00", "0000:00:05.0"), place("pci0000:00", "0000:00:06.0")),
            PciDistance::phb);
}

TEST_F(PciPlaceTest, LargestMemoryRegion) {
  EXPECT_FALSE(largest_memory_region(root_.path(), "0000:17:00.0").value);
  const std::string file = "sys/bus/pci/devices/0000:17:00.0/resource";
  // As an A100 has it: registers, BAR1 of 64 GiB, 32 MiB, and a ROM in the seventh line that does not count.
  root_.write(file,
              "0x00000000de000000 0x00000000deffffff 0x0000000000040200\n"
              "0x0000210000000000 0x0000210fffffffff 0x000000000014220c\n"
              "0x0000000000000000 0x0000000000000000 0x0000000000000000\n"
              "0x0000211000000000 0x0000211001ffffff 0x000000000014220c\n"
              "0x0000000000000000 0x0000000000000000 0x0000000000000000\n"
              "0x0000000000000000 0x0000000000000000 0x0000000000000000\n"
              "0x0000000000000000 0x0000ffffffffffff 0x0000000000002200\n");
  EXPECT_EQ(largest_memory_region(root_.path(), "0000:17:00.0").value, Bytes{64ULL << 30});
  root_.write(file, "nothing of the kind\n");
  EXPECT_FALSE(largest_memory_region(root_.path(), "0000:17:00.0").why_not.empty());
}

TEST_F(PciPlaceTest, IommuGroupsAndVirtualFunctions) {
  const std::string nic = "sys/bus/pci/devices/0000:17:00.0";
  const auto mates = [this] { return iommu_group_mates(root_.path() / "sys/bus/pci/devices", "0000:17:00.0").value; };
  EXPECT_FALSE(mates());
  root_.write(nic + "/iommu_group/devices/0000:17:00.0", "");
  EXPECT_THAT(*mates(), IsEmpty());
  root_.write(nic + "/iommu_group/devices/0000:17:00.1", "");
  root_.write(nic + "/iommu_group/devices/0000:16:01.0", "");
  root_.write("sys/bus/pci/devices/0000:16:01.0/class", "0x060400\n");
  EXPECT_THAT(*mates(), ElementsAre(Field(&GroupMate::address, "0000:17:00.1")));
  EXPECT_EQ(list_in_the_way(*mates()), "");
  std::filesystem::create_directories(device("0000:17:00.1"));
  std::filesystem::create_symlink("../../../bus/pci/drivers/ice", device("0000:17:00.1") / "driver");
  EXPECT_EQ(list_in_the_way(*mates()), "0000:17:00.1 (ice)");

  EXPECT_EQ(physical_function(root_.path(), "0000:17:00.0"), "0000:17:00.0");
  std::filesystem::create_directories(device("0000:17:00.2"));
  std::filesystem::create_symlink("../0000:17:00.0", device("0000:17:00.2") / "physfn");
  EXPECT_EQ(physical_function(root_.path(), "0000:17:00.2"), "0000:17:00.0");
}

}  // namespace
}  // namespace warpline::machine
