// SPDX-License-Identifier: Apache-2.0
#include "warpline/report/route_totals.h"

#include <fmt/format.h>

#include "warpline/datapath/path_totals.h"

namespace warpline::report {

RunTotals totals_of(const router::Router& router) {
  datapath::PathTotals sum;
  for (const auto& path : router.paths()) sum.add(*path);
  RunTotals totals = std::move(sum.totals);
  Tally delivered, generated;
  for (const auto& lcore : router.lcores()) {
    const router::RouteCounters& counters = lcore->counters();
    delivered += {counters.delivered_packets.get(), counters.delivered_bytes.get()};
    generated += {counters.generated_packets.get(), counters.generated_bytes.get()};
  }
  totals.delivered = delivered;
  totals.generated = generated;
  totals.stages = {sum.receive, sum.work, sum.transmit};
  totals.recycled = router.recycled();
  return totals;
}

Tally sent_by(const router::Router& router) {
  Tally sum;
  for (const auto& path : router.paths()) sum += {path->sent.packets.get(), path->sent.bytes.get()};
  return sum;
}

RoutingTotals routing_of(const router::Router& router) {
  RoutingTotals totals{.routes = router.routes(),
                       .reloads = router.reloads(),
                       .refused_reloads = router.refused_reloads(),
                       .neighbours = router.neighbours().count(route::NeighbourState::reachable) +
                                     router.neighbours().count(route::NeighbourState::stale)};
  for (const auto& path : router.paths()) totals.replies += path->sent.replies.get();
  for (const auto& lcore : router.lcores()) {
    totals.requests += lcore->counters().requests.get();
    totals.errors += lcore->counters().errors.get();
  }
  return totals;
}

std::string RoutingTotals::to_text() const {
  return fmt::format(
      "{:>16} routes, read again {} times and refused {}; {} neighbours; sent {} requests, {} answers, {} errors",
      routes, reloads, refused_reloads, neighbours, requests, replies, errors);
}

nlohmann::ordered_json to_json(const RoutingTotals& routing) {
  return {
      {"routes", routing.routes},         {"reloads", routing.reloads},   {"refused_reloads", routing.refused_reloads},
      {"neighbours", routing.neighbours}, {"requests", routing.requests}, {"replies", routing.replies},
      {"icmp_errors", routing.errors}};
}

}  // namespace warpline::report
