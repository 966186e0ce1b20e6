// SPDX-License-Identifier: Apache-2.0
#include "warpline/report/report.h"

#include <fmt/format.h>

#include "warpline/report/facts.h"

namespace warpline::report {
namespace {

using Json = nlohmann::ordered_json;

}  // namespace

Json to_json(const Tally& tally) {
  Json json = {{"packets", tally.packets}};
  if (tally.has_bytes()) json["bytes"] = tally.bytes;
  return json;
}

Json to_json(const DropTotals& drops) {
  Json json = Json::object();
  for (std::size_t i = 0; i < kVerdicts; ++i) {
    if (drops[i] != 0) json[std::string(name(static_cast<Verdict>(i)))] = drops[i];
  }
  return json;
}

Json to_json(const Throughput& rate) {
  Json json = {{"mpps", rate.mpps()}};
  if (rate.tally.has_bytes()) {
    json["gbps_l1"] = rate.gbps_l1();
    json["gbps_l2"] = rate.gbps_l2();
  }
  return json;
}

Json to_json(const LatencyTotals& latency) {
  return {{"count", latency.count}, {"p50", latency.p50},       {"p90", latency.p90}, {"p99", latency.p99},
          {"p999", latency.p999},   {"p99999", latency.p99999}, {"max", latency.max}};
}

Json to_json(const StageTotals& stage) {
  return {{"name", stage.name},
          {"calls", stage.calls},
          {"packets", stage.packets},
          {"cycles_per_packet", stage.cycles_per_packet()},
          {"batch_mean", stage.batch_mean()}};
}

Json to_json(const VerifyTotals& verify) {
  return {{"checked", verify.checked},     {"bad", verify.bad},
          {"missing", verify.missing},     {"duplicated", verify.duplicated},
          {"reordered", verify.reordered}, {"late", verify.late}};
}

Json to_json(const PortTotals& port) {
  Json json = {{"name", port.name},     {"rx", to_json(port.rx)}, {"tx", to_json(port.tx)},
               {"missed", port.missed}, {"nombuf", port.no_mbuf}, {"errors", port.errors}};
  if (!port.mac.empty()) json["mac"] = port.mac;
  json["address_conflicts"] = port.address_conflicts;
  return json;
}

Json to_json(const workload::FrameTally& counted) {
  return {{"packets", counted.packets},
          {"bytes", counted.bytes},
          {"arp", counted.of(packet::L3Kind::arp)},
          {"ipv4", counted.of(packet::L3Kind::ipv4)},
          {"ipv6", counted.of(packet::L3Kind::ipv6)},
          {"other", counted.of(packet::L3Kind::none)},
          {"icmp", counted.of(packet::L4Kind::icmp) + counted.of(packet::L4Kind::icmpv6)},
          {"udp", counted.of(packet::L4Kind::udp)},
          {"tcp", counted.of(packet::L4Kind::tcp)},
          {"fragments", counted.fragments},
          {"vlan_tagged", counted.vlan_tagged},
          {"malformed", counted.malformed}};
}

Json to_json(const GpuTotals& gpu) {
  Json json = {{"name", gpu.name}, {"engine", gpu.engine}};
  if (gpu.ctas != 0) json["ctas"] = gpu.ctas;
  json["memory_bytes"] = gpu.memory_bytes;
  return json;
}

Json to_json(const capture::CaptureTotals& capture) {
  return {{"files", capture.files},
          {"packets", capture.packets},
          {"bytes", capture.bytes},
          {"drops", to_json(capture.drops)},
          {"left_out", {{"ring_full", capture.ring_full}, {"write_failed", capture.write_failed}}},
          {"left_out_drops", to_json(capture.left_out_drops)},
          {"filtered", capture.filtered},
          {"overwritten", capture.overwritten}};
}

void RunReport::add_capture(const capture::CaptureTotals& ended) {
  capture = ended;
  if (ended.ring_full != 0) {
    notes.push_back(
        fmt::format("{} packets were not captured: they came faster than they were written", ended.ring_full));
  }
  if (ended.write_failed != 0) {
    notes.push_back(
        fmt::format("{} packets were not captured: {}: {}", ended.write_failed, ended.files.back(), ended.failure));
  }
}

Json RunReport::to_json() const {
  using report::to_json;
  Json json = {{"schema_version", 1},  {"command", command}, {"build", build_facts()},
               {"host", host_facts()}, {"config", config},   {"duration_s", duration_s}};
  json["rx"] = to_json(totals.rx);
  json["tx"] = to_json(totals.tx);
  if (totals.delivered) json["delivered"] = to_json(*totals.delivered);
  if (totals.generated) json["generated"] = to_json(*totals.generated);
  json["drops"] = to_json(totals.drops);
  json["in_flight"] = totals.in_flight;
  json["conserved"] = totals.conserved();
  if (totals.verify) json["verify"] = to_json(*totals.verify);
  json["rate"] = to_json(rate);
  if (totals.latency && totals.latency->count != 0) json["latency_ns"] = to_json(*totals.latency);
  if (!totals.stages.empty()) {
    for (const StageTotals& stage : totals.stages) json["stages"].push_back(to_json(stage));
  }
  if (counted) json["counted"] = to_json(*counted);
  if (gpu) json["gpu"] = to_json(*gpu);
  if (recycle) json["recycle"] = to_json(*recycle);
  if (routing) json["routing"] = to_json(*routing);
  if (ingest) ingest->add_to(json);
  if (capture) json["capture"] = to_json(*capture);
  for (const traffic::QueueTotals& queue : queues) json["queues"].push_back(to_json(queue));
  for (const PortTotals& port : ports) json["ports"].push_back(to_json(port));
  json["lcores"] = lcores;
  json["notes"] = notes;
  json["refused_offloads"] = refused_offloads;
  return json;
}

}  // namespace warpline::report
