// SPDX-License-Identifier: Apache-2.0
#include "warpline/report/report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <memory>

#include "warpline/report/facts.h"
#include "warpline/report/run_end.h"
#include "warpline/report/run_metrics.h"

namespace warpline::report {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::uint64_t& drops_of(RunTotals& totals, Verdict verdict) { return totals.drops[static_cast<std::size_t>(verdict)]; }

RunReport example() {
  RunReport report;
  report.command = "forward";
  report.config = {{"run", {{"seed", 1}}}};
  report.duration_s = 2;
  report.totals.rx = {150, 9600};
  report.totals.tx = {190, 12160};
  report.totals.generated = Tally{100, 6400};
  report.totals.delivered = Tally{50, 3200};
  drops_of(report.totals, Verdict::tx_full) = 7;
  drops_of(report.totals, Verdict::corrupt) = 2;
  report.totals.in_flight = 1;
  report.totals.verify = VerifyTotals{52, 2, 48, 0, 3, 1};
  report.totals.latency = LatencyTotals{50, 1000, 2000, 3000, 4000, 5000, 6000};
  report.totals.stages = {{"receive", 10, 150, 3000, 100}};
  report.rate = {{1'000'000, 64'000'000}, 2};
  report.ports = {{"net_ring0", {150, 9600}, {190, 12160}, 1, 2, 3}};
  report.lcores = {"1 on cpu 1: rx"};
  report.notes = {"cores are shared"};
  report.refused_offloads = {"rx rss_hash"};
  return report;
}

TEST(Report, HoldsPacketsToTheConservationLaw) {
  RunTotals totals = example().totals;
  EXPECT_TRUE(totals.conserved());
  EXPECT_EQ(totals.dropped(), 9U);
  for (std::uint64_t* term : {&totals.rx.packets, &totals.tx.packets, &totals.generated->packets,
                              &totals.delivered->packets, &totals.in_flight, &drops_of(totals, Verdict::runt)}) {
    ++*term;
    EXPECT_FALSE(totals.conserved());
    --*term;
  }
  totals.generated.reset();
  EXPECT_FALSE(totals.conserved());
  EXPECT_TRUE(RunTotals{}.conserved());
}

TEST(Report, IsTheContractsObject) {
  const auto json = example().to_json();
  EXPECT_EQ(json["schema_version"], 1);
  EXPECT_EQ(json["command"], "forward");
  EXPECT_EQ(json["config"]["run"]["seed"], 1);
  EXPECT_EQ(json["duration_s"], 2);
  EXPECT_EQ(json["rx"], (nlohmann::ordered_json{{"packets", 150}, {"bytes", 9600}}));
  EXPECT_EQ(json["tx"]["packets"], 190);
  EXPECT_EQ(json["delivered"]["packets"], 50);
  EXPECT_EQ(json["generated"]["bytes"], 6400);
  EXPECT_EQ(json["drops"], (nlohmann::ordered_json{{"tx_full", 7}, {"corrupt", 2}}));
  EXPECT_EQ(json["in_flight"], 1);
  EXPECT_EQ(json["conserved"], true);
  EXPECT_EQ(json["verify"].dump(), R"({"checked":52,"bad":2,"missing":48,"duplicated":0,"reordered":3,"late":1})");
  EXPECT_DOUBLE_EQ(json["rate"]["mpps"], 0.5);
  EXPECT_DOUBLE_EQ(json["rate"]["gbps_l1"], 0.352);
  EXPECT_DOUBLE_EQ(json["rate"]["gbps_l2"], 0.272);
  EXPECT_EQ(json["latency_ns"].dump(),
            R"({"count":50,"p50":1000,"p90":2000,"p99":3000,"p999":4000,"p99999":5000,"max":6000})");
  EXPECT_EQ(json["stages"][0]["cycles_per_packet"], 30);
  EXPECT_EQ(json["stages"][0]["batch_mean"], 15);
  EXPECT_EQ(json["ports"][0]["nombuf"], 2);
  EXPECT_EQ(json["notes"][0], "cores are shared");
  EXPECT_EQ(json["refused_offloads"][0], "rx rss_hash");
  for (const char* key : {"version", "type", "compiler", "dpdk"}) EXPECT_FALSE(json["build"][key].empty()) << key;
  for (const char* key : {"cpu", "cpus", "nodes", "kernel", "hugepages"})
    EXPECT_TRUE(json["host"].contains(key)) << key;
}

/// What a path sends leaves by its transmit queue, and answers by a queue of the port that asked.
TEST(RunMetrics, CountAnswersAtTheQueueThatSendsThem) {
  std::vector<std::unique_ptr<datapath::QueuePath>> paths;
  for (const std::uint16_t to : {1, 0}) {
    datapath::QueuePath& path = *paths.emplace_back(std::make_unique<datapath::QueuePath>());
    const auto from = static_cast<std::uint16_t>(1 - to);
    path.rx = {from, 0};
    path.tx = {to, 0};
    path.reply = {from, 1};
    path.responder.emplace(MacAddress{{2}}, *parse_interface_address("10.0.0.1/24"));
    path.received.packets.add(12);
    path.sent.packets.add(10);
    path.sent.replies.add(to == 1 ? 3 : 0);
  }
  metrics::Snapshot snapshot;
  add(snapshot, paths, {});
  const metrics::Family& sent = snapshot.counter("warpline_queue_transmitted_packets", "packets", "");
  std::map<std::string, std::vector<std::uint64_t>> by_queue;
  for (const auto& sample : sent.samples) {
    by_queue[sample.labels.back().second].push_back(std::get<std::uint64_t>(sample.value));
  }
  EXPECT_THAT(by_queue["0"], testing::ElementsAre(7, 10)) << "of ports 1 and 0";
  EXPECT_THAT(by_queue["1"], testing::ElementsAre(3, 0)) << "of ports 0 and 1";

  paths.resize(1);
  paths[0]->reply = paths[0]->tx;
  metrics::Snapshot one_queue;
  add(one_queue, paths, {});
  const auto& samples = one_queue.counter("warpline_queue_transmitted_packets", "packets", "").samples;
  ASSERT_EQ(samples.size(), 1U);
  EXPECT_EQ(std::get<std::uint64_t>(samples[0].value), 10U) << "answers are among what the queue sends";
}

TEST(Report, LeavesOutWhatDoesNotApply) {
  RunReport report;
  report.totals.latency = LatencyTotals{};
  const auto json = report.to_json();
  for (const char* key : {"delivered", "generated", "verify", "latency_ns", "stages", "ports"}) {
    EXPECT_FALSE(json.contains(key)) << key;
  }
  EXPECT_TRUE(json["drops"].is_object());
  EXPECT_EQ(json["rate"]["mpps"], 0);
}

TEST(Report, TextNamesDropsAndLatency) {
  const std::string text = example().to_text();
  EXPECT_THAT(text, HasSubstr("tx_full"));
  EXPECT_THAT(text, HasSubstr("52 checked, 2 bad, 48 missing"));
  EXPECT_THAT(text, HasSubstr("p99.999 5.0"));
  EXPECT_THAT(text, HasSubstr("every packet is accounted for"));
  EXPECT_THAT(text, HasSubstr("note: cores are shared"));
  RunReport unbalanced = example();
  ++unbalanced.totals.rx.packets;
  EXPECT_THAT(unbalanced.to_text(), HasSubstr("do not balance"));
  EXPECT_THAT(RunReport{}.to_text(), Not(HasSubstr("verified")));
}

TEST(Report, TellsWhatACaptureTookAndLeftOut) {
  EXPECT_FALSE(RunReport{}.to_json().contains("capture"));
  capture::CaptureTotals totals;
  totals.packets = 7;
  totals.ring_full = 2;
  totals.write_failed = 3;
  totals.files = {"a.pcapng"};
  totals.drops[static_cast<std::size_t>(Verdict::no_route)] = 6;
  totals.failure = "No space left on device";
  RunReport report;
  report.add_capture(totals);
  const auto json = report.to_json()["capture"];
  EXPECT_EQ(json["packets"], 7);
  EXPECT_EQ(json["drops"], nlohmann::ordered_json({{"no_route", 6}}));
  EXPECT_EQ(json["left_out"], nlohmann::ordered_json({{"ring_full", 2}, {"write_failed", 3}}));
  EXPECT_EQ(json["files"], nlohmann::ordered_json({"a.pcapng"}));
  EXPECT_THAT(report.to_text(), HasSubstr("7 packets, 5 left out, 0 filtered, 0 overwritten, in a.pcapng"));
  EXPECT_THAT(report.to_text(), HasSubstr("note: 3 packets were not captured: a.pcapng: No space left on device"));
}

TEST(Latency, ReadsTheHistogramsQuantiles) {
  Histogram histogram;
  for (int i = 0; i < 100; ++i) histogram.record(i);
  const LatencyTotals latency = LatencyTotals::of(histogram);
  EXPECT_EQ(latency.count, 100U);
  EXPECT_EQ(latency.p50, 49U);
  EXPECT_EQ(latency.p90, 89U);
  EXPECT_EQ(latency.max, 99U);
}

TEST(Facts, ReadTheMachinesFiles) {
  namespace fs = std::filesystem;
  const fs::path root = fs::path(testing::TempDir()) / "warpline-facts";
  const auto write = [&](const fs::path& file, const char* text) {
    fs::create_directories((root / file).parent_path());
    std::ofstream(root / file) << text;
  };
  write("proc/cpuinfo", "processor\t: 0\nmodel name\t: A 9000\nprocessor\t: 1\nmodel name\t: A 9000\n");
  write("proc/meminfo", "MemTotal:       2048 kB\n");
  write("etc/os-release", "NAME=\"X\"\nPRETTY_NAME=\"X Linux 1\"\n");
  write("sys/devices/system/node/node0/cpulist", "0");
  write("sys/devices/system/node/node1/cpulist", "1");
  write("sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "12\n");
  const auto facts = host_facts(root);
  fs::remove_all(root);
  EXPECT_EQ(facts["cpu"], "A 9000");
  EXPECT_EQ(facts["cpus"], 2);
  EXPECT_EQ(facts["nodes"], 2);
  EXPECT_EQ(facts["memory_bytes"], 2048 * 1024);
  EXPECT_EQ(facts["os"], "X Linux 1");
  EXPECT_EQ(facts["hugepages"]["2048kB"], 12);
  EXPECT_EQ(host_facts(root)["nodes"], 1);  // nothing there to read
}

/// Faults that the user asked for do not fail a run; one frame more that is missing, double or wrong does.
TEST(ExitCode, OfARunWithInjectedFaults) {
  const std::vector<std::pair<std::string, std::uint64_t>> counters = {
      {"fault_loss", 10},    {"fault_flap", 2},      {"fault_duplicate", 5}, {"fault_corrupt", 3},
      {"fault_truncate", 1}, {"fault_reorder", 100}, {"tx_queue_full", 4}};
  const auto code = [&](const VerifyTotals& found, bool asked = true) {
    RunReport report;
    report.totals.verify = found;
    if (asked) report.injected = InjectedFaults::of(counters);
    return exit_code(report, false);
  };
  const VerifyTotals explained{.checked = 900, .bad = 4, .missing = 10 + 2 + 4 + 3 + 1, .duplicated = 5};
  EXPECT_EQ(code(explained), 0);
  EXPECT_EQ(code(explained, false), 4);
  for (std::uint64_t VerifyTotals::* one : {&VerifyTotals::bad, &VerifyTotals::missing, &VerifyTotals::duplicated}) {
    VerifyTotals found = explained;
    ++(found.*one);
    EXPECT_EQ(code(found), 4);
  }
  RunReport lossy;
  lossy.injected = InjectedFaults::of(counters);
  lossy.totals.rx.packets = 1;  // and nothing became of it
  EXPECT_EQ(exit_code(lossy, false), 4);
}

}  // namespace
}  // namespace warpline::report
