// SPDX-License-Identifier: Apache-2.0
#include "warpline/ingest/ingest_paths.h"

#include <algorithm>
#include <utility>

#include "warpline/gpu/cuda_error.h"
#include "warpline/ingest/consumers/built_in_consumers.h"
#include "warpline/ingest/consumers/consume_anywhere.h"

namespace warpline::ingest {
namespace {

template <Consumer Work>
Result<std::unique_ptr<IngestStages>> consume(const forward::StageParts& parts, const IngestSettings& settings,
                                              const Work& work) {
#if WARPLINE_DEVICE_CODE
  return consume_anywhere(parts, settings, work);
#else
  if (runs_on_gpu(parts.settings.forward.engine)) return gpu::built_without_cuda("receiving into GPU memory");
  return consume_on_host(parts, settings, work);
#endif
}

}  // namespace

Result<std::unique_ptr<datapath::PathStages>> IngestPaths::keep(Result<std::unique_ptr<IngestStages>> made) {
  if (!made) return std::move(made).error();
  stages_.push_back(made->get());
  return std::unique_ptr<datapath::PathStages>(*std::move(made));
}

Result<const PatternSource*> IngestPaths::source_for(const forward::StageParts& parts, const traffic::TrafficPlan& plan,
                                                     PatternMemory::Options options) {
  const datapath::ForwardSettings& forward = parts.settings.forward;
  if (runs_on_gpu(forward.engine)) options.gpu = forward.gpu_of(parts.layout.paths[parts.index].queue);
  const auto found = std::ranges::find(patterns_, options.gpu, &Held::gpu);
  if (found != patterns_.end()) return found->memory->source();
  WARPLINE_TRY(auto memory, PatternMemory::create(plan, options));
  patterns_.push_back({options.gpu, std::move(memory)});
  return patterns_.back().memory->source();
}

forward::StageMaker IngestPaths::verifying(const traffic::TrafficPlan& plan, const PatternMemory::Options& options) {
  return [this, &plan, options](const forward::StageParts& parts) -> Result<std::unique_ptr<datapath::PathStages>> {
    WARPLINE_TRY(const PatternSource* source, source_for(parts, plan, options));
    return keep(consume(parts, settings_, PatternCheck(source)));
  };
}

forward::StageMaker IngestPaths::summing() {
  return [this](const forward::StageParts& parts) { return keep(consume(parts, settings_, ByteSum{})); };
}

forward::StageMaker IngestPaths::user() {
  return [this](const forward::StageParts& parts) { return keep(consume(parts, settings_, UserConsumer{})); };
}

forward::StageMaker IngestPaths::assembling() {
  return [this](const forward::StageParts& parts) -> Result<std::unique_ptr<datapath::PathStages>> {
    WARPLINE_TRY(const flow::FrameDescription description, flow::parse_frame_description(settings_.frame));
    WARPLINE_TRY(auto sink, FrameSink::create(description, share_of_budget(settings_, parts.layout.paths.size())));
    frames_.push_back(std::move(sink));
    return keep(consume_on_host(parts, settings_, AssembleFrames{frames_.back().get()}));
  };
}

std::optional<flow::AssemblerCounts> IngestPaths::end_frames() {
  if (frames_.empty()) return std::nullopt;
  flow::AssemblerCounts sum{};
  for (const auto& sink : frames_) {
    sink->end();
    const flow::AssemblerCounts counts = sink->counts();
    for (std::size_t i = 0; i < flow::kPlacements; ++i) sum.placements[i] += counts.placements[i];
    sum.complete += counts.complete;
    sum.incomplete += counts.incomplete;
    sum.missing += counts.missing;
    sum.skipped += counts.skipped;
    sum.restarts += counts.restarts;
    sum.streams += counts.streams;
  }
  return sum;
}

Tally IngestPaths::delivered() const {
  Tally sum;
  for (const IngestStages* stages : stages_) {
    const DeliverCounters& deliver = stages->counters().deliver;
    sum += {deliver.packets.get(), deliver.bytes.get()};
  }
  return sum;
}

std::optional<ConsumerTally> IngestPaths::consumed() const {
  std::optional<ConsumerTally> sum;
  for (const IngestStages* stages : stages_) {
    const std::optional<ConsumerTally> tally = stages->consumed();
    if (sum && tally) {
      sum->merge(*tally);
    } else if (tally) {
      sum = tally;
    }
  }
  return sum;
}

IngestTotals IngestPaths::totals(const std::vector<std::unique_ptr<datapath::QueuePath>>& paths) const {
  IngestTotals totals;
  Histogram batching;
  Histogram gpu;
  Histogram sending;
  totals.delivered = delivered();
  for (const IngestStages* stages : stages_) {
    const GatherCounters& gather = stages->counters().gather;
    totals.copies += gather.copies.get();
    totals.copied_bytes += gather.copied_bytes.get();
    totals.submit.sampled_ticks += gather.submit.ticks.get();
    totals.submit.sampled_packets += gather.submit.packets.get();
    batching.merge(gather.batching);
    sending.merge(stages->counters().deliver.sending);
    totals.gpu_memory.value += stages->gpu_bytes().value;
    totals.slots = stages->slots();
  }
  for (const auto& path : paths) {
    gpu.merge(path->sent.latency);
    if (totals.copies != 0) totals.submit.packets += path->received.packets.get();
  }
  for (const Held& held : patterns_) totals.gpu_memory.value += held.memory->gpu_bytes().value;
  totals.submit.calls = totals.copies;
  totals.batching = LatencyTotals::of(batching);
  totals.gpu = LatencyTotals::of(gpu);
  totals.sending = LatencyTotals::of(sending);
  return totals;
}

}  // namespace warpline::ingest
