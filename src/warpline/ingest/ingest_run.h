// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

#include "warpline/base/result.h"
#include "warpline/base/statistics/run_totals.h"
#include "warpline/flow/frame_core.h"
#include "warpline/forward/forward_run.h"
#include "warpline/ingest/frames/frame_consumer.h"
#include "warpline/ingest/ingest_paths.h"
#include "warpline/ingest/kept/frame_inbox.h"

namespace warpline::ingest {

/// Receives from ports and hands every packet to a consumer of one's own, on host threads or on a GPU, with all that
/// this needs: cores are planned, DPDK is started, ports are opened. One a process, since DPDK is, or with
/// RuntimeSettings::keep one at a time. One thread makes all calls but totals().
class IngestRun {
 public:
  IngestRun(const IngestRun&) = delete;
  IngestRun& operator=(const IngestRun&) = delete;
  /// Stops as ForwardRun does. Of frames to keep, those that finish() did not hand over are gone.
  ~IngestRun();

  /// Receives from `settings.ports` from here on; each path's engine gets a copy of `consumer`. The engine of
  /// `settings.forward` is inline or thread. Usage and environment errors say what to change.
  template <Consumer Work>
  [[nodiscard]] static Result<std::unique_ptr<IngestRun>> start(datapath::DatapathSettings settings,
                                                                const IngestSettings& ingest, const Work& consumer,
                                                                const runtime::RuntimeSettings& runtime = {}) {
    std::unique_ptr<IngestRun> run(new IngestRun(ingest));
    WARPLINE_CHECK(prepare(settings, ingest));
    WARPLINE_CHECK(run->begin(settings, runtime, run->paths_.consuming(consumer)));
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
    WARPLINE_CHECK(run->begin(settings, runtime, run->paths_.consuming_anywhere(consumer)));
    return run;
  }

  /// The same for work of one's own on a CUDA stream, batch by batch in GPU memory or, of a path that lends, pinned
  /// memory. `consumer` outlives the run; settings.forward.engine is not read, and ingest.engine is unset or launch. A
  /// machine without a GPU is an environment error.
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

  /// Puts packets into frames, as IngestSettings::frame says, and these into `inbox`, whose consumer keeps them as long
  /// as it likes: in host memory if the engine of `settings.forward` is inline or thread, in that of a GPU if it is
  /// launch. With `settings.forward.loopback` the packets are those of `loopback`, whose `taken` is the run's own. What
  /// loses nothing on its way waits for the consumer however long that takes: `loopback->drain` is of the others.
  [[nodiscard]] static Result<std::unique_ptr<IngestRun>> start_kept_frames(
      datapath::DatapathSettings settings, const IngestSettings& ingest, std::shared_ptr<FrameInbox> inbox,
      const runtime::RuntimeSettings& runtime = {}, std::optional<forward::LoopbackSettings> loopback = {});

  /// Returns once `stop` is set or settings.packets have been received, and what was in hand was consumed: of frames
  /// also those that are not complete. Once.
  [[nodiscard]] Result<void> run(const std::atomic<bool>& stop);

  // The parts of run(), for a control loop of one's own, as ForwardRun has them.

  [[nodiscard]] bool look() { return forward_->look(); }
  void stop(bool hurried = false) { forward_->stop(hurried); }
  [[nodiscard]] Result<void> finish();

  /// What all ports received, the consumer took and was dropped why. Any thread; exact after run().
  [[nodiscard]] RunTotals totals() const;
  /// What the copies of the consumer counted, if it counts. After run().
  [[nodiscard]] std::optional<ConsumerTally> consumed() const { return paths_.consumed(); }
  /// What became of packets and frames, if there were any and all of them could be handed over. After run().
  [[nodiscard]] std::optional<flow::AssemblerCounts> frames() const {
    return frame_totals_ ? std::optional(frame_totals_->counts) : std::nullopt;
  }
  /// The same with the time that frames were open.
  [[nodiscard]] const std::optional<FrameTotals>& frame_totals() const { return frame_totals_; }

  // What a report is made of.

  [[nodiscard]] const forward::ForwardRun& forwarding() const { return *forward_; }
  [[nodiscard]] const IngestPaths& paths() const { return paths_; }
  /// What the far side of a loopback sent; nullptr without one.
  [[nodiscard]] const traffic::TrafficGroup* far() const {
    return forward_->far() ? &forward_->far()->group() : nullptr;
  }

 private:
  explicit IngestRun(const IngestSettings& settings) : transmits_(settings.transmit), paths_(settings) {}
  /// Decides what resolve() does. Usage error: `ingest` describes frames, and the consumer does not take them.
  [[nodiscard]] static Result<void> prepare(datapath::DatapathSettings& settings, const IngestSettings& ingest,
                                            bool frames = false);
  /// Starts forwarding. Environment error when there is no GPU for the engine.
  [[nodiscard]] Result<void> begin(const datapath::DatapathSettings& settings, const runtime::RuntimeSettings& runtime,
                                   const forward::StageMaker& make_stages,
                                   std::optional<forward::LoopbackSettings> loopback = {});

  [[nodiscard]] Result<void> end();

  bool transmits_;
  std::shared_ptr<FrameInbox> inbox_;  ///< of kept frames
  IngestPaths paths_;
  std::optional<FrameTotals> frame_totals_;
  bool ended_ = false;
  std::unique_ptr<forward::ForwardRun> forward_;
};

}  // namespace warpline::ingest
