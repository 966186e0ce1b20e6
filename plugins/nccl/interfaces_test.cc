// SPDX-License-Identifier: Apache-2.0
#include "nccl/interfaces.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace warpline::nccl {
namespace {

NicFacts interface_of(std::string name, bool loopback = false) {
  NicFacts made;
  made.name = std::move(name);
  made.local = loopback;
  return made;
}

std::vector<std::string> chosen(std::vector<NicFacts> all, std::string_view pattern) {
  std::vector<std::string> names;
  for (const NicFacts& one : choose(std::move(all), pattern)) names.push_back(one.name);
  return names;
}

TEST(Interfaces, PatternsAreThoseOfNccl) {
  EXPECT_TRUE(takes("eth", "eth0"));
  EXPECT_TRUE(takes("ib,eth", "eth0"));
  EXPECT_FALSE(takes("ib", "eth0"));
  EXPECT_TRUE(takes("=eth0", "eth0"));
  EXPECT_FALSE(takes("=eth0", "eth01"));
  EXPECT_FALSE(takes("^eth", "eth0"));
  EXPECT_TRUE(takes("^eth,docker", "ib0"));
  EXPECT_FALSE(takes("^=ib0,eth0", "eth0"));
  EXPECT_TRUE(takes("^=ib0,eth0", "eth01"));
}

TEST(Interfaces, LoopbackAndDockerAreForThoseWhoHaveNothingElse) {
  const std::vector<NicFacts> all = {interface_of("lo", true), interface_of("docker0"), interface_of("eth0"),
                                     interface_of("eth1")};
  using Names = std::vector<std::string>;
  EXPECT_EQ(chosen(all, ""), (Names{"eth0", "eth1"}));
  EXPECT_EQ(chosen({all[0], all[1]}, ""), (Names{"docker0"}));
  EXPECT_EQ(chosen({all[0]}, ""), (Names{"lo"}));
  EXPECT_EQ(chosen(all, "lo"), (Names{"lo"}));
  EXPECT_EQ(chosen(all, "^eth"), (Names{"lo", "docker0"}));
  EXPECT_EQ(chosen(all, "wlan"), Names{});
}

TEST(Interfaces, EachIsListedOnceWithAnAddressOfTheFamily) {
  const auto all = list_interfaces("AF_INET");
  ASSERT_TRUE(all);
  const auto is_loopback = [](const NicFacts& one) { return one.name == "lo"; };
  EXPECT_LE(std::count_if(all->begin(), all->end(), is_loopback), 1);
  for (const NicFacts& one : *all) {
    EXPECT_TRUE(std::holds_alternative<Ipv4Address>(one.address)) << one.name;
    EXPECT_GE(one.mtu, 68U);
    EXPECT_GT(one.speed, 0);
    EXPECT_EQ(one.local, one.name == "lo");
  }
}

}  // namespace
}  // namespace warpline::nccl
