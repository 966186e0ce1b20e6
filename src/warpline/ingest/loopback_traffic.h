// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "warpline/base/result.h"
#include "warpline/forward/far_side.h"
#include "warpline/ingest/ingest_paths.h"
#include "warpline/traffic/traffic.h"
#include "warpline/traffic/traffic_group.h"
#include "warpline/traffic/traffic_settings.h"
#include "warpline/traffic/traffic_worker.h"

namespace warpline::ingest {

/// What the far side of an ingest run's loopback sends.
struct LoopbackSettings {
  traffic::TrafficSettings traffic{};
  std::uint64_t packets = 0;  ///< of all pipelines; 0: no bound
  std::uint64_t warmup = 0;   ///< packets before measuring begins
  std::uint64_t seed = 1;
  std::uint16_t pipelines = 1;
  bool lossy = false;    ///< frames are lost on the wire on purpose
  bool returns = false;  ///< packets that the consumer passes come back, and are checked
};

/// The generator on the far side of an ingest run's loopback. Without a rate it keeps no more frames on their way than
/// fit, so that none is lost, however slow the consumer is.
class LoopbackTraffic final : public forward::FarSide {
 public:
  /// `paths` receive what it sends, and outlive it.
  [[nodiscard]] static Result<std::unique_ptr<LoopbackTraffic>> make(const LoopbackSettings& settings,
                                                                     const IngestPaths& paths);

  [[nodiscard]] std::uint32_t max_frame() const override { return plan_.max_frame_bytes(); }
  [[nodiscard]] std::uint16_t burst() const override { return settings_.traffic.burst; }
  [[nodiscard]] Result<void> prepare(const forward::ForwardPorts& ports, const forward::Forwarder& forwarder,
                                     const datapath::ForwardLayout& layout, const runtime::LcorePlan& plan) override;
  void run(std::size_t role) override { workers_[role]->run(); }
  void stop(bool hurried) override;
  [[nodiscard]] bool done() const override { return group_ && group_->done(); }

  /// What was sent and checked. After prepare().
  [[nodiscard]] const traffic::TrafficGroup& group() const { return *group_; }

 private:
  LoopbackTraffic(const LoopbackSettings& settings, traffic::TrafficPlan plan, const IngestPaths& paths)
      : settings_(settings), plan_(std::move(plan)), paths_(paths) {}

  LoopbackSettings settings_;
  traffic::TrafficPlan plan_;
  const IngestPaths& paths_;
  std::optional<traffic::TrafficGroup> group_;
  std::vector<std::unique_ptr<traffic::TrafficWorker>> workers_;  ///< by their role; null: another's
};

}  // namespace warpline::ingest
