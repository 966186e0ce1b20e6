// SPDX-License-Identifier: Apache-2.0
// Sockets of one address, a thread each: which of them has a packet.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <vector>

#include "warpline/packet/headers/message_header.h"
#include "warpline/transport/nano_clock.h"
#include "warpline/transport/udp_socket.h"

namespace warpline::transport {
namespace {

constexpr std::uint32_t kSockets = 4;
constexpr SocketAddress kV4{Ipv4Address{{127, 0, 0, 1}}, 0};
constexpr SocketAddress kV6{Ipv6Address{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}}, 0};

using Group = std::vector<std::unique_ptr<UdpSocket>>;
using Bytes32 = std::array<std::uint8_t, 32>;

Group open_group(const SocketAddress& local, std::uint32_t count = kSockets) {
  auto group = UdpSocket::open_group({.local = local}, count);
  EXPECT_TRUE(group.ok()) << group.error().message();
  return std::move(group).value();
}

/// A socket that has sent this to the group's address.
std::unique_ptr<UdpSocket> send(const SocketAddress& to, const Group& group, const Bytes32& bytes) {
  auto from = UdpSocket::open({.local = to}).value();
  message::Outgoing& out = from->room()[0];
  std::copy(bytes.begin(), bytes.end(), out.head);
  out.head_length = static_cast<std::uint32_t>(bytes.size());
  out.payload_length = 0;
  out.token = 0;
  out.payload_device = out.ecn_capable = false;
  out.to = message::peer_address(to.address, group.front()->port());
  from->send(1, Nanos{0});
  return from;
}

/// The number of the socket that has got one datagram, all others none. Loopback delivers inside of the sender's call.
std::uint32_t receiver(const Group& group) {
  std::uint32_t found = kSockets;
  std::size_t all = 0;
  for (std::uint32_t i = 0; i < group.size(); ++i) {
    const std::size_t count = group[i]->receive(NanoClock().now()).size();
    if (count != 0) found = i;
    all += count;
  }
  EXPECT_EQ(all, 1U);
  return found;
}

Bytes32 packet_of(packet::MessagePacketType type, std::uint8_t endpoint) {
  Bytes32 bytes{};
  packet::MessagePrefix::store(bytes.data(), type, 0, 0);
  bytes[4] = endpoint;
  bytes[7] = 9;
  return bytes;
}

TEST(SocketGroup, HasASessionsPacketsWhereItsEndpointIsWhateverPortTheyComeFrom) {
  for (const SocketAddress& local : {kV4, kV6}) {
    const Group group = open_group(local);
    for (std::uint32_t i = 0; i < 64; ++i) {
      const auto endpoint = static_cast<std::uint8_t>(i % kSockets);
      const auto from = send(local, group, packet_of(packet::MessagePacketType::session, endpoint));
      EXPECT_EQ(receiver(group), endpoint);
    }
  }
}

TEST(SocketGroup, HasAllElseByItsSenderWhateverItSays) {
  const Group group = open_group(kV4);
  std::array<std::uint32_t, kSockets> hellos{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    const auto from = send(kV4, group, packet_of(packet::MessagePacketType::hello, 1));
    const std::uint32_t first = receiver(group);
    ++hellos[first];
    const auto again = [&](const Bytes32& bytes) {
      const message::Outgoing& out = from->room()[0];
      std::copy(bytes.begin(), bytes.end(), out.head);
      from->send(1, Nanos{0});
      EXPECT_EQ(receiver(group), first);
    };
    again(packet_of(packet::MessagePacketType::hello, static_cast<std::uint8_t>(i)));
    again(packet_of(packet::MessagePacketType::reset, static_cast<std::uint8_t>(i)));
    again(packet_of(packet::MessagePacketType::session, kSockets));
    again(packet_of(packet::MessagePacketType::session, 255));
  }
  EXPECT_GT(*std::ranges::min_element(hellos), 0U) << "256 ports, and none of them for a socket";
}

TEST(SocketGroup, GetsWhatIsTooShortToNameAnything) {
  const Group group = open_group(kV4);
  for (std::uint32_t length = 1; length < 6; ++length) {
    const auto from = UdpSocket::open({.local = kV4}).value();
    message::Outgoing& out = from->room()[0];
    const Bytes32 bytes = packet_of(packet::MessagePacketType::session, 1);
    std::copy(bytes.begin(), bytes.end(), out.head);
    out.head_length = length;
    out.payload_length = 0;
    out.token = 0;
    out.payload_device = out.ecn_capable = false;
    out.to = message::peer_address(kV4.address, group.front()->port());
    from->send(1, Nanos{0});
    EXPECT_LT(receiver(group), kSockets);
  }
}

TEST(SocketGroup, HasItsPortToItself) {
  const Group group = open_group(kV4);
  SocketAddress taken = kV4;
  taken.port = group.front()->port();
  for (const auto& socket : group) EXPECT_EQ(socket->port(), taken.port);
  const auto second = UdpSocket::open_group({.local = taken}, 2);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().kind, ErrorKind::environment);
  EXPECT_FALSE(UdpSocket::open({.local = taken}).ok());
}

TEST(SocketGroup, OfOneIsASocket) {
  const Group group = open_group(kV4, 1);
  const auto from = send(kV4, group, packet_of(packet::MessagePacketType::session, 7));
  EXPECT_EQ(receiver(group), 0U);
}

TEST(SocketGroup, IsOfOneTo256) {
  for (const std::uint32_t count : {0U, 257U}) {
    const auto group = UdpSocket::open_group({.local = kV4}, count);
    ASSERT_FALSE(group.ok());
    EXPECT_EQ(group.error().kind, ErrorKind::usage);
  }
}

}  // namespace
}  // namespace warpline::transport
