// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdio>
#include <functional>
#include <thread>
#include <utility>

#include "warpline/base/output.h"
#include "warpline/port/removal.h"
#include "warpline/report/run_settings.h"
#include "warpline/runtime/stop.h"

namespace warpline {

/// `IntervalLoop` is the control loop of commands that count something else than packets: requests, connections. What
/// report::run_live() is for packets. The control thread runs it.
struct IntervalLoop {
  std::function<double()> seconds;   ///< since the run began
  std::function<bool()> done;        ///< all that was to be done is
  std::function<void(double)> look;  ///< is called by each look with seconds(); may be null

  /// Runs until done(), until settings.seconds have passed, until a signal has come, until a port has lost its device,
  /// or until nobody reads stdout any more. Every settings.interval, which may change, it prints what `next_line(now,
  /// since_last)` returns: a row() on stderr, below the header(), or with settings.json_stream a line json() on stdout.
  /// Returns true if a signal has ended it.
  template <typename NextLine>
  bool run(const report::RunSettings& settings, NextLine&& next_line) const {
    constexpr std::chrono::milliseconds kPeriod{2};
    const double end = static_cast<double>(settings.seconds.value) / 1e9;
    double last = 0;
    bool header = false;
    while (!done()) {
      std::this_thread::sleep_for(kPeriod);
      const double now = seconds();
      if (look) look(now);
      if (runtime::StopOnSignal::requested().load(std::memory_order_relaxed)) return true;
      if (port::any_removed() || (end != 0 && now >= end)) break;
      if (now - last < static_cast<double>(settings.interval.value) / 1e9) continue;
      const auto line = next_line(now, now - std::exchange(last, now));
      if (settings.json_stream) {
        put_line(stdout, line.json());
        if (std::ferror(stdout) != 0) break;  // nobody reads on
      } else {
        if (!std::exchange(header, true)) put_line(stderr, line.header());
        put_line(stderr, line.row());
      }
    }
    return false;
  }
};

}  // namespace warpline
