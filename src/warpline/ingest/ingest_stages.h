// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "warpline/datapath/path_stages.h"
#include "warpline/forward/make_stages.h"
#include "warpline/handoff/inline_engine.h"
#include "warpline/handoff/thread_engine.h"
#include "warpline/ingest/batch_slots.h"
#include "warpline/ingest/consumers/consumer.h"
#include "warpline/ingest/deliver_stage.h"
#include "warpline/ingest/frames/frame_sink.h"
#include "warpline/ingest/gather_stage.h"
#include "warpline/ingest/ingest_settings.h"

namespace warpline::ingest {

/// The stages of an ingest path, whatever engine and consumer they have.
class IngestStages : public datapath::PathStages {
 public:
  /// Any thread while the path runs.
  [[nodiscard]] const IngestCounters& counters() const { return *counters_; }
  /// Bytes of GPU memory that packets are copied into.
  [[nodiscard]] virtual Bytes gpu_bytes() const { return {}; }
  /// Batches that may be with the consumer at a time.
  [[nodiscard]] virtual std::uint32_t slots() const = 0;
  /// What the consumer counted, if it counts. After finish().
  [[nodiscard]] virtual std::optional<ConsumerTally> consumed() const = 0;

  [[nodiscard]] std::optional<workload::FrameTally> tally() const override { return std::nullopt; }

  /// What fails there is a failure of these stages. It outlives them.
  void watch(const FrameSink& frames) { frames_ = &frames; }

 protected:
  [[nodiscard]] std::optional<Error> frames_failure() const {
    return frames_ == nullptr ? std::nullopt : frames_->failure();
  }

  std::unique_ptr<IngestCounters> counters_ = std::make_unique<IngestCounters>();

 private:
  const FrameSink* frames_ = nullptr;
};

/// What the stages of one path are made from, worked out of settings.
struct IngestParts {
  const forward::StageParts& parts;
  std::unique_ptr<handoff::BurstRing> ring;
  std::unique_ptr<BatchSlots> slots;  ///< null: the consumer reads the mbufs
  GatherSettings gather;
  bool transmits = false;
  bool adaptive = false;
};

/// Makes the ring of a path and, if it copies, its slots, within its share of the budget. `pulls`: the engine copies
/// batches into GPU memory itself, as a persistent kernel does.
[[nodiscard]] Result<IngestParts> make_ingest_parts(const forward::StageParts& parts, const IngestSettings& settings,
                                                    bool pulls = false);

/// A ring between `Begin`, a receiving stage, and a DeliverStage, with an engine beside it.
template <handoff::Engine E, Consumer Work, typename Begin>
class ConsumingStages : public IngestStages {
 public:
  Result<void> prepare() override { return engine_.prepare(); }
  Result<void> start() override { return engine_.start(); }
  void finish() override {
    engine_.stop(datapath::kEnginePatience);
    deliver_.reclaim();
  }
  datapath::Stage* receiving() override { return &*begin_; }
  datapath::Stage* transmitting() override { return &deliver_; }
  [[nodiscard]] std::optional<Error> failure() const override {
    if (std::optional<Error> error = engine_.failure()) return error;
    return frames_failure();
  }
  [[nodiscard]] std::vector<const handoff::LaneCounters*> lanes() const override { return datapath::lanes_of(engine_); }
  [[nodiscard]] std::vector<const TurnCount*> turns() const override { return datapath::turns_of(engine_); }
  [[nodiscard]] std::uint32_t slots() const override { return ring_->slots(); }
  [[nodiscard]] std::optional<ConsumerTally> consumed() const override {
    std::optional<ConsumerTally> sum;
    engine_.for_each_worker_state([&sum](const Work& work) {
      const std::optional<ConsumerTally> tally = consumer_tally(work);
      if (sum && tally) {
        sum->merge(*tally);
      } else if (tally) {
        sum = tally;
      }
    });
    return sum;
  }

