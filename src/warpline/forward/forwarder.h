// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "warpline/base/address.h"
#include "warpline/base/result.h"
#include "warpline/datapath/forward_settings.h"
#include "warpline/datapath/layout.h"
#include "warpline/datapath/path_stages.h"
#include "warpline/datapath/queue_path.h"
#include "warpline/forward/make_stages.h"
#include "warpline/memory/recycle_setup.h"

namespace warpline::forward {

/// A started port, as the forwarder needs to know it.
struct ForwardPort {
  std::uint16_t id{};                         ///< of the ethdev, as DPDK numbers them
  std::uint16_t mtu{};                        ///< bytes of layer-3 packet
  MacAddress mac{};                           ///< its own
  std::optional<InterfaceAddress> address{};  ///< set: ARP, ND and echo for it are answered
  packet::AddressWatch* watch = nullptr;      ///< of `address`, if anybody looks for conflicts
};

/// All paths between the ports of one `forward` run. Control thread: create, prepare, start, launch run() on every
/// role's lcore, stop(), wait for the lcores, finish(), read the totals.
class Forwarder {
 public:
  /// `ports` in the order of the layout. `make_stages`: such as stages_with() for work of one's own; null: the
  /// workload and the engine that `settings` name. `layout` and `plan` outlive the forwarder.
  [[nodiscard]] static Result<std::unique_ptr<Forwarder>> create(const datapath::DatapathSettings& settings,
                                                                 const datapath::ForwardLayout& layout,
                                                                 const runtime::LcorePlan& plan,
                                                                 const std::vector<ForwardPort>& ports,
                                                                 const StageMaker& make_stages = nullptr);

  /// Before start(): what layout.roles recycle with, which must outlive the paths.
  void recycle_with(const memory::Recycling& recycling);

  Forwarder(const Forwarder&) = delete;
  Forwarder& operator=(const Forwarder&) = delete;
  /// All engines end before the memory of any is given back, which waits for every kernel on its GPU.
  ~Forwarder();

  /// Prepares the engines; then start(), when all else that is to run on their GPUs is prepared.
  [[nodiscard]] Result<void> prepare();
  /// Starts the engines. After prepare(), before any run().
  [[nodiscard]] Result<void> start();
  /// What the worker of layout.roles[role] does until stopped and drained. Returns at once for roles that are not the
  /// forwarder's.
  void run(std::size_t role);
  /// Receive nothing more, pass on what is there.
  void stop() { control_.stop.store(true, std::memory_order_relaxed); }
  /// Leave what is stuck: the drain has taken too long.
  void abandon() { control_.abandon.store(true, std::memory_order_relaxed); }
  /// After all run() have returned. More than once does no more.
  void finish();
  /// Why an engine works no more, if one has failed. Any thread.
  [[nodiscard]] std::optional<Error> failure() const;

  /// Where packets come from and go to, with counters that any thread may read; in the order of layout.paths.
  [[nodiscard]] const std::vector<std::unique_ptr<datapath::QueuePath>>& paths() const { return paths_; }
  /// What the paths' packets pass, with the counters of engines; in the order of layout.paths.
  [[nodiscard]] const std::vector<std::unique_ptr<datapath::PathStages>>& stages() const { return stages_; }
  /// Buffers that were received into again without their pool; unset where nothing can be recycled so.
  [[nodiscard]] std::optional<std::uint64_t> recycled() const;
  /// Turns of all threads that packets pass: one for each of layout.roles, and those of the engines' lanes.
  [[nodiscard]] std::vector<const TurnCount*> turns() const;
  /// Returns how many packets all paths have received. Any thread.
  [[nodiscard]] std::uint64_t received() const;

 private:
  struct alignas(64) RoleTurns {
    TurnCount count;
  };

  Forwarder(const datapath::DatapathSettings& settings, const datapath::ForwardLayout& layout,
            const runtime::LcorePlan& plan);
  /// What the worker of layout.roles[role] polls; nothing if the role is not the forwarder's.
  [[nodiscard]] std::vector<datapath::Stage*> stages_of(std::size_t role) const;

  const datapath::ForwardLayout& layout_;
  const runtime::LcorePlan& plan_;
  datapath::PacketBudget budget_;
  datapath::StageControl control_;
  std::vector<RoleTurns> turns_;  ///< one for each of layout.roles
  std::vector<std::unique_ptr<datapath::QueuePath>> paths_;
  std::vector<std::unique_ptr<datapath::PathStages>> stages_;
  const memory::Recycling* recycling_ = nullptr;
};

}  // namespace warpline::forward
