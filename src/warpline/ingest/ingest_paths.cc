// SPDX-License-Identifier: Apache-2.0
#include "warpline/ingest/ingest_paths.h"

#include <algorithm>
#include <utility>

#include "warpline/gpu/cuda_error.h"
#include "warpline/ingest/batches/stream_engine.h"
#include "warpline/ingest/consumers/built_in_consumers.h"
#include "warpline/ingest/frames/host_frames.h"
#include "warpline/ingest/kept/keeping_frames.h"

#if WARPLINE_DEVICE_CODE
#include "warpline/flow/frame_gpu.h"
#include "warpline/ingest/frames/gpu_frames.h"
#include "warpline/ingest/frames/stream_frames.h"
#endif

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

/// The engine that gives a path's batches to work on a stream.
StreamEngineSetup stream_setup(const forward::StageParts& parts, const IngestParts& made) {
  const handoff::GpuEngineSetup like = forward::gpu_engine_setup(parts);
  return {.gpu = like.gpu,
          .path = parts.index,
          .pull = made.slots == nullptr ? 0 : made.slots->pull(),
          .watchdog = like.watchdog,
          .lane = like.attendant,
          .name = like.name};
}

/// What to do about frames that do not fit is said in terms of the whole budget.
Error too_small_for_frames(Error error) {
  if (error.kind == ErrorKind::usage) {
    error.fix =
        "use a larger --gpu-memory, of which half is for frames, or describe "
        "a smaller window, smaller frames or fewer streams";
  }
  return error;
}

#if WARPLINE_DEVICE_CODE
/// The stages of a path whose frames lie in GPU memory. All bursts of a path pass one assembler, so that a kernel that
/// stays has one CTA for it.
Result<std::unique_ptr<IngestStages>> assemble_on_gpu(const forward::StageParts& parts, const IngestSettings& settings,
                                                      const flow::FrameDescription& description, Bytes memory,
                                                      std::vector<std::unique_ptr<FrameSink>>& sinks) {
  WARPLINE_TRY(IngestParts made, make_ingest_parts(parts, settings));
  handoff::GpuEngineSetup setup = gpu_consumer_setup(parts, made);
  const handoff::EngineView& ring = made.ring->engine_view();
  auto frames = GpuFrames::create(
      description, memory, {.gpu = setup.gpu, .batch = ring.segments_per_slot, .first_sequence = ring.first_sequence});
  if (!frames) return too_small_for_frames(std::move(frames).error());
  const AssembleOnGpu work = (*frames)->work();
  sinks.push_back(*std::move(frames));
  setup.ctas = 1;
  setup.burst = static_cast<std::uint16_t>(flow::kFrameThreads);
  setup.threads = flow::kFrameThreads;
  setup.failover = false;
  return make_consuming<handoff::GpuEngine<AssembleOnGpu>>(std::move(made), work, std::move(setup));
}

/// The stages of a path whose frames in GPU memory are made on a stream, by `make(Place)`.
template <typename F>
Result<std::unique_ptr<IngestStages>> assemble_on_stream(const forward::StageParts& parts,
                                                         const IngestSettings& settings, F&& make,
                                                         std::vector<std::unique_ptr<FrameSink>>& sinks) {
  WARPLINE_TRY(IngestParts made, make_ingest_parts(parts, settings, true));
  StreamEngineSetup setup = stream_setup(parts, made);
  const handoff::EngineView& ring = made.ring->engine_view();
  Result<std::unique_ptr<StreamFrames>> frames = make(StreamFrames::Place{.gpu = setup.gpu,
                                                                          .path = setup.path,
                                                                          .batch = ring.segments_per_slot,
                                                                          .slots = made.ring->slots(),
                                                                          .first_sequence = ring.first_sequence,
                                                                          .watchdog = setup.watchdog,
                                                                          .timeout = settings.frame_timeout});
  if (!frames) return too_small_for_frames(std::move(frames).error());
  const BatchWork work{.consumer = nullptr, .assembly = frames->get()};
  sinks.push_back(*std::move(frames));
  return make_consuming<StreamEngine>(std::move(made), work, std::move(setup));
}
#endif

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

