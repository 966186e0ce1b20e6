// SPDX-License-Identifier: Apache-2.0
#include "warpline/service/streams/stream_report.h"

#include <fmt/format.h>

#include <atomic>
#include <string_view>
#include <utility>

#include "warpline/base/units.h"
#include "warpline/report/facts.h"
#include "warpline/report/report.h"

namespace warpline::service {
namespace {

using Json = nlohmann::ordered_json;
using stream::Disposition;

Json connections_of(const StreamTotals& totals) {
  return {{"opened", totals.opened},
          {"finished", totals.finished},
          {"reset", totals.reset},
          {"timed_out", totals.timed_out},
          {"aborted", totals.aborted}};
}

}  // namespace

StreamReport::Engine StreamReport::Engine::of(stream_port::StreamPort& port, EngineKind kind, memory::MemoryKind rings,
                                              std::string gpu) {
  Histogram bursts;
  std::uint64_t acknowledgements = 0;
  for (std::size_t i = 0; i < port.queues(); ++i) {
    const stream::ReceiverCounters& counters = port.queue(i).receiver().counters();
    bursts.merge(counters.bursts);
    acknowledgements += counters.lane_acknowledgements.get();
  }
  return {.name = warpline::name(kind),
          .memory = warpline::name(rings),
          .gpu = std::move(gpu),
          .bursts = LatencyTotals::of(bursts),
          .acknowledgements = acknowledgements};
}

StreamTotals StreamTotals::of(const stream_port::StreamQueue& queue) {
  const stream_port::StreamQueueCounters& frames = queue.counters();
  const stream::ReceiverCounters& streams = queue.receiver().counters();
  StreamTotals totals;
  // What ends after it began: `open()` is never less than nothing.
  totals.finished = streams.finished.get();
  totals.reset = streams.reset.get();
  totals.timed_out = streams.timed_out.get();
  totals.aborted = streams.aborted.get();
  std::atomic_thread_fence(std::memory_order_acquire);
  totals.opened = streams.opened.get();
  static_cast<StreamFrameTotals&>(totals) = {frames, streams.dispositions};
  totals.bytes = streams.bytes.get();
  totals.acknowledgements = streams.acknowledgements.get();
  totals.cookies = streams.cookies.get();
  totals.refused_replies = streams.refused_replies.get();
  return totals;
}

StreamTotals StreamTotals::of(stream_port::StreamPort& port) {
  StreamTotals sum;
  for (std::size_t i = 0; i < port.queues(); ++i) {
    const StreamTotals queue = of(port.queue(i));
    static_cast<StreamFrameTotals&>(sum) += queue;
    for (const auto count : {&StreamTotals::bytes, &StreamTotals::opened, &StreamTotals::finished, &StreamTotals::reset,
                             &StreamTotals::timed_out, &StreamTotals::aborted, &StreamTotals::acknowledgements,
                             &StreamTotals::cookies, &StreamTotals::refused_replies}) {
      sum.*count += queue.*count;
    }
  }
  return sum;
}

std::string StreamInterval::header() {
  return fmt::format("{:>9} {:>10} {:>9} {:>9} {:>9} {:>9} {:>12} {:>10}", "seconds", "Gbit/s", "open", "opened",
                     "finished", "reset", "frames", "dropped");
}

std::string StreamInterval::row() const {
  return fmt::format("{:>9.2f} {:>10.3f} {:>9} {:>9} {:>9} {:>9} {:>12} {:>10}", time_s,
                     goodput_gbps(now.bytes - before.bytes, seconds), now.open(), now.opened - before.opened,
                     now.finished - before.finished, now.reset - before.reset, now.received - before.received,
                     now.dropped() - before.dropped());
}

std::string StreamInterval::json() const {
  const Json line = {{"time_s", time_s},
                     {"interval_s", seconds},
                     {"open", now.open()},
                     {"opened", now.opened - before.opened},
                     {"finished", now.finished - before.finished},
                     {"reset", now.reset - before.reset},
                     {"bytes", now.bytes - before.bytes},
                     {"rate", {{"gbps", goodput_gbps(now.bytes - before.bytes, seconds)}}},
                     {"frames", now.received - before.received},
                     {"dropped", now.dropped() - before.dropped()}};
  return line.dump();
}

double StreamReport::gbps() const { return goodput_gbps(totals.bytes, receiving_s); }

nlohmann::ordered_json StreamReport::to_json() const {
  Json frames = {{"answered", totals.answered}};
  totals.add_kept(frames);
  Json object = {
      {"schema_version", 1},
      {"command", command},
      {"build", report::build_facts()},
      {"host", report::host_facts()},
      {"config", config},
      {"duration_s", duration_s},
      {"receiving_s", receiving_s},
      {"processing", processing ? "on" : "off"},
      {"rx", {{"packets", totals.received}, {"bytes", totals.received_bytes}}},
      {"tx", {{"packets", totals.sent}, {"bytes", totals.sent_bytes}}},
      {"delivered",
       {{"packets", totals.dispositions[static_cast<std::size_t>(Disposition::stored)]}, {"bytes", totals.bytes}}},
      {"frames", frames},
      {"drops", totals.drops(device)},
      {"connections", connections_of(totals)},
      {"acknowledgements", totals.acknowledgements},
      {"cookies", totals.cookies},
      {"refused_replies", totals.refused_replies},
      {"no_mbuf", totals.no_mbuf},
      {"rate", {{"gbps", gbps()}}},
      {"leaked_buffers", leaked},
      {"conserved", conserved()}};
  if (engine) {
    object["engine"] = {{"kind", engine->name},
                        {"memory", engine->memory},
                        {"burst_ns", report::to_json(engine->bursts)},
                        {"acknowledgements", engine->acknowledgements}};
    if (!engine->gpu.empty()) object["gpu"] = {{"name", engine->gpu}, {"engine", engine->name}};
  }
  if (chunks.count != 0) object["chunk_ns"] = report::to_json(chunks);
  if (written) object["written"] = {{"files", written->files}, {"bytes", written->bytes}};
  if (verified) object["verify"] = {{"checked", verified->checked}, {"bad", verified->bad}};
  if (relayed) {
    object["relayed"] = {{"connections", relayed->connections},
                         {"bytes", relayed->bytes},
                         {"ended", relayed->ended},
                         {"lost_sessions", relayed->lost_sessions},
                         {"no_session", relayed->no_session}};
  }
  if (!lcores.empty()) object["lcores"] = lcores;
  if (!notes.empty()) object["notes"] = notes;
  return object;
}

std::string StreamReport::to_text() const {
  std::string text = fmt::format("{}: {:.2f} s\n", command, duration_s);
  const auto line = [&](std::string_view label, const std::string& value) {
    text += fmt::format("  {:<12} {}\n", label, value);
  };
  line("payload", fmt::format("{} bytes in {:.3f} s from the first to the last, {:.3f} Gbit/s{}", totals.bytes,
                              receiving_s, gbps(), processing ? "" : "; acknowledged and kept nowhere"));
  if (engine) {
    line("engine",
         fmt::format("{}{}{}, rings in {} memory; {} bursts, from handing over to records {:.1f} us (p50), "
                     "{:.1f} (p99), {:.1f} (max); {} acknowledgements",
                     engine->name, engine->gpu.empty() ? "" : " on ", engine->gpu, engine->memory, engine->bursts.count,
                     static_cast<double>(engine->bursts.p50) / 1e3, static_cast<double>(engine->bursts.p99) / 1e3,
                     static_cast<double>(engine->bursts.max) / 1e3, engine->acknowledgements));
  }
  if (chunks.count != 0) {
    line("chunk us",
         fmt::format("p50 {:.1f}  p99 {:.1f}  max {:.1f}, of {}", static_cast<double>(chunks.p50) / 1e3,
                     static_cast<double>(chunks.p99) / 1e3, static_cast<double>(chunks.max) / 1e3, chunks.count));
  }
  if (written) line("written", fmt::format("{} bytes in {} files", written->bytes, written->files));
  if (verified) line("verified", fmt::format("{} bytes, {} pieces wrong", verified->checked, verified->bad));
  if (relayed) {
    line("handed on", fmt::format("{} bytes of {} connections, {} of them to their end, {} sessions lost, {} refused",
                                  relayed->bytes, relayed->connections, relayed->ended, relayed->lost_sessions,
                                  relayed->no_session));
  }
  line("connections", fmt::format("{} opened, {} finished, {} reset, {} timed out, {} aborted", totals.opened,
                                  totals.finished, totals.reset, totals.timed_out, totals.aborted));
  line("frames", fmt::format("{} received, {} sent, {} of them acknowledgements", totals.received, totals.sent,
                             totals.acknowledgements));
  const Json drops = totals.drops(device);
  for (const auto& [reason, count] : drops.items()) line("dropped", fmt::format("{} {}", count.dump(), reason));
  if (!conserved()) line("not conserved", fmt::format("{} buffers leaked", leaked));
  for (const std::string& lcore : lcores) line("", lcore);
  for (const std::string& note : notes) line("note", note);
  return text;
}

}  // namespace warpline::service
