// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "warpline/base/statistics/turn_count.h"
#include "warpline/datapath/adaptive_bursts.h"
#include "warpline/datapath/receive_stage.h"
#include "warpline/datapath/run_to_completion.h"
#include "warpline/datapath/transmit_stage.h"
#include "warpline/handoff/inline_engine.h"
#include "warpline/handoff/thread_engine.h"
#include "warpline/workload/count.h"
#include "warpline/workload/workload.h"

namespace warpline::datapath {

/// The stages that one path's packets pass, and the engine between them, whatever their types. Set up and ended by
/// the control thread; the stages belong to the lcores that run them.
class PathStages {
 public:
  virtual ~PathStages() = default;
  /// Engine::prepare() and Engine::start().
  [[nodiscard]] virtual Result<void> prepare() { return {}; }
  [[nodiscard]] virtual Result<void> start() { return {}; }
  /// After all lcores have ended: stops the engine and accounts for what it did not give back.
  virtual void finish() {}
  [[nodiscard]] virtual Stage* receiving() = 0;
  /// Null when the receiving stage transmits too.
  [[nodiscard]] virtual Stage* transmitting() { return nullptr; }
  /// Why the engine works no more, if it has failed. Any thread.
  [[nodiscard]] virtual std::optional<Error> failure() const { return std::nullopt; }
  /// Returns the counters of the engine's lanes, if the engine has threads of its own; else nothing.
  [[nodiscard]] virtual std::vector<const handoff::LaneCounters*> lanes() const { return {}; }
  /// Returns the turns of the engine's threads, if it has threads of its own; else nothing. From the beginning on.
  [[nodiscard]] virtual std::vector<const TurnCount*> turns() const { return {}; }
  /// What a counting workload counted; nothing for the others. After finish().
  [[nodiscard]] virtual std::optional<workload::FrameTally> tally() const = 0;
};

/// The tally in a functor that keeps one.
template <typename Work>
std::optional<workload::FrameTally> tally_of(const Work& work) {
  if constexpr (requires { work.work().tally(); }) {
    return work.work().tally();
  } else {
    return std::nullopt;
  }
}

/// The tallies in all copies of the functor that an engine keeps, as one. After its stop().
template <typename Work, typename E>
std::optional<workload::FrameTally> tally_of_states(const E& engine) {
  std::optional<workload::FrameTally> sum;
  engine.for_each_worker_state([&sum](const Work& work) {
    const std::optional<workload::FrameTally> tally = tally_of(work);
    if (sum && tally) {
      sum->merge(*tally);
    } else {
      sum = tally;
    }
  });
  return sum;
}

/// Returns the counters of all lanes of an engine.
template <typename E>
std::vector<const handoff::LaneCounters*> lanes_of(const E& engine) {
  std::vector<const handoff::LaneCounters*> all;
  for (std::uint32_t lane = 0; lane < engine.lanes(); ++lane) all.push_back(&engine.counters(lane));
  return all;
}

/// Returns the turns of all threads of an engine: of a GPU's lanes that of the thread beside them, which launches.
template <typename E>
std::vector<const TurnCount*> turns_of(const E& engine) {
  if constexpr (requires { engine.attendant_turns(); }) {
    return engine.attendant_turns();
  } else {
    std::vector<const TurnCount*> all;
    for (const handoff::LaneCounters* const lane : lanes_of(engine)) all.push_back(&lane->turns);
    return all;
  }
}

/// How long an engine may take for what it still has when the run ends.
inline constexpr Nanos kEnginePatience{1'000'000'000};

/// Receive, work and transmit in one stage.
template <handoff::PacketWork Work>
class DirectStages final : public PathStages {
 public:
  DirectStages(QueuePath& path, PacketBudget& budget, const Work& work) : stage_(path, budget, work) {}
  Stage* receiving() override { return &stage_; }
  [[nodiscard]] std::optional<workload::FrameTally> tally() const override { return tally_of(stage_.work()); }

 private:
  RunToCompletion<Work> stage_;
};

/// Receive, engine and transmit with a burst ring between them.
template <handoff::Engine E, handoff::PacketWork Work>
class RingStages final : public PathStages {
 public:
  template <typename... EngineArguments>
  RingStages(QueuePath& path, PacketBudget& budget, std::unique_ptr<handoff::BurstRing> ring, const Work& work,
             EngineArguments&&... arguments)
      : ring_(std::move(ring)),
        engine_(*ring_, work, std::forward<EngineArguments>(arguments)...),
        transmit_(path, *ring_) {
    if (path.adapts) {
      receive_ = std::make_unique<ReceiveStage<E, AdaptiveBursts>>(
          path, budget, *ring_, engine_, AdaptiveBursts(*ring_, path.burst, path.deadline_ticks));
    } else {
      receive_ = std::make_unique<ReceiveStage<E>>(path, budget, *ring_, engine_);
    }
  }

  Result<void> prepare() override { return engine_.prepare(); }
  Result<void> start() override { return engine_.start(); }
  void finish() override {
    engine_.stop(kEnginePatience);
    transmit_.reclaim();
  }
  Stage* receiving() override { return receive_.get(); }
  Stage* transmitting() override { return &transmit_; }
  [[nodiscard]] std::optional<Error> failure() const override { return engine_.failure(); }
  [[nodiscard]] std::vector<const handoff::LaneCounters*> lanes() const override { return lanes_of(engine_); }
  [[nodiscard]] std::vector<const TurnCount*> turns() const override { return turns_of(engine_); }
  [[nodiscard]] std::optional<workload::FrameTally> tally() const override { return tally_of_states<Work>(engine_); }

 private:
  std::unique_ptr<handoff::BurstRing> ring_;
  E engine_;
  std::unique_ptr<Stage> receive_;
  TransmitStage transmit_;
};

}  // namespace warpline::datapath
