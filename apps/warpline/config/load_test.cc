// SPDX-License-Identifier: Apache-2.0
#include "config/load.h"

#include <gtest/gtest.h>

#include "config/load_testing.h"

namespace warpline::config {
namespace {

TEST(Load, FlagBeforeEnvironmentBeforeFileBeforeDefault) {
  const std::string file = "[forward]\n\nburst = 16\n";
  const Environment environment = {{"WARPLINE_FORWARD_BURST", "48"}};
  EXPECT_EQ(shown(load_line("forward --loopback"), "forward.burst"), "64 default");
  EXPECT_EQ(shown(load_line("forward --loopback --config a.toml", file), "forward.burst"), "16 file a.toml:3");
  EXPECT_EQ(shown(load_line("forward --loopback --config a.toml", file, environment), "forward.burst"),
            "48 environment WARPLINE_FORWARD_BURST");
  EXPECT_EQ(shown(load_line("forward --loopback --config a.toml -b adaptive", file, environment), "forward.burst"),
            "\"adaptive\" flag");
  EXPECT_EQ(shown(load_line("forward --loopback --config a.toml -b 96", file, environment), "forward.burst"),
            "96 flag");
}

TEST(Load, EveryFormOfAFlag) {
  for (const char* line : {"--burst 32", "--burst=32", "-b 32", "-b32"}) {
    const auto loaded = load_line(std::string("forward --loopback ") + line);
    ASSERT_TRUE(loaded.ok()) << line << ": " << outcome(loaded);
    EXPECT_EQ(loaded->config.forward.burst, 32) << line;
  }
  EXPECT_TRUE(load_line("forward --loopback=yes")->config.forward.loopback);
  EXPECT_TRUE(load_line("forward --loopback --json")->json);
}

TEST(Load, UnitsAndBareNumbers) {
  const auto loaded = load_line(
      "forward --loopback --deadline 5 --seconds 0.5 --packets 2K --workload spin -t 250 --interval 100ms "
      "--data-room 2Ki --rate 14.88Mpps");
  ASSERT_TRUE(loaded.ok()) << outcome(loaded);
  EXPECT_EQ(loaded->config.forward.deadline, Nanos{5'000});
  EXPECT_EQ(loaded->config.forward.packet_time, Nanos{250});
  EXPECT_EQ(loaded->config.run.seconds, Nanos{500'000'000});
  EXPECT_EQ(loaded->config.run.interval, Nanos{100'000'000});
  EXPECT_EQ(loaded->config.run.packets, 2000U);
  EXPECT_EQ(loaded->config.pool.data_room, 2048U);
  EXPECT_EQ(loaded->config.traffic.rate, Rate{PacketRate{14.88e6}});
}

TEST(Load, VariablesOfOtherProgramsAreIgnored) {
  // Kubernetes documents the variables of a Service: NAME_SERVICE_HOST, NAME_SERVICE_PORT, and those of Docker's links.
  const Environment environment = {
      {"WARPLINE_", "1"},
      {"WARPLINE_FORWARD", "1"},
      {"WARPLINE_FORWARD_PORT", "tcp://10.96.0.7:9400"},
      {"WARPLINE_FORWARD_PORT_9400_TCP", "tcp://10.96.0.7:9400"},
      {"WARPLINE_FORWARD_PORT_9400_TCP_ADDR", "10.96.0.7"},
      {"WARPLINE_FORWARD_PORT_9400_TCP_PORT", "9400"},
      {"WARPLINE_FORWARD_PORT_9400_TCP_PROTO", "tcp"},
      {"WARPLINE_FORWARD_SERVICE_HOST", "10.96.0.7"},
      {"WARPLINE_FORWARD_SERVICE_PORT", "9400"},
      {"WARPLINE_FORWARD_SERVICE_PORT_METRICS", "9400"},
      {"WARPLINE_INGEST_BURST_OF_NEXT_YEAR", "7"},
      {"WARPLINE_METRICS_PORT", "tcp://10.96.0.8:9400"},
      {"WARPLINE_METRICS_SERVICE_HOST", "10.96.0.8"},
      {"WARPLINE_NCCL_EARLY", "1"},
      {"WARPLINE_PORT", "tcp://10.96.0.9:80"},
      {"WARPLINE_SERVICE_HOST", "10.96.0.9"},
  };
  const auto loaded = load_line("forward --loopback", "", environment);
  ASSERT_TRUE(loaded.ok()) << outcome(loaded);
  EXPECT_TRUE(loaded->config.ports.empty() || loaded->config.ports.front().spec.find("tcp:") == std::string::npos);
  EXPECT_TRUE(load_line("message client --connect 10.0.0.1:7", "", {{"WARPLINE_MESSAGE_KEY_NAME", "a"}}).ok());
}

TEST(Load, BooleansOfTheEnvironmentAndTheFile) {
  for (const char* yes : {"true", "1", "yes", "on"}) {
    EXPECT_TRUE(load_line("forward --loopback", "", {{"WARPLINE_FORWARD_VERIFY", yes}})->config.run.verify) << yes;
  }
  for (const char* no : {"false", "0", "no", "off"}) {
    EXPECT_FALSE(load_line("forward --loopback", "", {{"WARPLINE_FORWARD_VERIFY", no}})->config.run.verify) << no;
  }
  EXPECT_FALSE(
      load_line("forward --loopback --config a.toml", "runtime.no-hugepages = true")->config.runtime.hugepages);
}

TEST(Load, VariablesOfOtherCommandsAreIgnored) {
  const auto loaded = load_line("forward --loopback", "", {{"WARPLINE_GENERATE_BURST", "7"}, {"HOME", "/"}});
  ASSERT_TRUE(loaded.ok()) << outcome(loaded);
  EXPECT_EQ(loaded->config.forward.burst, 64);
}

TEST(Load, TheSameFlagMeansEachCommandsOwn) {
  EXPECT_EQ(load_line("generate --port net_null0 -b 8")->config.traffic.burst, 8);
  EXPECT_EQ(load_line("generate --port net_null0 -b 8")->config.forward.burst, 64);
}

TEST(Load, APortsSetUpComesFromItsTableBeforeTheDefaults) {
  const std::string file =
      "[port-defaults]\n"
      "mtu = 1400\n"
      "rx-ring = 128\n"
      "[[port]]\n"
      "spec = \"net_null0\"\n"
      "[[port]]\n"
      "spec = \"net_null1\"\n"
      "mtu = 9000\n"
      "address = \"10.0.0.1/24\"\n"
      "rx-offloads = [\"scatter\", \"rss_hash\"]\n";
  const auto loaded = load_line("forward --config a.toml --rx-ring 256", file);
  ASSERT_TRUE(loaded.ok()) << outcome(loaded);
  ASSERT_EQ(loaded->config.ports.size(), 2U);
  EXPECT_EQ(shown(loaded, "port[0].mtu"), "1400 file a.toml:2");
  EXPECT_EQ(shown(loaded, "port[0].spec"), "\"net_null0\" file a.toml:4");
  EXPECT_EQ(shown(loaded, "port[1].mtu"), "9000 file a.toml:8");
  EXPECT_EQ(shown(loaded, "port[1].rx-ring"), "256 flag");
  EXPECT_EQ(shown(loaded, "port[1].address"), "\"10.0.0.1/24\" file a.toml:9");
  EXPECT_EQ(loaded->config.ports[1].rx_offloads, (std::vector<std::string>{"scatter", "rss_hash"}));
  EXPECT_TRUE(loaded->config.ports[0].addresses.empty());
  EXPECT_EQ(loaded->config.port_defaults.mtu, 1400);
}

TEST(Load, FlagsChooseThePortsAndTablesStillSetThemUp) {
  const std::string file = "[[port]]\nspec = \"net_null0\"\nmtu = 9000\n[[port]]\nspec = \"net_null1\"\n";
  const auto loaded = load_line("forward --config a.toml --port net_null0", file);
  ASSERT_TRUE(loaded.ok()) << outcome(loaded);
  ASSERT_EQ(loaded->config.ports.size(), 1U);
  EXPECT_EQ(loaded->config.ports[0].mtu, 9000);
}

TEST(Load, AddressesArePairedWithPortsByPosition) {
  const auto loaded = load_line("forward --port net_null0 --port net_null1 --address none --address fd00::1/64");
  ASSERT_TRUE(loaded.ok()) << outcome(loaded);
  EXPECT_TRUE(loaded->config.ports[0].addresses.empty());
  EXPECT_EQ(to_string(loaded->config.ports[1].addresses.at(0)), "fd00::1/64");
  EXPECT_EQ(shown(loaded, "port[0].address"), "\"none\" flag");
}

TEST(Load, SeveralPortsInOneVariable) {
  const auto loaded = load_line("forward", "",
                                {{"WARPLINE_FORWARD_PORT", "net_af_packet0,iface=eth1;net_null0"},
                                 {"WARPLINE_FORWARD_ADDRESS", "10.0.0.1/24,none"},
                                 {"WARPLINE_FORWARD_RSS_FIELDS", ""}});
  ASSERT_TRUE(loaded.ok()) << outcome(loaded);
  ASSERT_EQ(loaded->config.ports.size(), 2U);
  EXPECT_EQ(loaded->config.ports[0].spec, "net_af_packet0,iface=eth1");
  EXPECT_FALSE(loaded->config.ports[0].addresses.empty());
  EXPECT_TRUE(loaded->config.ports[1].rss_fields.empty());
}

TEST(Load, WhatAnEngineOnAGpuNeedsFollowsFromIt) {
  EXPECT_EQ(shown(load_line("forward --loopback"), "pool.memory"), "\"host\" default");
  EXPECT_EQ(shown(load_line("forward --loopback"), "forward.ctas"), "1 default");
  const auto persistent = load_line("forward --loopback --engine persistent");
  EXPECT_EQ(shown(persistent, "pool.memory"), "\"pinned\" default");
  EXPECT_EQ(shown(persistent, "forward.ctas"), "16 default");
  EXPECT_EQ(persistent->config.pool.memory, memory::MemoryKind::pinned);
  const auto graph = load_line("forward --loopback --engine graph -m device");
  EXPECT_EQ(shown(graph, "pool.memory"), "\"device\" flag");
  EXPECT_EQ(shown(graph, "forward.ctas"), "1 default");
  EXPECT_EQ(shown(load_line("forward --loopback --engine persistent --ctas 1"), "forward.ctas"), "1 flag");
  EXPECT_EQ(shown(load_line("forward --loopback --engine persistent --io gpu"), "forward.ctas"), "1 default");
}

TEST(Load, GpusAreOneOrOneForEachPipeline) {
  const auto one = load_line("forward --loopback --engine persistent -p 3 --gpu 2");
  ASSERT_TRUE(one.ok()) << outcome(one);
  EXPECT_EQ(one->config.forward.gpu_of(0), 2);
  EXPECT_EQ(one->config.forward.gpu_of(2), 2);
  const auto each = load_line("forward --loopback --engine persistent -p 3 -g 0 -g 1,0");
  ASSERT_TRUE(each.ok()) << outcome(each);
  EXPECT_EQ(each->config.forward.gpu_of(1), 1);
  EXPECT_EQ(each->config.forward.gpu_of(2), 0);
  // 28 pipelines over four GPUs: seven each.
  const auto spread = load_line("forward --loopback --engine persistent -p 28 -g 0,1,2 -g 3");
  ASSERT_TRUE(spread.ok()) << outcome(spread);
  std::vector<int> pipelines_of(4);
  for (std::size_t pipeline = 0; pipeline < 28; ++pipeline) ++pipelines_of[spread->config.forward.gpu_of(pipeline)];
  EXPECT_EQ(pipelines_of, (std::vector<int>{7, 7, 7, 7}));
  const auto all = load_line("ingest --loopback -p 4 -g all");
  ASSERT_TRUE(all.ok()) << outcome(all);
  EXPECT_TRUE(all->config.forward.gpus.empty());
  EXPECT_EQ(shown(all, "forward.gpu"), "[\"all\"] flag");
  const auto file =
      load_line("forward --loopback --config a.toml", "[forward]\nengine = \"launch\"\npipelines = 2\ngpu = [1, 0]\n");
  ASSERT_TRUE(file.ok()) << outcome(file);
  EXPECT_EQ(file->config.forward.gpus, (std::vector<std::uint16_t>{1, 0}));
  EXPECT_EQ(load_line("forward --loopback --config a.toml", "[forward]\ngpu = [1]\n")->config.forward.gpu_of(0), 1)
      << "a file may serve runs of other engines too";
}

TEST(Load, SplitsOffSixtyBytesOrAsManyAsAreSaid) {
  EXPECT_EQ(load_line("forward --loopback")->config.pool.split, 0);
  EXPECT_EQ(load_line("forward --loopback -s on")->config.pool.split, 60);
  EXPECT_EQ(load_line("forward --loopback -s off")->config.pool.split, 0);
  EXPECT_EQ(load_line("forward --loopback --split 128")->config.pool.split, 128);
  EXPECT_TRUE(load_line("forward --loopback -m device --split on").ok()) << "mac-swap touches nothing else";
  EXPECT_TRUE(load_line("forward --loopback -m device --workload none").ok());
}

TEST(Load, JsonFilesCountLines) {
  const std::string file = "{\n \"forward\": {\n  \"burst\": 16, \"engine\": \"thread\",\n  \"ctas\": 2}}";
  const auto loaded = load_line("forward --loopback --config a.toml", file);
  EXPECT_EQ(shown(loaded, "forward.burst"), "16 file a.toml:3");
  EXPECT_EQ(shown(loaded, "forward.ctas"), "2 file a.toml:4");
}

TEST(Load, AReportIsAConfiguration) {
  const std::string file = R"({"schema_version": 1, "command": "forward", "rx": {"packets": 3}, "drops": {},
                               "config": {"forward": {"burst": 8, "loopback": true}}})";
  EXPECT_EQ(load_line("forward --config a.toml", file)->config.forward.burst, 8);
}

TEST(Load, ShowAndCheckAreAboutTheNamedCommand) {
  const auto show = load_line("config show generate --json --queues 2");
  ASSERT_TRUE(show.ok()) << outcome(show);
  EXPECT_EQ(show->task, Task::show);
  EXPECT_EQ(show->config.command, Command::generate);
  EXPECT_EQ(show->config.traffic.queues, 2);
  EXPECT_TRUE(show->json);
  EXPECT_FALSE(show->config.run.json);
  EXPECT_TRUE(show->problems.empty());
  EXPECT_EQ(load_line("config show")->config.command, Command::forward);
  EXPECT_TRUE(load_line("config check --loopback", "", {{"WARPLINE_CONFIG_JSON", "1"}})->json);
}

TEST(Load, TellsWhichCommandToRun) {
  const std::map<std::string, Command> lines = {
      {"forward --loopback", Command::forward},
      {"l3forward --port net_null0 --address 10.0.0.1/24 --routes r.toml", Command::l3forward},
      {"generate --port net_null0", Command::generate},
      {"message server", Command::message},
      {"stream receive --port net_null0 --address 10.0.0.1/24 --listen 5001", Command::stream},
      {"bench list", Command::bench},
      {"config show generate", Command::config},
      {"config check", Command::config},
      {"doctor", Command::doctor}};
  for (const auto& [line, command] : lines) {
    const auto loaded = load_line(line);
    ASSERT_TRUE(loaded.ok()) << line << ": " << outcome(loaded);
    EXPECT_EQ(loaded->command, command) << line;
  }
}

TEST(Load, CheckNamesEveryProblem) {
  const auto check = load_line("config check --config a.toml --burst 0 --loopback", "[forward]\nctas = 0\nbrust = 1\n",
                               {{"WARPLINE_FORWARD_MTU", "1"}});
  ASSERT_TRUE(check.ok()) << outcome(check);
  std::vector<std::string> whats;
  for (const Error& problem : check->problems) whats.push_back(problem.what);
  EXPECT_EQ(whats,
            (std::vector<std::string>{"a.toml:3: unknown key 'forward.brust'", "a.toml:2: forward.ctas: cannot use '0'",
                                      "WARPLINE_FORWARD_MTU: cannot use '1'", "--burst: cannot use '0'"}));
}

TEST(Load, AFileServesSeveralCommands) {
  const std::string file = "[forward]\nloopback = true\n[traffic]\nqueues = 3\n";
  EXPECT_EQ(load_line("generate --port net_null0 --config a.toml", file)->config.traffic.queues, 3);
  EXPECT_FALSE(load_line("generate --port net_null0 --config a.toml", file)->config.forward.loopback);
  EXPECT_EQ(load_line("forward --config a.toml", file)->config.traffic.queues, 1);
}

TEST(Load, DoctorTakesOnlyJson) {
  EXPECT_TRUE(load_line("doctor --json")->json);
  EXPECT_EQ(load_line("doctor --burst 3").error().message(),
            "unknown option '--burst': it is an option of forward and l3forward and generate; leave it out");
}

}  // namespace
}  // namespace warpline::config
