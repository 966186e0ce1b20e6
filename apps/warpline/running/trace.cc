// SPDX-License-Identifier: Apache-2.0
// `warpline trace`: packets' ways through a running process.
#include <fmt/format.h>

#include <chrono>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "attach/telemetry_client.h"
#include "commands.h"
#include "running/connect.h"
#include "warpline/base/output.h"
#include "warpline/base/time/clock.h"
#include "warpline/capture/attached/attached_trace.h"
#include "warpline/runtime/stop.h"
#include "warpline/runtime/telemetry/telemetry_folder.h"

namespace warpline {
namespace {

using Clock = std::chrono::steady_clock;

struct Stage {
  const char* name;
  std::uint64_t capture::PacketTimes::* ticks;
};
constexpr Stage kStages[] = {{"closed", &capture::PacketTimes::closed},
                             {"begun", &capture::PacketTimes::begun},
                             {"done", &capture::PacketTimes::done},
                             {"collected", &capture::PacketTimes::collected},
                             {"left", &capture::PacketTimes::left}};

std::string outcome(Verdict verdict) { return verdict == Verdict::forward ? "sent" : std::string(name(verdict)); }

nlohmann::ordered_json to_json(const capture::TracedPacket& packet) {
  nlohmann::ordered_json json = {
      {"port", packet.port}, {"queue", packet.queue}, {"bytes", packet.length}, {"batch", packet.times.batch}};
  for (const auto& [stage, ticks] : kStages) {
    // A stage that says no time is not there.
    if (packet.times.*ticks == 0) continue;
    json[std::string(stage) + "_ns"] =
        static_cast<std::uint64_t>(ticks_to_nanos(packet.times.*ticks - packet.times.received));
  }
  json["outcome"] = outcome(packet.verdict);
  return json;
}

std::string header() {
  std::string line = fmt::format("{:<16} {:>5} {:>6} {:>5}", "port", "queue", "bytes", "batch");
  for (const Stage& stage : kStages) line += fmt::format(" {:>10}", stage.name);
  return line + "  outcome (microseconds since the first packet of the batch was received)";
}

std::string row(const capture::TracedPacket& packet) {
  std::string line =
      fmt::format("{:<16} {:>5} {:>6} {:>5}", packet.port, packet.queue, packet.length, packet.times.batch);
  for (const auto& [stage, ticks] : kStages) {
    line += packet.times.*ticks == 0
                ? fmt::format(" {:>10}", "-")
                : fmt::format(" {:>10.2f}", ticks_to_nanos(packet.times.*ticks - packet.times.received) / 1e3);
  }
  return line + "  " + outcome(packet.verdict);
}

/// One run of `trace`.
class TraceRun {
 public:
  TraceRun(const report::RunSettings& settings, capture::AttachedTrace trace)
      : settings_(settings), trace_(std::move(trace)) {}

  /// Shows packets until something ends it.
  void show() {
    if (!settings_.json) put_line(stdout, header());
    for (;;) {
      const bool interrupted = runtime::StopOnSignal::requested().load(std::memory_order_relaxed);
      stop_for(interrupted, "signal");
      stop_for(
          settings_.seconds.value != 0 && Clock::now() - begin_ >= std::chrono::nanoseconds(settings_.seconds.value),
          "seconds");
      const bool ended = trace_.rings().ended();
      if (take_one()) continue;
      if (ended) break;
      trace_.rings().wait();
    }
    if (ended_by_.empty()) ended_by_ = "process";
  }

  [[nodiscard]] const std::string& ended_by() const { return ended_by_; }
  [[nodiscard]] nlohmann::ordered_json& packets() { return packets_; }
  /// Packets that were to be shown, and found no place to wait in.
  [[nodiscard]] std::uint64_t left_out() {
    const auto& totals = trace_.rings().left_out();
    return totals ? std::accumulate(totals->left_out.begin(), totals->left_out.end(), std::uint64_t{0}) : 0;
  }

 private:
  void stop_for(bool wanted, const char* why) {
    if (!wanted || !ended_by_.empty()) return;
    ended_by_ = why;
    trace_.rings().stop();
  }

  bool take_one() {
    if (settings_.packets != 0 && shown_ == settings_.packets) {
      stop_for(true, "packets");
      return false;
    }
    const auto packet = trace_.next();
    if (!packet) return false;
    ++shown_;
    if (settings_.json) {
      packets_.push_back(to_json(*packet));
    } else {
      put_line(stdout, row(*packet));
    }
    return true;
  }

  report::RunSettings settings_;
  capture::AttachedTrace trace_;
  Clock::time_point begin_ = Clock::now();
  std::uint64_t shown_ = 0;
  nlohmann::ordered_json packets_ = nlohmann::ordered_json::array();
  std::string ended_by_;
};

}  // namespace

Result<int> run_trace(const config::LoadedConfig& loaded) {
  const config::Config& config = loaded.config;
  const runtime::StopOnSignal on_signal;
  WARPLINE_TRY(const attach::TelemetryClient process, connect_to_process(config.attach));
  WARPLINE_TRY(capture::AttachedTrace trace,
               capture::AttachedTrace::open(runtime::capture_socket(process.folder()), config.attach.one_in));
  TraceRun run(config.run, std::move(trace));
  run.show();
  if (config.run.json) {
    const nlohmann::ordered_json json = {{"schema_version", 1},
                                         {"command", "trace"},
                                         {"process", {{"name", process.name()}, {"pid", process.pid()}}},
                                         {"ended_by", run.ended_by()},
                                         {"left_out", run.left_out()},
                                         {"packets", std::move(run.packets())}};
    put_line(stdout, json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
  } else if (run.left_out() != 0) {
    put_line(stderr,
             fmt::format("warpline: {} packets were left out: they came faster than they were shown", run.left_out()));
  }
  return run.ended_by() == "signal" ? kInterrupted : 0;
}

}  // namespace warpline
