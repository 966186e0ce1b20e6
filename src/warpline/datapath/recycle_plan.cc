// SPDX-License-Identifier: Apache-2.0
#include "warpline/datapath/recycle_plan.h"

namespace warpline::datapath {
namespace {

bool receives(RoleKind kind) { return kind == RoleKind::run_to_completion || kind == RoleKind::receive; }
bool transmits(RoleKind kind) { return kind == RoleKind::run_to_completion || kind == RoleKind::transmit; }

}  // namespace

memory::RecyclePlan recycle_plan(const DatapathSettings& settings, const ForwardLayout& layout,
                                 const std::vector<std::uint16_t>& ports) {
  memory::RecyclePlan plan;
  plan.way = settings.forward.recycle;
  for (const Role& role : layout.roles) {
    memory::RecycleQueues& lcore = plan.lcores.emplace_back();
    if (role.kind == RoleKind::far_side) continue;
    for (const std::uint16_t path : role.paths) {
      const PathRoute& route = layout.paths[path];
      if (receives(role.kind)) lcore.rx.push_back({ports[route.rx_port], route.queue});
      if (transmits(role.kind)) lcore.tx.push_back({ports[route.tx_port], route.queue});
    }
  }
  if (layout.mixes_ports) return plan;
  for (const PathRoute& route : layout.paths) {
    plan.links.push_back({{ports[route.rx_port], route.queue}, {ports[route.tx_port], route.queue}});
  }
  return plan;
}

void give_recyclers(const memory::Recycling& recycling, const ForwardLayout& layout,
                    const std::vector<std::unique_ptr<QueuePath>>& paths) {
  for (std::size_t role = 0; role < layout.roles.size(); ++role) {
    memory::Recycler* const recycler = recycling.lcores[role].get();
    if (recycler == nullptr || !receives(layout.roles[role].kind)) continue;
    for (std::uint16_t i = 0; i < layout.roles[role].paths.size(); ++i) {
      QueuePath& path = *paths[layout.roles[role].paths[i]];
      path.recycler = recycler;
      path.recycle_index = i;
    }
  }
}

}  // namespace warpline::datapath
