// SPDX-License-Identifier: Apache-2.0
#include "rate/offered_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace warpline::rate {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr TrialInput kQuarterSecond{.load = 1'234'567.125, .duration = Nanos{250'000'000}};

Result<OfferedCommand> parse(const std::string& text, const config::Environment& environment = {},
                             const std::string& file = {}) {
  return OfferedCommand::parse(text, environment, [&](const std::string&) -> Result<std::string> { return file; });
}

std::vector<std::string> arguments(const std::string& text) {
  const auto command = parse(text);
  EXPECT_TRUE(command.ok()) << text << ": " << (command.ok() ? "" : command.error().message());
  return command.ok() ? command->arguments(kQuarterSecond, std::nullopt) : std::vector<std::string>{};
}

void expect_refused(const Result<OfferedCommand>& command, const std::string& why) {
  ASSERT_FALSE(command.ok()) << why;
  EXPECT_EQ(command.error().kind, ErrorKind::usage);
  EXPECT_THAT(command.error().message(), HasSubstr(why));
}

TEST(OfferedCommand, AGeneratorIsToldTheRate) {
  EXPECT_THAT(arguments("forward --loopback -b 32"), ElementsAre("forward", "--loopback", "-b", "32", "--rate",
                                                                 "1234567.125pps", "--seconds", "250ms", "--json"));
  EXPECT_THAT(arguments("build/warpline generate --port net_null0 --port net_null1"),
              ElementsAre("generate", "--port", "net_null0", "--port", "net_null1", "--rate", "1234567.125pps",
                          "--seconds", "250ms", "--json"));
  EXPECT_EQ(parse("generate --port net_null0 --port net_null1")->interfaces(), 2U);
  EXPECT_THAT(arguments("ingest --loopback --path zerocopy --batch adaptive"),
              ElementsAre("ingest", "--loopback", "--path", "zerocopy", "--batch", "adaptive", "--rate",
                          "1234567.125pps", "--seconds", "250ms", "--json"));
  EXPECT_THAT(parse("forward --loopback")->arguments(kQuarterSecond, 128),
              ElementsAre("forward", "--loopback", "--rate", "1234567.125pps", "--size", "128", "--seconds", "250ms",
                          "--json"));
}

TEST(OfferedCommand, WiresThatSupplyFramesAreToldTheRate) {
  const auto command = parse(
      "l3forward --port=net_vnic0,wire=source --address 10.0.0.1/24 --port net_null1 "
      "--address 10.0.1.1/24 --port net_vnic2,wire=static,size=128 --address 10.0.2.1/24");
  ASSERT_TRUE(command.ok());
  EXPECT_EQ(command->source(), LoadSource::wire);
  EXPECT_EQ(command->interfaces(), 2U);
  EXPECT_FALSE(command->takes_size());
  EXPECT_THAT(
      command->arguments(kQuarterSecond, std::nullopt),
      ElementsAre("l3forward", "--address", "10.0.0.1/24", "--address", "10.0.1.1/24", "--address", "10.0.2.1/24",
                  "--port", "net_vnic0,wire=source,rate=1234567.125pps", "--port", "net_null1", "--port",
                  "net_vnic2,wire=static,size=128,rate=1234567.125pps", "--seconds", "250ms", "--json"));
}

TEST(OfferedCommand, AConsumersWiresAreToldTheRate) {
  const auto command = parse("ingest --port net_vnic0,wire=static --verify");
  ASSERT_TRUE(command.ok());
  EXPECT_EQ(command->source(), LoadSource::wire);
  EXPECT_THAT(command->arguments(kQuarterSecond, std::nullopt),
              ElementsAre("ingest", "--verify", "--port", "net_vnic0,wire=static,rate=1234567.125pps", "--seconds",
                          "250ms", "--json"));
}

TEST(OfferedCommand, AClientIsToldRequests) {
  EXPECT_THAT(arguments("message client --connect 127.0.0.1:7000"),
              ElementsAre("message", "client", "--connect", "127.0.0.1:7000", "--rate", "1234567", "--seconds", "250ms",
                          "--json"));
}

TEST(OfferedCommand, WhatOffersNoLoadIsRefused) {
  expect_refused(parse(""), "--of");
  expect_refused(parse("doctor"), "nothing offers it load");
  expect_refused(parse("bench list"), "nothing offers it load");
  expect_refused(parse("message server"), "message client");
  expect_refused(parse("forward --port net_null0"), "--loopback");
  expect_refused(parse("ingest --port net_null0"), "--loopback");
  expect_refused(parse("l3forward --port net_null0 --address 10.0.0.1/24"), "wire=source");
  expect_refused(parse("generate --port net_null0 --role transmit"), "--role transmit");
  expect_refused(parse("forward --port net_vnic0,wire=source --tx-first 5"), "--tx-first");
}

TEST(OfferedCommand, WhatTheSearchSetsIsRefused) {
  expect_refused(parse("forward --loopback --rate 1Mpps"), "--rate");
  expect_refused(parse("forward --loopback --seconds 5"), "--seconds");
  expect_refused(parse("forward --loopback --json"), "--json");
  expect_refused(parse("forward --loopback --packets 10"), "--packets");
  expect_refused(parse("ingest --loopback --packets 10"), "--packets");
  expect_refused(parse("forward --loopback", {{"WARPLINE_FORWARD_PACKETS", "10"}}), "--packets");
  expect_refused(parse("message client --connect 127.0.0.1:7000 -n 5"), "--requests");
  expect_refused(parse("forward --port net_vnic0,wire=source,rate=5pps"), "rate=");
  // What a file or a variable says is overridden by the flags of a trial.
  EXPECT_TRUE(parse("forward --loopback", {{"WARPLINE_FORWARD_SECONDS", "5"}}).ok());
}

TEST(OfferedCommand, APortOfAFileCannotBeChanged) {
  const std::string file = "[[port]]\nspec = \"net_vnic0,wire=source\"\n";
  expect_refused(parse("forward --config somewhere.toml", {}, file), "give it by --port");
}

TEST(OfferedCommand, ACommandLineThatIsWrongIsSaidToBe) {
  expect_refused(parse("forwart"), "--of: unknown command");
  expect_refused(parse("forward --loopback --bursts 5"), "--of: ");
  expect_refused(parse("forward 'a"), "not closed");
}

}  // namespace
}  // namespace warpline::rate
