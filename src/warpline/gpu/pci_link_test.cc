// SPDX-License-Identifier: Apache-2.0
#include "warpline/gpu/pci_link.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

namespace warpline::gpu {
namespace {

namespace fs = std::filesystem;

/// A sysfs with one device behind a switch, in a folder that goes with it.
class PciLinkTest : public testing::Test {
 protected:
  PciLinkTest() {
    std::string name = (fs::temp_directory_path() / "warpline-pci-XXXXXX").string();
    sys_ = mkdtemp(name.data());
    device_ = sys_ / "devices/pci0000:16/0000:16:01.0/0000:17:00.0/0000:18:00.0/0000:19:00.0";
    fs::create_directories(device_);
    fs::create_directories(sys_ / "bus/pci/devices");
    fs::create_directory_symlink(device_, sys_ / "bus/pci/devices/0000:19:00.0");
  }
  ~PciLinkTest() override { fs::remove_all(sys_); }

  void write(const std::string& file, const std::string& text) const { std::ofstream(device_ / file) << text << "\n"; }

  fs::path sys_;
  fs::path device_;
};

TEST_F(PciLinkTest, ReadsBothLinksNodeAndRootPort) {
  write("current_link_speed", "2.5 GT/s PCIe");
  write("current_link_width", "8");
  write("max_link_speed", "32.0 GT/s PCIe");
  write("max_link_width", "16");
  write("numa_node", "1");
  const PciFacts facts = read_pci_facts("0000:19:00.0", sys_);
  EXPECT_EQ(facts.link_now, (PciLink{2.5, 8}));
  EXPECT_EQ(facts.link_most, (PciLink{32, 16}));
  EXPECT_EQ(facts.node, 1);
  EXPECT_EQ(facts.root_port, "0000:16:01.0");
}

TEST_F(PciLinkTest, WhatIsNotToldIsUnknown) {
  write("current_link_speed", "Unknown");
  write("current_link_width", "0");
  write("max_link_width", "255");
  write("numa_node", "-1");
  const PciFacts facts = read_pci_facts("0000:19:00.0", sys_);
  EXPECT_EQ(facts.link_now, PciLink{});
  EXPECT_EQ(facts.link_most, PciLink{});
  EXPECT_EQ(facts.node, -1);
  const PciFacts absent = read_pci_facts("0000:ff:00.0", sys_);
  EXPECT_EQ(absent.link_most, PciLink{});
  EXPECT_EQ(absent.root_port, "");
}

TEST_F(PciLinkTest, AddressesAreReadInAnyCase) {
  const fs::path device = sys_ / "devices/pci0000:ab/0000:ab:00.0";
  fs::create_directories(device);
  fs::create_directory_symlink(device, sys_ / "bus/pci/devices/0000:ab:00.0");
  std::ofstream(device / "max_link_width") << "4\n";
  EXPECT_EQ(read_pci_facts("0000:AB:00.0", sys_).link_most.lanes, 4U);
  EXPECT_EQ(read_pci_facts("0000:AB:00.0", sys_).root_port, "") << "no bridge above it";
}

TEST(PciLink, GenerationAndRate) {
  EXPECT_EQ((PciLink{2.5, 1}).generation(), 1);
  EXPECT_EQ((PciLink{32, 16}).generation(), 5);
  EXPECT_EQ((PciLink{}).generation(), 0);
  EXPECT_DOUBLE_EQ((PciLink{5, 16}).gigabit_per_s(), 64);
  EXPECT_NEAR((PciLink{8, 8}).gigabit_per_s(), 63.0, 0.1);
  EXPECT_NEAR((PciLink{32, 16}).gigabit_per_s(), 504.1, 0.1);
  EXPECT_NEAR((PciLink{64, 16}).gigabit_per_s(), 944, 0.1);
  EXPECT_EQ((PciLink{}).gigabit_per_s(), 0);
}

}  // namespace
}  // namespace warpline::gpu
