// SPDX-License-Identifier: Apache-2.0
#include "ingest_totals/ingest_totals.h"

#include <fmt/format.h>

#include <algorithm>

#include "warpline/base/time/clock.h"
#include "warpline/report/forward_totals.h"

namespace warpline {
namespace {

std::uint64_t dropped_by(const port::Port& port) {
  const port::PortCounters counters = port.counters();
  return counters.rx_missed + counters.rx_no_mbuf + counters.rx_errors;
}

}  // namespace

RunTotals ingest_run_totals(const IngestSources& from) {
  RunTotals totals = report::totals_of(from.forwarder, nullptr);
  const VerifyTotals engines = totals.verify.value_or(VerifyTotals{});
  const auto dropped = [drops = totals.drops](Verdict verdict) { return drops[static_cast<std::size_t>(verdict)]; };
  const Tally delivered = from.paths.delivered();
  if (!from.transmits) {
    totals.delivered = delivered;
    StageTotals& last = totals.stages.back();
    last.name = "deliver";
    last.packets = delivered.packets;
  }
  std::uint64_t missing = 0;
  if (from.far != nullptr && from.transmits) {
    from.far->add_to(totals);
    missing = totals.verify->missing;
  } else if (from.far != nullptr) {
    const traffic::TrafficGroup::Totals far = from.far->totals();
    totals.tx += far.tx;
    totals.generated = far.generated;
    for (std::size_t i = 0; i < kVerdicts; ++i) totals.drops[i] += far.drops[i];
    totals.in_flight += far.unsent;
    const std::uint64_t accounted = delivered.packets + dropped_by(from.near_port);
    missing = far.tx.packets - std::min(far.tx.packets, accounted);
  }
  if (!from.verifies) {
    totals.verify = engines;
    return totals;
  }
  VerifyTotals& verify = *totals.verify;
  if (from.far != nullptr && !from.transmits) verify.missing = missing;
  if (from.transmits && from.far != nullptr) {
    verify.bad += engines.bad;
  } else {
    verify = {.checked = engines.checked, .bad = engines.bad, .missing = missing};
  }
  verify.bad += dropped(Verdict::corrupt);
  verify.duplicated += dropped(Verdict::duplicate);
  return totals;
}

report::IngestReport ingest_report(const forward::Forwarder& forwarder, const ingest::IngestPaths& paths,
                                   std::span<const port::Port> near, const RunTotals& totals) {
  const ingest::IngestTotals from = paths.totals(forwarder.paths());
  report::IngestReport report;
  report.path = name(paths.settings().path);
  report.delivered = from.delivered;
  for (const auto& path : forwarder.paths()) {
    report.received += {path->received.packets.get(), path->received.bytes.get()};
    report.ring_full += path->received.ring_full.get();
  }
  for (const port::Port& port : near) {
    const port::PortCounters counters = port.counters();
    report.missed += counters.rx_missed;
    report.no_mbuf += counters.rx_no_mbuf;
    report.errors += counters.rx_errors;
  }
  report.slots = from.slots;
  report.memory_bytes = from.gpu_memory.value;
  if (from.copies != 0) {
    const double cycles_per_batch =
        from.submit.cycles_per_packet() * static_cast<double>(from.submit.packets) / static_cast<double>(from.copies);
    report.copies = {
        .count = from.copies, .bytes = from.copied_bytes, .submit_ns = cycles_per_batch * 1e9 / ticks_per_second()};
    report.cycles_per_packet += from.submit.cycles_per_packet();
  }
  if (const auto consumed = paths.consumed()) {
    report.consumed = {.packets = consumed->packets, .bytes = consumed->bytes, .sum = consumed->sum};
  }
  report.batching = from.batching;
  report.gpu = from.gpu;
  report.sending = from.sending;
  for (const StageTotals& stage : totals.stages) {
    if (stage.name != "work") report.cycles_per_packet += stage.cycles_per_packet();
  }
  return report;
}

void add_frames(report::IngestReport& report, const ingest::FrameTotals& frames) {
  const flow::AssemblerCounts& counts = frames.counts;
  report.frames = {{"complete", counts.complete},   {"incomplete", counts.incomplete},
                   {"missing", counts.missing},     {"skipped", counts.skipped},
                   {"restarts", counts.restarts},   {"streams", counts.streams},
                   {"timed_out", counts.timed_out}, {"longest_open_ns", frames.longest_open}};
  report.consumed = {.packets = frames.consumed.packets, .bytes = frames.consumed.bytes, .sum = frames.consumed.sum};
  for (std::size_t i = 0; i < flow::kPlacements; ++i) {
    if (counts.placements[i] == 0) continue;
    report.frame_packets.emplace_back(flow::name(static_cast<flow::Placement>(i)), counts.placements[i]);
  }
}

}  // namespace warpline
