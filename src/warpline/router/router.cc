// SPDX-License-Identifier: Apache-2.0
#include "warpline/router/router.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "warpline/base/time/clock.h"
#include "warpline/route/route_file.h"
#include "warpline/router/exact_tables.h"
#include "warpline/router/fib_tables.h"
#include "warpline/router/lpm_tables.h"
#include "warpline/router/route_stage.h"
#include "warpline/runtime/setup_step.h"
#include "warpline/runtime/stop.h"

namespace warpline::router {
namespace {

constexpr Nanos kAgeEvery{250'000'000};
constexpr Nanos kDefaultDeadline{20'000};

/// A router with one kind of lookup.
template <RouteLookup Lookup>
class RouterBy final : public Router {
 public:
  RouterBy(const datapath::DatapathSettings& settings, const RouterSettings& routing,
           const datapath::ForwardLayout& layout, const runtime::LcorePlan& plan, std::vector<RoutePort> ports)
      : Router(settings, routing, layout, plan, std::move(ports)) {
    for (const auto& lcore : lcores_) {
      stages_.push_back(std::make_unique<RouteStage<Lookup>>(generations_, *lcore, budget_, settings.forward.burst));
    }
  }

  void run(std::size_t role) override {
    std::vector<datapath::Stage*> stages;
    for (const std::uint16_t path : layout_.roles[role].paths) {
      datapath::Stage* stage = stages_[layout_.paths[path].queue].get();
      if (std::ranges::find(stages, stage) == stages.end()) stages.push_back(stage);
    }
    turns_[role].count.begin();
    datapath::run_stages(stages, control_, plan_.workers[role].gives_way, turns_[role].count);
  }

  [[nodiscard]] bool switching() const override { return generations_.has_old(); }

 private:
  Result<void> install(const route::RouteSet& set) override {
    const std::uint64_t number = generations_.newest() + 1;
    const TablesPlace place{.number = number, .node = plan_.workers.front().cpu.node};
    WARPLINE_TRY(Lookup tables, Lookup::make(set, place, std::exchange(unused_, {})));
    Result<std::vector<Hop>> hops = hold(set);
    if (!hops) {
      unused_ = std::move(tables);
      return std::move(hops).error();
    }
    generations_.publish(
        std::make_unique<Generation<Lookup>>(Generation<Lookup>{std::move(tables), *std::move(hops), number}));
    return {};
  }

  void free_old() override {
    if (!generations_.has_old()) return;
    std::uint64_t oldest = generations_.newest();
    for (const auto& stage : stages_) oldest = std::min(oldest, stage->reader().number());
    generations_.free_before(oldest, [this](Generation<Lookup>& generation) {
      let_go(generation.hops);
      unused_ = std::move(generation.tables);
    });
  }

  GenerationSwitch<Lookup> generations_;
  Lookup unused_;  ///< the tables before those in force, once no lcore reads them: the next ones take their memory
  std::vector<std::unique_ptr<RouteStage<Lookup>>> stages_;  ///< by pipeline
};

/// Calls `use` with a null pointer to the tables' type.
template <typename Use>
auto with_lookup(LookupKind kind, Use&& use) {
  switch (kind) {
    case LookupKind::fib:
      return use(static_cast<FibTables*>(nullptr));
    case LookupKind::exact:
      return use(static_cast<ExactTables*>(nullptr));
    case LookupKind::lpm:
      break;
  }
  return use(static_cast<LpmTables*>(nullptr));
}

}  // namespace

Bytes route_memory(LookupKind lookup, const route::RouteSet& set) {
  constexpr std::uint64_t kGenerations = 3;  // in use, being made, and what does not fit where an old one was
  const Bytes one = with_lookup(lookup, [&set]<typename Lookup>(Lookup*) { return Lookup::memory(set); });
  return {kGenerations * one.value};
}

Router::Router(const datapath::DatapathSettings& settings, const RouterSettings& routing,
               const datapath::ForwardLayout& layout, const runtime::LcorePlan& plan, std::vector<RoutePort> ports)
    : routing_(routing),
      layout_(layout),
      plan_(plan),
      ports_(std::move(ports)),
      neighbours_(kNeighbours),
      budget_(settings.packets),
      turns_(layout.roles.size()) {
  for (const datapath::PathRoute& route : layout.paths) {
    auto path = std::make_unique<datapath::QueuePath>();
    path->rx = path->tx = path->reply = {ports_[route.rx_port].id, route.queue};
    path->tx_limits = port::send_limits(path->tx.port);
    path->burst = settings.forward.burst;
    path->deadline_ticks = nanos_to_ticks(settings.forward.deadline.value_or(kDefaultDeadline));
    path->tx_retries = settings.forward.tx_retries;
    paths_.push_back(std::move(path));
  }
  for (std::size_t role = 0; role < layout.roles.size(); ++role) {
    for (const std::uint16_t path : layout.roles[role].paths) {
      paths_[path]->yields = plan.workers[role].gives_way;
    }
  }
  for (std::uint16_t pipeline = 0; pipeline < settings.forward.pipelines; ++pipeline) {
    std::vector<datapath::QueuePath*> own;
    for (std::size_t port = 0; port < ports_.size(); ++port) {
      own.push_back(paths_[pipeline * ports_.size() + port].get());
    }
    lcores_.push_back(std::make_unique<RouteLcore>(ports_, own, neighbours_));
  }
}

Result<std::unique_ptr<Router>> Router::create(const datapath::DatapathSettings& settings,
                                               const RouterSettings& routing, const datapath::ForwardLayout& layout,
                                               const runtime::LcorePlan& plan, std::vector<RoutePort> ports,
                                               const route::RouteSet& routes) {
  std::unique_ptr<Router> router =
      with_lookup(routing.lookup, [&]<typename Lookup>(Lookup*) -> std::unique_ptr<Router> {
        return std::make_unique<RouterBy<Lookup>>(settings, routing, layout, plan, std::move(ports));
      });
  WARPLINE_CHECK(router->install(routes));
  router->routes_ = routes.from_file;
  return router;
}

void Router::recycle_with(const memory::Recycling& recycling) {
  recycling_ = &recycling;
  datapath::give_recyclers(recycling, layout_, paths_);
}

std::vector<const TurnCount*> Router::turns() const {
  std::vector<const TurnCount*> all;
  for (const RoleTurns& role : turns_) all.push_back(&role.count);
  return all;
}

std::optional<std::uint64_t> Router::recycled() const {
  return recycling_ != nullptr ? recycling_->recycled() : std::nullopt;
}

Result<std::vector<Hop>> Router::hold(const route::RouteSet& set) {
  std::vector<Hop> hops;
  hops.reserve(set.hops.size());
  for (const route::NextHop& next : set.hops) {
    Hop& hop = hops.emplace_back(Hop{route::NeighbourTable::kNobody, next.port, next.kind});
    if (next.kind != route::HopKind::gateway) continue;
    hop.neighbour = neighbours_.pin(route::NeighbourKey::of(next.port, next.gateway), router_now());
    if (hop.neighbour != route::NeighbourTable::kNobody) continue;
    hops.pop_back();
    let_go(hops);
    return usage_error(
        fmt::format("cannot route by {} next hops", set.hops.size()),
        fmt::format("there is room for {} neighbours, and none for {}", kNeighbours, to_string(next.gateway)),
        "use fewer gateways");
  }
  return hops;
}

void Router::let_go(const std::vector<Hop>& hops) {
  for (const Hop& hop : hops) {
    if (hop.kind == route::HopKind::gateway) neighbours_.unpin(hop.neighbour);
  }
}

/// Old tables are free when each lcore has had a turn since: on a machine that is very busy that takes a while.
Result<void> Router::await_switch(std::chrono::milliseconds timeout) {
  for (auto left = timeout;; left -= std::chrono::milliseconds(1)) {
    free_old();
    if (!switching()) return {};
    if (left.count() <= 0 || runtime::StopOnSignal::requested().load(std::memory_order_relaxed)) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return environment_error("cannot read the routes again", "a worker still uses the tables before those in force",
                           "try again when the machine is less busy");
}

Result<void> Router::reload(const std::string& file, std::chrono::milliseconds timeout) {
  std::vector<route::RouterPort> own;
  for (const RoutePort& port : ports_) own.push_back(port.own);
  const runtime::SetupStep step("reading the routes again", runtime::SetupStep::Of::running);
  const auto read_and_install = [&]() -> Result<void> {
    WARPLINE_CHECK(await_switch(timeout));
    WARPLINE_TRY(const route::RouteSet set, route::read_routes(file, own, routing_.lookup == LookupKind::exact));
    WARPLINE_CHECK(install(set));
    routes_ = set.from_file;
    return {};
  };
  Result<void> result = read_and_install();
  ++(result ? reloads_ : refused_);
  return result;
}

void Router::tend() {
  free_old();
  const Nanos time = router_now();
  if (time.value - aged_ < kAgeEvery.value) return;
  aged_ = time.value;
  neighbours_.age(time);
}

std::uint64_t Router::received() const {
  std::uint64_t packets = 0;
  for (const auto& path : paths_) packets += path->received.packets.get();
  return packets;
}

}  // namespace warpline::router
