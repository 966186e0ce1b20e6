// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <optional>

#include "warpline/base/result.h"
#include "warpline/base/statistics/run_totals.h"
#include "warpline/forward/forward_run.h"
#include "warpline/ingest/ingest_paths.h"

namespace warpline::ingest {

/// Receives from ports and hands every packet to a consumer of one's own on host threads, with all that this needs:
/// cores are planned, DPDK is started, ports are opened. One a process, since DPDK is. One thread makes all calls but
/// totals().
class IngestRun {
 public:
  /// Receives from `settings.ports` from here on; each path's engine gets a copy of `consumer`. The engine of
  /// `settings.forward` is inline or thread. Usage and environment errors say what to change.
  template <Consumer Work>
  [[nodiscard]] static Result<std::unique_ptr<IngestRun>> start(datapath::DatapathSettings settings,
                                                                const IngestSettings& ingest, const Work& consumer,
                                                                const runtime::RuntimeSettings& runtime = {}) {
    std::unique_ptr<IngestRun> run(new IngestRun(ingest));
    prepare(settings, ingest);
    WARPLINE_TRY(run->forward_, forward::ForwardRun::start(settings, runtime, run->paths_.consuming(consumer)));
    return run;
  }

  /// Returns once `stop` is set or settings.packets have been received, and what was in hand was consumed.
  [[nodiscard]] Result<void> run(const std::atomic<bool>& stop) { return forward_->run(stop); }

  /// What all ports received, the consumer took and was dropped why. Any thread; exact after run().
  [[nodiscard]] RunTotals totals() const;
  /// What the copies of the consumer counted, if it counts. After run().
  [[nodiscard]] std::optional<ConsumerTally> consumed() const { return paths_.consumed(); }

 private:
  explicit IngestRun(const IngestSettings& settings) : transmits_(settings.transmit), paths_(settings) {}
  /// Sets what an ingest path needs of the datapath.
  static void prepare(datapath::DatapathSettings& settings, const IngestSettings& ingest);

  bool transmits_;
  IngestPaths paths_;
  std::unique_ptr<forward::ForwardRun> forward_;
};

}  // namespace warpline::ingest
