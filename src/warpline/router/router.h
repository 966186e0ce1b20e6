// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "warpline/base/result.h"
#include "warpline/datapath/layout.h"
#include "warpline/datapath/queue_path.h"
#include "warpline/datapath/recycle_plan.h"
#include "warpline/datapath/stage_loop.h"
#include "warpline/route/neighbours.h"
#include "warpline/route/route_set.h"
#include "warpline/router/route_lcore.h"
#include "warpline/router/router_settings.h"

namespace warpline {

/// Memory of DPDK's that the tables of `set` take, and those that replace them. For Eal::start.
[[nodiscard]] Bytes route_memory(LookupKind lookup, const RouteSet& set);

/// Everything that routes in one `l3forward` run. Control thread: create, launch run() on every role's lcore, tend()
/// again and again, reload() if asked to, stop(), wait for the lcores, read the totals.
class Router {
 public:
  /// Neighbours, gateways included, that the router can know.
  static constexpr std::uint32_t kNeighbours = 65'536;

  /// `ports` in the order of the layout. `layout` and `plan` outlive the router.
  [[nodiscard]] static Result<std::unique_ptr<Router>> create(const DatapathSettings& settings,
                                                              const RouterSettings& routing,
                                                              const ForwardLayout& layout, const LcorePlan& plan,
                                                              std::vector<RoutePort> ports, RouteSet routes);
  virtual ~Router() = default;
  Router(const Router&) = delete;
  Router& operator=(const Router&) = delete;

  /// Before the lcores start.
  void recycle_with(const Recycling& recycling);

  /// What the worker of layout.roles[role] does until stopped and drained.
  virtual void run(std::size_t role) = 0;
  void stop() { control_.stop.store(true, std::memory_order_relaxed); }

  /// Reads the route file again and, if all of it is good, puts its tables in the place of the old ones, while packets
  /// flow.
  [[nodiscard]] Result<void> reload();
  /// Lets neighbours age and frees tables that no lcore uses any more. Cheap when there is nothing to do.
  void tend();

  [[nodiscard]] const std::vector<std::unique_ptr<QueuePath>>& paths() const { return paths_; }
  [[nodiscard]] const std::vector<std::unique_ptr<RouteLcore>>& lcores() const { return lcores_; }
  [[nodiscard]] const NeighbourTable& neighbours() const { return neighbours_; }
  [[nodiscard]] std::optional<std::uint64_t> recycled() const;
  [[nodiscard]] std::uint64_t received() const;
  /// Returns the number of routes in the file in force.
  [[nodiscard]] std::size_t routes() const { return routes_; }
  [[nodiscard]] std::uint32_t reloads() const { return reloads_; }
  [[nodiscard]] std::uint32_t refused_reloads() const { return refused_; }
  /// Old tables that some lcore may still use.
  [[nodiscard]] virtual bool switching() const = 0;

 protected:
  Router(const DatapathSettings& settings, const RouterSettings& routing, const ForwardLayout& layout,
         const LcorePlan& plan, std::vector<RoutePort> ports);

  /// Makes tables of `set` and publishes them.
  [[nodiscard]] virtual Result<void> install(const RouteSet& set) = 0;
  virtual void free_old() = 0;
  /// The hops of `set` with their neighbours, which stay known until let_go().
  [[nodiscard]] Result<std::vector<Hop>> hold(const RouteSet& set);
  void let_go(const std::vector<Hop>& hops);

  const RouterSettings routing_;
  const ForwardLayout& layout_;
  const LcorePlan& plan_;
  const std::vector<RoutePort> ports_;
  NeighbourTable neighbours_;
  PacketBudget budget_;
  StageControl control_;
  std::vector<std::unique_ptr<QueuePath>> paths_;    ///< as layout.paths
  std::vector<std::unique_ptr<RouteLcore>> lcores_;  ///< by pipeline

 private:
  std::size_t routes_ = 0;
  std::uint32_t reloads_ = 0;
  std::uint32_t refused_ = 0;
  std::int64_t aged_ = 0;
  const Recycling* recycling_ = nullptr;
};

}  // namespace warpline
