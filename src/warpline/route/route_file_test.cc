// SPDX-License-Identifier: Apache-2.0
#include "warpline/route/route_file.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <set>

#include "warpline/base/property_testing.h"
#include "warpline/route/prefix.h"

namespace warpline::route {
namespace {

using testing::HasSubstr;

std::vector<RouterPort> two_ports() {
  return {{.mac = {{2, 0, 0, 0, 0, 1}},
           .addresses = {*parse_interface_address("10.0.0.1/24"), *parse_interface_address("fd00:1::1/64")}},
          {.mac = {{2, 0, 0, 0, 0, 2}},
           .addresses = {*parse_interface_address("10.0.1.1/24"), *parse_interface_address("fd00:2::1/64")}}};
}

Result<RouteSet> parsed(std::string_view text, bool flows = true) {
  return parse_routes(text, "r.txt", two_ports(), flows);
}

/// The longest route that covers `address`, the slow way.
template <typename Address>
NextHop hop_of(const RouteSet& set, const std::vector<Route<Address>>& routes, const Address& address) {
  std::uint32_t hop = RouteSet::kNone;
  for (const Route<Address>& route : routes) {  // in the order of their length
    if (covers(route.prefix, route.length, address)) hop = route.hop;
  }
  return set.hops[hop];
}

NextHop hop_of(const RouteSet& set, const char* address) {
  const IpAddress ip = *parse_ip(address);
  if (const auto* v4 = std::get_if<Ipv4Address>(&ip)) return hop_of(set, set.v4, *v4);
  return hop_of(set, set.v6, std::get<Ipv6Address>(ip));
}

NextHop gateway(std::uint16_t port, const char* address) { return {HopKind::gateway, port, *parse_ip(address)}; }

TEST(RouteFile, PortsAloneMakeLinksOwnAddressesAndMartians) {
  const auto set = read_routes("", two_ports(), false);
  ASSERT_TRUE(set.ok());
  EXPECT_EQ(set->from_file, 0U);
  EXPECT_EQ(hop_of(*set, "10.0.0.77").kind, HopKind::on_link);
  EXPECT_EQ(hop_of(*set, "10.0.1.77").port, 1);
  EXPECT_EQ(hop_of(*set, "fd00:2::77"), (NextHop{HopKind::on_link, 1, {}}));
  for (const char* own : {"10.0.0.1", "10.0.1.1", "fd00:1::1"})
    EXPECT_EQ(hop_of(*set, own).kind, HopKind::local) << own;
  for (const char* martian : {"10.0.0.0", "10.0.0.255", "127.0.0.1", "0.0.0.1", "224.0.0.1", "255.255.255.255",
                              "::", "::1", "ff02::1", "fe80::1", "::ffff:10.0.0.1"}) {
    EXPECT_EQ(hop_of(*set, martian).kind, HopKind::martian) << martian;
  }
  for (const char* nowhere : {"10.0.2.1", "192.0.2.1", "fd00:3::1"}) {
    EXPECT_EQ(hop_of(*set, nowhere).kind, HopKind::none) << nowhere;
  }
}

TEST(RouteFile, LinesLeadToGatewaysAndLinks) {
  const auto set = parsed(
      "# all of it\n"
      "\n"
      "0.0.0.0/0 via 10.0.1.2   # the default\r\n"
      "\t10.1.0.0/16 via 10.0.0.2 port 0\n"
      "10.1.2.0/24 port 1 via 10.0.1.3\n"
      "192.168.7.0/24 port 1\n"
      "::/0 via fd00:1::9\n"
      "fd00:9::/32 via fe80::5 port 1\n"
      "10.0.0.0/24 port 0\n"
      "flow 10.0.0.5 10.1.0.5 udp 1000 53 via 10.0.1.9\n"
      "flow fd00:1::5 fd00:9::5 50 port 1");
  ASSERT_TRUE(set.ok()) << set.error().message();
  EXPECT_EQ(set->from_file, 8U);  // 10.0.0.0/24 was there already
  EXPECT_EQ(hop_of(*set, "192.0.2.1"), gateway(1, "10.0.1.2"));
  EXPECT_EQ(hop_of(*set, "10.1.1.1"), gateway(0, "10.0.0.2"));
  EXPECT_EQ(hop_of(*set, "10.1.2.1"), gateway(1, "10.0.1.3"));
  EXPECT_EQ(hop_of(*set, "192.168.7.1"), (NextHop{HopKind::on_link, 1, {}}));
  EXPECT_EQ(hop_of(*set, "fd00:9::1"), gateway(1, "fe80::5"));
  EXPECT_EQ(hop_of(*set, "2001:db8::1"), gateway(0, "fd00:1::9"));
  EXPECT_EQ(hop_of(*set, "10.0.0.1").kind, HopKind::local);
  ASSERT_EQ(set->flows_v4.size(), 1U);
  const FlowKey<Ipv4Address>& key = set->flows_v4[0].key;
  EXPECT_EQ(key.protocol, 17);
  EXPECT_EQ(key.source_port, (std::array<std::uint8_t, 2>{1000 >> 8, 1000 & 255}));
  EXPECT_EQ(key.destination_port, (std::array<std::uint8_t, 2>{0, 53}));
  EXPECT_EQ(set->hops[set->flows_v4[0].hop], gateway(1, "10.0.1.9"));
  ASSERT_EQ(set->flows_v6.size(), 1U);
  EXPECT_EQ(set->flows_v6[0].key.protocol, 50);
}

TEST(RouteFile, WrongLinesAreNamedWithTheirReason) {
  constexpr struct {
    const char* line;
    const char* message;
  } kCases[] = {
      {"10.1.0.0 via 10.0.0.2", "'10.1.0.0' is no prefix; write it like 10.1.0.0/16 or fd00:1::/64"},
      {"10.1.0.0/33 via 10.0.0.2", "'10.1.0.0/33' is no prefix; write it like"},
      {"10.1/16 via 10.0.0.2", "'10.1/16' is no prefix; write it like"},
      {"10.1.2.0/16 via 10.0.0.2", "'10.1.2.0/16' has bits behind its length; write 10.1.0.0/16"},
      {"fd00::1/64 via fd00:1::2", "'fd00::1/64' has bits behind its length; write fd00::/64"},
      {"10.1.0.0/16", "it does not say where to; write PREFIX via GATEWAY, PREFIX port N, or both"},
      {"10.1.0.0/16 via", "nothing follows 'via'; write"},
      {"10.1.0.0/16 to 10.0.0.2", "'to' is not understood; write"},
      {"10.1.0.0/16 via 10.0.0.300", "'10.0.0.300' is no IP address; write it like"},
      {"10.1.0.0/16 via 10.0.0.2 via 10.0.0.3", "it has two gateways; write"},
      {"10.1.0.0/16 port 0 port 1", "it has two ports; write"},
      {"10.1.0.0/16 port 2", "there is no port '2'; there are ports 0 to 1"},
      {"10.1.0.0/16 port -1", "there is no port '-1'; there are ports"},
      {"10.1.0.0/16 via 192.168.1.1",
       "the gateway 192.168.1.1 is on no port's link; the links are 10.0.0.1/24 (port 0), fd00:1::1/64 (port 0), "
       "10.0.1.1/24 (port 1), fd00:2::1/64 (port 1)"},
      {"10.1.0.0/16 via 10.0.0.2 port 1", "the gateway 10.0.0.2 is not on the link of port 1; the links are"},
      {"10.1.0.0/16 via 10.0.0.255", "the gateway 10.0.0.255 is on no port's link; the links are"},
      {"10.1.0.0/16 via 10.0.0.1", "the gateway 10.0.0.1 is the router itself; name a neighbour"},
      {"10.1.0.0/16 via fd00:1::2", "destination and gateway fd00:1::2 are of two families; give both"},
      {"fd00:9::/64 via fe80::2", "the gateway fe80::2 may be on any link; add port N"},
      {"127.1.0.0/16 via 10.0.0.2", "no router passes on what goes to '127.1.0.0/16'; leave the line out"},
      {"10.0.1.0/24 port 0", "10.0.1.0/24 follows from the ports' addresses; leave the line out"},
      {"10.0.0.1/32 via 10.0.0.2", "10.0.0.1/32 follows from the ports' addresses; leave the line out"},
      {"10.1.0.0/16 a b c d e f g h i j k l", "it has too many words; write"},
      {"flow 10.0.0.5 10.1.0.5 udp 1000 via 10.0.1.9", "'via' is no port; write flow"},
      {"flow 10.0.0.5 10.1.0.5 udp", "a flow of tcp or udp has two ports; write flow"},
      {"flow 10.0.0.5 10.1.0.5 sctp", "'sctp' is no protocol; write tcp, udp or a number to 255"},
      {"flow 10.0.0.5 fd00::1 tcp 1 2 via 10.0.1.9", "one address is IPv4, the other IPv6; write flow"},
      {"flow 10.0.0.5 there tcp 1 2 via 10.0.1.9", "'there' is no IP address; write flow"},
      {"flow 10.0.0.5", "it is not said which flow; write flow"},
      {"flow 10.0.0.5 10.0.1.1 udp 1 2 port 1", "'10.0.1.1' follows from the ports' addresses; leave the line out"},
      {"flow 10.0.0.5 10.0.1.255 udp 1 2 port 1", "'10.0.1.255' follows from the ports' addresses; leave the line out"},
      {"flow 10.0.0.5 fd00:2::1 1 port 1", "one address is IPv4, the other IPv6"},
      {"flow fd00::5 fd00:2::1 1 port 1", "'fd00:2::1' follows from the ports' addresses; leave the line out"},
      {"flow 10.0.0.5 10.1.0.5 50", "it does not say where to; write"},
      {"\x01\x02",
       "'?"
       "?' is no prefix; write it like"},
  };
  for (const auto& [line, message] : kCases) {
    const auto set = parsed(fmt::format("10.9.0.0/16 via 10.0.0.9\n\n{}\n", line));
    ASSERT_FALSE(set.ok()) << line;
    EXPECT_EQ(set.error().kind, ErrorKind::usage);
    EXPECT_THAT(set.error().message(), HasSubstr(fmt::format("cannot use r.txt:3: {}", message)));
  }
}

TEST(RouteFile, WhatStandsTwiceIsNamed) {
  EXPECT_EQ(parsed("10.1.0.0/16 via 10.0.0.2\n#\n10.1.0.0/16 via 10.0.0.2").error().message(),
            "cannot use r.txt:3: 10.1.0.0/16 is in line 1 already; leave one out");
  EXPECT_EQ(parsed("flow 10.0.0.5 10.1.0.5 1 port 0\nflow 10.0.0.5 10.1.0.5 1 port 1").error().message(),
            "cannot use r.txt:2: the flow is in line 1 already; leave one out");
  auto ports = two_ports();
  ports[1].addresses = {*parse_interface_address("10.0.0.2/24")};
  EXPECT_EQ(parse_routes("", "r.txt", ports, false).error().message(),
            "cannot route by these addresses: 10.0.0.0/24 is on two ports; give each port a link of its own");
  ports[1].addresses = {*parse_interface_address("127.0.0.1/8")};
  EXPECT_EQ(parse_routes("", "r.txt", ports, false).error().message(),
            "cannot route by the address 127.0.0.1: it is a loopback, group or reserved one; give the port a host's "
            "address");
}

std::string error_with(const char* address, std::uint16_t mtu = 1500) {
  auto ports = two_ports();
  ports[1].mtu = mtu;
  ports[1].addresses = {*parse_interface_address(address)};
  const auto set = parse_routes("", "r.txt", ports, false);
  return set.ok() ? "" : set.error().message();
}

/// RFC 1122, 3.2.1.3, and RFC 3021; RFC 8200, 5.
TEST(RouteFile, PortsHaveTheAddressesOfHosts) {
  EXPECT_THAT(error_with("10.0.9.0/24"), HasSubstr("10.0.9.0/24: it is the address of the link itself, or of all"));
  EXPECT_THAT(error_with("10.0.9.255/24"), HasSubstr("10.0.9.255/24: it is the address of the link itself, or of all"));
  for (const char* good : {"10.0.9.0/31", "10.0.9.255/31", "10.0.9.0/32", "10.9.1.0/16"}) {
    EXPECT_EQ(error_with(good), "") << good;
  }
  EXPECT_THAT(error_with("10.9.0.1/0"), HasSubstr("10.9.0.1/0: every host would be on that link; give the length"));
  EXPECT_THAT(error_with("fd00:9::1/0"), HasSubstr("every host would be on that link"));
  EXPECT_THAT(error_with("fd00:9::1/64", 1200), HasSubstr("IPv6 needs an MTU of 1280, and port 1 has 1200"));
  EXPECT_EQ(error_with("fd00:9::1/64", 1280), "");
  EXPECT_EQ(error_with("10.9.0.1/24", 1200), "");
}

/// Routers have fe80::1 on every link.
TEST(RouteFile, PortsMayHaveTheSameLinkLocalAddress) {
  auto ports = two_ports();
  for (RouterPort& port : ports) port.addresses.push_back(*parse_interface_address("fe80::1/64"));
  const auto set = parse_routes("", "r.txt", ports, false);
  ASSERT_TRUE(set.ok()) << set.error().message();
  EXPECT_EQ(hop_of(*set, "fe80::1").kind, HopKind::local);
}

TEST(RouteFile, GatewaysOutsideEveryPrefixAreOnLinkWhereTheLineSaysSo) {
  auto ports = two_ports();
  ports[1].addresses = {*parse_interface_address("203.0.113.7/32")};
  const auto set = parse_routes("0.0.0.0/0 via 192.0.2.1 port 1 onlink\n", "r.txt", ports, false);
  ASSERT_TRUE(set.ok()) << set.error().message();
  EXPECT_EQ(hop_of(*set, "198.51.100.1"), gateway(1, "192.0.2.1"));
  for (const char* line : {"0.0.0.0/0 via 192.0.2.1 onlink", "0.0.0.0/0 port 1 onlink", "0.0.0.0/0 onlink"}) {
    EXPECT_THAT(parse_routes(line, "r.txt", ports, false).error().message(),
                HasSubstr("onlink is of a gateway and a port"));
  }
  EXPECT_THAT(parse_routes("0.0.0.0/0 via 224.0.0.1 port 1 onlink", "r.txt", ports, false).error().message(),
              HasSubstr("the gateway 224.0.0.1 is no host"));
  EXPECT_FALSE(parse_routes("::/0 via fd00::1 port 1 onlink", "r.txt", ports, false).ok()) << "no address to ask from";
}

TEST(RouteFile, FlowsAreForExactMatch) {
  EXPECT_EQ(parsed("flow 10.0.0.5 10.1.0.5 1 port 0", false).error().message(),
            "cannot use r.txt:1: a flow is for exact match; add --lookup exact, or leave the line out");
}

TEST(RouteFile, AFileThatCannotBeReadIsNamed) {
  EXPECT_THAT(read_routes("/absent/routes", two_ports(), false).error().message(),
              HasSubstr("cannot read the routes of /absent/routes: No such file or directory; give --routes"));
  EXPECT_THAT(read_routes("/", two_ports(), false).error().message(), HasSubstr("it is a folder"));
}

/// As of a network file system that is gone: it opens, and reading it fails.
TEST(RouteFile, AReadErrorIsAnErrorOfTheFile) {
  EXPECT_THAT(read_routes("/proc/self/mem", two_ports(), false).error().message(),
              HasSubstr("cannot read the routes of /proc/self/mem: Input/output error; give --routes"));
}

/// Any set of prefixes, written down in any order, is read back, each once and in order.
WARPLINE_PROPERTY(RouteFile, ReadsBackWhatWasWritten,
                  (const std::vector<std::pair<std::uint32_t, std::uint8_t>>& wanted)) {
  std::set<std::pair<unsigned, std::string>> written;
  std::string text;
  for (const auto& [bits, size] : wanted) {
    const unsigned length = 9 + size % 24;
    Ipv4Address address;
    std::memcpy(address.bytes.data(), &bits, 4);
    address.bytes[0] = static_cast<std::uint8_t>(11 + address.bytes[0] % 100);  // neither a martian nor ours
    const std::string prefix = to_string(IpAddress{masked(address, length)});
    if (!written.emplace(length, prefix).second) continue;
    text += fmt::format("{}/{} {}\n", prefix, length, bits % 2 == 0 ? "via 10.0.0.2" : "port 1");
  }
  const auto set = parsed(text);
  RC_ASSERT(set.ok());
  RC_ASSERT(set->from_file == written.size());
  std::set<std::pair<unsigned, std::string>> read;
  for (const Ipv4Route& route : set->v4) {
    if (route.line != 0) read.emplace(route.length, to_string(IpAddress{route.prefix}));
  }
  RC_ASSERT(read == written);
  RC_ASSERT(std::ranges::is_sorted(set->v4, {}, [](const Ipv4Route& r) { return std::pair(r.length, r.prefix); }));
}

}  // namespace
}  // namespace warpline::route
