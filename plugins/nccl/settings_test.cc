// SPDX-License-Identifier: Apache-2.0
#include "nccl/settings.h"

#include <gtest/gtest.h>

#include <map>

namespace warpline::nccl {
namespace {

std::map<std::string, std::string> environment;

Result<Settings> read(std::map<std::string, std::string> variables, std::uint32_t processors = 32) {
  environment = std::move(variables);
  const auto get = [](const char* name) -> const char* {
    const auto found = environment.find(name);
    return found == environment.end() ? nullptr : found->second.c_str();
  };
  return read_settings(get, processors);
}

TEST(NcclSettings, LanesAreAQuarterOfTheProcessorsOfAProcessAndItsNeighbour) {
  EXPECT_EQ(read({}, 1)->lanes, 1U);
  EXPECT_EQ(read({}, 2)->lanes, 1U);
  EXPECT_EQ(read({}, 16)->lanes, 4U);
  EXPECT_EQ(read({}, 32)->lanes, 8U);
  EXPECT_EQ(read({}, 256)->lanes, kMaxLanes);
  EXPECT_EQ(read({{"LOCAL_WORLD_SIZE", "8"}}, 64)->lanes, 4U);
}

TEST(NcclSettings, NobodyPollsWhereProcessorsAreFew) {
  EXPECT_EQ(read({}, 2)->poll_for.value, 0);
  EXPECT_EQ(read({}, 8)->poll_for.value, 100'000);
  EXPECT_EQ(read({}, 16)->poll_for.value, 1'000'000);
  EXPECT_EQ(read({{"WARPLINE_NCCL_POLL", "20us"}}, 2)->poll_for.value, 20'000);
}

TEST(NcclSettings, EachVariableSetsWhatItSays) {
  const auto settings = read({{"WARPLINE_NCCL_LANES", "3"},
                              {"WARPLINE_NCCL_TIMEOUT", "1500ms"},
                              {"WARPLINE_NCCL_PIECE", "256Ki"},
                              {"WARPLINE_NCCL_DATAGRAM", "8972"},
                              {"WARPLINE_NCCL_BUFFER", "4Mi"},
                              {"WARPLINE_NCCL_MAX_RECVS", "4"},
                              {"WARPLINE_NCCL_EARLY", "4Ki"},
                              {"WARPLINE_NCCL_CC", "none"},
                              {"NCCL_SOCKET_IFNAME", "eth"},
                              {"NCCL_SOCKET_FAMILY", "AF_INET6"}});
  ASSERT_TRUE(settings);
  EXPECT_EQ(settings->lanes, 3U);
  EXPECT_EQ(settings->timeout.value, 1'500'000'000);
  EXPECT_EQ(settings->piece_bytes, 256U << 10);
  EXPECT_EQ(settings->datagram_bytes, 8972U);
  EXPECT_EQ(settings->buffer_bytes, 4U << 20);
  EXPECT_EQ(settings->max_group, 4);
  EXPECT_EQ(settings->early_bytes, 4096U);
  EXPECT_EQ(settings->congestion, message::CcKind::none);
  EXPECT_EQ(settings->interfaces, "eth");
  EXPECT_EQ(settings->family, "AF_INET6");
}

TEST(NcclSettings, WhatMakesNoSenseIsAnErrorThatNamesIt) {
  for (const auto& [name, value] : std::map<std::string, std::string>{{"WARPLINE_NCCL_LANES", "0"},
                                                                      {"WARPLINE_NCCL_TIMEOUT", "never"},
                                                                      {"WARPLINE_NCCL_POLL", "2h"},
                                                                      {"WARPLINE_NCCL_PIECE", "1"},
                                                                      {"WARPLINE_NCCL_DATAGRAM", "70000"},
                                                                      {"WARPLINE_NCCL_BUFFER", "1"},
                                                                      {"WARPLINE_NCCL_MAX_RECVS", "9"},
                                                                      {"WARPLINE_NCCL_EARLY", "65537"},
                                                                      {"WARPLINE_NCCL_CC", "reno"}}) {
    const auto settings = read({{name, value}});
    ASSERT_FALSE(settings) << name;
    EXPECT_NE(settings.error().message().find(value), std::string::npos) << settings.error().message();
  }
}

}  // namespace
}  // namespace warpline::nccl
