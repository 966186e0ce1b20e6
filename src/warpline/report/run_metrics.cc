// SPDX-License-Identifier: Apache-2.0
#include "warpline/report/run_metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include <rte_mempool.h>

namespace warpline::report {
namespace {

using metrics::Family;
using metrics::Snapshot;

/// Adds packets and, where somebody counted them, bytes: "warpline_received_packets", "warpline_received_bytes".
void add_tally(Snapshot& snapshot, const std::string& prefix, std::string_view packets, std::string_view bytes,
               const Tally& tally, const metrics::Labels& labels = {}) {
  snapshot.counter(prefix + "_packets", "packets", packets).with(tally.packets, labels);
  if (tally.has_bytes()) snapshot.counter(prefix + "_bytes", "bytes", bytes).with(tally.bytes, labels);
}

void add_stages(Snapshot& snapshot, const std::vector<StageTotals>& stages) {
  Family& bursts = snapshot.counter("warpline_stage_bursts", "bursts", "Bursts that had packets, by stage");
  Family& packets = snapshot.counter("warpline_stage_packets", "packets", "Packets of these bursts");
  Family& cycles = snapshot.counter("warpline_stage_timed_cycles", "cycles",
                                    "Ticks of the time-stamp counter that the bursts took which were timed");
  Family& timed = snapshot.counter("warpline_stage_timed_packets", "packets", "Packets of the bursts that were timed");
  for (const StageTotals& stage : stages) {
    bursts.with(stage.calls, {{"stage", stage.name}});
    packets.with(stage.packets, {{"stage", stage.name}});
    cycles.with(stage.sampled_ticks, {{"stage", stage.name}});
    timed.with(stage.sampled_packets, {{"stage", stage.name}});
  }
}

void add_verify(Snapshot& snapshot, const VerifyTotals& verify) {
  snapshot.counter("warpline_verified_packets", "packets", "Packets that were compared with what they had to be")
      .with(verify.checked);
  snapshot.counter("warpline_verification_failed_packets", "packets", "Packets that were not as they had to be")
      .with(verify.bad, {{"kind", "bad"}})
      .with(verify.missing, {{"kind", "missing"}})
      .with(verify.duplicated, {{"kind", "duplicated"}});
  snapshot.counter("warpline_reordered_packets", "packets", "Packets that came after a later one of their flow")
      .with(verify.reordered);
}

}  // namespace

void add(Snapshot& snapshot, const RunTotals& totals) {
  add_tally(snapshot, "warpline_received", "Packets received from ports", "Bytes of these, without FCS", totals.rx);
  add_tally(snapshot, "warpline_transmitted", "Packets sent out of ports", "Bytes of these, without FCS", totals.tx);
  if (totals.delivered) {
    add_tally(snapshot, "warpline_delivered", "Packets that the program itself took", "Bytes of these",
              *totals.delivered);
  }
  if (totals.generated) {
    add_tally(snapshot, "warpline_generated", "Packets that the program itself made", "Bytes of these",
              *totals.generated);
  }
  Family& drops = snapshot.counter("warpline_dropped_packets", "packets", "Packets dropped, by reason");
  for (std::size_t i = 0; i < kVerdicts; ++i) {
    const auto verdict = static_cast<Verdict>(i);
    if (is_drop(verdict)) drops.with(totals.drops[i], {{"reason", std::string(name(verdict))}});
  }
  snapshot.gauge("warpline_in_flight_packets", "packets", "Packets received or made, and neither sent nor dropped yet")
      .with(totals.in_flight);
  if (totals.recycled) {
    snapshot.counter("warpline_recycled_buffers", "buffers", "Sent buffers that were received into again at once")
        .with(*totals.recycled);
  }
  add_stages(snapshot, totals.stages);
  if (totals.verify) add_verify(snapshot, *totals.verify);
  if (totals.latency)
    snapshot.summary("warpline_latency_seconds", "From sender to checker, of the run so far", *totals.latency);
}

namespace {

/// Adds how many mbufs each pool of the process has, and how many of them are free. While lcores take and give some, it
/// is out by as many.
void add_pools(Snapshot& snapshot) {
  struct Gauges {
    Family& all;
    Family& free;
  } gauges{snapshot.gauge("warpline_pool_mbufs", "mbufs", "Packet buffers of each pool"),
           snapshot.gauge("warpline_pool_free_mbufs", "mbufs", "Those that nobody has")};
  rte_mempool_walk(
      [](rte_mempool* pool, void* to) {
        auto& [all, free] = *static_cast<Gauges*>(to);
        const metrics::Labels labels = {{"pool", pool->name}};
        all.with(std::uint64_t{pool->size}, labels);
        free.with(std::uint64_t{rte_mempool_avail_count(pool)}, labels);
      },
      &gauges);
}

}  // namespace

void add(Snapshot& snapshot, std::span<const port::Port> ports) {
  Family& missed = snapshot.counter("warpline_port_missed_packets", "packets",
                                    "Packets that the device dropped because its receive ring was full");
  Family& no_buffer = snapshot.counter("warpline_port_no_buffer_packets", "packets",
                                       "Packets that the device dropped because no buffer was free");
  Family& errors = snapshot.counter("warpline_port_error_packets", "packets", "Packets that the device refused");
  Family& conflicts = snapshot.counter("warpline_port_address_conflicts", "",
                                       "Frames by which another station claimed an address of the port");
  Family& up = snapshot.gauge("warpline_port_up", "", "1 if the link is up, or the driver cannot tell");
  for (const port::Port& port : ports) {
    const port::PortCounters counters = port.counters();
    const metrics::Labels labels = {{"port", port.name()}};
    add_tally(snapshot, "warpline_port_received", "Packets received, as the device counts them", "Bytes of these",
              {counters.rx_packets, counters.rx_bytes}, labels);
    add_tally(snapshot, "warpline_port_transmitted", "Packets sent, as the device counts them", "Bytes of these",
              {counters.tx_packets, counters.tx_bytes}, labels);
    missed.with(counters.rx_missed, labels);
    no_buffer.with(counters.rx_no_mbuf, labels);
    errors.with(counters.rx_errors, {{"port", port.name()}, {"direction", "receive"}})
        .with(counters.tx_errors, {{"port", port.name()}, {"direction", "transmit"}});
    conflicts.with(counters.address_conflicts, labels);
    up.with(std::uint64_t{port.link().up}, labels);
  }
  add_pools(snapshot);
}

void add(Snapshot& snapshot, std::span<const std::unique_ptr<datapath::QueuePath>> paths,
         std::span<const port::Port> ports) {
  Family& received = snapshot.counter("warpline_queue_received_packets", "packets", "Packets received, by queue");
  Family& transmitted = snapshot.counter("warpline_queue_transmitted_packets", "packets", "Packets sent, by queue");
  const auto labels = [&](const port::PortQueue& at) -> metrics::Labels {
    const auto port = std::ranges::find(ports, at.port, &port::Port::id);
    return {{"port", port == ports.end() ? "" : port->name()}, {"queue", fmt::format("{}", at.queue)}};
  };
  const auto same = [](const port::PortQueue& a, const port::PortQueue& b) {
    return a.port == b.port && a.queue == b.queue;
  };
  for (const auto& path : paths) {
    received.with(path->received.packets.get(), labels(path->rx));
    // Answers of the receiving port's address are sent by a queue of that port.
    const std::uint64_t sent = path->sent.packets.get();
    const std::uint64_t replies = same(path->reply, path->tx) ? 0 : std::min(sent, path->sent.replies.get());
    transmitted.with(sent - replies, labels(path->tx));
    if (path->responder && !same(path->reply, path->tx)) transmitted.with(replies, labels(path->reply));
  }
}

void add(Snapshot& snapshot, const RoutingTotals& routing) {
  snapshot.gauge("warpline_routes", "", "Routes of the file in force").with(routing.routes);
  snapshot.counter("warpline_route_reloads", "", "Times that the route file was read again, by result")
      .with(routing.reloads, {{"result", "taken"}})
      .with(routing.refused_reloads, {{"result", "refused"}});
  snapshot.gauge("warpline_neighbours", "", "Neighbours whose MAC address is known").with(routing.neighbours);
  snapshot.counter("warpline_neighbour_request_packets", "packets", "ARP requests and neighbour solicitations sent")
      .with(routing.requests);
  snapshot.counter("warpline_reply_packets", "packets", "Answers to ARP, neighbour discovery and echo")
      .with(routing.replies);
  snapshot.counter("warpline_icmp_error_packets", "packets", "ICMP errors sent").with(routing.errors);
}

void add(Snapshot& snapshot, const capture::CaptureTotals& capture) {
  snapshot.counter("warpline_captured_packets", "packets", "Packets that were written to the capture's files")
      .with(capture.packets);
  snapshot.counter("warpline_captured_bytes", "bytes", "Bytes kept of these").with(capture.bytes);
  snapshot.counter("warpline_capture_left_out_packets", "packets", "Packets that the capture was to take and did not")
      .with(capture.ring_full, {{"reason", "ring_full"}})
      .with(capture.write_failed, {{"reason", "write_failed"}});
}

void add(Snapshot& snapshot, const IngestReport& ingest) {
  snapshot.counter("warpline_ingest_ring_full_polls", "polls", "Polls that took nothing because no slot was free")
      .with(ingest.ring_full);
  if (ingest.copies) {
    snapshot.counter("warpline_ingest_copies", "", "Batches that were copied to the consumer")
        .with(ingest.copies->count);
    snapshot.counter("warpline_ingest_copied_bytes", "bytes", "Bytes of these, alignment included")
        .with(ingest.copies->bytes);
  }
  for (const auto& [delay, times] :
       {std::pair{"batching", &ingest.batching}, {"consumer", &ingest.gpu}, {"sending", &ingest.sending}}) {
    snapshot.summary("warpline_ingest_delay_seconds", "From the first packet of a batch to its end, by part", *times,
                     {{"part", delay}});
  }
}

}  // namespace warpline::report
