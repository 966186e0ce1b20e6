// SPDX-License-Identifier: Apache-2.0
#include "warpline/transport/udp_socket.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/ip_icmp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "warpline/transport/nano_clock.h"

namespace warpline::transport {
namespace {

struct Arrived {
  std::vector<std::uint8_t> bytes;
  message::PeerAddress from;
  std::uint8_t ecn = 0;
};

message::PeerAddress loopback(bool v6, std::uint16_t port) {
  message::PeerAddress peer;
  peer.port = port;
  if (v6) {
    peer.ip[15] = 1;
  } else {
    peer.ip = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, 1};
  }
  return peer;
}

SocketAddress any_port(bool v6) {
  if (v6) return {Ipv6Address{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}}, 0};
  return {Ipv4Address{{127, 0, 0, 1}}, 0};
}

/// An IPv4-mapped address of 127.0.0.0/8.
message::PeerAddress loopback_v4(std::uint8_t last, std::uint16_t port) {
  return message::peer_address(Ipv4Address{{127, 0, 0, last}}, port);
}

std::unique_ptr<UdpSocket> open_socket(const UdpSocketConfig& config) {
  auto socket = UdpSocket::open(config);
  EXPECT_TRUE(socket.ok()) << socket.error().message();
  return std::move(socket).value();
}

/// Waits for `count` datagrams; fewer after ten seconds.
std::vector<Arrived> collect(UdpSocket& socket, std::size_t count) {
  const NanoClock clock;
  std::vector<Arrived> all;
  while (all.size() < count && clock.now() < Nanos{10'000'000'000}) {
    socket.wait(clock.now(), Nanos{10'000'000'000});
    for (const message::Datagram& datagram : socket.receive(clock.now())) {
      all.push_back({{datagram.head, datagram.head + datagram.head_length}, datagram.from, datagram.ecn});
    }
  }
  return all;
}

/// Datagram `i` of a test: a length and bytes of its own.
std::vector<std::uint8_t> made(std::size_t i, std::size_t length) {
  std::vector<std::uint8_t> bytes(length);
  for (std::size_t b = 0; b < length; ++b) bytes[b] = static_cast<std::uint8_t>(i * 31 + b * 7);
  return bytes;
}

/// Sends `lengths`, the first `in_head` bytes of each in the head and the rest gathered; returns the tokens given back.
std::vector<std::uint64_t> send_all(UdpSocket& socket, const message::PeerAddress& to,
                                    const std::vector<std::size_t>& lengths, std::size_t in_head, bool ecn,
                                    std::vector<std::vector<std::uint8_t>>& kept) {
  std::vector<std::uint64_t> tokens;
  kept.clear();
  for (std::size_t i = 0; i < lengths.size(); ++i) kept.push_back(made(i, lengths[i]));
  for (std::size_t at = 0; at < lengths.size();) {
    const std::span<message::Outgoing> room = socket.room();
    std::size_t count = 0;
    for (; count < room.size() && at < lengths.size(); ++count, ++at) {
      message::Outgoing& out = room[count];
      const auto head = static_cast<std::uint32_t>(std::min(in_head, kept[at].size()));
      std::copy_n(kept[at].begin(), head, out.head);
      out.head_length = head;
      out.payload = kept[at].data() + head;
      out.payload_length = static_cast<std::uint32_t>(kept[at].size()) - head;
      out.token = out.payload_length != 0 ? at + 1 : 0;
      out.ecn_capable = ecn;
      out.payload_device = false;
      out.to = to;
    }
    if (count != 0) socket.send(count, Nanos{0});
    const auto done = socket.completed();
    tokens.insert(tokens.end(), done.begin(), done.end());
  }
  return tokens;
}

class Sockets : public testing::TestWithParam<std::tuple<bool, bool>> {
 protected:
  [[nodiscard]] bool v6() const { return std::get<0>(GetParam()); }
  [[nodiscard]] UdpSocketConfig config() const {
    return {.local = any_port(v6()), .datagram_bytes = 8000, .aggregate = std::get<1>(GetParam())};
  }
};

TEST_P(Sockets, CarryEveryByteInOrderAndGiveTokensBackOnce) {
  const auto near = open_socket(config());
  const auto far = open_socket(config());
  // Runs of equal lengths with a shorter one at the end are what the kernel takes in one piece.
  std::vector<std::size_t> lengths;
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 30; ++i) lengths.push_back(1400);
    lengths.insert(lengths.end(), {700, 1, 0, 0, 64, 64, 65, 8000, 8000, 100});
  }
  std::vector<std::vector<std::uint8_t>> kept;
  const auto tokens = send_all(*near, loopback(v6(), far->port()), lengths, 100, false, kept);
  const std::vector<Arrived> arrived = collect(*far, lengths.size());
  ASSERT_EQ(arrived.size(), lengths.size());
  std::vector<std::uint64_t> wanted;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    EXPECT_EQ(arrived[i].bytes, kept[i]) << i;
    EXPECT_EQ(arrived[i].from, loopback(v6(), near->port()));
    EXPECT_EQ(arrived[i].ecn, 0);
    if (lengths[i] > 100) wanted.push_back(i + 1);
  }
  EXPECT_EQ(tokens, wanted);
  EXPECT_EQ(near->counters().sent.get(), lengths.size());
  EXPECT_EQ(far->counters().received.get(), lengths.size());
}

