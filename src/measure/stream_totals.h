// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/histogram.h"
#include "measure/report.h"
#include "pipeline/stream.h"

namespace warpline {

/// What streams counted, summed up. Any thread may read while the streams' lcores write.
struct StreamTotals {
  RunTotals totals;  ///< without stages and latency
  StageTotals receive{.name = "receive"};
  StageTotals work{.name = "work"};
  StageTotals transmit{.name = "transmit"};
  Histogram latency;

  void add(const Stream& stream);
};

}  // namespace warpline
