// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include <rte_hash.h>

#include "warpline/packet/byte_order.h"
#include "warpline/packet/headers/ipv4.h"
#include "warpline/packet/headers/ipv6.h"
#include "warpline/route/prefix.h"
#include "warpline/router/lpm_tables.h"
#include "warpline/router/route_lookup.h"

namespace warpline::router {

/// Exact match of flows by rte_hash; what is of none is looked up by longest prefix.
class ExactTables {
 public:
  using V4Key = route::FlowKey<Ipv4Address>;
  using V6Key = route::FlowKey<Ipv6Address>;

  [[nodiscard]] static Result<ExactTables> make(const route::RouteSet& set, const TablesPlace& place,
                                                ExactTables unused);
  [[nodiscard]] static Bytes memory(const route::RouteSet& set);

  [[nodiscard]] static V4Key v4_key(const std::uint8_t* ip, std::uint32_t have) {
    const packet::Ipv4View view(ip);
    V4Key key{packet::load_address<Ipv4Address>(view.source()), packet::load_address<Ipv4Address>(view.destination())};
    key.protocol = view.protocol();
    if (!view.is_fragment()) read_ports(key, ip, view.header_length(), have);
    return key;
  }
  /// Behind extension headers no ports are looked for: the protocol is the first one's.
  [[nodiscard]] static V6Key v6_key(const std::uint8_t* ip, std::uint32_t have) {
    const packet::Ipv6View view(ip);
    V6Key key{packet::load_address<Ipv6Address>(view.source()), packet::load_address<Ipv6Address>(view.destination())};
    key.protocol = view.next_header();
    read_ports(key, ip, packet::Ipv6View::kHeaderLength, have);
    return key;
  }

  void find(const V4Key* keys, std::uint32_t* hops, std::uint16_t n) const;
  void find(const V6Key* keys, std::uint32_t* hops, std::uint16_t n) const;

 private:
  struct Free {
    void operator()(rte_hash* hash) const { rte_hash_free(hash); }
  };
  struct Hash {
    std::unique_ptr<rte_hash, Free> table;  ///< null: no flow
    std::uint32_t room = 0;                 ///< flows that it takes
  };

  template <typename Key>
  static void read_ports(Key& key, const std::uint8_t* ip, std::uint32_t at, std::uint32_t have) {
    if (!route::has_ports(key.protocol) || have < at + 4) return;
    std::memcpy(key.source_port.data(), ip + at, 2);
    std::memcpy(key.destination_port.data(), ip + at + 2, 2);
  }
  template <typename Address>
  [[nodiscard]] static Result<Hash> make_hash(const std::vector<route::FlowRoute<Address>>& flows,
                                              const std::string& name, int node, Hash unused);
  template <typename Key, typename Destination>
  void find_in(const rte_hash* hash, const Key* keys, std::uint32_t* hops, std::uint16_t n,
               Destination&& destination) const;

  Hash v4_;
  Hash v6_;
  LpmTables prefixes_;
};
static_assert(RouteLookup<ExactTables>);

}  // namespace warpline::router