TEST_P(Sockets, CarryTheEcnBits) {
  const auto near = open_socket(config());
  const auto far = open_socket(config());
  std::vector<std::vector<std::uint8_t>> kept;
  (void)send_all(*near, loopback(v6(), far->port()), {100, 100, 100, 7}, 200, true, kept);
  (void)send_all(*near, loopback(v6(), far->port()), {100}, 200, false, kept);
  const std::vector<Arrived> arrived = collect(*far, 5);
  ASSERT_EQ(arrived.size(), 5U);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(arrived[static_cast<std::size_t>(i)].ecn, 2);
  EXPECT_EQ(arrived[4].ecn, 0);
}

INSTANTIATE_TEST_SUITE_P(Families, Sockets, testing::Combine(testing::Bool(), testing::Bool()));

TEST(UdpSocket, HasRoomForWhateverAnEndpointSends) {
  const auto socket = open_socket({.local = any_port(false), .datagram_bytes = 256});
  for (const message::Outgoing& out : socket->room()) EXPECT_GE(out.head_capacity, message::kMinHeadCapacity);
}

TEST(UdpSocket, SaysWhenTheKernelHadADatagram) {
  const NanoClock clock;
  const auto from = open_socket({.local = any_port(false)});
  const auto to = open_socket({.local = any_port(false)});
  constexpr std::int64_t kSlack = 200'000;  // two clocks are compared
  constexpr std::int64_t kRest = 5'000'000;
  // The kernel may hand a datagram over later than it was sent, and this thread may lose its processor between two
  // looks at clocks: it is said right when that does not happen.
  bool right = false;
  for (int tries = 0; tries < 200 && !right; ++tries) {
    std::vector<Nanos> sent;
    for (std::size_t i = 0; i < 3; ++i) {
      const auto bytes = made(i, 100 + i);
      message::Outgoing& out = from->room()[0];
      std::copy(bytes.begin(), bytes.end(), out.head);
      out.head_length = static_cast<std::uint32_t>(bytes.size());
      out.payload_length = 0;
      out.to = loopback(false, to->port());
      sent.push_back(clock.now());
      from->send(1, clock.now());
      (void)from->completed();
    }
    sent.push_back(clock.now());
    while (clock.now().value < sent.back().value + kRest) {
    }
    right = true;
    for (std::size_t seen = 0; seen < 3;) {
      for (const message::Datagram& datagram : to->receive(clock.now())) {
        ASSERT_LT(seen, 3U);
        const std::int64_t arrived = datagram.arrived.value;
        right = right && arrived >= sent[seen].value - kSlack && arrived <= sent[seen + 1].value + kSlack;
        ++seen;
      }
    }
    EXPECT_FALSE(to->more());
  }
  EXPECT_TRUE(right);
}

TEST(UdpSocket, OneOfIpv6TalksToBothFamilies) {
  const auto both = open_socket({.local = {Ipv6Address{}, 0}});
  for (const bool v6 : {false, true}) {
    const auto peer = open_socket({.local = any_port(v6)});
    std::vector<std::vector<std::uint8_t>> kept;
    (void)send_all(*peer, loopback(v6, both->port()), {50}, 200, true, kept);
    const std::vector<Arrived> there = collect(*both, 1);
    ASSERT_EQ(there.size(), 1U);
    EXPECT_EQ(there[0].from, loopback(v6, peer->port()));
    EXPECT_EQ(there[0].ecn, 2);
    (void)send_all(*both, there[0].from, {60}, 200, true, kept);
    const std::vector<Arrived> back = collect(*peer, 1);
    ASSERT_EQ(back.size(), 1U);
    EXPECT_EQ(back[0].bytes, kept[0]);
    EXPECT_EQ(back[0].ecn, 2);
  }
}

