// SPDX-License-Identifier: Apache-2.0
#include "warpline/machine/pci_config_space.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <random>

#include "warpline/base/scratch_folder_testing.h"

namespace warpline::machine {
namespace {

/// The configuration space of a made-up function: a power management capability, then that of PCI Express.
std::vector<std::uint8_t> made_up_space(std::uint16_t device_control, std::size_t size = 4096) {
  std::vector<std::uint8_t> space(size);
  space[0x06] = 0x10;
  space[0x34] = 0x40;
  if (size <= 64) return space;
  space[0x40] = 0x01;
  space[0x41] = 0x60;
  space[0x60] = 0x10;
  space[0x68] = static_cast<std::uint8_t>(device_control);
  space[0x69] = static_cast<std::uint8_t>(device_control >> 8);
  return space;
}

/// Adds an extended capability of no interest, and ACS behind it.
void add_access_control(std::vector<std::uint8_t>& space, std::uint8_t control) {
  space[0x100] = 0x01;
  space[0x103] = 0x15;  // next: 0x150
  space[0x102] = 0x01;
  space[0x150] = 0x0d;
  space[0x156] = control;
}

TEST(PciConfigSpace, RequestsOfAFunction) {
  EXPECT_EQ(request_control(made_up_space(0x2810)).value, (RequestControl{512, true}));
  EXPECT_EQ(request_control(made_up_space(0x5000)).value, (RequestControl{4096, false}));
  EXPECT_EQ(request_control(made_up_space(0x5000, 256)).value, (RequestControl{4096, false}));
}

TEST(PciConfigSpace, WhatIsNotToldSaysWhy) {
  EXPECT_NE(request_control(made_up_space(0, 64)).why_not.find("root only"), std::string::npos);
  EXPECT_NE(request_control({}).why_not.find("does not show"), std::string::npos);
  std::vector<std::uint8_t> conventional = made_up_space(0x5000);
  conventional[0x60] = 0x05;
  EXPECT_EQ(request_control(conventional).value, RequestControl{}) << "not a PCI Express function";
  EXPECT_NE(redirects_peers(made_up_space(0, 64)).why_not.find("root only"), std::string::npos);
  EXPECT_NE(redirects_peers(made_up_space(0, 256)).why_not.find("extended"), std::string::npos);
  EXPECT_FALSE(redirects_peers({}).value);
}

TEST(PciConfigSpace, BridgesThatRedirect) {
  std::vector<std::uint8_t> bridge = made_up_space(0);
  EXPECT_EQ(redirects_peers(bridge).value, false) << "no ACS";
  add_access_control(bridge, 0);
  EXPECT_EQ(redirects_peers(bridge).value, false);
  add_access_control(bridge, 0x11);  // source validation and upstream forwarding alone
  EXPECT_EQ(redirects_peers(bridge).value, false);
  add_access_control(bridge, 0x1d);
  EXPECT_EQ(redirects_peers(bridge).value, true);
  add_access_control(bridge, 0x08);
  EXPECT_EQ(redirects_peers(bridge).value, true);
}

TEST(PciConfigSpace, ChainsThatTurnBackEnd) {
  std::vector<std::uint8_t> space = made_up_space(0);
  space[0x41] = 0x40;
  EXPECT_EQ(request_control(space).value, RequestControl{});
  space[0x100] = 0x01;
  space[0x103] = 0x10;
  EXPECT_EQ(redirects_peers(space).value, false);
  space[0x41] = 0xfc;  // the last place there is
  space[0xfc] = 0x10;
  space.resize(256);
  EXPECT_EQ(request_control(space).value, RequestControl{}) << "its registers would lie beyond";
}

TEST(PciConfigSpace, AnyBytesAreSafe) {
  std::mt19937 random(19);
  for (int i = 0; i < 2000; ++i) {
    std::vector<std::uint8_t> space(random() % 2 == 0 ? 4096 : random() % 4200);
    for (std::uint8_t& byte : space) byte = static_cast<std::uint8_t>(random());
    if (space.size() > 6) space[6] |= 0x10;
    EXPECT_NE(request_control(space).value.has_value(), !request_control(space).why_not.empty());
    EXPECT_NE(redirects_peers(space).value.has_value(), !redirects_peers(space).why_not.empty());
  }
}

TEST(PciConfigSpace, ReadsAFile) {
  ScratchFolder root;
  EXPECT_TRUE(read_config_space(root.path(), "0000:01:00.0").empty());
  const std::vector<std::uint8_t> space = made_up_space(0x5010);
  root.write("sys/bus/pci/devices/0000:01:00.0/config", std::string(space.begin(), space.end()));
  EXPECT_EQ(read_config_space(root.path(), "0000:01:00.0"), space);
}

}  // namespace
}  // namespace warpline::machine
