// SPDX-License-Identifier: Apache-2.0
#include "warpline/ingest/ingest_run.h"

namespace warpline::ingest {

void IngestRun::prepare(datapath::DatapathSettings& settings, const IngestSettings& ingest) {
  settings.forward.model = datapath::ModelKind::run_to_completion;
  settings.forward.workload = WorkloadKind::user;
  if (!ingest.transmit) settings.forward.recycle = memory::RecycleWay::off;
}

RunTotals IngestRun::totals() const {
  RunTotals totals = forward_->totals();
  if (!transmits_) totals.delivered = paths_.delivered();
  return totals;
}

}  // namespace warpline::ingest
