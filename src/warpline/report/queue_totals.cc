// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "warpline/report/report.h"

namespace warpline::report {
namespace {

using Json = nlohmann::ordered_json;

double over(double amount, double by) { return by > 0 ? amount / by : 0; }

double packets_of(const traffic::QueueFlow& flow) { return static_cast<double>(flow.tally.packets); }
double bytes_of(const traffic::QueueFlow& flow) { return static_cast<double>(flow.tally.bytes); }
double payload_of(const traffic::QueueFlow& flow, std::uint32_t header_bytes) {
  return bytes_of(flow) - packets_of(flow) * header_bytes;
}
double nanos_each(double seconds, const traffic::QueueFlow& flow) { return over(1e9 * seconds, packets_of(flow)); }

Json flow_json(const traffic::QueueFlow& flow, std::uint32_t header_bytes) {
  return {{"packets", flow.tally.packets},
          {"bytes", flow.tally.bytes},
          {"elapsed_ns", 1e9 * flow.seconds},
          {"packet_bytes", over(bytes_of(flow), packets_of(flow))},
          {"payload_bytes", over(payload_of(flow, header_bytes), packets_of(flow))},
          {"pps", over(packets_of(flow), flow.seconds)},
          {"ns_per_packet", nanos_each(flow.seconds, flow)},
          {"bytes_per_s", over(bytes_of(flow), flow.seconds)},
          {"payload_bytes_per_s", over(payload_of(flow, header_bytes), flow.seconds)}};
}

std::string to_text(const traffic::QueueFlow& flow, std::uint32_t header_bytes) {
  return fmt::format(
      "{} packets of {:.0f} bytes ({:.0f} payload) in {:.0f} ns: {:.0f} a second, {:.1f} ns each, {:.1f} MB/s "
      "({:.1f} payload)",
      flow.tally.packets, over(bytes_of(flow), packets_of(flow)),
      over(payload_of(flow, header_bytes), packets_of(flow)), 1e9 * flow.seconds, over(packets_of(flow), flow.seconds),
      nanos_each(flow.seconds, flow), over(bytes_of(flow), flow.seconds) / 1e6,
      over(payload_of(flow, header_bytes), flow.seconds) / 1e6);
}

}  // namespace

Json to_json(const traffic::QueueTotals& queue) {
  Json json = {{"port", queue.port}, {"queue", queue.queue}};
  if (queue.tx.tally.packets != 0) {
    json["tx"] = flow_json(queue.tx, queue.header_bytes);
    json["tx"]["stalled"] = queue.stalls;
    if (queue.left_s) {
      json["left"] = {{"elapsed_ns", 1e9 * *queue.left_s},
                      {"ns_per_packet", nanos_each(*queue.left_s, queue.tx)},
                      {"unreported", queue.unreported}};
    }
  }
  if (queue.rx.tally.packets != 0) json["rx"] = flow_json(queue.rx, queue.header_bytes);
  return json;
}

std::string to_text(const traffic::QueueTotals& queue) {
  const auto& [port, number, header_bytes, tx, stalls, rx, left_s, unreported] = queue;
  std::string text;
  const std::string where = fmt::format("  {} queue {}", port, number);
  if (tx.tally.packets != 0) {
    text += fmt::format("{} sent: {}, {} stalls\n", where, to_text(tx, header_bytes), stalls);
    if (left_s) {
      text += fmt::format("{} left: after {:.0f} ns, {:.1f} ns each", where, 1e9 * *left_s, nanos_each(*left_s, tx));
      text += unreported == 0 ? "\n" : fmt::format("; the device does not report the last {}\n", unreported);
    } else {
      text += fmt::format("{} left: the driver does not tell when\n", where);
    }
  }
  if (rx.tally.packets != 0) text += fmt::format("{} received: {}\n", where, to_text(rx, header_bytes));
  return text;
}

}  // namespace warpline::report
