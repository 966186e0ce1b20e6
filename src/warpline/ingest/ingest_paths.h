// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "warpline/base/statistics/histogram.h"
#include "warpline/base/statistics/run_totals.h"
#include "warpline/forward/make_stages.h"
#include "warpline/ingest/batches/gpu_batch.h"
#include "warpline/ingest/consumers/consume_anywhere.h"
#include "warpline/ingest/consumers/pattern_memory.h"
#include "warpline/ingest/frames/frame_consumer.h"
#include "warpline/ingest/frames/frame_sink.h"
#include "warpline/ingest/ingest_settings.h"
#include "warpline/ingest/ingest_stages.h"
#include "warpline/ingest/kept/frame_inbox.h"
#include "warpline/traffic/traffic.h"

namespace warpline::ingest {

/// What the paths of an ingest run counted beyond a RunTotals.
struct IngestTotals {
  Tally delivered;                        ///< that the consumer took
  std::uint64_t copies = 0;               ///< batches copied
  std::uint64_t copied_bytes = 0;         ///< of these
  StageTotals submit{.name = "submit"};   ///< what it costs to queue a copy
  LatencyTotals batching;                 ///< the first packet of a batch, until the batch closes
  LatencyTotals gpu;                      ///< from a batch closed to its consumer seen done
  LatencyTotals sending;                  ///< from then to all of it given to the transmit queue
  Bytes gpu_memory;                       ///< that packets are copied into, and frames
  std::uint32_t slots = 0;                ///< batches that may be with the consumer at a time, of each path
  std::optional<ConsumerTally> consumed;  ///< what the consumer counted itself; after the run
};

/// The stages of all paths of one ingest run, made while a Forwarder is created with one of the makers. The control
/// thread makes and asks; the Forwarder that owns the stages and this object go together.
class IngestPaths {
 public:
  explicit IngestPaths(const IngestSettings& settings) : settings_(settings) {}
  IngestPaths(const IngestPaths&) = delete;
  IngestPaths& operator=(const IngestPaths&) = delete;

  /// What the built-in consumers check. `plan` outlives the makers' use; unset options.gpu: worked out per path.
  [[nodiscard]] forward::StageMaker verifying(const traffic::TrafficPlan& plan, const PatternMemory::Options& options);
  [[nodiscard]] forward::StageMaker summing();
  /// UserConsumer of the header that the build names.
  [[nodiscard]] forward::StageMaker user();
  /// Frames as settings().frame, a valid description, says: in host memory by one thread per path, or in the memory of
  /// the path's GPU, by one CTA at a time.
  [[nodiscard]] forward::StageMaker assembling();
  /// A consumer of one's own, on host threads.
  template <Consumer Work>
  [[nodiscard]] forward::StageMaker consuming(const Work& work) {
    return [this, work](const forward::StageParts& parts) { return keep(consume_on_host(parts, settings_, work)); };
  }

  /// A consumer of one's own, by any engine; on a GPU by the kernels that a .cu file of the program defines for it with
  /// WARPLINE_DEVICE_WORK.
  template <Consumer Work>
  [[nodiscard]] forward::StageMaker consuming_anywhere(const Work& work) {
    return [this, work](const forward::StageParts& parts) { return keep(consume_anywhere(parts, settings_, work)); };
  }
  /// Frames as assembling() has them for a consumer of one's own, in host memory or, with an engine on a GPU, for work
  /// on a stream. `consumer` outlives the stages.
  [[nodiscard]] forward::StageMaker framing(FrameConsumer& consumer);
  /// Frames as assembling() has them for a consumer that keeps them as long as it likes.
  [[nodiscard]] forward::StageMaker keeping(std::shared_ptr<FrameInbox> inbox);
  /// Kernels of one's own for each batch in GPU memory. `consumer` outlives the stages.
  [[nodiscard]] forward::StageMaker batching(GpuBatchConsumer& consumer);

  [[nodiscard]] const IngestSettings& settings() const { return settings_; }
  /// While the stages live. Exact after the run.
  [[nodiscard]] IngestTotals totals(const std::vector<std::unique_ptr<datapath::QueuePath>>& paths) const;
  [[nodiscard]] Tally delivered() const;
  /// Hands over what is not complete and returns what became of packets and frames, if there are any. Once, after the
  /// run. The environment error of a GPU that failed.
  [[nodiscard]] Result<std::optional<FrameTotals>> end_frames();
  /// The consumers' own counts, once the engines have ended.
  [[nodiscard]] std::optional<ConsumerTally> consumed() const;

 private:
  [[nodiscard]] Result<std::unique_ptr<datapath::PathStages>> keep(Result<std::unique_ptr<IngestStages>> made);
  [[nodiscard]] Result<std::unique_ptr<IngestStages>> assemble(const forward::StageParts& parts,
                                                               FrameConsumer* consumer);
  /// The memory that the path's engine compares with, made when it is first asked for.
  [[nodiscard]] Result<const PatternSource*> source_for(const forward::StageParts& parts,
                                                        const traffic::TrafficPlan& plan,
                                                        PatternMemory::Options options);

  struct Held {
    std::optional<int> gpu;
    std::unique_ptr<PatternMemory> memory;
  };

  IngestSettings settings_;
  std::vector<Held> patterns_;
  std::vector<std::unique_ptr<FrameSink>> frames_;
  std::vector<IngestStages*> stages_;
};

}  // namespace warpline::ingest
