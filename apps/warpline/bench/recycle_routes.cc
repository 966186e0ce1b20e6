// SPDX-License-Identifier: Apache-2.0
#include "bench/recycle_routes.h"

#include <span>

#include <rte_mbuf.h>
#include <rte_mempool.h>

#include "warpline/base/time/clock.h"
#include "warpline/packet/udp_frame.h"

namespace warpline::bench {
namespace {

constexpr std::uint8_t kRouteLength = 16;

/// 10.PORT.0.0/16 is behind a gateway on the link of that port.
Ipv4Address network_behind(std::size_t port) { return {{10, static_cast<std::uint8_t>(port), 0, 0}}; }
Ipv4Address gateway_at(std::size_t port) { return {{192, 0, 2, static_cast<std::uint8_t>(port + 1)}}; }

Nanos now() { return {static_cast<std::int64_t>(ticks_to_nanos(ticks_now()))}; }

struct Filling {
  MacAddress to;
  std::size_t towards;  ///< port
  std::uint32_t bytes;
};

void fill(rte_mempool* /*pool*/, void* opaque, void* object, unsigned index) {
  const Filling& filling = *static_cast<const Filling*>(opaque);
  auto* const mbuf = static_cast<rte_mbuf*>(object);
  Ipv4Address destination = network_behind(filling.towards);
  destination.bytes[2] = static_cast<std::uint8_t>(index >> 8);
  destination.bytes[3] = static_cast<std::uint8_t>(index);
  auto* const data = static_cast<std::uint8_t*>(mbuf->buf_addr) + RTE_PKTMBUF_HEADROOM;
  static_cast<void>(packet::emit({.destination_mac = filling.to,
                                  .source_mac = {{2, 0, 0, 0, 0, 1}},
                                  .source = Ipv4Address{{198, 18, 0, 1}},
                                  .destination = destination,
                                  .source_port = 9,
                                  .destination_port = 9,
                                  .time_to_live = UINT8_MAX},
                                 std::span(data, filling.bytes)));
}

}  // namespace

Result<std::unique_ptr<BenchRoutes>> BenchRoutes::make(const std::vector<port::Port>& ports,
                                                       const std::vector<datapath::QueuePath*>& paths,
                                                       const std::vector<rte_mempool*>& pools,
                                                       std::uint32_t frame_bytes) {
  std::vector<router::RoutePort> own;
  for (std::size_t i = 0; i < ports.size(); ++i) {
    own.push_back({ports[i].id(), {.mac = ports[i].mac(), .mtu = 1500, .addresses = {}}, pools[i]});
  }
  std::unique_ptr<BenchRoutes> routes(new BenchRoutes(std::move(own)));
  route::RouteSet set;
  set.hops = {{route::HopKind::none, 0, {}}, {route::HopKind::martian, 0, {}}, {route::HopKind::local, 0, {}}};
  std::vector<router::Hop> hops = {{route::NeighbourTable::kNobody, 0, route::HopKind::none},
                                   {route::NeighbourTable::kNobody, 0, route::HopKind::martian},
                                   {route::NeighbourTable::kNobody, 0, route::HopKind::local}};
  for (std::uint16_t to = 0; to < 2; ++to) {
    const std::size_t from = 1 - to;
    const route::NeighbourKey gateway = route::NeighbourKey::of(to, gateway_at(to));
    const std::uint32_t slot = routes->neighbours_.pin(gateway, now());
    // What leaves by one port is received by the other again: as its station the frame must stay.
    const MacAddress mac = routes->ports_[from].own.mac;
    routes->neighbours_.learn(gateway, {.mac = mac, .answers = true}, now());
    static_cast<void>(routes->neighbours_.use(slot, now()));
    set.v4.push_back({network_behind(to), kRouteLength, static_cast<std::uint32_t>(hops.size()), 0});
    set.hops.push_back({route::HopKind::gateway, to, gateway_at(to)});
    hops.push_back({slot, to, route::HopKind::gateway});
    Filling filling{mac, to, frame_bytes};
    rte_mempool_obj_iter(pools[from], fill, &filling);
  }
  WARPLINE_TRY(router::LpmTables tables, router::LpmTables::make(set, {.number = 1, .node = -1}, {}));
  routes->generations_.publish(std::make_unique<router::Generation<router::LpmTables>>(
      router::Generation<router::LpmTables>{std::move(tables), std::move(hops), 1}));
  routes->lcore_ = std::make_unique<router::RouteLcore>(routes->ports_, paths, routes->neighbours_);
  routes->stage_ = std::make_unique<router::RouteStage<router::LpmTables>>(routes->generations_, *routes->lcore_,
                                                                           routes->budget_, paths.front()->burst);
  return routes;
}

}  // namespace warpline::bench
