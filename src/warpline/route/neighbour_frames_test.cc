// SPDX-License-Identifier: Apache-2.0
#include "warpline/route/neighbour_frames.h"

#include <gtest/gtest.h>

#include <array>

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
