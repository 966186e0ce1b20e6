// SPDX-License-Identifier: Apache-2.0
// Any bytes as the parameter of /warpline/metrics, up to the first NUL, and as names, labels and values that a process
// has: an answer, or that there is none. Ports may have any name.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>

#include <rte_telemetry.h>

#include "exporter/telemetry_answers.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace warpline;
  const auto next = [&, end = data + size] {
    const std::uint8_t* const stop = std::find(data, end, 0);
    std::string text(data, stop);
    data = std::min(stop + 1, end);
    size = static_cast<std::size_t>(end - data);
    return text;
  };
  const std::string name = next();
  metrics::Snapshot snapshot;
  snapshot.gauge("warpline_in_flight_packets", "packets", "Packets").with(std::uint64_t{size});
  metrics::Family& drops = snapshot.counter("warpline_dropped_packets", "packets", "Packets");
  metrics::Family& ports = snapshot.counter("warpline_port_up", "", "Ports");
  while (size != 0) {
    const std::string label = next();
    drops.with(std::uint64_t{size}, {{"reason", label}});
    ports.with(static_cast<double>(size) / 3, {{"port", label}, {"direction", next()}});
  }
  snapshot.summary("warpline_latency_seconds", "Times", {.count = 1, .p50 = 2});
  for (const std::string& asked :
       {name, std::string(), std::string("warpline_port_up"), std::string("warpline_latency_seconds")}) {
    rte_tel_data* const answer = rte_tel_data_alloc();
    const int said = exporter::say_metrics(snapshot, asked, answer);
    if (said != 0 && asked != name) std::abort();
    rte_tel_data_free(answer);
  }
  for (const auto say : {exporter::say_totals, exporter::say_drops}) {
    rte_tel_data* const answer = rte_tel_data_alloc();
    if (say(snapshot, answer) != 0) std::abort();
    rte_tel_data_free(answer);
  }
  return 0;
}
