// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "warpline/base/result.h"
#include "warpline/base/units.h"
#include "warpline/datapath/layout.h"
#include "warpline/forward/forward_ports.h"
#include "warpline/forward/forwarder.h"
#include "warpline/runtime/lcore_plan.h"
#include "warpline/traffic/traffic.h"
#include "warpline/traffic/traffic_group.h"
#include "warpline/traffic/traffic_worker.h"

namespace warpline::forward {

/// What the far side of a loopback sends, and what it expects of it.
struct LoopbackSettings {
  traffic::TrafficPlan plan;
  Rate rate{};                                          ///< of all pipelines together; unset: as fast as it can
  std::uint16_t burst = 64;                             ///< frames sent at once, at most
  std::uint64_t warmup = 0;                             ///< packets whose latency does not count
  traffic::MacRule macs = traffic::MacRule::unchanged;  ///< how frames come back
  bool closed_loop = true;   ///< it keeps no more frames on their way than the ports have room for
  Nanos drain{200'000'000};  ///< how long nothing comes before the last frames count as missing
  /// Set where frames end at a consumer and do not come back: the packets that it has taken. Any thread.
  std::function<std::uint64_t()> taken = {};
};

/// The generator and checker on the far side of a loopback's wire, which sends what a ForwardRun receives: one worker
/// for each queue pair of the far port. The run's control thread makes all calls but run().
class LoopbackTraffic {
 public:
  explicit LoopbackTraffic(LoopbackSettings settings) : settings_(std::move(settings)) {}
  LoopbackTraffic(const LoopbackTraffic&) = delete;
  LoopbackTraffic& operator=(const LoopbackTraffic&) = delete;

  /// What the ports are to have room for.
  [[nodiscard]] FarTraffic far_traffic() const {
    return {
        .max_frame = settings_.plan.max_frame_bytes(), .burst = settings_.burst, .closed_loop = settings_.closed_loop};
  }

  /// Makes the workers. The ports are open; what this is given outlives the workers' run. Usage error: frames that are
  /// to come back, on a single port whose frames the forwarder receives.
  [[nodiscard]] Result<void> prepare(const datapath::DatapathSettings& settings, const ForwardPorts& ports,
                                     const Forwarder& forwarder, const datapath::ForwardLayout& layout,
                                     const runtime::LcorePlan& plan);
  /// Does the work of this role until it is done. On that worker's lcore.
  void run(std::size_t role) { workers_[role]->run(); }
  /// Sends no more and waits for what is on its way; if `hurried`, not for long.
  void stop(bool hurried);
  /// True when all workers are done.
  [[nodiscard]] bool done() const { return group_ && group_->done(); }
  /// The rate of all pipelines together from now on.
  void set_rate(const Rate& rate);

  [[nodiscard]] bool prepared() const { return group_.has_value(); }
  /// What was sent and checked. After prepare().
  [[nodiscard]] const traffic::TrafficGroup& group() const { return *group_; }

 private:
  LoopbackSettings settings_;
  std::uint16_t pipelines_ = 1;
  std::optional<traffic::TrafficGroup> group_;
  std::vector<std::unique_ptr<traffic::TrafficWorker>> workers_;  ///< by role; null: another's
};

}  // namespace warpline::forward
