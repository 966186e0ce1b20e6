// SPDX-License-Identifier: Apache-2.0
#include "warpline/ingest/ingest_run.h"

#include "warpline/gpu/device.h"

namespace warpline::ingest {

Result<std::unique_ptr<IngestRun>> IngestRun::start_batches(datapath::DatapathSettings settings,
                                                            const IngestSettings& ingest, GpuBatchConsumer& consumer,
                                                            const runtime::RuntimeSettings& runtime) {
  settings.forward.engine = EngineKind::launch;
  std::unique_ptr<IngestRun> run(new IngestRun(ingest));
  WARPLINE_CHECK(prepare(settings, ingest));
  WARPLINE_TRY(run->forward_, forward::ForwardRun::start(settings, runtime, run->paths_.batching(consumer)));
  return run;
}

Result<void> IngestRun::prepare(datapath::DatapathSettings& settings, const IngestSettings& ingest) {
  if (!ingest.frame.empty()) {
    return usage_error("frames", "a consumer of one's own takes packets or batches of them",
                       "leave IngestSettings::frame empty, and give the packets to a flow::FrameAssembler");
  }
  const bool on_gpu = runs_on_gpu(settings.forward.engine);
  if (on_gpu) {
    if (const auto gpus = gpu::list_gpus(); !gpus) return gpus.error();
  } else if (ingest.path == IngestPath::device) {
    return usage_error("the path device", "the CPU, which runs the consumer, cannot read GPU memory",
                       "use zerocopy or copy, or an engine on a GPU");
  }
  settings.pool.memory = pool_memory(ingest.path, on_gpu);
  settings.forward.model = datapath::ModelKind::run_to_completion;
  settings.forward.workload = WorkloadKind::user;
  if (!ingest.transmit) settings.forward.recycle = memory::RecycleWay::off;
  return {};
}

RunTotals IngestRun::totals() const {
  RunTotals totals = forward_->totals();
  if (!transmits_) totals.delivered = paths_.delivered();
  return totals;
}

}  // namespace warpline::ingest
