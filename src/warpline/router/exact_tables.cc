// SPDX-License-Identifier: Apache-2.0
#include "warpline/router/exact_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include <rte_errno.h>
#include <rte_hash_crc.h>

#include "warpline/runtime/setup_step.h"

namespace warpline::router {

Bytes ExactTables::memory(const route::RouteSet& set) {
  constexpr std::uint64_t kFlow = 256;  // key, data, and its share of buckets half full
  constexpr std::uint64_t kHash = 1U << 20;
  return {LpmTables::memory(set).value + 2 * kHash +
          kFlow * (rounded_up(set.flows_v4.size()) + rounded_up(set.flows_v6.size()))};
}

template <typename Address>
Result<ExactTables::Hash> ExactTables::make_hash(const std::vector<route::FlowRoute<Address>>& flows,
                                                 const std::string& name, int node, Hash unused) {
  if (flows.empty()) return Hash{};
  Hash hash = std::move(unused);
  if (hash.table == nullptr || flows.size() > hash.room) {
    hash.table.reset();
    hash.room = rounded_up(flows.size());
    rte_hash_parameters parameters{};
    parameters.name = name.c_str();
    parameters.entries = hash.room;
    parameters.key_len = sizeof(route::FlowKey<Address>);
    parameters.hash_func = rte_hash_crc;
    parameters.socket_id = node;
    parameters.extra_flag = RTE_HASH_EXTRA_FLAGS_EXT_TABLE;  // full buckets overflow: every flow finds room
    hash.table.reset(rte_hash_create(&parameters));
    if (!hash.table) return no_table("table of flows", rte_errno);
  } else {
    rte_hash_reset(hash.table.get());
  }
  runtime::SetupStep step("making the table of flows", flows.size());
  for (const route::FlowRoute<Address>& flow : flows) {
    step.advance();
    const int added = rte_hash_add_key_data(hash.table.get(), &flow.key,
                                            reinterpret_cast<void*>(static_cast<std::uintptr_t>(flow.hop)));
    if (added < 0) return no_table("table of flows", -added);
  }
  return hash;
}

Result<ExactTables> ExactTables::make(const route::RouteSet& set, const TablesPlace& place, ExactTables unused) {
  ExactTables tables = std::move(unused);
  WARPLINE_TRY(tables.prefixes_, LpmTables::make(set, place, std::move(tables.prefixes_)));
  WARPLINE_TRY(tables.v4_,
               make_hash(set.flows_v4, fmt::format("flows4_{}", place.number), place.node, std::move(tables.v4_)));
  WARPLINE_TRY(tables.v6_,
               make_hash(set.flows_v6, fmt::format("flows6_{}", place.number), place.node, std::move(tables.v6_)));
  return tables;
}

template <typename Key, typename Destination>
void ExactTables::find_in(const rte_hash* hash, const Key* keys, std::uint32_t* hops, std::uint16_t n,
                          Destination&& destination) const {
  using Address = std::decay_t<decltype(destination(*keys))>;
  Address missed[datapath::kMaxBurst];
  std::uint16_t places[datapath::kMaxBurst];
  std::uint16_t misses = 0;
  for (std::uint16_t begin = 0; begin < n; begin = static_cast<std::uint16_t>(begin + RTE_HASH_LOOKUP_BULK_MAX)) {
    const auto count = static_cast<std::uint16_t>(std::min(n - begin, RTE_HASH_LOOKUP_BULK_MAX));
    std::uint64_t hits = 0;
    void* data[RTE_HASH_LOOKUP_BULK_MAX];
    if (hash != nullptr) {
      const void* wanted[RTE_HASH_LOOKUP_BULK_MAX];
      for (std::uint16_t i = 0; i < count; ++i) wanted[i] = &keys[begin + i];
      rte_hash_lookup_bulk_data(hash, wanted, count, &hits, data);
    }
    for (std::uint16_t i = 0; i < count; ++i) {
      if ((hits >> i & 1) != 0) {
        hops[begin + i] = static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(data[i]));
      } else {
        missed[misses] = destination(keys[begin + i]);
        places[misses++] = static_cast<std::uint16_t>(begin + i);
      }
    }
  }
  if (misses == 0) return;
  std::uint32_t found[datapath::kMaxBurst];
  prefixes_.find(missed, found, misses);
  for (std::uint16_t i = 0; i < misses; ++i) hops[places[i]] = found[i];
}

void ExactTables::find(const V4Key* keys, std::uint32_t* hops, std::uint16_t n) const {
  find_in(v4_.table.get(), keys, hops, n,
          [](const V4Key& key) { return packet::load_be32(key.destination.bytes.data()); });
}

void ExactTables::find(const V6Key* keys, std::uint32_t* hops, std::uint16_t n) const {
  find_in(v6_.table.get(), keys, hops, n, [](const V6Key& key) { return key.destination; });
}

}  // namespace warpline::router
