// SPDX-License-Identifier: Apache-2.0
#include "warpline/router/route_lookup.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "warpline/base/random.h"
#include "warpline/packet/byte_order.h"
#include "warpline/route/prefix.h"
#include "warpline/router/exact_tables.h"
#include "warpline/router/fib_tables.h"
#include "warpline/router/lpm_tables.h"

namespace warpline::router {
namespace {

constexpr std::uint32_t kHops = 1000;

/// Addresses in few enough places that prefixes nest and lie side by side.
template <typename Address>
Address draw(Random& random) {
  Address address{};
  for (std::uint8_t& byte : address.bytes) byte = static_cast<std::uint8_t>(random.below(4) * 85);
  address.bytes[0] = static_cast<std::uint8_t>(random.below(3));
  if (random.below(4) == 0) address.bytes.back() = static_cast<std::uint8_t>(random.next());
  return address;
}

template <typename Address>
std::vector<route::Route<Address>> draw_routes(Random& random, std::size_t count, bool with_default) {
  std::map<std::pair<unsigned, Address>, std::uint32_t> unique;
  for (std::size_t i = 0; i < count; ++i) {
    const auto length = static_cast<unsigned>(1 + random.below(sizeof(Address) * 8));
    unique[{length, route::masked(draw<Address>(random), length)}] =
        static_cast<std::uint32_t>(1 + random.below(kHops - 1));
  }
  if (with_default) unique[{0, Address{}}] = 7;
  std::vector<route::Route<Address>> routes;
  for (const auto& [prefix, hop] : unique) {
    routes.push_back({prefix.second, static_cast<std::uint8_t>(prefix.first), hop, 0});
  }
  return routes;
}

template <typename Address>
std::uint32_t slow_lookup(const std::vector<route::Route<Address>>& routes, const Address& address) {
  std::uint32_t hop = route::RouteSet::kNone;
  for (const route::Route<Address>& route : routes) {
    if (route::covers(route.prefix, route.length, address)) hop = route.hop;
  }
  return hop;
}

template <typename Address>
std::vector<Address> targets(Random& random, const std::vector<route::Route<Address>>& routes) {
  std::vector<Address> all;
  for (int i = 0; i < 200; ++i) all.push_back(draw<Address>(random));
  for (std::size_t i = 0; i < routes.size() && all.size() < datapath::kMaxBurst; ++i) {
    all.push_back(routes[i].prefix);  // the edges: the first address, and the one before it
    Address before = routes[i].prefix;
    for (auto byte = before.bytes.rbegin(); byte != before.bytes.rend(); ++byte) {
      --*byte;
      if (*byte != 0xff) break;
    }
    all.push_back(before);
  }
  all.resize(std::min<std::size_t>(all.size(), datapath::kMaxBurst));
  return all;
}

template <typename Lookup>
class RouteLookups : public testing::Test {};
using AllLookups = testing::Types<LpmTables, FibTables, ExactTables>;

std::uint32_t key_of(const LpmTables*, const Ipv4Address& address) { return packet::load_be32(address.bytes.data()); }
std::uint32_t key_of(const FibTables*, const Ipv4Address& address) { return packet::load_be32(address.bytes.data()); }
Ipv6Address key_of(const LpmTables*, const Ipv6Address& address) { return address; }
Ipv6Address key_of(const FibTables*, const Ipv6Address& address) { return address; }
template <typename Address>
route::FlowKey<Address> key_of(const ExactTables*, const Address& address) {
  return {.source = {}, .destination = address};
}

template <typename Lookup, typename Address>
void expect_same(const Lookup& tables, const std::vector<route::Route<Address>>& routes, Random& random) {
  const std::vector<Address> addresses = targets(random, routes);
  std::vector<decltype(key_of(&tables, addresses[0]))> keys;
  for (const Address& address : addresses) keys.push_back(key_of(&tables, address));
  std::vector<std::uint32_t> hops(keys.size());
  tables.find(keys.data(), hops.data(), static_cast<std::uint16_t>(keys.size()));
  for (std::size_t i = 0; i < keys.size(); ++i) {
    EXPECT_EQ(hops[i], slow_lookup(routes, addresses[i])) << to_string(IpAddress{addresses[i]});
  }
}

TYPED_TEST_SUITE(RouteLookups, AllLookups);

TYPED_TEST(RouteLookups, FindTheLongestPrefix) {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    Random random(seed);
    route::RouteSet set;
    set.hops.resize(kHops);
    set.v4 = draw_routes<Ipv4Address>(random, seed * 120, seed % 2 == 0);
    set.v6 = draw_routes<Ipv6Address>(random, seed * 120, seed % 2 == 0);
    const Result<TypeParam> tables = TypeParam::make(set, {.number = seed}, {});
    ASSERT_TRUE(tables.ok()) << tables.error().message();
    expect_same(*tables, set.v4, random);
    expect_same(*tables, set.v6, random);
  }
}

/// Larger sets, smaller ones, and of one family only, each made of the tables before.
TYPED_TEST(RouteLookups, FindTheSameInTablesThatHadOtherRoutes) {
  TypeParam tables;
  for (const std::uint64_t seed : {13, 1, 17, 0, 2, 3}) {
    Random random(seed);
    route::RouteSet set;
    set.hops.resize(kHops);
    set.v4 = draw_routes<Ipv4Address>(random, seed * 100, seed % 2 == 0);
    if (seed != 2) set.v6 = draw_routes<Ipv6Address>(random, seed * 100, seed % 2 == 1);
    Result<TypeParam> made = TypeParam::make(set, {.number = 30 + seed}, std::move(tables));
    ASSERT_TRUE(made.ok()) << made.error().message();
    tables = *std::move(made);
    expect_same(tables, set.v4, random);
    expect_same(tables, set.v6, random);
  }
}

TYPED_TEST(RouteLookups, FindNothingWithoutRoutes) {
  const Result<TypeParam> tables = TypeParam::make(route::RouteSet{}, {.number = 9}, {});
  ASSERT_TRUE(tables.ok());
  Random random(9);
  expect_same(*tables, std::vector<route::Ipv4Route>{}, random);
  expect_same(*tables, std::vector<route::Ipv6Route>{}, random);
}

TEST(ExactLookup, PrefersFlows) {
  Random random(4);
  route::RouteSet set;
  set.v4 = draw_routes<Ipv4Address>(random, 50, true);
  std::set<route::FlowKey<Ipv4Address>> keys;
  for (std::uint32_t i = 0; i < 3000; ++i) {
    route::FlowKey<Ipv4Address> key{draw<Ipv4Address>(random), draw<Ipv4Address>(random)};
    packet::store_be16(key.source_port.data(), static_cast<std::uint16_t>(random.next()));
    key.protocol = packet::kProtocolUdp;
    if (keys.insert(key).second) set.flows_v4.push_back({key, 100 + i, 0});
  }
  Result<ExactTables> tables = ExactTables::make(set, {.number = 20}, {});
  ASSERT_TRUE(tables.ok()) << tables.error().message();
  std::vector<route::FlowKey<Ipv4Address>> wanted;
  std::vector<std::uint32_t> expected;
  for (std::size_t i = 0; i < 300; ++i) {
    const auto& flow = set.flows_v4[i * set.flows_v4.size() / 300];
    route::FlowKey<Ipv4Address> key = flow.key;
    const bool other = i % 3 == 0;
    if (other) key.destination_port = {1, 1};
    wanted.push_back(key);
    expected.push_back(other ? slow_lookup(set.v4, key.destination) : flow.hop);
  }
  std::vector<std::uint32_t> hops(wanted.size());
  tables->find(wanted.data(), hops.data(), static_cast<std::uint16_t>(wanted.size()));
  EXPECT_EQ(hops, expected);

  const route::FlowKey<Ipv4Address> gone = set.flows_v4.back().key;
  set.flows_v4.resize(1);
  const Result<ExactTables> fewer = ExactTables::make(set, {.number = 21}, *std::move(tables));
  ASSERT_TRUE(fewer.ok()) << fewer.error().message();
  wanted = {set.flows_v4.front().key, gone};
  fewer->find(wanted.data(), hops.data(), 2);
  EXPECT_EQ(hops[0], set.flows_v4.front().hop);
  EXPECT_EQ(hops[1], slow_lookup(set.v4, gone.destination)) << "made of the tables before, without their flows";
}

TEST(SecondLevelTables, AreCountedOncePerPrefix) {
  const auto route = [](const char* text, std::uint8_t length) {
    return route::Ipv4Route{std::get<Ipv4Address>(*parse_ip(text)), length, 1, 0};
  };
  EXPECT_EQ(second_level_tables(std::vector<route::Ipv4Route>{}), 0U);
  EXPECT_EQ(second_level_tables({route("10.0.0.0", 8), route("10.0.0.0", 24), route("10.0.0.4", 30),
                                 route("10.0.0.9", 32), route("10.0.1.0", 25)}),
            2U);
}

}  // namespace
}  // namespace warpline::router
