// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <utility>

#include "warpline/base/result.h"
#include "warpline/base/units.h"
#include "warpline/route/route_set.h"

namespace warpline::router {

/// Where tables are to be, and what their names in DPDK end with.
struct TablesPlace {
  std::uint64_t number = 0;  ///< of the generation
  int node = -1;             ///< NUMA node, -1: any
};

/// Lookup tables of one RouteSet, never changed once made. find() gives indices into RouteSet::hops for `n` <=
/// kMaxBurst keys at once; it allocates nothing and runs on any number of lcores.
///
/// make() gets tables that no lcore reads any more, or a default one. It writes the new ones into their memory where it
/// can, and frees that memory first where not: DPDK's heap would place each set elsewhere (small pieces are cut out of
/// what an old set left, so that the next one does not fit), and the process would grow.
///
/// `key` reads an IP header without looking further than `have` bytes, of which there are 20 or 40 at least.
template <typename T>
concept RouteLookup = requires(const T& tables, T unused, const route::RouteSet& set, const TablesPlace& place,
                               const std::uint8_t* ip, std::uint32_t have, const typename T::V4Key* v4,
                               const typename T::V6Key* v6, std::uint32_t* hops, std::uint16_t n) {
  { T::make(set, place, std::move(unused)) } -> std::same_as<Result<T>>;
  { T::memory(set) } -> std::same_as<Bytes>;
  { T::v4_key(ip, have) } -> std::same_as<typename T::V4Key>;
  { T::v6_key(ip, have) } -> std::same_as<typename T::V6Key>;
  tables.find(v4, hops, n);
  tables.find(v6, hops, n);
};

/// Second-level tables of 256 entries that a trie of 24, then 8 bits a level needs for `routes`.
[[nodiscard]] std::uint32_t second_level_tables(const std::vector<route::Ipv4Route>& routes);
[[nodiscard]] std::uint32_t second_level_tables(const std::vector<route::Ipv6Route>& routes);

/// `n` and up to an eighth of it more, in steps that stay the same while `n` changes a little: the memory that old
/// tables leave fits the next ones.
[[nodiscard]] std::uint32_t rounded_up(std::size_t n);

/// A table that DPDK did not make.
[[nodiscard]] Error no_table(const std::string& what, int error);

}  // namespace warpline::router
