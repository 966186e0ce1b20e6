// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include <rte_lpm.h>
#include <rte_lpm6.h>

#include "warpline/datapath/batch.h"
#include "warpline/packet/byte_order.h"
#include "warpline/packet/headers/ipv4.h"
#include "warpline/packet/headers/ipv6.h"
#include "warpline/router/route_lookup.h"

namespace warpline::router {

/// Longest prefix match by rte_lpm and rte_lpm6.
///
/// rte_lpm_add() looks through all rules of a length one by one, so a million routes would take minutes. The routes are
/// known all at once and in order of length, so they are painted into the public table that the lookup reads instead.
class LpmTables {
 public:
  using V4Key = std::uint32_t;  ///< destination, host order
  using V6Key = Ipv6Address;

  [[nodiscard]] static Result<LpmTables> make(const route::RouteSet& set, const TablesPlace& place, LpmTables unused);
  [[nodiscard]] static Bytes memory(const route::RouteSet& set);

  [[nodiscard]] static V4Key v4_key(const std::uint8_t* ip, std::uint32_t /*have*/) {
    return packet::load_be32(ip + packet::Ipv4View::kDestination);
  }
  [[nodiscard]] static V6Key v6_key(const std::uint8_t* ip, std::uint32_t /*have*/) {
    return packet::load_address<Ipv6Address>(ip + packet::Ipv6View::kDestination);
  }

  void find(const V4Key* destinations, std::uint32_t* hops, std::uint16_t n) const {
    if (v4_ == nullptr) return none(hops, n);
    // rte_lpm_lookup_bulk() takes one after the other, and leaves flags in its answers.
    std::uint16_t done = 0;
    for (; n - done >= 4; done += 4) {
      xmm_t four;
      std::memcpy(&four, destinations + done, sizeof four);
      rte_lpm_lookupx4(v4_.get(), four, hops + done, route::RouteSet::kNone);
    }
    for (; done < n; ++done) static_cast<void>(rte_lpm_lookup(v4_.get(), destinations[done], hops + done));
  }
  void find(const V6Key* destinations, std::uint32_t* hops, std::uint16_t n) const;

 private:
  struct FreeV4 {
    void operator()(rte_lpm* lpm) const { rte_lpm_free(lpm); }
  };
  struct FreeV6 {
    void operator()(rte_lpm6* lpm) const { rte_lpm6_free(lpm); }
  };

  [[nodiscard]] Result<void> make_v4(const std::vector<route::Ipv4Route>& routes, const TablesPlace& place);
  [[nodiscard]] Result<void> make_v6(const std::vector<route::Ipv6Route>& routes, const TablesPlace& place);
  static void none(std::uint32_t* hops, std::uint16_t n) {
    for (std::uint16_t i = 0; i < n; ++i) hops[i] = route::RouteSet::kNone;
  }

  std::unique_ptr<rte_lpm, FreeV4> v4_;  ///< null: no route
  std::unique_ptr<rte_lpm6, FreeV6> v6_;
  std::uint32_t v4_groups_ = 0;                        ///< second-level tables that v4_ has
  std::uint32_t v6_groups_ = 0;                        ///< and v6_
  std::uint32_t v6_rules_ = 0;                         ///< rules that v6_ takes
  std::vector<route::Ipv6Route> v6_routes_;            ///< in v6_
  std::uint32_t v6_default_ = route::RouteSet::kNone;  ///< rte_lpm6 takes no prefix of length 0
};
static_assert(RouteLookup<LpmTables>);

}  // namespace warpline::router
