// SPDX-License-Identifier: Apache-2.0
#include "warpline/report/forward_totals.h"

#include <optional>
#include <utility>

#include "warpline/datapath/path_totals.h"

namespace warpline::report {
namespace {

void add(StageTotals& sum, const handoff::LaneCounters& lane) {
  sum.calls += lane.bursts.get();
  sum.packets += lane.packets.get();
  sum.sampled_ticks += lane.sampled_ticks.get();
  sum.sampled_packets += lane.sampled_packets.get();
}

/// What the engines' own counts say, of all frames; nothing where there is no engine between receiving and sending.
std::optional<VerifyTotals> engines_of(const forward::Forwarder& forwarder) {
  std::optional<VerifyTotals> sum;
  for (std::size_t i = 0; i < forwarder.stages().size(); ++i) {
    if (forwarder.stages()[i]->transmitting() == nullptr) continue;
    const datapath::TransmitCounters& sent = forwarder.paths()[i]->sent;
    if (!sum) sum.emplace();
    sum->checked += sent.checked.get();
    sum->bad += sent.unworked.get();
  }
  return sum;
}

}  // namespace

RunTotals totals_of(const forward::Forwarder& forwarder, const traffic::TrafficGroup* far) {
  datapath::PathTotals sum;
  for (const auto& path : forwarder.paths()) sum.add(*path);
  for (const auto& stages : forwarder.stages()) {
    for (const handoff::LaneCounters* lane : stages->lanes()) add(sum.work, *lane);
  }
  RunTotals totals = std::move(sum.totals);
  totals.stages = {sum.receive, sum.work, sum.transmit};
  totals.recycled = forwarder.recycled();
  const std::optional<VerifyTotals> engines = engines_of(forwarder);
  totals.verify = engines;
  Histogram far_latency;
  if (far != nullptr) {
    far->add_to(totals);
    if (engines) totals.verify->bad += engines->bad;
    far->merge_latency(far_latency);
  }
  totals.latency = LatencyTotals::of(far != nullptr ? far_latency : sum.latency);
  return totals;
}

std::optional<workload::FrameTally> counted_by(const forward::Forwarder& forwarder) {
  std::optional<workload::FrameTally> sum;
  for (const auto& stages : forwarder.stages()) {
    const std::optional<workload::FrameTally> tally = stages->tally();
    if (sum && tally) {
      sum->merge(*tally);
    } else if (tally) {
      sum = tally;
    }
  }
  return sum;
}

Tally forwarded_by(const forward::Forwarder& forwarder) {
  Tally sum;
  for (const auto& path : forwarder.paths()) sum += {path->sent.packets.get(), path->sent.bytes.get()};
  return sum;
}

}  // namespace warpline::report
