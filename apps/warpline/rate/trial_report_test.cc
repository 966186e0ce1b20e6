// SPDX-License-Identifier: Apache-2.0
#include "rate/trial_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace warpline::rate {
namespace {

using Json = nlohmann::json;

constexpr TrialInput kTrial{.load = 1000, .duration = kTrialSecond};

Json generator_report(std::uint64_t generated, std::uint64_t delivered, double pps) {
  return {{"generated", {{"packets", generated}, {"bytes", 64 * generated}}},
          {"delivered", {{"packets", delivered}, {"bytes", 64 * delivered}}},
          {"drops", {{"tx_full", generated - delivered}}},
          {"in_flight", 0},
          {"conserved", true},
          {"verify", {{"checked", delivered}, {"bad", 0}, {"duplicated", 0}, {"missing", generated - delivered}}},
          {"queues", {{{"tx", {{"pps", pps / 2}}}}, {{"tx", {{"pps", pps / 2}}}}, {{"rx", Json::object()}}}}};
}

TrialOutput output_of(const Json& report, LoadSource source, std::uint32_t interfaces = 1) {
  const auto trial = read_trial_report(report.dump(), source, kTrial.duration);
  EXPECT_TRUE(trial.ok());
  return trial.ok() ? trial->output(kTrial, interfaces) : TrialOutput{};
}

TEST(TrialReport, LossIsWhatTheGeneratorSentAndTheCheckerDidNotSee) {
  const TrialOutput none = output_of(generator_report(1000, 1000, 1000), LoadSource::generator);
  EXPECT_EQ(none.expected, 1000U);
  EXPECT_EQ(none.lost, 0U);
  const TrialOutput some = output_of(generator_report(998, 900, 996), LoadSource::generator);
  EXPECT_EQ(some.expected, 998U);
  EXPECT_EQ(some.lost, 98U);
}

TEST(TrialReport, LoadThatWasNotOfferedIsLost) {
  const TrialOutput slow = output_of(generator_report(500, 500, 500), LoadSource::generator);
  EXPECT_EQ(slow.expected, 1000U);
  EXPECT_EQ(slow.lost, 500U);
  const TrialOutput two_ports = output_of(generator_report(1000, 1000, 1000), LoadSource::generator, 2);
  EXPECT_EQ(two_ports.expected, 2000U);
  EXPECT_EQ(two_ports.lost, 1000U);
  const TrialOutput nothing = output_of(generator_report(0, 0, 0), LoadSource::generator);
  EXPECT_EQ(nothing.expected, 1000U);
  EXPECT_EQ(nothing.lost, 1000U);
}

TEST(TrialReport, OfAWireEverythingCountsThatWasNotForwarded) {
  const Json report = {{"rx", {{"packets", 900}, {"bytes", 54'000}}},
                       {"drops", {{"no_route", 5}}},
                       {"in_flight", 0},
                       {"conserved", true},
                       {"ports", {{{"name", "net_vnic0"}, {"missed", 90}, {"nombuf", 10}}, {{"name", "net_vnic1"}}}}};
  const TrialOutput output = output_of(report, LoadSource::wire);
  EXPECT_EQ(output.expected, 1000U);
  EXPECT_EQ(output.lost, 105U);
  const auto trial = read_trial_report(report.dump(), LoadSource::wire, kTrial.duration);
  EXPECT_EQ(trial->drops, (Json{{"no_route", 5}, {"net_vnic0 missed", 100}}));
  EXPECT_EQ(trial->frame_bytes, 60);
}

TEST(TrialReport, OfAClientRequestsCount) {
  const Json report = {{"requests", {{"submitted", 1000}, {"ok", 999}}},
                       {"drops", Json::object()},
                       {"conserved", true},
                       {"rate", {{"offered_per_s", 999.5}}},
                       {"latency_ns", {{"p99", 17}}}};
  const TrialOutput output = output_of(report, LoadSource::client);
  EXPECT_EQ(output.expected, 1000U);
  EXPECT_EQ(output.lost, 1U);
  EXPECT_EQ(read_trial_report(report.dump(), LoadSource::client, kTrial.duration)->latency_ns, (Json{{"p99", 17}}));
}

TEST(TrialReport, WhatIsWrongIsNoLoss) {
  for (const char* wrong : {"bad", "duplicated"}) {
    Json report = generator_report(1000, 1000, 1000);
    report["verify"][wrong] = 1;
    const auto trial = read_trial_report(report.dump(), LoadSource::generator, kTrial.duration);
    ASSERT_FALSE(trial.ok());
    EXPECT_EQ(trial.error().kind, ErrorKind::verification);
  }
  Json report = generator_report(1000, 1000, 1000);
  report["conserved"] = false;
  const auto trial = read_trial_report(report.dump(), LoadSource::generator, kTrial.duration);
  ASSERT_FALSE(trial.ok());
  EXPECT_THAT(trial.error().message(), testing::HasSubstr("unaccounted"));
}

TEST(TrialReport, WhatIsNoReportIsSaid) {
  for (const char* text : {"", "{", "[]", "{}", R"({"conserved": 1})", R"({"conserved": true, "generated": []})"}) {
    const auto trial = read_trial_report(text, LoadSource::generator, kTrial.duration);
    ASSERT_FALSE(trial.ok()) << text;
    EXPECT_EQ(trial.error().kind, ErrorKind::environment) << text;
  }
}

}  // namespace
}  // namespace warpline::rate