TEST(UdpSocket, WhatCannotBeSentIsCountedAndItsTokenComesBack) {
  const auto near = open_socket({.local = any_port(false)});
  const auto far = open_socket({.local = any_port(false)});
  const std::vector<std::uint8_t> bytes(300);
  const std::span<message::Outgoing> room = near->room();
  for (std::size_t i = 0; i < 3; ++i) {
    room[i].head_length = 10;
    room[i].payload = bytes.data();
    room[i].payload_length = 300;
    room[i].token = i + 1;
  }
  room[0].to = loopback(true, far->port());  // an IPv4 socket cannot
  room[1].to = loopback(false, far->port());
  room[1].payload_device = true;
  room[2].to = loopback(false, far->port());
  near->send(3, Nanos{0});
  const auto done = near->completed();
  EXPECT_EQ(std::vector<std::uint64_t>(done.begin(), done.end()), (std::vector<std::uint64_t>{1, 2, 3}));
  EXPECT_TRUE(near->completed().empty());
  EXPECT_EQ(near->counters().refused.get(), 2U);
  EXPECT_EQ(near->counters().sent.get(), 1U);
  EXPECT_EQ(collect(*far, 1).size(), 1U);
}

TEST(UdpSocket, LongerThanAgreedIsCountedNotHandedOut) {
  const auto near = open_socket({.local = any_port(false), .datagram_bytes = 4000});
  const auto far = open_socket({.local = any_port(false), .datagram_bytes = 512, .aggregate = false});
  std::vector<std::vector<std::uint8_t>> kept;
  (void)send_all(*near, loopback(false, far->port()), {513, 512}, 4000, false, kept);
  const std::vector<Arrived> arrived = collect(*far, 1);
  ASSERT_EQ(arrived.size(), 1U);
  EXPECT_EQ(arrived[0].bytes.size(), 512U);
  EXPECT_EQ(far->counters().truncated.get(), 1U);
}

/// Sends a datagram to each, all in one go.
void send_to(UdpSocket& socket, const std::vector<message::PeerAddress>& peers) {
  const auto room = socket.room();
  ASSERT_GE(room.size(), peers.size());
  for (std::size_t i = 0; i < peers.size(); ++i) {
    room[i].head[0] = static_cast<std::uint8_t>(i);
    room[i].head_length = 1;
    room[i].payload_length = 0;
    room[i].token = 0;
    room[i].payload_device = room[i].ecn_capable = false;
    room[i].to = peers[i];
  }
  socket.send(peers.size(), Nanos{0});
}

TEST(UdpSocket, OfAllAddressesAnswersFromTheOneThatWasAsked) {
  for (const bool v6 : {false, true}) {
    SCOPED_TRACE(v6 ? "::" : "0.0.0.0");
    const IpAddress all = v6 ? IpAddress{Ipv6Address{}} : IpAddress{Ipv4Address{}};
    const auto server = open_socket({.local = {all, 0}});
    const auto client = open_socket({.local = any_port(false)});
    std::vector<message::PeerAddress> asked;
    for (int i = 0; i < 8; ++i) asked.push_back(loopback_v4(static_cast<std::uint8_t>(2 + i % 3), server->port()));
    send_to(*client, asked);
    std::vector<message::PeerAddress> askers;
    for (const Arrived& arrived : collect(*server, asked.size())) {
      EXPECT_EQ(arrived.from, loopback_v4(1, client->port())) << "one peer, whatever it asked";
      askers.push_back(arrived.from);
    }
    send_to(*server, askers);
    std::vector<message::PeerAddress> answered;
    for (const Arrived& arrived : collect(*client, asked.size())) answered.push_back(arrived.from);
    EXPECT_EQ(answered, asked);
  }
}

/// A port that was somebody's.
std::uint16_t closed_port(bool v6) { return open_socket({.local = any_port(v6)})->port(); }

