// SPDX-License-Identifier: Apache-2.0
#include "vnic/steering/rss.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include <rte_ethdev.h>
#include <rte_thash.h>

#include "warpline/base/address.h"
#include "warpline/base/property_testing.h"
#include "warpline/packet/frame_testing.h"

namespace warpline::vnic {
namespace {

using packet::operator+;

struct Endpoints {
  const char* source;
  std::uint16_t source_port;
  const char* destination;
  std::uint16_t destination_port;
};

struct Vector {
  Endpoints endpoints;
  std::uint32_t addresses;  ///< hash over the addresses
  std::uint32_t ports;      ///< hash over addresses and ports
};

/// Microsoft, "Verifying the RSS Hash Calculation".
constexpr Vector kIpv4Vectors[] = {
    {{"66.9.149.187", 2794, "161.142.100.80", 1766}, 0x323e8fc2, 0x51ccc178},
    {{"199.92.111.2", 14230, "65.69.140.83", 4739}, 0xd718262a, 0xc626b0ea},
    {{"24.19.198.95", 12898, "12.22.207.184", 38024}, 0xd2d0a5de, 0x5c2b394a},
    {{"38.27.205.30", 48228, "209.142.163.6", 2217}, 0x82989176, 0xafc7327f},
    {{"153.39.163.191", 44251, "202.188.127.2", 1303}, 0x5d1809c5, 0x10e828a2},
};
constexpr Vector kIpv6Vectors[] = {
    {{"3ffe:2501:200:1fff::7", 2794, "3ffe:2501:200:3::1", 1766}, 0x2cc18cd5, 0x40207d3d},
    {{"3ffe:501:8::260:97ff:fe40:efab", 14230, "ff02::1", 4739}, 0x0f0c461c, 0xdde51bbf},
    {{"3ffe:1900:4545:3:200:f8ff:fe21:67cf", 44251, "fe80::200:f8ff:fe21:67cf", 38024}, 0x4b61e985, 0x02d1feef},
};

/// An IP frame of that protocol between the endpoints; its checksums are not right.
packet::FrameBytes frame_between(const Endpoints& ends, std::uint8_t protocol, bool vlan = false) {
  const IpAddress source = *parse_ip(ends.source);
  const IpAddress destination = *parse_ip(ends.destination);
  const packet::FrameBytes payload =
      protocol == packet::kProtocolTcp ? packet::tcp_segment({}) : packet::udp_datagram({});
  const bool ipv4 = std::holds_alternative<Ipv4Address>(source);
  packet::FrameBytes frame = ipv4 ? packet::ipv4_frame(protocol, payload) : packet::ipv6_frame(protocol, payload);
  std::uint8_t* header = frame.data() + packet::EthernetView::kHeaderLength;
  if (ipv4) {
    packet::store_address(header + packet::Ipv4View::kSource, std::get<Ipv4Address>(source));
    packet::store_address(header + packet::Ipv4View::kDestination, std::get<Ipv4Address>(destination));
  } else {
    packet::store_address(header + packet::Ipv6View::kSource, std::get<Ipv6Address>(source));
    packet::store_address(header + packet::Ipv6View::kDestination, std::get<Ipv6Address>(destination));
  }
  std::uint8_t* ports = header + (ipv4 ? packet::Ipv4View::kHeaderLength : packet::Ipv6View::kHeaderLength);
  packet::store_be16(ports, ends.source_port);
  packet::store_be16(ports + 2, ends.destination_port);
  return vlan ? packet::tagged(frame, 0x8100, 5) : frame;
}

Rss::Choice steer(const Rss& rss, const packet::FrameBytes& bytes) {
  packet::SegmentedFrame frame(bytes);
  return rss.steer(frame.ref().data(), packet::parse(frame.ref()));
}

TEST(Rss, MicrosoftsVectors) {
  Rss rss;
  for (const bool vlan : {false, true}) {
    for (const bool with_ports : {false, true}) {
      rss.set_fields(with_ports ? Rss::supported_fields() : RTE_ETH_RSS_IPV4 | RTE_ETH_RSS_IPV6);
      for (const std::uint8_t protocol : {packet::kProtocolTcp, packet::kProtocolUdp}) {
        for (const Vector& vector : kIpv4Vectors) {
          const Rss::Choice choice = steer(rss, frame_between(vector.endpoints, protocol, vlan));
          EXPECT_TRUE(choice.hashed);
          EXPECT_EQ(choice.hash, with_ports ? vector.ports : vector.addresses) << vector.endpoints.source;
        }
        for (const Vector& vector : kIpv6Vectors) {
          const Rss::Choice choice = steer(rss, frame_between(vector.endpoints, protocol, vlan));
          EXPECT_TRUE(choice.hashed);
          EXPECT_EQ(choice.hash, with_ports ? vector.ports : vector.addresses) << vector.endpoints.source;
        }
      }
    }
  }
}

WARPLINE_PROPERTY(Rss, HashesAsDpdkDoes, ()) {
  std::uint8_t key[Rss::kKeyBytes];
  for (std::uint8_t& byte : key) byte = *rc::gen::arbitrary<std::uint8_t>();
  // In whole words, as rte_softrss takes them.
  const auto words = *rc::gen::inRange<std::size_t>(1, Rss::kMaxInput / 4 + 1);
  const auto bytes = *rc::gen::container<std::vector<std::uint8_t>>(words * 4, rc::gen::arbitrary<std::uint8_t>());
  std::uint32_t tuple[Rss::kMaxInput / 4];
  for (std::size_t i = 0; i < words; ++i) tuple[i] = packet::load_be32(&bytes[i * 4]);
  Rss rss;
  rss.set_key(key);
  RC_ASSERT(std::equal(std::begin(key), std::end(key), rss.key().begin()));
  RC_ASSERT(rss.hash(bytes.data(), bytes.size()) == rte_softrss(tuple, static_cast<std::uint32_t>(words), key));
}

TEST(Rss, TheTableMakesAQueueOfTheHash) {
  Rss rss;
  rss.set_fields(Rss::supported_fields());
  rss.reset_table(3);
  EXPECT_EQ(rss.table[511], 511 % 3);
  rss.table[0x51ccc178 % Rss::kTableSize] = 17;
  EXPECT_EQ(steer(rss, frame_between(kIpv4Vectors[0].endpoints, packet::kProtocolTcp)).queue, 17);
  EXPECT_EQ(steer(rss, frame_between(kIpv4Vectors[1].endpoints, packet::kProtocolTcp)).queue, (0xc626b0ea & 511) % 3);
}

TEST(Rss, ConsecutiveFlowsSpreadOverAllQueues) {
  Rss rss;
  rss.set_fields(Rss::supported_fields());
  rss.reset_table(8);
  std::array<int, 8> hits{};
  for (std::uint16_t port = 0; port < 1024; ++port) {
    ++hits[steer(rss, frame_between({"198.18.0.1", port, "198.19.0.1", 9}, packet::kProtocolUdp)).queue];
  }
  for (const int n : hits) EXPECT_NEAR(n, 128, 40);
}

TEST(Rss, EachKindOfPacketHasItsField) {
  struct Case {
    const char* name;
    packet::FrameBytes frame;
    std::uint64_t own;
    std::uint64_t family;
  };
  packet::Ipv4Header fragment;
  fragment.more_fragments = true;
  const packet::FrameBytes other = packet::counting(40);
  packet::FrameBytes bad_udp = packet::ipv4_frame(packet::kProtocolUdp, packet::udp_datagram({}));
  packet::store_be16(bad_udp.data() + 38, 7);  // a length below the header's
  const Case cases[] = {
      {"udp4", packet::ipv4_frame(packet::kProtocolUdp, packet::udp_datagram({})), RTE_ETH_RSS_NONFRAG_IPV4_UDP,
       RTE_ETH_RSS_IPV4},
      {"tcp4", packet::ipv4_frame(packet::kProtocolTcp, packet::tcp_segment({})), RTE_ETH_RSS_NONFRAG_IPV4_TCP,
       RTE_ETH_RSS_IPV4},
      {"other4", packet::ipv4_frame(47, other), RTE_ETH_RSS_NONFRAG_IPV4_OTHER, RTE_ETH_RSS_IPV4},
      {"malformed4", bad_udp, RTE_ETH_RSS_NONFRAG_IPV4_OTHER, RTE_ETH_RSS_IPV4},
      {"fragment4", packet::ipv4_frame(packet::kProtocolUdp, other, fragment), RTE_ETH_RSS_FRAG_IPV4, RTE_ETH_RSS_IPV4},
      {"udp6", packet::ipv6_frame(packet::kProtocolUdp, packet::udp_datagram({})), RTE_ETH_RSS_NONFRAG_IPV6_UDP,
       RTE_ETH_RSS_IPV6},
      {"tcp6", packet::ipv6_frame(packet::kProtocolTcp, packet::tcp_segment({})), RTE_ETH_RSS_NONFRAG_IPV6_TCP,
       RTE_ETH_RSS_IPV6},
      {"other6", packet::ipv6_frame(47, other), RTE_ETH_RSS_NONFRAG_IPV6_OTHER, RTE_ETH_RSS_IPV6},
      {"fragment6", packet::ipv6_frame(44, packet::FrameBytes{17, 0, 0, 1, 0, 0, 0, 1} + other), RTE_ETH_RSS_FRAG_IPV6,
       RTE_ETH_RSS_IPV6},
      {"arp", packet::arp_frame({}), 0, 0},
      {"unknown", packet::ethernet_frame(0x88b5, other), 0, 0},
  };
  Rss rss;
  for (const Case& packet : cases) {
    for (const std::uint64_t field : {packet.own, packet.family}) {
      rss.set_fields(field);
      EXPECT_EQ(steer(rss, packet.frame).hashed, field != 0) << packet.name;
    }
    rss.set_fields(Rss::supported_fields() & ~(packet.own | packet.family));
    EXPECT_FALSE(steer(rss, packet.frame).hashed) << packet.name;
  }
}

}  // namespace
}  // namespace warpline::vnic
