// SPDX-License-Identifier: Apache-2.0
#include "warpline/metrics/exposition.h"

#include <gtest/gtest.h>

namespace warpline::metrics {
namespace {

Snapshot some_of_each() {
  Snapshot snapshot;
  snapshot.counter("warpline_dropped_packets", "packets", "Packets that were dropped")
      .with(std::uint64_t{3}, {{"reason", "tx_full"}})
      .with(std::uint64_t{0}, {{"reason", "a \"quoted\\\nline"}});
  snapshot.gauge("warpline_load", "", "A part of a whole").with(0.25);
  snapshot.family("warpline_build", FamilyKind::info, "", "What runs").with(std::uint64_t{1}, {{"version", "1.2"}});
  snapshot.counter("warpline_nothing", "", "Nothing was counted");
  snapshot.summary("warpline_latency_seconds", "How long it took",
                   {.count = 7, .p50 = 1'000, .p90 = 2'000, .p99 = 3'000, .p999 = 4'000, .max = 5'000'000'000});
  snapshot.summary("warpline_other_seconds", "Never measured", {});
  return snapshot;
}

TEST(Exposition, OpenMetrics) {
  EXPECT_EQ(write(some_of_each(), Exposition::openmetrics),
            "# TYPE warpline_dropped_packets counter\n"
            "# UNIT warpline_dropped_packets packets\n"
            "# HELP warpline_dropped_packets Packets that were dropped.\n"
            "warpline_dropped_packets_total{reason=\"tx_full\"} 3\n"
            "warpline_dropped_packets_total{reason=\"a \\\"quoted\\\\\\nline\"} 0\n"
            "# TYPE warpline_load gauge\n"
            "# HELP warpline_load A part of a whole.\n"
            "warpline_load 0.25\n"
            "# TYPE warpline_build info\n"
            "# HELP warpline_build What runs.\n"
            "warpline_build_info{version=\"1.2\"} 1\n"
            "# TYPE warpline_latency_seconds summary\n"
            "# UNIT warpline_latency_seconds seconds\n"
            "# HELP warpline_latency_seconds How long it took.\n"
            "warpline_latency_seconds{quantile=\"0.5\"} 1e-06\n"
            "warpline_latency_seconds{quantile=\"0.9\"} 2e-06\n"
            "warpline_latency_seconds{quantile=\"0.99\"} 3e-06\n"
            "warpline_latency_seconds{quantile=\"0.999\"} 4e-06\n"
            "warpline_latency_seconds{quantile=\"1\"} 5\n"
            "warpline_latency_seconds_count 7\n"
            "# EOF\n");
}

TEST(Exposition, TheOlderFormatNamesSamplesAndHasNoUnits) {
  const std::string text = write(some_of_each(), Exposition::text);
  EXPECT_NE(text.find("# TYPE warpline_dropped_packets_total counter\n"), std::string::npos);
  EXPECT_NE(text.find("# TYPE warpline_build_info gauge\n"), std::string::npos);
  EXPECT_EQ(text.find("# UNIT"), std::string::npos);
  EXPECT_EQ(text.find("# EOF"), std::string::npos);
}

TEST(Exposition, IsWhatTheScraperAsksFor) {
  EXPECT_EQ(wanted_by("application/openmetrics-text;version=1.0.0,text/plain;q=0.5"), Exposition::openmetrics);
  EXPECT_EQ(wanted_by("*/*"), Exposition::text);
  EXPECT_EQ(wanted_by(""), Exposition::text);
}

// RFC 9110: 8.3.1 (types are case-insensitive), 12.4.2 (weights), 12.5.1 (the most specific range counts).
TEST(Exposition, AcceptIsReadWithItsWeightsAndWithoutCase) {
  EXPECT_EQ(wanted_by("Application/OpenMetrics-Text; Version=1.0.0; Q=0.9, Text/Plain; q=0.2"),
            Exposition::openmetrics);
  EXPECT_EQ(wanted_by("application/openmetrics-text;q=0.1,text/plain;q=0.5"), Exposition::text);
  EXPECT_EQ(wanted_by("application/openmetrics-text;q=0, */*"), Exposition::text);
  EXPECT_EQ(wanted_by("text/plain;q=0.3, application/*;q=0.8, */*;q=0.1"), Exposition::openmetrics);
  EXPECT_EQ(wanted_by("text/*, application/openmetrics-text;q=0.999"), Exposition::text);
  EXPECT_EQ(wanted_by("application/openmetrics-text;version=0.0.1,*/*;q=0.1"), Exposition::text);
  EXPECT_EQ(wanted_by("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"), Exposition::text);
  // Prometheus 3
  EXPECT_EQ(wanted_by("application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,"
                      "application/openmetrics-text;version=0.0.1;q=0.4,"
                      "text/plain;version=1.0.0;escaping=allow-utf-8;q=0.3,text/plain;version=0.0.4;q=0.2,*/*;q=0.1"),
            Exposition::openmetrics);
  for (const char* const broken : {",", ";", "/", "q=1", "application/openmetrics-text;q=7", "a;;;=,,=/", " \t"}) {
    EXPECT_EQ(wanted_by(broken), Exposition::text) << broken;
  }
}

TEST(Snapshot, AFamilyIsAddedOnce) {
  Snapshot snapshot;
  Family& first = snapshot.counter("warpline_packets", "packets", "Packets");
  for (int i = 0; i < 100; ++i) snapshot.counter("warpline_" + std::to_string(i), "", "Others");
  EXPECT_EQ(&snapshot.counter("warpline_packets", "packets", "Packets"), &first);
}

TEST(Snapshot, EveryProcessHasItsOwnNumbers) {
  Snapshot snapshot;
  add_process(snapshot, {{"version", "1"}});
  const std::string text = write(snapshot, Exposition::openmetrics);
  for (const char* const name : {"process_cpu_seconds_total", "process_resident_memory_bytes", "process_open_fds"}) {
    EXPECT_NE(text.find(std::string("\n") + name + " "), std::string::npos) << name;
    EXPECT_EQ(text.find(std::string("\n") + name + " 0\n"), std::string::npos) << name;
  }
}

}  // namespace
}  // namespace warpline::metrics
