// SPDX-License-Identifier: Apache-2.0
#include "warpline/service/streams/send/send_report.h"

#include <fmt/format.h>

#include <string_view>

#include "warpline/report/facts.h"
#include "warpline/report/report.h"

namespace warpline::service {
namespace {

using SendJson = nlohmann::ordered_json;

std::string in_microseconds(const LatencyTotals& times) {
  const auto us = [](std::uint64_t nanos) { return static_cast<double>(nanos) / 1e3; };
  return fmt::format("p50 {:.1f}  p99 {:.1f}  p999 {:.1f}  max {:.1f}, of {}", us(times.p50), us(times.p99),
                     us(times.p999), us(times.max), times.count);
}

}  // namespace

SendTotals SendTotals::of(const stream_port::SendQueue& queue) {
  const stream_port::SendQueueCounters& frames = queue.counters();
  const stream::SenderCounters& streams = queue.sender().counters();
  SendTotals totals;
  static_cast<StreamFrameTotals&>(totals) = {frames, streams.dispositions};
  totals.neighbours = frames.neighbours.get();
  totals.asked = frames.asked.get();
  totals.handed_over = frames.handed_over.get();
  totals.not_taken_over = frames.not_taken_over.get();
  totals.bytes = streams.acknowledged.get();
  totals.bytes_sent = streams.sent.get();
  totals.segments = streams.segments.get();
  totals.retransmitted = streams.retransmitted.get();
  totals.retransmitted_bytes = streams.retransmitted_bytes.get();
  totals.recoveries = streams.recoveries.get();
  totals.timeouts = streams.timeouts.get();
  totals.tail_probes = streams.tail_probes.get();
  totals.window_probes = streams.window_probes.get();
  totals.duplicates_told = streams.duplicates_told.get();
  totals.started = streams.started.get();
  totals.opened = streams.opened.get();
  totals.finished = streams.finished.get();
  totals.refused = streams.refused.get();
  totals.reset = streams.reset.get();
  totals.timed_out = streams.timed_out.get();
  totals.aborted = streams.aborted.get();
  totals.ignored_bytes = streams.ignored_bytes.get();
  totals.refused_replies = streams.refused_replies.get();
  if (queue.payload() != nullptr) {
    totals.made_bytes = queue.payload()->counters().made_bytes.get();
    totals.filled = queue.payload()->counters().filled.get();
    totals.filled_bytes = queue.payload()->counters().filled_bytes.get();
  }
  return totals;
}

SendTotals SendTotals::of(const stream_port::SendPort& port) {
  SendTotals totals;
  for (std::uint16_t i = 0; i < port.queues(); ++i) totals += of(port.queue(i));
  return totals;
}

SendTotals& SendTotals::operator+=(const SendTotals& other) {
  StreamFrameTotals::operator+=(other);
  for (const auto count : {&SendTotals::neighbours,      &SendTotals::asked,
                           &SendTotals::handed_over,     &SendTotals::not_taken_over,
                           &SendTotals::bytes,           &SendTotals::bytes_sent,
                           &SendTotals::segments,        &SendTotals::retransmitted,
                           &SendTotals::recoveries,      &SendTotals::timeouts,
                           &SendTotals::tail_probes,     &SendTotals::window_probes,
                           &SendTotals::started,         &SendTotals::opened,
                           &SendTotals::finished,        &SendTotals::refused,
                           &SendTotals::reset,           &SendTotals::timed_out,
                           &SendTotals::aborted,         &SendTotals::ignored_bytes,
                           &SendTotals::made_bytes,      &SendTotals::filled,
                           &SendTotals::filled_bytes,    &SendTotals::refused_replies,
                           &SendTotals::duplicates_told, &SendTotals::retransmitted_bytes}) {
    this->*count += other.*count;
  }
  return *this;
}

bool SendTotals::conserved() const {
  return received == accounted() + neighbours + not_taken_over && started == ended();
}

std::string SendInterval::header() {
  return fmt::format("{:>9} {:>10} {:>9} {:>9} {:>9} {:>9} {:>12} {:>10}", "seconds", "Gbit/s", "open", "opened",
                     "finished", "failed", "segments", "again");
}

std::string SendInterval::row() const {
  const auto failed = [](const SendTotals& t) { return t.ended() - t.finished; };
  return fmt::format("{:>9.2f} {:>10.3f} {:>9} {:>9} {:>9} {:>9} {:>12} {:>10}", time_s,
                     goodput_gbps(now.bytes - before.bytes, seconds), now.started - now.ended(),
                     now.opened - before.opened, now.finished - before.finished, failed(now) - failed(before),
                     now.segments - before.segments, now.retransmitted - before.retransmitted);
}

std::string SendInterval::json() const {
  const SendJson line = {{"time_s", time_s},
                         {"interval_s", seconds},
                         {"open", now.started - now.ended()},
                         {"opened", now.opened - before.opened},
                         {"finished", now.finished - before.finished},
                         {"bytes", now.bytes - before.bytes},
                         {"rate", {{"gbps", goodput_gbps(now.bytes - before.bytes, seconds)}}},
                         {"segments", now.segments - before.segments},
                         {"retransmitted", now.retransmitted - before.retransmitted},
                         {"dropped", now.dropped() + now.not_taken_over - before.dropped() - before.not_taken_over}};
  return line.dump();
}

double SendReport::gbps() const { return goodput_gbps(totals.bytes, sending_s); }

nlohmann::ordered_json SendReport::to_json() const {
  SendJson frames = {{"answered", totals.answered}, {"neighbours", totals.neighbours}};
  if (totals.handed_over != 0) frames["handed_over"] = totals.handed_over;
  totals.add_kept(frames);
  SendJson object = {{"schema_version", 1},
                     {"command", "stream send"},
                     {"build", report::build_facts()},
                     {"host", report::host_facts()},
                     {"config", config},
                     {"duration_s", duration_s},
                     {"sending_s", sending_s},
                     {"rx", {{"packets", totals.received}, {"bytes", totals.received_bytes}}},
                     {"tx", {{"packets", totals.sent}, {"bytes", totals.sent_bytes}}},
                     {"payload", payload_json()},
                     {"sent", {{"segments", totals.segments}, {"bytes", totals.bytes_sent}}},
                     {"acknowledged", {{"bytes", totals.bytes}}},
                     {"retransmitted", {{"segments", totals.retransmitted}, {"bytes", totals.retransmitted_bytes}}},
                     {"recoveries", totals.recoveries},
                     {"timeouts", totals.timeouts},
                     {"tail_probes", totals.tail_probes},
                     {"window_probes", totals.window_probes},
                     {"duplicates_told", totals.duplicates_told},
                     {"frames", frames},
                     {"drops", drops()},
                     {"connections",
                      {{"started", totals.started},
                       {"opened", totals.opened},
                       {"finished", totals.finished},
                       {"refused", totals.refused},
                       {"reset", totals.reset},
                       {"timed_out", totals.timed_out},
                       {"aborted", totals.aborted}}},
                     {"ignored_bytes", totals.ignored_bytes},
                     {"refused_replies", totals.refused_replies},
                     {"no_mbuf", totals.no_mbuf},
                     {"rate", {{"gbps", gbps()}}},
                     {"round_trip_ns", report::to_json(round_trips)},
                     {"leaked_buffers", leaked},
                     {"conserved", conserved()}};
  if (chunks.count != 0) object["chunk_ns"] = report::to_json(chunks);
  if (!lcores.empty()) object["lcores"] = lcores;
  if (!notes.empty()) object["notes"] = notes;
  return object;
}

nlohmann::ordered_json SendReport::drops() const {
  SendJson by_reason = totals.drops(device);
  if (totals.not_taken_over != 0) by_reason["not_taken_over"] = totals.not_taken_over;
  return by_reason;
}

nlohmann::ordered_json SendReport::payload_json() const {
  SendJson object = {{"engine", payload.engine}, {"memory", payload.memory}};
  if (!payload.gpu.empty()) object["gpu"] = payload.gpu;
  object["checksums"] = payload.gpu.empty() ? "cpu" : "gpu";
  if (!payload.lane) return object;
  object["made"] = {{"bytes", totals.made_bytes}};
  object["moved"] = {{"segments", totals.filled}, {"bytes", totals.filled_bytes}};
  return object;
}

std::string SendReport::to_text() const {
  std::string text = fmt::format("stream send: {:.2f} s\n", duration_s);
  const auto line = [&](std::string_view label, const std::string& value) {
    text += fmt::format("  {:<14} {}\n", label, value);
  };
  line("payload", fmt::format("{} bytes acknowledged in {:.3f} s, {:.3f} Gbit/s", totals.bytes, sending_s, gbps()));
  line("connections",
       fmt::format("{} started, {} opened, {} finished, {} refused, {} reset, {} timed out, {} aborted", totals.started,
                   totals.opened, totals.finished, totals.refused, totals.reset, totals.timed_out, totals.aborted));
  line("segments",
       fmt::format("{} sent, {} sent again in {} recoveries, after {} timeouts and as {} tail probes", totals.segments,
                   totals.retransmitted, totals.recoveries, totals.timeouts, totals.tail_probes));
  if (payload.lane) {
    line("filled", fmt::format("{} segments, {} bytes by {} out of {} memory, with checksums{}", totals.filled,
                               totals.filled_bytes, payload.engine, payload.memory,
                               payload.gpu.empty() ? "" : ", by " + payload.gpu));
  }
  line("round trip us", in_microseconds(round_trips));
  if (chunks.count != 0) line("chunk us", in_microseconds(chunks));
  line("frames", fmt::format("{} sent, {} received", totals.sent, totals.received));
  const SendJson dropped = drops();
  for (const auto& [reason, count] : dropped.items()) line("dropped", fmt::format("{} {}", count.dump(), reason));
  if (!conserved()) line("not conserved", fmt::format("{} buffers leaked", leaked));
  for (const std::string& lcore : lcores) line("", lcore);
  for (const std::string& note : notes) line("note", note);
  return text;
}

}  // namespace warpline::service