/// What the network says of what this socket sent; the first of it, after ten seconds an empty one.
std::vector<message::Unreachable> hear(UdpSocket& socket) {
  const NanoClock clock;
  while (clock.now() < Nanos{10'000'000'000}) {
    socket.wait(clock.now(), Nanos{10'000'000'000});
    (void)socket.receive(clock.now());
    const auto said = socket.unreachable();
    if (!said.empty()) return {said.begin(), said.end()};
  }
  return {};
}

struct Families {
  const char* name;
  bool socket_v6;
  bool peer_v6;
};

TEST(UdpSocket, SaysOfWhatNobodyTookWhatItWas) {
  for (const auto& [name, socket_v6, peer_v6] :
       {Families{"IPv4", false, false}, {"IPv6", true, true}, {"IPv4 of both", true, false}}) {
    SCOPED_TRACE(name);
    const SocketAddress local = socket_v6 && !peer_v6 ? SocketAddress{Ipv6Address{}, 0} : any_port(socket_v6);
    const auto near = open_socket({.local = local});
    const message::PeerAddress nobody = loopback(peer_v6, closed_port(peer_v6));
    std::vector<std::vector<std::uint8_t>> kept;
    (void)send_all(*near, nobody, {700}, 40, false, kept);
    const std::vector<message::Unreachable> said = hear(*near);
    ASSERT_EQ(said.size(), 1U);
    EXPECT_EQ(said[0].to, nobody);
    ASSERT_GE(said[0].payload.size(), 24U);
    EXPECT_TRUE(std::equal(said[0].payload.begin(), said[0].payload.end(), kept[0].begin()));
    EXPECT_EQ(near->counters().unreachable.get(), 1U);
    EXPECT_EQ(near->counters().refused.get(), 0U);
    (void)near->receive(Nanos{0});
    EXPECT_TRUE(near->unreachable().empty()) << "once";
  }
}

TEST(UdpSocket, WhatIsSentBesideGoesThereAllTheSame) {
  const auto near = open_socket({.local = any_port(false)});
  const auto far = open_socket({.local = any_port(false)});
  const message::PeerAddress nobody = loopback(false, closed_port(false));
  std::size_t arrived = 0;
  constexpr std::size_t kTurns = 2000;
  for (std::size_t i = 0; i < kTurns; ++i) {
    send_to(*near, {nobody, loopback(false, far->port()), nobody, loopback(false, far->port())});
    arrived += collect(*far, 2).size();
    if (i % 5 == 0) (void)near->receive(Nanos{0});
  }
  EXPECT_EQ(arrived, 2 * kTurns);
  EXPECT_EQ(near->counters().refused.get(), 0U);
  EXPECT_GT(near->counters().unreachable.get(), 0U);
}

TEST(UdpSocket, IsDeafForAWhileToWhoSaysTooMuch) {
  const auto near = open_socket({.local = any_port(false)});
  const auto far = open_socket({.local = any_port(false)});
  const message::PeerAddress nobody = loopback(false, closed_port(false));
  const NanoClock clock;
  const Nanos now{1'000'000'000};
  while (near->counters().icmp_muted.get() == 0 && clock.now() < Nanos{20'000'000'000}) {
    send_to(*near, {nobody, nobody});
    (void)near->receive(now);
  }
  EXPECT_EQ(near->counters().icmp_muted.get(), 1U);
  const std::uint64_t heard = near->counters().unreachable.get();
  for (int i = 0; i < 100; ++i) {
    send_to(*near, {nobody});
    (void)near->receive(now);
  }
  EXPECT_EQ(near->counters().unreachable.get(), heard);
  send_to(*far, {loopback(false, near->port())});
  EXPECT_EQ(collect(*near, 1).size(), 1U);
  (void)near->receive(Nanos{now.value + 1'000'000'000});
  while (near->counters().unreachable.get() == heard && clock.now() < Nanos{20'000'000'000}) {
    send_to(*near, {nobody});
    (void)near->receive(Nanos{now.value + 1'000'000'000});
  }
  EXPECT_GT(near->counters().unreachable.get(), heard);
}

std::uint16_t internet_checksum(std::span<const std::uint8_t> bytes) {  // RFC 1071
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) sum += bytes[i] << (i % 2 == 0 ? 8 : 0);
  while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
  return htons(static_cast<std::uint16_t>(~sum));
}

/// Sends ICMP messages of anybody (RFC 792) to a port of this machine: "destination unreachable, `code`", about a
/// datagram to a peer that it never had. False: this process may not.
bool forge_icmp(std::uint16_t port, std::uint8_t code, int count) {
  const int raw = ::socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMP);
  if (raw < 0) return false;
  std::array<std::uint8_t, 8 + 20 + 8> bytes{};
  const auto put = [&](std::size_t at, auto value) { std::memcpy(&bytes[at], &value, sizeof value); };
  put(0, std::uint8_t{3});
  put(1, code);
  put(6, htons(1280));  // MTU of the next hop, where "fragmentation needed" has it (RFC 1191)
  put(8, std::uint8_t{0x45});
  put(10, htons(1500));
  put(16, std::uint8_t{64});
  put(17, std::uint8_t{IPPROTO_UDP});
  put(20, htonl(0x7f000001));
  put(24, htonl(0xc0000237));  // 192.0.2.55
  put(18, internet_checksum(std::span(bytes).subspan(8, 20)));
  put(28, htons(port));
  put(30, htons(9));
  put(32, htons(1480));
  put(2, internet_checksum(bytes));
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_addr.s_addr = htonl(0x7f000001);
  bool sent = true;
  for (int i = 0; i < count; ++i) {
    sent = ::sendto(raw, bytes.data(), bytes.size(), 0, reinterpret_cast<const sockaddr*>(&to), sizeof to) > 0 && sent;
  }
  ::close(raw);
  return sent;
}

TEST(UdpSocket, ForgedIcmpRefusesNothingAndLeavesAggregationOn) {
  const auto near = open_socket({.local = any_port(false), .datagram_bytes = 1472});
  const auto far = open_socket({.local = any_port(false), .datagram_bytes = 1472});
  if (!near->segments()) GTEST_SKIP() << "the kernel has no UDP_SEGMENT";
  const std::vector<std::size_t> lengths(20, 1200);
  std::vector<std::vector<std::uint8_t>> kept;
  std::size_t sent = 0;
  for (const std::uint8_t code : {ICMP_FRAG_NEEDED, ICMP_HOST_UNREACH, ICMP_PORT_UNREACH}) {
    for (const int count : {1, 40, 300}) {
      SCOPED_TRACE(testing::Message() << count << " messages of code " << int{code});
      if (!forge_icmp(near->port(), code, count)) GTEST_SKIP() << "raw sockets are not permitted here";
      (void)send_all(*near, loopback(false, far->port()), lengths, 1200, false, kept);
      sent += lengths.size();
      EXPECT_EQ(collect(*far, lengths.size()).size(), lengths.size());
      // One alone, which meets an error that waited as its only message.
      if (!forge_icmp(near->port(), code, count)) GTEST_SKIP() << "raw sockets are not permitted here";
      send_to(*near, {loopback(false, far->port())});
      ++sent;
      EXPECT_EQ(collect(*far, 1).size(), 1U);
      EXPECT_TRUE(near->segments());
    }
  }
  EXPECT_GT(near->counters().icmp_other.get() + near->counters().unreachable.get(), 0U) << "the kernel took them";
  EXPECT_EQ(near->counters().refused.get(), 0U);
  EXPECT_EQ(near->counters().sent.get(), sent);
}

TEST(UdpSocket, AggregatesAgainAMinuteAfterADeviceCouldNot) {
  const auto near = open_socket({.local = any_port(false)});
  const auto far = open_socket({.local = any_port(false)});
  if (!near->segments()) GTEST_SKIP() << "the kernel has no UDP_SEGMENT";
  const std::vector<std::size_t> lengths(5, 1000);
  std::vector<std::vector<std::uint8_t>> kept;
  const auto send = [&] {
    (void)send_all(*near, loopback(false, far->port()), lengths, 1000, false, kept);
    EXPECT_EQ(collect(*far, lengths.size()).size(), lengths.size());
  };
  // Without checksums the kernel refuses UDP_SEGMENT (udp_send_skb(): EINVAL), as with a device that makes none.
  const auto checksums = [&](bool on) {
    const int none = on ? 0 : 1;
    ASSERT_EQ(::setsockopt(near->descriptor(), SOL_SOCKET, SO_NO_CHECK, &none, sizeof none), 0);
  };
  checksums(false);
  send();
  EXPECT_FALSE(near->segments());
  checksums(true);
  (void)near->receive(Nanos{59'000'000'000});
  EXPECT_FALSE(near->segments());
  (void)near->receive(Nanos{61'000'000'000});
  EXPECT_TRUE(near->segments());
  send();
  EXPECT_TRUE(near->segments());
  EXPECT_EQ(near->counters().refused.get(), 0U);
}

}  // namespace
}  // namespace warpline::transport
