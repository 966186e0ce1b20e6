// SPDX-License-Identifier: Apache-2.0
#include "warpline/route/neighbour_frames.h"

#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "warpline/packet/byte_order.h"
#include "warpline/packet/checksum.h"
#include "warpline/packet/frame_testing.h"
#include "warpline/packet/responder.h"

namespace warpline::route {
namespace {

const RouterPort kPort{.mac = {{2, 0, 0, 0, 0, 1}},
                       .addresses = {*parse_interface_address("10.0.0.1/24"), *parse_interface_address("fd00::1/64")}};
constexpr MacAddress kPeerMac{{2, 0, 0, 0, 0, 9}};
const IpAddress kPeerV4 = *parse_ip("10.0.0.9");
const IpAddress kPeerV6 = *parse_ip("fd00::9");

packet::FrameBytes request(const RouterPort& from, const IpAddress& target, const std::optional<MacAddress>& to = {}) {
  packet::FrameBytes frame(kNeighbourRequestLength);
  frame.resize(write_neighbour_request(frame, from.mac, *asking_address(from, target), target, to));
  return frame;
}

std::optional<NeighbourNews> news_of(const packet::FrameBytes& bytes, const RouterPort& port = kPort) {
  packet::SegmentedFrame frame(bytes);
  return neighbour_news(frame.ref(), packet::parse(frame.ref()), port);
}

/// What the host with `peer` answers.
packet::FrameBytes answered(const packet::FrameBytes& question, const IpAddress& peer) {
  packet::SegmentedFrame frame(question);
  const packet::Responder responder(kPeerMac, {peer, 24});
  EXPECT_TRUE(responder.answer(frame.ref()));
  return frame.bytes();
}

TEST(NeighbourFrames, RequestsAreWellFormedAndTheirAnswersUnderstood) {
  for (const IpAddress& peer : {kPeerV4, kPeerV6}) {
    for (const auto& to : {std::optional<MacAddress>(), std::optional(kPeerMac)}) {
      const packet::FrameBytes question = request(kPort, peer, to);
      packet::SegmentedFrame frame(question);
      EXPECT_EQ(packet::verdict_of(frame.ref()), Verdict::forward);
      EXPECT_EQ((question[0] & 1) == 0, to.has_value());
      const auto news = news_of(answered(question, peer));
      ASSERT_TRUE(news) << to_string(peer);
      EXPECT_EQ(news->address, peer);
      EXPECT_EQ(news->evidence.mac, kPeerMac);
      EXPECT_TRUE(news->evidence.answers);
      EXPECT_FALSE(news->evidence.introduces);
    }
  }
}

TEST(NeighbourFrames, WhoAsksForUsIntroducesItself) {
  const RouterPort peer{.mac = kPeerMac, .addresses = {{kPeerV4, 24}, {kPeerV6, 64}}};
  for (const InterfaceAddress& own : kPort.addresses) {
    const auto news = news_of(request(peer, own.address));
    ASSERT_TRUE(news);
    EXPECT_EQ(news->evidence.mac, kPeerMac);
    EXPECT_TRUE(news->evidence.introduces);
    EXPECT_FALSE(news->evidence.answers);
  }
  const auto about_another = news_of(request(peer, *parse_ip("10.0.0.77")));
  ASSERT_TRUE(about_another);
  EXPECT_FALSE(about_another->evidence.introduces);
}

/// RFC 826, packet reception: the merge flag. Linux does the same where arp_accept is 0.
TEST(NeighbourFrames, AnArpReplyToAnotherHostChangesAnEntryAndAddsNone) {
  const RouterPort another{.mac = {{2, 0, 0, 0, 0, 7}}, .addresses = {*parse_interface_address("10.0.0.77/24")}};
  const auto news = news_of(answered(request(another, kPeerV4), kPeerV4));
  ASSERT_TRUE(news);
  NeighbourTable table(64);
  const NeighbourKey key = NeighbourKey::of(0, kPeerV4);
  EXPECT_FALSE(table.learn(key, news->evidence, Nanos{0}));
  EXPECT_EQ(table.find(key), NeighbourTable::kNobody);
  const std::uint32_t slot = table.find_or_add(key, Nanos{0});
  (void)table.learn(key, {.mac = another.mac, .answers = true}, Nanos{0});
  ASSERT_EQ(table.word(slot).state(), NeighbourState::reachable);
  (void)table.learn(key, news->evidence, Nanos{1});
  EXPECT_EQ(table.word(slot).state(), NeighbourState::stale) << "it is asked before it is believed";
  EXPECT_EQ(0, std::memcmp(kPeerMac.bytes.data(), std::array{table.word(slot).mac()}.data(), sizeof kPeerMac.bytes));
}

/// An advertisement of kPeerV6 from kPeerMac.
packet::FrameBytes advertisement(const Ipv6Address& to, std::uint32_t flags, bool link_layer) {
  const auto length = static_cast<std::uint16_t>(packet::NeighbourView::kHeaderLength +
                                                 (link_layer ? packet::NeighbourView::kOptionLength : 0));
  packet::FrameBytes frame(packet::EthernetView::kHeaderLength + packet::Ipv6View::kHeaderLength + length);
  std::uint8_t* const ip = frame.data() + packet::EthernetView::kHeaderLength;
  std::uint8_t* const message = ip + packet::Ipv6View::kHeaderLength;
  packet::emit(packet::EthernetHeader{kPort.mac, kPeerMac, packet::kEtherTypeIpv6}, frame.data());
  packet::emit(packet::Ipv6Header{.payload_length = length,
                                  .next_header = packet::kProtocolIcmpv6,
                                  .hop_limit = 255,
                                  .source = std::get<Ipv6Address>(kPeerV6),
                                  .destination = to},
               ip);
  packet::emit(packet::NeighbourMessage{.type = packet::kNeighbourAdvertisement,
                                        .flags = flags,
                                        .target = std::get<Ipv6Address>(kPeerV6),
                                        .has_link_layer = link_layer,
                                        .link_layer = kPeerMac},
               message);
  packet::ChecksumSum sum = packet::pseudo_header_v6(ip + packet::Ipv6View::kSource, packet::kProtocolIcmpv6, length);
  sum.add(message, length);
  packet::store_be16(message + packet::IcmpView::kChecksum, sum.checksum());
  return frame;
}

/// RFC 4861, 7.2.5: an advertisement adds no entry; without its option it completes none, and confirms the MAC address
/// that is known, whichever station sent the frame.
TEST(NeighbourFrames, AdvertisementsChangeEntriesAsTheirFlagsAndOptionSay) {
  const auto own = std::get<Ipv6Address>(kPort.addresses[1].address);
  const std::uint32_t flags = packet::kAdvertisementSolicited | packet::kAdvertisementOverride;
  EXPECT_FALSE(news_of(advertisement(std::get<Ipv6Address>(*parse_ip("fd00::77")), flags, true))) << "another host's";
  const auto all_nodes =
      news_of(advertisement(std::get<Ipv6Address>(*parse_ip("ff02::1")), packet::kAdvertisementOverride, true));
  const auto full = news_of(advertisement(own, flags, true));
  const auto bare = news_of(advertisement(own, flags, false));
  ASSERT_TRUE(all_nodes && full && bare);
  NeighbourTable table(64);
  const NeighbourKey key = NeighbourKey::of(0, kPeerV6);
  for (const auto* const news : {&all_nodes, &full, &bare}) (void)table.learn(key, (*news)->evidence, Nanos{0});
  EXPECT_EQ(table.find(key), NeighbourTable::kNobody);
  const std::uint32_t slot = table.find_or_add(key, Nanos{0});
  EXPECT_FALSE(table.learn(key, bare->evidence, Nanos{0}));
  EXPECT_EQ(table.word(slot).state(), NeighbourState::incomplete);
  EXPECT_TRUE(table.learn(key, {.mac = MacAddress{{2, 0, 0, 0, 0, 7}}}, Nanos{0}));
  const std::uint64_t known = table.word(slot).mac();
  (void)table.learn(key, bare->evidence, Nanos{1});
  EXPECT_EQ(table.word(slot).state(), NeighbourState::reachable);
  EXPECT_EQ(table.word(slot).mac(), known);
  (void)table.learn(key, all_nodes->evidence, Nanos{2});
  EXPECT_EQ(table.word(slot).state(), NeighbourState::stale);
  EXPECT_NE(table.word(slot).mac(), known);
}

/// A route may put a host on the link that no prefix of the port covers: what it says is for who asked for it.
TEST(NeighbourFrames, StrangersAreLearntFromOnlyIfTheyAreKnown) {
  const RouterPort stranger{.mac = kPeerMac, .addresses = {*parse_interface_address("10.9.0.9/8")}};
  const auto news = news_of(request(stranger, *parse_ip("10.0.0.1")));
  ASSERT_TRUE(news);
  EXPECT_FALSE(news->on_link);
  EXPECT_FALSE(news->evidence.introduces);
  NeighbourTable table(64);
  EXPECT_FALSE(news->is_for(table, 1));
  (void)table.find_or_add(NeighbourKey::of(1, stranger.addresses[0].address), Nanos{0});
  EXPECT_TRUE(news->is_for(table, 1));
  EXPECT_FALSE(news->is_for(table, 0)) << "it was asked for on another link";
}

TEST(NeighbourFrames, ImpostorsSayNothing) {
  const RouterPort impostor{.mac = kPeerMac, .addresses = kPort.addresses};
  EXPECT_FALSE(news_of(request(impostor, *parse_ip("10.0.0.9")))) << "has our address";
  const RouterPort group{.mac = {{3, 0, 0, 0, 0, 9}}, .addresses = {{kPeerV4, 24}}};
  EXPECT_FALSE(news_of(request(group, *parse_ip("10.0.0.1")))) << "a group is no station";
  packet::FrameBytes advertisement = answered(request(kPort, kPeerV6), kPeerV6);
  advertisement.back() ^= 1;
  EXPECT_FALSE(news_of(advertisement)) << "wrong checksum";
  advertisement.back() ^= 1;
  advertisement[packet::EthernetView::kHeaderLength + packet::Ipv6View::kHopLimit] = 254;
  EXPECT_FALSE(news_of(advertisement)) << "from beyond the link";
}

/// RFC 6724, 5, rules 2 and 8; RFC 4291, 2.5.6.
TEST(NeighbourFrames, ErrorsComeFromAnAddressOfTheSendersScope) {
  const RouterPort port{.addresses = {*parse_interface_address("fe80::1/64"), *parse_interface_address("fd07:1::1/64"),
                                      *parse_interface_address("2001:db8:1::1/64"),
                                      *parse_interface_address("10.0.0.1/24")}};
  EXPECT_EQ(error_source(port, *parse_ip("fd07:2::5")), *parse_ip("fd07:1::1"));
  EXPECT_EQ(error_source(port, *parse_ip("2001:db8:99::5")), *parse_ip("2001:db8:1::1"));
  EXPECT_EQ(error_source(port, *parse_ip("fe80::5")), *parse_ip("fe80::1"));
  EXPECT_EQ(error_source(port, *parse_ip("192.0.2.1")), *parse_ip("10.0.0.1"));
  const RouterPort unnumbered{.addresses = {*parse_interface_address("fe80::1/64")}};
  EXPECT_EQ(error_source(unnumbered, *parse_ip("fd07:2::5")), std::nullopt);
  EXPECT_EQ(error_source(unnumbered, *parse_ip("192.0.2.1")), std::nullopt);
}

TEST(NeighbourFrames, TheAskingAddressIsOnTheTargetsLink) {
  RouterPort port = kPort;
  port.addresses.insert(port.addresses.begin(), *parse_interface_address("10.5.0.1/16"));
  EXPECT_EQ(asking_address(port, kPeerV4), *parse_ip("10.0.0.1"));
  EXPECT_EQ(asking_address(port, *parse_ip("192.0.2.1")), *parse_ip("10.5.0.1"));
  port.addresses = {*parse_interface_address("fd00::1/64")};
  EXPECT_EQ(asking_address(port, kPeerV4), std::nullopt);
}

}  // namespace
}  // namespace warpline::route