forward::StageMaker IngestPaths::batching(GpuBatchConsumer& consumer) {
  return [this, &consumer](const forward::StageParts& parts) -> Result<std::unique_ptr<datapath::PathStages>> {
    WARPLINE_TRY(IngestParts made, make_ingest_parts(parts, settings_, true));
    StreamEngineSetup setup = stream_setup(parts, made);
    return keep(make_consuming<StreamEngine>(std::move(made), BatchWork{&consumer}, std::move(setup)));
  };
}

forward::StageMaker IngestPaths::assembling() {
  return [this](const forward::StageParts& parts) { return keep(assemble(parts, nullptr)); };
}

forward::StageMaker IngestPaths::framing(FrameConsumer& consumer) {
  return [this, &consumer](const forward::StageParts& parts) { return keep(assemble(parts, &consumer)); };
}

forward::StageMaker IngestPaths::keeping(std::shared_ptr<FrameInbox> inbox) {
  return [this,
          inbox = std::move(inbox)](const forward::StageParts& parts) -> Result<std::unique_ptr<datapath::PathStages>> {
    WARPLINE_TRY(const flow::FrameDescription description, flow::parse_frame_description(settings_.frame));
    const Bytes memory = share_of_budget(settings_, parts.layout.paths.size()).frames;
    if (runs_on_gpu(parts.settings.forward.engine)) {
#if WARPLINE_DEVICE_CODE
      return keep(assemble_on_stream(
          parts, settings_,
          [&](const StreamFrames::Place& place) {
            return StreamFrames::create_kept(description, memory, place, inbox);
          },
          frames_));
#else
      return gpu::built_without_cuda("frames in GPU memory");
#endif
    }
    auto frames = KeepingFrames::create(description, memory, inbox, parts.index, settings_.frame_timeout);
    if (!frames) return too_small_for_frames(std::move(frames).error());
    const KeepOnHost work{frames->get()};
    frames_.push_back(*std::move(frames));
    return keep(consume_on_host(parts, settings_, work));
  };
}

Result<std::unique_ptr<IngestStages>> IngestPaths::assemble(const forward::StageParts& parts, FrameConsumer* consumer) {
  WARPLINE_TRY(const flow::FrameDescription description, flow::parse_frame_description(settings_.frame));
  const Bytes memory = share_of_budget(settings_, parts.layout.paths.size()).frames;
  if (runs_on_gpu(parts.settings.forward.engine)) {
#if WARPLINE_DEVICE_CODE
    if (consumer != nullptr) {
      return assemble_on_stream(
          parts, settings_,
          [&](const StreamFrames::Place& place) { return StreamFrames::create(description, memory, place, *consumer); },
          frames_);
    }
    return assemble_on_gpu(parts, settings_, description, memory, frames_);
#else
    return gpu::built_without_cuda("frames in GPU memory");
#endif
  }
  auto frames = HostFrames::create(description, memory, consumer, parts.index, settings_.frame_timeout);
  if (!frames) return too_small_for_frames(std::move(frames).error());
  const AssembleOnHost work{frames->get()};
  frames_.push_back(*std::move(frames));
  auto made = consume_on_host(parts, settings_, work);
  if (made) (*made)->watch(*frames_.back());
  return made;
}

Result<std::optional<FrameTotals>> IngestPaths::end_frames() {
  if (frames_.empty()) return std::optional<FrameTotals>{};
  FrameTotals sum;
  for (const auto& sink : frames_) {
    WARPLINE_TRY(const FrameTotals totals, sink->end());
    sum.merge(totals);
  }
  return std::optional(sum);
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
  for (const auto& sink : frames_) totals.gpu_memory.value += sink->gpu_bytes().value;
  for (const Held& held : patterns_) totals.gpu_memory.value += held.memory->gpu_bytes().value;
  totals.submit.calls = totals.copies;
  totals.batching = LatencyTotals::of(batching);
  totals.gpu = LatencyTotals::of(gpu);
  totals.sending = LatencyTotals::of(sending);
  return totals;
}

}  // namespace warpline::ingest
