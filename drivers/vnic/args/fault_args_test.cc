// SPDX-License-Identifier: Apache-2.0
#include "vnic/args/fault_args.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "warpline/base/property_testing.h"

namespace warpline::vnic {
namespace {

using testing::HasSubstr;

FaultConfig parsed(std::string_view key, std::string_view value) {
  FaultConfig config;
  const Result<void> status = set_fault(config, key, value);
  EXPECT_TRUE(status.ok()) << (status.ok() ? "" : status.error().message());
  return config;
}

std::string refusal(std::string_view key, std::string_view value) {
  FaultConfig config;
  const Result<void> status = set_fault(config, key, value);
  EXPECT_EQ(config, FaultConfig{});
  if (status.ok()) return {};
  EXPECT_EQ(status.error().kind, ErrorKind::usage);
  return status.error().message();
}

TEST(FaultArgs, ValuesHaveUnits) {
  EXPECT_EQ(parsed("loss", "0.01").loss, 0.01);
  EXPECT_EQ(parsed("burst_loss_enter", "1e-3").burst_loss_enter, 0.001);
  EXPECT_EQ(parsed("corrupt", "1").corrupt, 1);
  EXPECT_EQ(parsed("delay", "10us").delay_nanos, 10'000U);
  EXPECT_EQ(parsed("delay", "3").delay_nanos, 3'000U);
  EXPECT_EQ(parsed("jitter", "1.5ms").jitter_nanos, 1'500'000U);
  EXPECT_EQ(parsed("rate", "10gbit").bits_per_s, 10'000'000'000U);
  EXPECT_EQ(parsed("rate", "max").bits_per_s, 0U);
  EXPECT_EQ(parsed("queue_bytes", "64Ki").queue_bytes, 65536U);
  EXPECT_EQ(parsed("ecn_bytes", "30KB").ecn_bytes, 30'000U);
  EXPECT_EQ(parsed("reorder_depth", "64").reorder_depth, 64U);
  EXPECT_EQ(parsed("flap_frames", "1M").flap_frames, 1'000'000U);
  EXPECT_EQ(parsed("reset_frames", "5k").reset_frames, 5000U);
}

TEST(FaultArgs, WhatMakesNoSenseIsRefused) {
  for (const char* text : {"", "-0.1", "1.1", "nan", "inf", "1%", "0.1 ", "x"}) {
    EXPECT_THAT(refusal("loss", text), HasSubstr("probability")) << text;
  }
  EXPECT_THAT(refusal("delay", "10 parsecs"), HasSubstr("unit"));
  EXPECT_THAT(refusal("delay", "2000000s"), HasSubstr("hour"));
  EXPECT_THAT(refusal("rate", "0gbit"), HasSubstr("nothing would ever be sent"));
  EXPECT_THAT(refusal("rate", "0.1bit"), HasSubstr("between"));
  EXPECT_THAT(refusal("rate", "10Mpps"), HasSubstr("bits"));
  EXPECT_THAT(refusal("reorder_depth", "0"), HasSubstr("between 1 and 64"));
  EXPECT_THAT(refusal("reorder_depth", "65"), HasSubstr("between 1 and 64"));
  EXPECT_THAT(refusal("queue_bytes", "4Gi"), HasSubstr("between"));
  EXPECT_THAT(refusal("flap_lost", "0"), HasSubstr("between"));
  EXPECT_THAT(refusal("los", "0.1"), HasSubstr("did you mean 'loss'?"));
}

TEST(FaultArgs, EveryKeyIsKnown) {
  EXPECT_EQ(fault_keys().size(), 20U);
  for (const std::string& key : fault_keys()) EXPECT_TRUE(is_fault_key(key));
  EXPECT_FALSE(is_fault_key("wire"));
}

TEST(FaultArgs, TextReadsBack) {
  EXPECT_EQ(to_string(FaultConfig{}), "");
  FaultConfig config;
  for (const std::string& key : fault_keys()) {
    const char* value = key == "rate" ? "123456789bit" : key == "delay" || key == "jitter" ? "1234567ns" : "1";
    ASSERT_TRUE(set_fault(config, key, value).ok()) << key;
  }
  config.burst_loss = 0.1;
  FaultConfig copy;
  const std::string text = to_string(config);
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::size_t equals = text.find('=', begin);
    ASSERT_TRUE(set_fault(copy, text.substr(begin, equals - begin), text.substr(equals + 1, end - equals - 1)).ok());
    begin = end + 1;
  }
  EXPECT_EQ(copy, config) << text;
}

WARPLINE_PROPERTY(FaultArgs, AnyTextIsTakenOrRefused, (const std::string& key, const std::string& value)) {
  FaultConfig config;
  const Result<void> unknown = set_fault(config, key, value);
  RC_ASSERT(!unknown.ok() || is_fault_key(key));
  for (const std::string& known : fault_keys()) {
    if (!set_fault(config, known, value).ok()) continue;
    RC_ASSERT(config.loss >= 0 && config.loss <= 1);
  }
}

}  // namespace
}  // namespace warpline::vnic
