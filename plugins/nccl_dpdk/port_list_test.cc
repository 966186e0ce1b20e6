// SPDX-License-Identifier: Apache-2.0
#include "nccl_dpdk/port_list.h"

#include <gtest/gtest.h>

#include <map>

namespace warpline::nccl {
namespace {

std::map<std::string, std::string>& environment() {
  static std::map<std::string, std::string> variables;
  return variables;
}

const char* value_of(const char* name) {
  const auto found = environment().find(name);
  return found == environment().end() ? nullptr : found->second.c_str();
}

Result<PortList> read(std::map<std::string, std::string> variables) {
  std::map<std::string, std::string> named;
  for (auto& [name, value] : variables) {
    const bool whole = name.rfind("LOCAL_", 0) == 0;
    named[whole ? name : "WARPLINE_NCCL_DPDK_" + name] = value;
  }
  environment() = named;
  return read_port_list(value_of);
}

TEST(PortList, NamesPortsWithTheirAddresses) {
  const auto list = read({{"PORT", "0000:01:00.0;0000:01:00.1"}, {"ADDRESS", "10.0.0.1/24;fd00::1/64"}});
  ASSERT_TRUE(list) << list.error().message();
  ASSERT_EQ(list->ports.size(), 2U);
  EXPECT_EQ(list->ports[0].spec, "0000:01:00.0");
  EXPECT_EQ(to_string(list->ports[0].address), "10.0.0.1/24");
  EXPECT_EQ(to_string(list->ports[1].address), "fd00::1/64");
  EXPECT_EQ(list->ports[0].mtu, 1500);
  EXPECT_FALSE(list->ports[0].local);
  EXPECT_FALSE(list->gateway);
}

TEST(PortList, ALocalRankTakesItsOwnVariables) {
  const std::map<std::string, std::string> both = {{"PORT", "net_null0"},
                                                   {"PORT_1", "net_memif0,role=client"},
                                                   {"ADDRESS", "10.0.0.1/24"},
                                                   {"ADDRESS_1", "10.0.0.2/24"},
                                                   {"MTU", "9000"},
                                                   {"GATEWAY", "10.0.0.254"}};
  auto of_rank = [&](const char* rank) {
    auto variables = both;
    variables["LOCAL_RANK"] = rank;
    return read(variables);
  };
  EXPECT_EQ(of_rank("0")->ports[0].spec, "net_null0");
  EXPECT_EQ(to_string(of_rank("0")->ports[0].address), "10.0.0.1/24");
  const auto own = of_rank("1");
  ASSERT_TRUE(own) << own.error().message();
  EXPECT_EQ(to_string(own->ports[0].address), "10.0.0.2/24");
  EXPECT_EQ(own->ports[0].spec.rfind("net_memif0,role=client", 0), 0U);
  EXPECT_TRUE(own->ports[0].local);
  EXPECT_TRUE(own->ports[0].waits);
  EXPECT_EQ(own->ports[0].mtu, 9000);
  ASSERT_TRUE(own->gateway);
  EXPECT_EQ(to_string(*own->gateway), "10.0.0.254");
}

TEST(PortList, MemifsBuffersHoldAFrame) {
  const auto taken = [](const char* spec, const char* mtu) -> std::string {
    auto list = read({{"PORT", spec}, {"ADDRESS", "10.0.0.1/24"}, {"MTU", mtu}});
    return list ? list->ports[0].spec : list.error().message();
  };
  EXPECT_EQ(taken("net_memif0", "4096"), "net_memif0,bsize=4114,rsize=8");
  EXPECT_EQ(taken("net_memif0,bsize=8192,rsize=9", "4096"), "net_memif0,bsize=8192,rsize=9");
  EXPECT_EQ(taken("net_memif0", "1500"), "net_memif0,bsize=1518,rsize=10");
  EXPECT_NE(taken("net_memif0,bsize=2048", "4096").find("a frame of MTU 4096 does not fit"), std::string::npos);
}

TEST(PortList, WhatMakesNoSenseIsRefusedByName) {
  const auto wrong = [](const std::map<std::string, std::string>& variables) {
    const auto list = read(variables);
    return list ? std::string("taken") : list.error().message();
  };
  EXPECT_EQ(wrong({}).rfind("WARPLINE_NCCL_DPDK_PORT: it names no port", 0), 0U);
  EXPECT_NE(wrong({{"PORT", "net_null0"}}).find("0 addresses for 1 ports"), std::string::npos);
  EXPECT_NE(wrong({{"PORT", "net_null0;net_null1"}, {"ADDRESS", "10.0.0.1/24"}}).find("1 addresses for 2 ports"),
            std::string::npos);
  EXPECT_NE(wrong({{"PORT", "net_null0"}, {"ADDRESS", "10.0.0.1"}}).find("WARPLINE_NCCL_DPDK_ADDRESS=10.0.0.1"),
            std::string::npos);
  EXPECT_NE(wrong({{"PORT", "no port"}, {"ADDRESS", "10.0.0.1/24"}}).find("WARPLINE_NCCL_DPDK_PORT=no port"),
            std::string::npos);
  const std::map<std::string, std::string> good = {{"PORT", "net_null0"}, {"ADDRESS", "10.0.0.1/24"}};
  for (const char* const mtu : {"1279", "60001", "much"}) {
    auto variables = good;
    variables["MTU"] = mtu;
    EXPECT_NE(wrong(variables).find(std::string("WARPLINE_NCCL_DPDK_MTU=") + mtu), std::string::npos);
  }
  auto variables = good;
  variables["GATEWAY"] = "the router";
  EXPECT_NE(wrong(variables).find("WARPLINE_NCCL_DPDK_GATEWAY=the router"), std::string::npos);
}

}  // namespace
}  // namespace warpline::nccl
