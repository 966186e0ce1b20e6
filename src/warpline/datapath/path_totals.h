// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "warpline/base/statistics/histogram.h"
#include "warpline/base/statistics/run_totals.h"
#include "warpline/datapath/queue_path.h"

namespace warpline::datapath {

/// What paths counted, summed up. Any thread may read while the paths' lcores write.
struct PathTotals {
  RunTotals totals;  ///< without stages and latency
  StageTotals receive{.name = "receive"};
  StageTotals work{.name = "work"};
  StageTotals transmit{.name = "transmit"};
  Histogram latency;

  void add(const QueuePath& path);
};

}  // namespace warpline::datapath
