// SPDX-License-Identifier: Apache-2.0
#include "warpline/router/route_lookup.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include <rte_errno.h>

#include "warpline/route/prefix.h"

namespace warpline::router {
namespace {

/// For each level the different prefixes that longer routes go through.
template <typename Address>
std::uint32_t count_tables(const std::vector<route::Route<Address>>& routes) {
  std::vector<Address> sorted;
  std::uint32_t tables = 0;
  for (unsigned level = 24; level < sizeof(Address) * 8; level += 8) {
    sorted.clear();
    for (const route::Route<Address>& route : routes) {
      if (route.length > level) sorted.push_back(route::masked(route.prefix, level));
    }
    std::ranges::sort(sorted);
    tables += static_cast<std::uint32_t>(std::unique(sorted.begin(), sorted.end()) - sorted.begin());
  }
  return tables;
}

}  // namespace

std::uint32_t second_level_tables(const std::vector<route::Ipv4Route>& routes) { return count_tables(routes); }
std::uint32_t second_level_tables(const std::vector<route::Ipv6Route>& routes) { return count_tables(routes); }

std::uint32_t rounded_up(std::size_t n) {
  constexpr std::size_t kLeast = 1024;
  const std::size_t step = std::max(kLeast, std::bit_floor(n) / 8);
  return static_cast<std::uint32_t>((n + step) / step * step);
}

Error no_table(const std::string& what, int error) {
  return environment_error(fmt::format("cannot make the {}", what), rte_strerror(error),
                           "give DPDK more memory: hugepages, or without them --eal '-m MEGABYTES'");
}

}  // namespace warpline::router
