// SPDX-License-Identifier: Apache-2.0
#include "warpline/router/fib_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include <rte_errno.h>

#include "warpline/router/dpdk_addresses.h"
#include "warpline/runtime/setup_step.h"

namespace warpline::router {
namespace {

/// The hop of the prefix of length 0: what rte_fib calls its default. It is the first route, if there is one.
template <typename Address>
std::uint32_t default_hop(const std::vector<route::Route<Address>>& routes) {
  return routes.front().length == 0 ? routes.front().hop : route::RouteSet::kNone;
}

/// rte_fib6 sets tables aside for each route by itself, shared or not.
std::uint32_t reserved_tables(const std::vector<route::Ipv6Route>& routes) {
  std::uint32_t tables = 1;
  for (const route::Ipv6Route& route : routes) tables += route.length > 24 ? (route.length - 17U) / 8 : 0;
  return tables;
}

template <std::size_t kMost>
void narrow(const std::uint64_t (&found)[kMost], std::uint32_t* hops, std::uint16_t n) {
  for (std::uint16_t i = 0; i < n; ++i) hops[i] = static_cast<std::uint32_t>(found[i]);
}

}  // namespace

Bytes FibTables::memory(const route::RouteSet& set) {
  constexpr std::uint64_t kFirst = 4U << 24;
  constexpr std::uint64_t kSecond = 4U << 8;
  constexpr std::uint64_t kNodes = 2 * 128;  // of the tree that a route is in besides
  std::uint64_t bytes = 0;
  if (!set.v4.empty())
    bytes += kFirst + kSecond * rounded_up(second_level_tables(set.v4)) + kNodes * rounded_up(set.v4.size());
  if (!set.v6.empty())
    bytes += kFirst + kSecond * rounded_up(reserved_tables(set.v6)) + kNodes * rounded_up(set.v6.size());
  return {bytes};
}

/// Its tables cannot be emptied but route by route, so they are made anew.
Result<FibTables> FibTables::make(const route::RouteSet& set, const TablesPlace& place, FibTables unused) {
  FibTables tables = std::move(unused);
  tables.v4_.reset();
  tables.v6_.reset();
  if (!set.v4.empty()) {
    rte_fib_conf config{};
    config.type = RTE_FIB_DIR24_8;
    config.default_nh = default_hop(set.v4);
    config.max_routes = static_cast<int>(rounded_up(set.v4.size()));
    config.dir24_8.nh_sz = RTE_FIB_DIR24_8_4B;
    config.dir24_8.num_tbl8 = rounded_up(second_level_tables(set.v4));
    tables.v4_.reset(rte_fib_create(fmt::format("routes4_{}", place.number).c_str(), place.node, &config));
    if (!tables.v4_) return no_table("table of IPv4 routes", rte_errno);
    runtime::SetupStep step("making the table of IPv4 routes", set.v4.size());
    for (const route::Ipv4Route& route : set.v4) {
      step.advance();
      if (route.length == 0) continue;
      const int added =
          rte_fib_add(tables.v4_.get(), packet::load_be32(route.prefix.bytes.data()), route.length, route.hop);
      if (added < 0) return no_table("table of IPv4 routes", -added);
    }
  }
  if (!set.v6.empty()) {
    rte_fib6_conf config{};
    config.type = RTE_FIB6_TRIE;
    config.default_nh = default_hop(set.v6);
    config.max_routes = static_cast<int>(rounded_up(set.v6.size()));
    config.trie.nh_sz = RTE_FIB6_TRIE_4B;
    config.trie.num_tbl8 = rounded_up(reserved_tables(set.v6));
    tables.v6_.reset(rte_fib6_create(fmt::format("routes6_{}", place.number).c_str(), place.node, &config));
    if (!tables.v6_) return no_table("table of IPv6 routes", rte_errno);
    runtime::SetupStep step("making the table of IPv6 routes", set.v6.size());
    for (const route::Ipv6Route& route : set.v6) {
      step.advance();
      if (route.length == 0) continue;
      const int added = rte_fib6_add(tables.v6_.get(), dpdk_address(&route.prefix), route.length, route.hop);
      if (added < 0) return no_table("table of IPv6 routes", -added);
    }
  }
  return tables;
}

void FibTables::find(const V4Key* destinations, std::uint32_t* hops, std::uint16_t n) const {
  if (v4_ == nullptr) {
    std::fill_n(hops, n, route::RouteSet::kNone);
    return;
  }
  std::uint64_t found[datapath::kMaxBurst];
  rte_fib_lookup_bulk(v4_.get(), const_cast<std::uint32_t*>(destinations), found, n);
  narrow(found, hops, n);
}

void FibTables::find(const V6Key* destinations, std::uint32_t* hops, std::uint16_t n) const {
  if (v6_ == nullptr) {
    std::fill_n(hops, n, route::RouteSet::kNone);
    return;
  }
  std::uint64_t found[datapath::kMaxBurst];
  rte_fib6_lookup_bulk(v6_.get(), dpdk_addresses(destinations), found, n);
  narrow(found, hops, n);
}

}  // namespace warpline::router
