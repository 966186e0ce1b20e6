// SPDX-License-Identifier: Apache-2.0
#include "measure/forward_totals.h"

namespace warpline {
namespace {

void add(StageTotals& sum, std::uint64_t calls, std::uint64_t packets, const StageSamples& samples) {
  sum.calls += calls;
  sum.packets += packets;
  sum.sampled_ticks += samples.ticks.get();
  sum.sampled_packets += samples.packets.get();
}

void add(StageTotals& sum, const LaneCounters& lane) {
  sum.calls += lane.bursts.get();
  sum.packets += lane.packets.get();
  sum.sampled_ticks += lane.sampled_ticks.get();
  sum.sampled_packets += lane.sampled_packets.get();
}

}  // namespace

RunTotals totals_of(const Forwarder& forwarder, const TrafficGroup* far) {
  RunTotals totals;
  StageTotals receive{.name = "receive"};
  StageTotals work{.name = "work"};
  StageTotals transmit{.name = "transmit"};
  Histogram latency;
  for (const auto& stream : forwarder.streams()) {
    const ReceiveCounters& received = stream->received;
    const TransmitCounters& sent = stream->sent;
    totals.rx += {received.packets.get(), received.bytes.get()};
    totals.tx += {sent.packets.get(), sent.bytes.get()};
    for (std::size_t i = 0; i < kVerdicts; ++i) totals.drops[i] += sent.drops.get(static_cast<Verdict>(i));
    add(receive, received.bursts.get(), received.packets.get(), received.receive);
    add(transmit, received.bursts.get(), sent.packets.get(), sent.transmit);
    if (sent.work.packets.get() != 0) add(work, received.bursts.get(), received.packets.get(), sent.work);
    if (far == nullptr) latency.merge(sent.latency);
  }
  for (const auto& way : forwarder.ways()) {
    for (const LaneCounters* lane : way->lanes()) add(work, *lane);
  }
  totals.stages = {receive, work, transmit};
  totals.recycled = forwarder.recycled();
  if (far != nullptr) {
    far->add_to(totals);
    far->merge_latency(latency);
  }
  totals.latency = LatencyTotals::of(latency);
  return totals;
}

std::optional<FrameTally> counted_by(const Forwarder& forwarder) {
  std::optional<FrameTally> sum;
  for (const auto& way : forwarder.ways()) {
    const std::optional<FrameTally> tally = way->tally();
    if (sum && tally) {
      sum->merge(*tally);
    } else if (tally) {
      sum = tally;
    }
  }
  return sum;
}

Tally forwarded_by(const Forwarder& forwarder) {
  Tally sum;
  for (const auto& stream : forwarder.streams()) sum += {stream->sent.packets.get(), stream->sent.bytes.get()};
  return sum;
}

}  // namespace warpline
