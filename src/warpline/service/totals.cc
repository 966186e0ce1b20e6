// SPDX-License-Identifier: Apache-2.0
#include "warpline/service/totals.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string_view>

#include "warpline/base/units.h"
#include "warpline/report/facts.h"
#include "warpline/report/report.h"

namespace warpline::service {
namespace {

using Json = nlohmann::ordered_json;

void add_named(std::vector<std::pair<std::string, std::uint64_t>>& all, std::string_view name, std::uint64_t value) {
  const auto found = std::ranges::find(all, name, [](const auto& entry) { return std::string_view(entry.first); });
  if (found == all.end()) {
    all.emplace_back(name, value);
  } else {
    found->second += value;
  }
}

double per_second(std::uint64_t count, double seconds) {
  return seconds > 0 ? static_cast<double>(count) / seconds : 0;
}

double gbps(std::uint64_t bytes, double seconds) { return per_second(bytes, seconds) * 8e-9; }

Json named(const std::vector<std::pair<std::string, std::uint64_t>>& entries) {
  Json object = Json::object();
  for (const auto& [name, value] : entries) object[name] = value;
  return object;
}

}  // namespace

void MessageTotals::add(const MessageTally& tally) {
  submitted += tally.submitted.get();
  offered_per_s += tally.offered_per_s();
  for (std::size_t i = 0; i < completed.size(); ++i) completed[i] += tally.completed[i].get();
  served += tally.served.get();
  not_served += tally.not_served.get();
  bytes_out += tally.bytes_out.get();
  bytes_in += tally.bytes_in.get();
  checked += tally.checked.get();
  bad += tally.bad.get();
  connected += tally.connected.get();
  accepted += tally.accepted.get();
  for (std::size_t i = 0; i < lost.size(); ++i) lost[i] += tally.lost[i].get();
}

void PacketTotals::add(const message::EndpointCounters& counters) {
  in += counters.packets_in.get();
  out += counters.packets_out.get();
  bytes_in += counters.bytes_in.get();
  bytes_out += counters.bytes_out.get();
  for (std::size_t i = 0; i < drops.size(); ++i) drops[i] += counters.drops[i].get();
  const std::pair<std::string_view, const Counter*> entries[] = {
      {"packets_lost", &counters.packets_lost},
      {"losses_spurious", &counters.losses_spurious},
      {"messages_stalled", &counters.messages_stalled},
      {"requests_expired", &counters.requests_expired},
      {"over_per_address", &counters.over_per_address},
      {"over_per_prefix", &counters.over_per_prefix},
      {"over_half_open_per_address", &counters.over_half_open_per_address},
      {"over_half_open_per_prefix", &counters.over_half_open_per_prefix},
      {"over_bytes_per_address", &counters.over_bytes_per_address},
      {"over_bytes_per_prefix", &counters.over_bytes_per_prefix},
      {"over_messages_per_address", &counters.over_messages_per_address},
      {"over_messages_per_prefix", &counters.over_messages_per_prefix},
      {"fragments_bundled", &counters.fragments_bundled},
      {"fragments_dropped", &counters.fragments_dropped},
      {"packets_behind", &counters.packets_behind},
      {"fragments_repeated", &counters.fragments_repeated},
      {"fragments_duplicate", &counters.fragments_duplicate},
      {"probes", &counters.probes},
      {"timeouts", &counters.timeouts},
      {"path_probes", &counters.path_probes},
      {"black_holes", &counters.black_holes},
      {"path_challenges", &counters.path_challenges},
      {"path_challenges_spared", &counters.path_challenges_spared},
      {"path_changes_refused", &counters.path_changes_refused},
      {"path_changes", &counters.path_changes},
      {"peers_doubted", &counters.peers_doubted},
      {"unreachable_ignored", &counters.unreachable_ignored},
      {"clock_jumps", &counters.clock_jumps},
      {"heads_too_small", &counters.heads_too_small},
  };
  for (const auto& [name, counter] : entries) add_named(protocol, name, counter->get());
}

void PacketTotals::add(const transport::TransportCounters& counters) {
  const std::pair<std::string_view, const Counter*> entries[] = {
      {"overflow", &counters.overflow},   {"too_long", &counters.truncated},
      {"refused", &counters.refused},     {"unresolved", &counters.unresolved},
      {"strangers", &counters.strangers}, {"malformed_frames", &counters.malformed},
      {"no_mbuf", &counters.no_mbuf},
  };
  for (const auto& [name, counter] : entries) add_named(transport, name, counter->get());
  add_named(protocol, "payloads_gathered", counters.gathered.get());
  add_named(protocol, "payloads_copied", counters.copied.get());
  add_named(protocol, "icmp_unreachable", counters.unreachable.get());
  add_named(protocol, "icmp_other", counters.icmp_other.get());
  add_named(protocol, "icmp_muted", counters.icmp_muted.get());
}

std::string MessageInterval::header() {
  return fmt::format("{:>9} {:>12} {:>12} {:>10} {:>10} {:>9} {:>9} {:>8}", "seconds", "requests", "requests/s",
                     "Gbit/s out", "Gbit/s in", "p50 us", "p99 us", "lost");
}

std::string MessageInterval::row() const {
  return fmt::format("{:>9.2f} {:>12} {:>12.0f} {:>10.3f} {:>10.3f} {:>9.1f} {:>9.1f} {:>8}", time_s, done,
                     per_second(done, seconds), gbps(bytes_out, seconds), gbps(bytes_in, seconds),
                     static_cast<double>(p50) / 1e3, static_cast<double>(p99) / 1e3, lost_packets);
}

std::string MessageInterval::json() const {
  const Json line = {{"time_s", time_s},
                     {"interval_s", seconds},
                     {"requests", done},
                     {"rate",
                      {{"requests_per_s", per_second(done, seconds)},
                       {"gbps_out", gbps(bytes_out, seconds)},
                       {"gbps_in", gbps(bytes_in, seconds)}}},
                     {"packets_lost", lost_packets},
                     {"latency_ns", {{"p50", p50}, {"p99", p99}}}};
  return line.dump();
}

bool MessageReport::conserved() const {
  const std::uint64_t ended = std::accumulate(totals.completed.begin(), totals.completed.end(), std::uint64_t{0});
  return ended == totals.submitted && leaked == 0;
}

nlohmann::ordered_json MessageReport::to_json() const {
  Json drops = Json::object();
  for (std::size_t i = 0; i < packets.drops.size(); ++i) {
    if (packets.drops[i] != 0)
      drops[std::string(message::name(static_cast<message::MessageDrop>(i)))] = packets.drops[i];
  }
  for (const auto& [reason, count] : packets.transport) {
    if (count != 0) drops[reason] = count;
  }
  Json requests = {{"submitted", totals.submitted}};
  for (std::size_t i = 0; i < totals.completed.size(); ++i) {
    requests[std::string(message::name(static_cast<message::MessageStatus>(i)))] = totals.completed[i];
  }
  requests["served"] = totals.served;
  requests["not_served"] = totals.not_served;
  Json lost = Json::object();
  for (std::size_t i = 1; i < totals.lost.size(); ++i) {
    if (totals.lost[i] != 0) lost[std::string(message::name(static_cast<message::LossReason>(i)))] = totals.lost[i];
  }
  Json object = {{"schema_version", 1},
                 {"command", command},
                 {"build", report::build_facts()},
                 {"host", report::host_facts()},
                 {"config", config},
                 {"duration_s", duration_s},
                 {"rx", {{"packets", packets.in}, {"bytes", packets.bytes_in}}},
                 {"tx", {{"packets", packets.out}, {"bytes", packets.bytes_out}}},
                 {"drops", drops},
                 {"requests", requests},
                 {"sessions", {{"connected", totals.connected}, {"accepted", totals.accepted}, {"lost", lost}}},
                 {"rate",
                  {{"requests_per_s", per_second(measured.done(), measured_s)},
                   {"gbps", gbps(measured.bytes_out + measured.bytes_in, measured_s)},
                   {"gbps_out", gbps(measured.bytes_out, measured_s)},
                   {"gbps_in", gbps(measured.bytes_in, measured_s)}}},
                 {"protocol", named(packets.protocol)},
                 {"leaked_buffers", leaked},
                 {"conserved", conserved()}};
  if (totals.offered_per_s != 0) object["rate"]["offered_per_s"] = totals.offered_per_s;
  if (verify) object["verify"] = {{"checked", totals.checked}, {"bad", totals.bad}};
  if (latency != nullptr && latency->count() != 0)
    object["latency_ns"] = warpline::report::to_json(LatencyTotals::of(*latency));
  if (!losses.empty()) {
    Json list = Json::array();
    for (const SessionLoss& loss : losses) {
      list.push_back({{"session", loss.session},
                      {"reason", message::name(loss.reason)},
                      {"requests", loss.requests},
                      {"silent_before_ns", loss.silent_before.value},
                      {"silent_ns", loss.silent.value}});
    }
    object["losses"] = list;
    object["peer_timeout_ns"] = peer_timeout.value;
  }
  if (!door.is_null()) {
    object["door"] = door;
    object["clients"] = clients;
  }
  if (!gpu.is_null()) object["gpu"] = gpu;
  if (!lcores.empty()) object["lcores"] = lcores;
  if (!notes.empty()) object["notes"] = notes;
  return object;
}

std::string MessageReport::to_text() const {
  std::string text = fmt::format("{}: {:.2f} s\n", command, duration_s);
  const auto line = [&](std::string_view label, const std::string& value) {
    text += fmt::format("  {:<12} {}\n", label, value);
  };
  line("requests", fmt::format("{} in {:.2f} s, {}/s", measured.done(), measured_s,
                               humanize(per_second(measured.done(), measured_s))));
  line("payload", fmt::format("{:.3f} Gbit/s out, {:.3f} Gbit/s in", gbps(measured.bytes_out, measured_s),
                              gbps(measured.bytes_in, measured_s)));
  if (latency != nullptr && latency->count() != 0) {
    const LatencyTotals times = LatencyTotals::of(*latency);
    const auto us = [](std::uint64_t ns) { return static_cast<double>(ns) / 1e3; };
    line("latency us", fmt::format("p50 {:.1f}  p90 {:.1f}  p99 {:.1f}  p999 {:.1f}  max {:.1f}", us(times.p50),
                                   us(times.p90), us(times.p99), us(times.p999), us(times.max)));
  }
  if (!door.is_null()) {
    line("clients", fmt::format("{} attached, {} detached, {} expelled", door["attached"].dump(),
                                door["detached"].dump(), door["expelled"].dump()));
  }
  line("packets", fmt::format("{} received, {} sent", packets.in, packets.out));
  for (const auto& [what, count] : packets.protocol) {
    if (count != 0) line("", fmt::format("{} {}", count, what));
  }
  const Json object = to_json();
  for (const auto& [reason, count] : object["drops"].items())
    line("dropped", fmt::format("{} {}", count.dump(), reason));
  for (std::size_t i = 1; i < totals.completed.size(); ++i) {
    if (totals.completed[i] == 0) continue;
    line("failed",
         fmt::format("{} requests: {}", totals.completed[i], message::name(static_cast<message::MessageStatus>(i))));
  }
  for (std::size_t i = 1; i < totals.lost.size(); ++i) {
    if (totals.lost[i] == 0) continue;
    line("lost", fmt::format("{} sessions: {}", totals.lost[i], message::name(static_cast<message::LossReason>(i))));
  }
  if (verify) line("verified", fmt::format("{} responses, {} of them wrong", totals.checked, totals.bad));
  if (!conserved()) line("UNACCOUNTED", fmt::format("requests or {} buffers are missing", leaked));
  return text;
}

}  // namespace warpline::service
