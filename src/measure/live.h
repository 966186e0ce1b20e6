// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>

#include "base/units.h"
#include "config/config.h"
#include "measure/report.h"

namespace warpline {

/// Turns successive totals into lines about what happened between them.
class LiveTable {
 public:
  /// Two header lines and, now and then, again.
  [[nodiscard]] std::string row(const RunTotals& now, double elapsed_s);

 private:
  std::uint64_t rows_ = 0;
  double last_s_ = 0;
  RunTotals last_;
};

/// The same as one JSON object a line: {time_s, interval_s, rx, tx, …} of the interval; latency of the run so far.
class LiveStream {
 public:
  [[nodiscard]] std::string line(const RunTotals& now, double elapsed_s);

 private:
  double last_s_ = 0;
  RunTotals last_;
};

/// What the control loop watches. All called by its own thread.
struct LiveHooks {
  /// Everything counted so far: once an interval.
  std::function<RunTotals()> sample;
  /// Only what the rate is of (packets through): many times an interval, so it must be cheap.
  std::function<Tally()> progress;
  /// True when all workers have ended.
  std::function<bool()> done;
  /// Tells the workers to stop and drain: called once, unless they end by themselves.
  std::function<void()> stop;
};

struct LiveResult {
  double duration_s = 0;     ///< from the start to the end of the drain
  Throughput rate;           ///< from the end of the warm-up to the last progress
  bool interrupted = false;  ///< by `stop_requested`
};

/// The control loop: until done() prints a row to stderr (or, with config.json_stream, a line to stdout) every
/// config.interval, the first one soon; calls stop() on `stop_requested` or after config.seconds. The time of the last
/// progress is found to within 1 % of the time that has passed.
[[nodiscard]] LiveResult run_live(const RunConfig& config, const LiveHooks& hooks,
                                  const std::atomic<bool>& stop_requested, std::FILE* out = stdout,
                                  std::FILE* err = stderr);

}  // namespace warpline
