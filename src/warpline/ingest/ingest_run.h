// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <optional>

#include "warpline/base/result.h"
#include "warpline/base/statistics/run_totals.h"
#include "warpline/flow/frame_core.h"
#include "warpline/forward/forward_run.h"
#include "warpline/ingest/frames/frame_consumer.h"
#include "warpline/ingest/ingest_paths.h"

namespace warpline::ingest {

/// Receives from ports and hands every packet to a consumer of one's own, on host threads or on a GPU, with all that
/// this needs: cores are planned, DPDK is started, ports are opened. One a process, since DPDK is. One thread makes all
/// calls but totals().
class IngestRun {
 public:
  /// Receives from `settings.ports` from here on; each path's engine gets a copy of `consumer`. The engine of
  /// `settings.forward` is inline or thread. Usage and environment errors say what to change.
  template <Consumer Work>
  [[nodiscard]] static Result<std::unique_ptr<IngestRun>> start(datapath::DatapathSettings settings,
                                                                const IngestSettings& ingest, const Work& consumer,
                                                                const runtime::RuntimeSettings& runtime = {}) {
    std::unique_ptr<IngestRun> run(new IngestRun(ingest));
    WARPLINE_CHECK(prepare(settings, ingest));
    WARPLINE_TRY(run->forward_, forward::ForwardRun::start(settings, runtime, run->paths_.consuming(consumer)));
    return run;
  }

  /// The same with any engine: on a GPU for a consumer whose kernels some .cu file of the program defines by
  /// WARPLINE_DEVICE_WORK (handoff/device_work.cuh). Such a program links the archive warpline::dataplane_static, since
  /// its kernels and the engines that launch them need the same CUDA runtime. A machine without a GPU is an environment
  /// error.
  template <Consumer Work>
  [[nodiscard]] static Result<std::unique_ptr<IngestRun>> start_anywhere(datapath::DatapathSettings settings,
                                                                         const IngestSettings& ingest,
                                                                         const Work& consumer,
                                                                         const runtime::RuntimeSettings& runtime = {}) {
    std::unique_ptr<IngestRun> run(new IngestRun(ingest));
    WARPLINE_CHECK(prepare(settings, ingest));
    WARPLINE_TRY(run->forward_,
                 forward::ForwardRun::start(settings, runtime, run->paths_.consuming_anywhere(consumer)));
    return run;
  }

  /// The same for work of one's own on a CUDA stream, batch by batch in GPU memory or, of a path that lends, pinned
  /// memory. `consumer` outlives the run; settings.forward.engine is of no account. A machine without a GPU is an
  /// environment error.
  [[nodiscard]] static Result<std::unique_ptr<IngestRun>> start_batches(datapath::DatapathSettings settings,
                                                                        const IngestSettings& ingest,
                                                                        GpuBatchConsumer& consumer,
                                                                        const runtime::RuntimeSettings& runtime = {});

  /// Puts packets into frames, as IngestSettings::frame says, for a consumer of one's own: in GPU memory, with a stream
  /// for its work, if settings.forward.engine is launch; in host memory, where the consumer is called with each frame,
  /// if it is inline or thread. `consumer` outlives the run. A machine without a GPU is an environment error for
  /// launch.
  [[nodiscard]] static Result<std::unique_ptr<IngestRun>> start_frames(datapath::DatapathSettings settings,
                                                                       const IngestSettings& ingest,
                                                                       FrameConsumer& consumer,
                                                                       const runtime::RuntimeSettings& runtime = {});

  /// Returns once `stop` is set or settings.packets have been received, and what was in hand was consumed: of frames
  /// also those that are not complete. Once.
  [[nodiscard]] Result<void> run(const std::atomic<bool>& stop);

  /// What all ports received, the consumer took and was dropped why. Any thread; exact after run().
  [[nodiscard]] RunTotals totals() const;
  /// What the copies of the consumer counted, if it counts. After run().
  [[nodiscard]] std::optional<ConsumerTally> consumed() const { return paths_.consumed(); }
  /// What became of packets and frames, if there were any and all of them could be handed over. After run().
  [[nodiscard]] std::optional<flow::AssemblerCounts> frames() const { return frames_; }

 private:
  explicit IngestRun(const IngestSettings& settings) : transmits_(settings.transmit), paths_(settings) {}
  /// Sets what an ingest path needs of the datapath. An environment error when there is no GPU for the engine.
  [[nodiscard]] static Result<void> prepare(datapath::DatapathSettings& settings, const IngestSettings& ingest,
                                            bool frames = false);

  bool transmits_;
  IngestPaths paths_;
  std::optional<flow::AssemblerCounts> frames_;
  std::unique_ptr<forward::ForwardRun> forward_;
};

}  // namespace warpline::ingest
