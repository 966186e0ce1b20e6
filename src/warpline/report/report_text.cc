// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "warpline/base/units.h"
#include "warpline/report/report.h"

namespace warpline::report {
namespace {

void add_row(std::string& text, std::string_view label, std::string_view value) {
  text += fmt::format("  {:<14}{}\n", label, value);
}

std::string describe(const Tally& tally) {
  const std::string packets = fmt::format("{:>16} packets", tally.packets);
  return tally.has_bytes() ? fmt::format("{} {:>20} bytes", packets, tally.bytes) : packets;
}

}  // namespace

std::string RunReport::to_text() const {
  std::string text = fmt::format("{}: {:.3f} s\n", command, duration_s);
  add_row(text, "received", describe(totals.rx));
  add_row(text, "transmitted", describe(totals.tx));
  if (totals.generated) add_row(text, "generated", describe(*totals.generated));
  if (totals.delivered) add_row(text, "delivered", describe(*totals.delivered));
  add_row(text, "dropped", fmt::format("{:>16} packets", totals.dropped()));
  for (std::size_t i = 0; i < kVerdicts; ++i) {
    const auto verdict = static_cast<Verdict>(i);
    if (totals.drops[i] == 0) continue;
    text += fmt::format("    {:<12}{:>16} packets: {}\n", name(verdict), totals.drops[i], meaning(verdict));
  }
  if (totals.in_flight != 0) add_row(text, "in flight", fmt::format("{:>16} packets", totals.in_flight));
  add_row(text, "accounts",
          totals.conserved() ? "every packet is accounted for"
                             : "do not balance: received + generated is not what left or was dropped");
  std::string speed = fmt::format("{:.3f} Mpps", rate.mpps());
  if (rate.tally.has_bytes()) {
    speed += fmt::format(", {:.3f} Gbit/s on the wire (layer 1), {:.3f} Gbit/s of frames with FCS", rate.gbps_l1(),
                         rate.gbps_l2());
  }
  add_row(text, "rate", speed);
  if (totals.verify) {
    const VerifyTotals& verify = *totals.verify;
    add_row(text, "verified",
            fmt::format("{} checked, {} bad, {} missing, {} duplicated, {} reordered, {} late", verify.checked,
                        verify.bad, verify.missing, verify.duplicated, verify.reordered, verify.late));
  }
  if (totals.latency && totals.latency->count != 0) {
    const LatencyTotals& l = *totals.latency;
    const auto us = [](std::uint64_t nanos) { return static_cast<double>(nanos) / 1e3; };
    add_row(text, "latency us",
            fmt::format("p50 {:.1f}, p90 {:.1f}, p99 {:.1f}, p99.9 {:.1f}, p99.999 {:.1f}, max {:.1f}", us(l.p50),
                        us(l.p90), us(l.p99), us(l.p999), us(l.p99999), us(l.max)));
  }
  for (const StageTotals& stage : totals.stages) {
    text += fmt::format("  stage {:<8}{:>16} packets {:>10.1f} cycles a packet {:>8.1f} packets a batch\n", stage.name,
                        stage.packets, stage.cycles_per_packet(), stage.batch_mean());
  }
  if (counted) {
    const workload::FrameTally& c = *counted;
    add_row(text, "counted",
            fmt::format("{} IPv4, {} IPv6, {} ARP, {} other; {} UDP, {} TCP, {} ICMP; {} fragments, {} tagged, {} "
                        "malformed",
                        c.of(packet::L3Kind::ipv4), c.of(packet::L3Kind::ipv6), c.of(packet::L3Kind::arp),
                        c.of(packet::L3Kind::none), c.of(packet::L4Kind::udp), c.of(packet::L4Kind::tcp),
                        c.of(packet::L4Kind::icmp) + c.of(packet::L4Kind::icmpv6), c.fragments, c.vlan_tagged,
                        c.malformed));
  }
  if (recycle) add_row(text, "recycled", recycle->to_text());
  if (routing) add_row(text, "routing", routing->to_text());
  if (ingest) text += ingest->to_text();
  if (capture) {
    add_row(text, "captured",
            fmt::format("{} packets, {} left out, {} filtered, {} overwritten, in {}", capture->packets,
                        capture->left_out(), capture->filtered, capture->overwritten, fmt::join(capture->files, ", ")));
  }
  for (const traffic::QueueTotals& queue : queues) text += report::to_text(queue);
  for (const PortTotals& port : ports) {
    text += fmt::format("  port {}: rx {}, tx {}, missed {}, no buffer {}, errors {}\n", port.name, port.rx.packets,
                        port.tx.packets, port.missed, port.no_mbuf, port.errors);
  }
  for (const std::string& line : lcores) text += fmt::format("  lcore {}\n", line);
  for (const std::string& line : refused_offloads) text += fmt::format("  refused: {}\n", line);
  for (const std::string& line : notes) text += fmt::format("  note: {}\n", line);
  return text;
}

}  // namespace warpline::report