 protected:
  template <typename... EngineArguments>
  ConsumingStages(IngestParts& made, const Work& work, EngineArguments&&... arguments)
      : ring_(std::move(made.ring)),
        engine_(*ring_, work, std::forward<EngineArguments>(arguments)...),
        rule_({.burst = made.parts.path.burst,
               .deadline_ticks = made.parts.path.deadline_ticks,
               .adaptive = made.adaptive,
               .slots = ring_->slots(),
               .lanes = engine_.batches_at_once()}),
        deliver_(made.parts.path, *ring_, counters_->deliver, rule_, made.transmits) {
    made.parts.path.batching = &counters_->gather.batching;
  }

  std::unique_ptr<handoff::BurstRing> ring_;
  E engine_;
  BatchRule rule_;
  std::optional<Begin> begin_;
  DeliverStage deliver_;
};

/// The consumer reads the mbufs themselves.
template <handoff::Engine E, Consumer Work>
class LendingStages final : public ConsumingStages<E, Work, datapath::ReceiveStage<E, SharedRule>> {
 public:
  template <typename... EngineArguments>
  LendingStages(IngestParts made, const Work& work, EngineArguments&&... arguments)
      : ConsumingStages<E, Work, datapath::ReceiveStage<E, SharedRule>>(made, work,
                                                                        std::forward<EngineArguments>(arguments)...) {
    this->begin_.emplace(made.parts.path, made.parts.budget, *this->ring_, this->engine_, SharedRule(this->rule_));
  }
};

/// The consumer reads copies of batches.
template <handoff::Engine E, Consumer Work>
class CopyingStages final : public ConsumingStages<E, Work, GatherStage<E>> {
 public:
  template <typename... EngineArguments>
  CopyingStages(IngestParts made, const Work& work, EngineArguments&&... arguments)
      : ConsumingStages<E, Work, GatherStage<E>>(made, work, std::forward<EngineArguments>(arguments)...),
        slots_(std::move(made.slots)) {
    this->begin_.emplace(made.parts.path, made.parts.budget, *this->ring_, this->engine_, *slots_,
                         this->counters_->gather, made.gather, SharedRule(this->rule_));
  }

  void finish() override {
    ConsumingStages<E, Work, GatherStage<E>>::finish();
    this->begin_->reclaim();
  }
  [[nodiscard]] std::optional<Error> failure() const override {
    if (std::optional<Error> error = ConsumingStages<E, Work, GatherStage<E>>::failure()) return error;
    return slots_->failure();
  }
  [[nodiscard]] Bytes gpu_bytes() const override { return slots_->gpu_bytes(); }

 private:
  std::unique_ptr<BatchSlots> slots_;  ///< goes after engine and lcores have ended, whose batches lie there
};

/// Makes the stages around an engine E that is constructed from ring, work and `arguments`.
template <typename E, Consumer Work, typename... EngineArguments>
[[nodiscard]] std::unique_ptr<IngestStages> make_consuming(IngestParts made, const Work& work,
                                                           EngineArguments&&... arguments) {
  if (made.slots == nullptr) {
    return std::make_unique<LendingStages<E, Work>>(std::move(made), work, std::forward<EngineArguments>(arguments)...);
  }
  return std::make_unique<CopyingStages<E, Work>>(std::move(made), work, std::forward<EngineArguments>(arguments)...);
}

/// The stages of a path whose consumer the CPU runs: on the receiving lcore, or on threads beside it.
template <Consumer Work>
[[nodiscard]] Result<std::unique_ptr<IngestStages>> consume_on_host(const forward::StageParts& parts,
                                                                    const IngestSettings& settings, const Work& work) {
  const EngineKind engine = parts.settings.forward.engine;
  if (runs_on_gpu(engine)) {
    return usage_error(fmt::format("the {} engine", name(engine)), "this consumer was compiled for the CPU alone",
                       "use the engine inline or thread");
  }
  WARPLINE_TRY(IngestParts made, make_ingest_parts(parts, settings));
  if (engine == EngineKind::inline_) {
    return make_consuming<handoff::InlineEngine<Work>>(std::move(made), work);
  }
  return make_consuming<handoff::ThreadEngine<Work>>(std::move(made), work, parts.lanes,
                                                     fmt::format("engine{}", parts.index));
}

}  // namespace warpline::ingest
