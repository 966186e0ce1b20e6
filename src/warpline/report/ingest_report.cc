// SPDX-License-Identifier: Apache-2.0
#include "warpline/report/ingest_report.h"

#include <fmt/format.h>

#include "warpline/report/report.h"

namespace warpline::report {
namespace {

std::string describe_delay(const LatencyTotals& delay) {
  const auto us = [](std::uint64_t nanos) { return static_cast<double>(nanos) / 1e3; };
  return fmt::format("p50 {:.1f}, p99 {:.1f}, p99.9 {:.1f}, max {:.1f}", us(delay.p50), us(delay.p99), us(delay.p999),
                     us(delay.max));
}

}  // namespace

void IngestReport::add_to(nlohmann::ordered_json& json) const {
  // One by one: as one nested list this takes GCC 12 longer than all else together.
  nlohmann::ordered_json object;
  object["path"] = path;
  object["engine"] = engine;
  object["consumer"] = consumer;
  object["offered"]["packets"] = received.packets + missed + no_mbuf + errors;
  object["received"] = report::to_json(received);
  object["delivered"] = report::to_json(delivered);
  object["port_drops"]["missed"] = missed;
  object["port_drops"]["no_mbuf"] = no_mbuf;
  object["port_drops"]["errors"] = errors;
  object["slots"] = slots;
  object["ring_full"] = ring_full;
  object["gpu_memory_bytes"] = memory_bytes;
  if (copies) {
    object["copies"] = {{"count", copies->count}, {"bytes", copies->bytes}, {"submit_ns", copies->submit_ns}};
  }
  if (consumed) {
    object["consumed"] = {{"packets", consumed->packets}, {"bytes", consumed->bytes}, {"sum", consumed->sum}};
  }
  for (const auto& [kind, count] : frames) object["frames"][kind] = count;
  for (const auto& [placement, count] : frame_packets) object["frames"]["packets"][placement] = count;
  for (const auto& [fault, count] : faults) object["faults"][fault] = count;
  json["ingest"] = std::move(object);
  json["delays_ns"]["batching"] = report::to_json(batching);
  json["delays_ns"]["gpu"] = report::to_json(gpu);
  if (sending.count != 0) json["delays_ns"]["sending"] = report::to_json(sending);
  json["cycles_per_packet"] = cycles_per_packet;
}

std::string IngestReport::to_text() const {
  std::string text;
  const auto row = [&text](std::string_view label, const std::string& value) {
    text += fmt::format("  {:<14}{}\n", label, value);
  };
  row("offered", fmt::format("{:>16} packets, {} missed, {} without buffer and {} errors at the port",
                             received.packets + missed + no_mbuf + errors, missed, no_mbuf, errors));
  row("consumed", fmt::format("{:>16} packets by {} on {}, {} cycles a packet on the CPU", delivered.packets, consumer,
                              engine, static_cast<std::uint64_t>(cycles_per_packet)));
  // Consumers that compare sum nothing.
  if (consumed && consumed->sum != 0)
    row("byte sum", fmt::format("{:016x} of {} bytes", consumed->sum, consumed->bytes));
  if (copies) {
    row("copies",
        fmt::format("{:>16} of {:.0f} bytes each, {:.2f} us to submit one", copies->count,
                    copies->count == 0 ? 0.0 : static_cast<double>(copies->bytes) / static_cast<double>(copies->count),
                    copies->submit_ns / 1e3));
  }
  std::string handed;
  for (const auto& [kind, count] : frames) {
    if (!handed.empty()) handed += ", ";
    handed += kind == "longest_open_ns" ? fmt::format("open for {:.1f} us at most", static_cast<double>(count) / 1e3)
                                        : fmt::format("{} {}", count, kind);
  }
  for (const auto& [placement, count] : frame_packets) handed += fmt::format(", {} packets {}", count, placement);
  if (!handed.empty()) row("frames", handed);
  row("batching us", describe_delay(batching));
  row("consumer us", describe_delay(gpu));
  if (sending.count != 0) row("sending us", describe_delay(sending));
  return text;
}

}  // namespace warpline::report
