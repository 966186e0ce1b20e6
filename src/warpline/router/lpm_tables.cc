// SPDX-License-Identifier: Apache-2.0
#include "warpline/router/lpm_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include <rte_errno.h>

#include "warpline/router/dpdk_addresses.h"
#include "warpline/runtime/setup_step.h"

namespace warpline::router {
namespace {

rte_lpm_tbl_entry entry_of(std::uint32_t value, std::uint8_t length, bool group) {
  rte_lpm_tbl_entry entry{};
  entry.next_hop = value;
  entry.valid = 1;
  entry.valid_group = group ? 1 : 0;
  entry.depth = length;
  return entry;
}

/// `routes` in the order of their length: what is painted later is longer.
void paint(rte_lpm& lpm, const std::vector<route::Ipv4Route>& routes) {
  constexpr std::uint32_t kGroup = RTE_LPM_TBL8_GROUP_NUM_ENTRIES;
  std::fill_n(lpm.tbl24, RTE_LPM_TBL24_NUM_ENTRIES, entry_of(route::RouteSet::kNone, 0, false));
  std::uint32_t groups = 0;
  for (const route::Ipv4Route& route : routes) {
    const std::uint32_t prefix = packet::load_be32(route.prefix.bytes.data());
    if (route.length <= 24) {
      std::fill_n(&lpm.tbl24[prefix >> 8], 1U << (24 - route.length), entry_of(route.hop, route.length, false));
      continue;
    }
    rte_lpm_tbl_entry& first = lpm.tbl24[prefix >> 8];
    if (first.valid_group == 0) {
      std::fill_n(&lpm.tbl8[groups * kGroup], kGroup, entry_of(first.next_hop, first.depth, true));
      first = entry_of(groups++, 0, true);
    }
    std::fill_n(&lpm.tbl8[first.next_hop * kGroup + (prefix & 0xff)], 1U << (32 - route.length),
                entry_of(route.hop, route.length, true));
  }
}

}  // namespace

Bytes LpmTables::memory(const route::RouteSet& set) {
  constexpr std::uint64_t kFirst = 4U << 24;  // entries of four bytes
  constexpr std::uint64_t kSecond = 4U << 8;
  constexpr std::uint64_t kRule = 128;  // of rte_lpm6, with its place in a hash table
  std::uint64_t bytes = 0;
  if (!set.v4.empty()) bytes += kFirst + kSecond * rounded_up(second_level_tables(set.v4));
  if (!set.v6.empty())
    bytes += kFirst + kSecond * rounded_up(second_level_tables(set.v6)) + kRule * rounded_up(set.v6.size());
  return {bytes};
}

Result<LpmTables> LpmTables::make(const route::RouteSet& set, const TablesPlace& place, LpmTables unused) {
  LpmTables tables = std::move(unused);
  if (set.v4.empty()) tables.v4_.reset();
  if (set.v6.empty()) tables.v6_.reset();
  WARPLINE_CHECK(tables.make_v4(set.v4, place));
  WARPLINE_CHECK(tables.make_v6(set.v6, place));
  return tables;
}

Result<void> LpmTables::make_v4(const std::vector<route::Ipv4Route>& routes, const TablesPlace& place) {
  if (routes.empty()) return {};
  const std::uint32_t groups = second_level_tables(routes);
  if (v4_ == nullptr || groups > v4_groups_) {
    v4_.reset();
    v4_groups_ = rounded_up(groups);
    const rte_lpm_config config{.max_rules = 1, .number_tbl8s = v4_groups_, .flags = 0};
    v4_.reset(rte_lpm_create(fmt::format("routes4_{}", place.number).c_str(), place.node, &config));
    if (!v4_) return no_table("table of IPv4 routes", rte_errno);
  }
  paint(*v4_, routes);
  return {};
}

Result<void> LpmTables::make_v6(const std::vector<route::Ipv6Route>& routes, const TablesPlace& place) {
  v6_default_ = route::RouteSet::kNone;
  if (routes.empty()) return {};
  const std::uint32_t groups = second_level_tables(routes);
  if (v6_ == nullptr || groups > v6_groups_ || routes.size() > v6_rules_) {
    v6_.reset();
    v6_groups_ = rounded_up(groups);
    v6_rules_ = rounded_up(routes.size());
    const rte_lpm6_config config{.max_rules = v6_rules_, .number_tbl8s = v6_groups_, .flags = 0};
    v6_.reset(rte_lpm6_create(fmt::format("routes6_{}", place.number).c_str(), place.node, &config));
    if (!v6_) return no_table("table of IPv6 routes", rte_errno);
  } else {
    // rte_lpm6_delete_all() would write all 64 MiB, most of which nothing has touched so far.
    for (const route::Ipv6Route& route : v6_routes_) {
      if (route.length != 0) rte_lpm6_delete(v6_.get(), dpdk_address(&route.prefix), route.length);
    }
  }
  v6_routes_ = routes;
  runtime::SetupStep step("making the table of IPv6 routes", routes.size());
  for (const route::Ipv6Route& route : routes) {
    step.advance();
    if (route.length == 0) {
      v6_default_ = route.hop;
      continue;
    }
    const int added = rte_lpm6_add(v6_.get(), dpdk_address(&route.prefix), route.length, route.hop);
    if (added < 0) return no_table("table of IPv6 routes", -added);
  }
  return {};
}

void LpmTables::find(const V6Key* destinations, std::uint32_t* hops, std::uint16_t n) const {
  if (v6_ == nullptr) return none(hops, n);
  std::int32_t found[datapath::kMaxBurst];
  rte_lpm6_lookup_bulk_func(v6_.get(), dpdk_addresses(destinations), found, n);
  for (std::uint16_t i = 0; i < n; ++i) hops[i] = found[i] < 0 ? v6_default_ : static_cast<std::uint32_t>(found[i]);
}

}  // namespace warpline::router
