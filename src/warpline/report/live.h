// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <string>

#include "warpline/report/report.h"
#include "warpline/report/run_settings.h"

namespace warpline::report {

/// Everything counted up to some moment, and what of it went through: what the rate is of.
struct LiveSample {
  double elapsed_s = 0;
  RunTotals totals;
  Tally through;
};

/// What happened between two samples.
class LiveInterval {
 public:
  LiveInterval(const LiveSample& before, const LiveSample& now);

  /// A row of the table for people, without newline: buffers recycled and drops by reason at its end.
  [[nodiscard]] std::string row() const;
  /// One line: {time_s, interval_s, through, rx, tx, …} of the interval alone, except verify and latency_ns, which are
  /// of the whole run so far.
  [[nodiscard]] std::string json() const;
  [[nodiscard]] static std::string header();

 private:
  double time_s_;
  Throughput rate_;
  RunTotals totals_;
};

/// Returns the time of the kernel's monotonic clock.
[[nodiscard]] double monotonic_seconds();

/// What the control loop watches. All called by its own thread.
struct LiveHooks {
  /// When the workers were let go, by monotonic_seconds(): they may be done before the loop first looks.
  double started_s;
  /// Everything counted so far: once an interval.
  std::function<RunTotals()> sample;
  /// What went through so far: many times an interval, so it must be cheap.
  std::function<Tally()> progress;
  /// True when all workers have ended.
  std::function<bool()> done;
  /// Tells the workers to stop and drain: called once at most, and not when they end by themselves.
  std::function<void()> stop;
};

struct LiveResult {
  double duration_s = 0;     ///< from the start to the end of the drain
  Throughput rate;           ///< from the first packet, or the end of the warm-up, to the last
  bool interrupted = false;  ///< by `stop_requested`
};

/// The control loop: until done() prints a row to `err` (or, with settings.json_stream, a line to `out`) every
/// settings.interval, which may change meanwhile, the first one soon; calls stop() on `stop_requested`, when a port has
/// lost its device, or after settings.seconds. The rate's time goes from the last look that saw nothing gone through
/// (or the first one behind the warm-up) to the look that saw the last change: what passes before and behind does not
/// count, gaps between packets do. Of one packet it is 0. Both moments are found to within a millisecond or 1 % of the
/// time between them.
[[nodiscard]] LiveResult run_live(const RunSettings& settings, const LiveHooks& hooks,
                                  const std::atomic<bool>& stop_requested, std::FILE* out = stdout,
                                  std::FILE* err = stderr);

}  // namespace warpline::report
