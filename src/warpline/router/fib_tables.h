// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include <rte_fib.h>
#include <rte_fib6.h>

#include "warpline/router/lpm_tables.h"
#include "warpline/router/route_lookup.h"

namespace warpline::router {

/// Longest prefix match by rte_fib (DIR24-8) and rte_fib6 (trie), which look several addresses up with one vector
/// instruction where the processor can.
class FibTables {
 public:
  using V4Key = LpmTables::V4Key;
  using V6Key = LpmTables::V6Key;

  [[nodiscard]] static Result<FibTables> make(const route::RouteSet& set, const TablesPlace& place, FibTables unused);
  [[nodiscard]] static Bytes memory(const route::RouteSet& set);

  [[nodiscard]] static V4Key v4_key(const std::uint8_t* ip, std::uint32_t have) { return LpmTables::v4_key(ip, have); }
  [[nodiscard]] static V6Key v6_key(const std::uint8_t* ip, std::uint32_t have) { return LpmTables::v6_key(ip, have); }

  void find(const V4Key* destinations, std::uint32_t* hops, std::uint16_t n) const;
  void find(const V6Key* destinations, std::uint32_t* hops, std::uint16_t n) const;

 private:
  struct FreeV4 {
    void operator()(rte_fib* fib) const { rte_fib_free(fib); }
  };
  struct FreeV6 {
    void operator()(rte_fib6* fib) const { rte_fib6_free(fib); }
  };

  std::unique_ptr<rte_fib, FreeV4> v4_;  ///< null: no route
  std::unique_ptr<rte_fib6, FreeV6> v6_;
};
static_assert(RouteLookup<FibTables>);

}  // namespace warpline::router
