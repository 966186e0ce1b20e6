// SPDX-License-Identifier: Apache-2.0
// `warpline capture`: writes packets of a running process to files.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "attach/telemetry_client.h"
#include "commands.h"
#include "running/connect.h"
#include "warpline/base/output.h"
#include "warpline/capture/attached/attached_capture.h"
#include "warpline/report/facts.h"
#include "warpline/report/report.h"
#include "warpline/runtime/stop.h"
#include "warpline/runtime/telemetry/telemetry_folder.h"

namespace warpline {
namespace {

using Clock = std::chrono::steady_clock;

/// Writes until something ends it. Returns what that was.
std::string write_packets(capture::AttachedCapture& capture, const report::RunSettings& run) {
  const auto begin = Clock::now();
  const std::uint64_t most = run.packets == 0 ? UINT64_MAX : run.packets;
  std::string reason;
  const auto stop_for = [&](bool wanted, const char* why) {
    if (!wanted || !reason.empty()) return;
    reason = why;
    capture.stop();
  };
  for (;;) {
    stop_for(runtime::StopOnSignal::requested().load(std::memory_order_relaxed), "signal");
    stop_for(run.seconds.value != 0 && Clock::now() - begin >= std::chrono::nanoseconds(run.seconds.value), "seconds");
    // What was copied before the end is written behind it.
    const bool ended = capture.ended();
    if (capture.write_some(most - std::min(most, capture.written())) != 0) continue;
    stop_for(capture.written() >= most, "packets");
    if (ended) break;
    capture.wait();
  }
  return reason.empty() ? "process" : reason;
}

void print(const capture::CaptureTotals& totals, const std::string& ended_by) {
  put_line(stdout, fmt::format("{} packets ({} bytes) in {}, {} of them dropped ones", totals.packets, totals.bytes,
                               fmt::join(totals.files, ", "),
                               std::accumulate(totals.drops.begin(), totals.drops.end(), std::uint64_t{0})));
  put_line(stdout, fmt::format("{} left out: {} because this program was behind, {} because they could not be written",
                               totals.left_out(), totals.ring_full, totals.write_failed));
  if (totals.overwritten != 0) put_line(stdout, fmt::format("{} overwritten by newer ones", totals.overwritten));
  if (ended_by == "process") put_line(stdout, "the process has ended");
}

}  // namespace

Result<int> run_capture(const config::LoadedConfig& loaded) {
  const config::Config& config = loaded.config;
  const runtime::StopOnSignal on_signal;
  WARPLINE_TRY(const attach::TelemetryClient process, connect_to_process(config.attach));
  const auto version = report::build_facts().at("version").get<std::string>();
  WARPLINE_TRY(const auto capture, capture::AttachedCapture::open(runtime::capture_socket(process.folder()),
                                                                  config.capture, "warpline " + version));
  put_line(stderr, fmt::format("warpline: capturing packets of {} {}", process.name(), process.pid()));
  const std::string ended_by = write_packets(*capture, config.run);
  WARPLINE_TRY(const capture::CaptureTotals totals, capture->totals());
  if (config.run.json) {
    const nlohmann::ordered_json json = {{"schema_version", 1},
                                         {"command", "capture"},
                                         {"process", {{"name", process.name()}, {"pid", process.pid()}}},
                                         {"ended_by", ended_by},
                                         {"capture", report::to_json(totals)}};
    put_line(stdout, json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
  } else {
    print(totals, ended_by);
  }
  if (totals.write_failed != 0) {
    return environment_error(
        fmt::format("{} packets could not be written to {}", totals.write_failed, config.capture.file), totals.failure,
        "make space, or lower --capture-limit");
  }
  return ended_by == "signal" ? kInterrupted : 0;
}

}  // namespace warpline
