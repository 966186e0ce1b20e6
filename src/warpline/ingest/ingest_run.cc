// SPDX-License-Identifier: Apache-2.0
#include "warpline/ingest/ingest_run.h"

#include <fmt/format.h>

#include <utility>
#include <variant>

#include "warpline/flow/frame_description.h"
#include "warpline/gpu/device.h"

namespace warpline::ingest {
namespace {

/// What is on its way over a wire that loses nothing waits for the consumer, for as long as that takes.
constexpr Nanos kPatientDrain{std::int64_t{24} * 3600 * 1'000'000'000};

}  // namespace

Result<std::unique_ptr<IngestRun>> IngestRun::start_batches(datapath::DatapathSettings settings,
                                                            const IngestSettings& ingest, GpuBatchConsumer& consumer,
                                                            const runtime::RuntimeSettings& runtime) {
  settings.forward.engine = EngineKind::launch;
  std::unique_ptr<IngestRun> run(new IngestRun(ingest));
  WARPLINE_CHECK(prepare(settings, ingest));
  if (settings.forward.engine != EngineKind::launch) {
    return usage_error(fmt::format("batches by the {} engine", name(settings.forward.engine)),
                       "a consumer's work is put on a stream, batch by batch", "use the engine launch");
  }
  WARPLINE_CHECK(run->begin(settings, runtime, run->paths_.batching(consumer)));
  return run;
}

Result<std::unique_ptr<IngestRun>> IngestRun::start_frames(datapath::DatapathSettings settings,
                                                           const IngestSettings& ingest, FrameConsumer& consumer,
                                                           const runtime::RuntimeSettings& runtime) {
  WARPLINE_TRY(const flow::FrameDescription description, flow::parse_frame_description(ingest.frame));
  WARPLINE_CHECK(flow::check_queues(description, settings.forward.pipelines));
  WARPLINE_CHECK(prepare(settings, ingest, true));
  const EngineKind engine = settings.forward.engine;
  if (runs_on_gpu(engine) && engine != EngineKind::launch) {
    return usage_error(fmt::format("frames by the {} engine", name(engine)),
                       "a consumer's work is put on a stream, batch by batch", "use the engine launch");
  }
  settings.forward.ctas = 1;  // all packets of a path pass one assembler
  std::unique_ptr<IngestRun> run(new IngestRun(ingest));
  WARPLINE_CHECK(run->begin(settings, runtime, run->paths_.framing(consumer)));
  return run;
}

Result<std::unique_ptr<IngestRun>> IngestRun::start_kept_frames(datapath::DatapathSettings settings,
                                                                const IngestSettings& ingest,
                                                                std::shared_ptr<FrameInbox> inbox,
                                                                const runtime::RuntimeSettings& runtime,
                                                                std::optional<forward::LoopbackSettings> loopback) {
  WARPLINE_TRY(const flow::FrameDescription description, flow::parse_frame_description(ingest.frame));
  WARPLINE_CHECK(flow::check_queues(description, settings.forward.pipelines));
  WARPLINE_CHECK(prepare(settings, ingest, true));
  const EngineKind engine = settings.forward.engine;
  if (runs_on_gpu(engine) && engine != EngineKind::launch) {
    return usage_error(fmt::format("frames to keep by the {} engine", name(engine)),
                       "kernels that stay keep whoever waits for the whole GPU", "use the engine launch");
  }
  settings.forward.ctas = 1;  // all packets of a path pass one assembler
  std::unique_ptr<IngestRun> run(new IngestRun(ingest));
  run->inbox_ = std::move(inbox);
  if (loopback && !ingest.transmit) {
    const bool paced = !std::holds_alternative<std::monostate>(loopback->rate);
    if (paced) loopback->closed_loop = false;
    if (!paced && ingest.faults.empty()) loopback->drain = kPatientDrain;
    loopback->taken = [paths = &run->paths_] { return paths->delivered().packets; };
  }
  WARPLINE_CHECK(run->begin(settings, runtime, run->paths_.keeping(run->inbox_), std::move(loopback)));
  return run;
}

IngestRun::~IngestRun() {
  if (inbox_ && !ended_) inbox_->close();
}

Result<void> IngestRun::run(const std::atomic<bool>& stop) {
  WARPLINE_CHECK(forward_->run(stop));
  return end();
}

Result<void> IngestRun::finish() {
  WARPLINE_CHECK(forward_->finish());
  return end();
}

Result<void> IngestRun::end() {
  WARPLINE_TRY(frame_totals_, paths_.end_frames());
  ended_ = true;
  if (inbox_) inbox_->end();
  return {};
}

Result<void> IngestRun::prepare(datapath::DatapathSettings& settings, const IngestSettings& ingest, bool frames) {
  if (!ingest.frame.empty() && !frames) {
    return usage_error("frames", "this consumer takes packets or batches of them",
                       "use start_frames(), or leave IngestSettings::frame empty");
  }
  return resolve(ingest, settings);
}

Result<void> IngestRun::begin(const datapath::DatapathSettings& settings, const runtime::RuntimeSettings& runtime,
                              const forward::StageMaker& make_stages,
                              std::optional<forward::LoopbackSettings> loopback) {
  if (runs_on_gpu(settings.forward.engine)) {
    if (const auto gpus = gpu::list_gpus(); !gpus) return gpus.error();
  }
  WARPLINE_TRY(forward_, forward::ForwardRun::start(settings, runtime, make_stages, std::move(loopback)));
  return {};
}

RunTotals IngestRun::totals() const {
  RunTotals totals = forward_->totals();
  if (!transmits_) totals.delivered = paths_.delivered();
  return totals;
}

}  // namespace warpline::ingest
