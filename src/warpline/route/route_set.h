// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <vector>

#include "warpline/base/address.h"

namespace warpline::route {

/// What a router knows of one of its ports.
struct RouterPort {
  MacAddress mac{};
  std::uint16_t mtu = 1500;
  std::vector<InterfaceAddress> addresses{};
};

enum class HopKind : std::uint8_t {
  none,     ///< no route: the hop of every destination that nothing else covers
  martian,  ///< a destination that no router passes on
  local,    ///< an address of the router itself
  on_link,  ///< the destination is a neighbour of the port
  gateway,  ///< the next hop is a neighbour of the port
};

/// Where packets go next.
struct NextHop {
  HopKind kind = HopKind::none;
  std::uint16_t port = 0;  ///< for on_link and gateway
  IpAddress gateway{};     ///< for gateway
  auto operator<=>(const NextHop&) const = default;
};

/// A prefix, its address in network order without bits behind `length`, and where it leads: an index into
/// RouteSet::hops.
template <typename Address>
struct Route {
  Address prefix{};
  std::uint8_t length = 0;
  std::uint32_t hop = 0;
  std::uint32_t line = 0;  ///< of the file that it came from; 0: the router's own
};
using Ipv4Route = Route<Ipv4Address>;
using Ipv6Route = Route<Ipv6Address>;

/// What an exact match looks at. For fragments and protocols without ports these are 0.
template <typename Address>
struct FlowKey {
  Address source;
  Address destination;
  std::array<std::uint8_t, 2> source_port{};  ///< network order
  std::array<std::uint8_t, 2> destination_port{};
  std::uint8_t protocol = 0;
  std::array<std::uint8_t, 3> zero{};  ///< so that keys are whole words
  auto operator<=>(const FlowKey&) const = default;
};
static_assert(sizeof(FlowKey<Ipv4Address>) == 16 && sizeof(FlowKey<Ipv6Address>) == 40);

template <typename Address>
struct FlowRoute {
  FlowKey<Address> key;
  std::uint32_t hop = 0;
  std::uint32_t line = 0;
};

/// Everything that one generation of lookup tables is made from. Each prefix and each flow is there once; routes are in
/// the order of their length, then of their prefix.
struct RouteSet {
  static constexpr std::uint32_t kNone = 0;     ///< index of the hop of kind none
  static constexpr std::uint32_t kMartian = 1;  ///< of kind martian
  static constexpr std::uint32_t kLocal = 2;    ///< of kind local

  std::vector<NextHop> hops;  ///< at most kMostHops, each once
  std::vector<Ipv4Route> v4;
  std::vector<Ipv6Route> v6;
  std::vector<FlowRoute<Ipv4Address>> flows_v4;
  std::vector<FlowRoute<Ipv6Address>> flows_v6;
  std::size_t from_file = 0;  ///< routes and flows of the file

  static constexpr std::size_t kMostHops = 1U << 20;  ///< what all lookup tables can tell apart
};

}  // namespace warpline::route
