// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "warpline/datapath/path_stages.h"
#include "warpline/datapath/queues/post_stage.h"
#include "warpline/datapath/queues/send_stage.h"
#include "warpline/handoff/queues/queue_engine.h"

namespace warpline::datapath {

/// `QueueStages` are the stages of a path with GPU-driven I/O: the two halves of the proxy, and the engine that
/// consumes their queues.
template <handoff::QueueEngine E, handoff::PacketWork Work>
class QueueStages final : public PathStages {
 public:
  /// `most`: slots in use at most. The engine is made of the queues, the work and `arguments`.
  template <typename... EngineArguments>
  QueueStages(QueuePath& path, PacketBudget& budget, std::unique_ptr<queues::PacketQueues> queues, std::uint32_t most,
              const Work& work, EngineArguments&&... arguments)
      : queues_(std::move(queues)),
        engine_(*queues_, work, std::forward<EngineArguments>(arguments)...),
        post_(path, budget, *queues_, most),
        send_(path, *queues_) {}

  Result<void> prepare() override { return engine_.prepare(); }
  Result<void> start() override { return engine_.start(); }
  void finish() override {
    engine_.stop(kEnginePatience);
    send_.reclaim();
  }
  Stage* receiving() override { return &post_; }
  Stage* transmitting() override { return &send_; }
  [[nodiscard]] std::optional<Error> failure() const override { return engine_.failure(); }
  [[nodiscard]] std::vector<const handoff::LaneCounters*> lanes() const override { return lanes_of(engine_); }
  [[nodiscard]] std::vector<const TurnCount*> turns() const override { return turns_of(engine_); }
  [[nodiscard]] std::optional<workload::FrameTally> tally() const override { return tally_of_states<Work>(engine_); }

 private:
  std::unique_ptr<queues::PacketQueues> queues_;
  E engine_;
  PostStage post_;
  SendStage send_;
};

}  // namespace warpline::datapath
