// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "warpline/base/result.h"
#include "warpline/base/statistics/turn_count.h"
#include "warpline/datapath/layout.h"
#include "warpline/datapath/queue_path.h"
#include "warpline/datapath/recycle_plan.h"
#include "warpline/datapath/stage_loop.h"
#include "warpline/route/neighbours.h"
#include "warpline/route/route_set.h"
#include "warpline/router/route_lcore.h"
#include "warpline/router/router_settings.h"

namespace warpline::router {

/// Memory of DPDK's that the tables of `set` take, and those that replace them. For Eal::start.
[[nodiscard]] Bytes route_memory(LookupKind lookup, const route::RouteSet& set);

/// Everything that routes in one `l3forward` run. Control thread: create, launch run() on every role's lcore, tend()
/// again and again, reload() if asked to, stop(), wait for the lcores, read the totals.
class Router {
 public:
  /// Neighbours, gateways included, that the router can know.
  static constexpr std::uint32_t kNeighbours = 65'536;

  /// `ports` in the order of the layout. `layout` and `plan` outlive the router.
  [[nodiscard]] static Result<std::unique_ptr<Router>> create(
      const datapath::DatapathSettings& settings, const RouterSettings& routing, const datapath::ForwardLayout& layout,
      const runtime::LcorePlan& plan, std::vector<RoutePort> ports, const route::RouteSet& routes);
  virtual ~Router() = default;
  Router(const Router&) = delete;
  Router& operator=(const Router&) = delete;

  /// Before the lcores start.
  void recycle_with(const memory::Recycling& recycling);

  /// What the worker of layout.roles[role] does until stopped and drained.
  virtual void run(std::size_t role) = 0;
  /// Receive nothing more, pass on what is there.
  void stop() { control_.stop.store(true, std::memory_order_relaxed); }

  /// Reads a route file, the same again or another, and, if all of it is good, puts its tables in the place of the old
  /// ones, while packets flow. Waits up to `timeout` until all lcores use the tables that the last reload made: there
  /// are never more than these and one old set.
  [[nodiscard]] Result<void> reload(const std::string& file,
                                    std::chrono::milliseconds timeout = std::chrono::seconds(5));
  /// Lets neighbours age, and notes which tables no lcore uses any more. Cheap when there is nothing to do.
  void tend();

  /// Where packets come from and go to, with counters that any thread may read; in the order of layout.paths.
  [[nodiscard]] const std::vector<std::unique_ptr<datapath::QueuePath>>& paths() const { return paths_; }
  /// What each pipeline routes with, and its counters.
  [[nodiscard]] const std::vector<std::unique_ptr<RouteLcore>>& lcores() const { return lcores_; }
  [[nodiscard]] const route::NeighbourTable& neighbours() const { return neighbours_; }  ///< of all ports
  /// Buffers that were received into again without their pool; unset where nothing can be recycled so.
  [[nodiscard]] std::optional<std::uint64_t> recycled() const;
  [[nodiscard]] std::uint64_t received() const;  ///< packets, by all paths together
  /// Returns the turns of the lcores, one for each of layout.roles.
  [[nodiscard]] std::vector<const TurnCount*> turns() const;
  /// Returns the number of routes in the file in force.
  [[nodiscard]] std::size_t routes() const { return routes_; }
  [[nodiscard]] std::uint32_t reloads() const { return reloads_; }  ///< times that reload() put new tables in place
  /// Times that reload() left the old ones in place.
  [[nodiscard]] std::uint32_t refused_reloads() const { return refused_; }
  /// Old tables that some lcore may still use.
  [[nodiscard]] virtual bool switching() const = 0;

 protected:
  /// Makes everything but the tables. `layout` and `plan` outlive the router.
  Router(const datapath::DatapathSettings& settings, const RouterSettings& routing,
         const datapath::ForwardLayout& layout, const runtime::LcorePlan& plan, std::vector<RoutePort> ports);

  /// Makes tables of `set` and publishes them.
  [[nodiscard]] virtual Result<void> install(const route::RouteSet& set) = 0;
  virtual void free_old() = 0;  ///< sets tables aside that no lcore uses any more: the next ones are made of them
  /// The hops of `set` with their neighbours, which stay known until let_go().
  [[nodiscard]] Result<std::vector<Hop>> hold(const route::RouteSet& set);
  /// Ends what hold() began: neighbours that are only gateways of these hops may be forgotten.
  void let_go(const std::vector<Hop>& hops);

  const RouterSettings routing_;           ///< as given to create()
  const datapath::ForwardLayout& layout_;  ///< as given to create()
  const runtime::LcorePlan& plan_;         ///< as given to create()
  const std::vector<RoutePort> ports_;     ///< in the order of the layout
  route::NeighbourTable neighbours_;       ///< shared by all lcores
  datapath::PacketBudget budget_;          ///< packets that all lcores may receive together
  datapath::StageControl control_;         ///< told to all lcores' loops
  struct alignas(64) RoleTurns {
    TurnCount count;
  };
  std::vector<RoleTurns> turns_;                             ///< one for each of layout.roles
  std::vector<std::unique_ptr<datapath::QueuePath>> paths_;  ///< as layout.paths
  std::vector<std::unique_ptr<RouteLcore>> lcores_;          ///< by pipeline

 private:
  [[nodiscard]] Result<void> await_switch(std::chrono::milliseconds timeout);

  std::size_t routes_ = 0;
  std::uint32_t reloads_ = 0;
  std::uint32_t refused_ = 0;
  std::int64_t aged_ = 0;
  const memory::Recycling* recycling_ = nullptr;
};

}  // namespace warpline::router
