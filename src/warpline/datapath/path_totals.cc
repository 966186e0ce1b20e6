// SPDX-License-Identifier: Apache-2.0
#include "warpline/datapath/path_totals.h"

namespace warpline::datapath {
namespace {

void add_stage(StageTotals& sum, std::uint64_t calls, std::uint64_t packets, const StageSamples& samples) {
  sum.calls += calls;
  sum.packets += packets;
  sum.sampled_ticks += samples.ticks.get();
  sum.sampled_packets += samples.packets.get();
}

}  // namespace

void PathTotals::add(const QueuePath& path) {
  const ReceiveCounters& received = path.received;
  const TransmitCounters& sent = path.sent;
  totals.rx += {received.packets.get(), received.bytes.get()};
  totals.tx += {sent.packets.get(), sent.bytes.get()};
  for (std::size_t i = 0; i < kVerdicts; ++i) totals.drops[i] += sent.drops.get(static_cast<Verdict>(i));
  add_stage(receive, received.bursts.get(), received.packets.get(), received.receive);
  add_stage(transmit, received.bursts.get(), sent.packets.get(), sent.transmit);
  if (sent.work.packets.get() != 0) add_stage(work, received.bursts.get(), received.packets.get(), sent.work);
  latency.merge(sent.latency);
}

}  // namespace warpline::datapath
