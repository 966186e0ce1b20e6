// SPDX-License-Identifier: Apache-2.0
#include "warpline/packet/responder.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "warpline/packet/frame_testing.h"

namespace warpline::packet {
namespace {

constexpr std::uint32_t kIp = 14;
constexpr MacAddress kBroadcast{{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}};

Responder responder4() { return {kTestDestinationMac, {kTestDestinationV4, 24}}; }
Responder responder6() { return {kTestDestinationMac, {kTestDestinationV6, 64}}; }

FrameBytes arp_request() {
  ArpPacket packet;
  packet.sender_mac = kTestSourceMac;
  packet.sender_ip = kTestSourceV4;
  packet.target_ip = kTestDestinationV4;
  FrameBytes bytes = arp_frame(packet);
  store_address(bytes.data(), kBroadcast);
  return bytes + FrameBytes(18);
}

FrameBytes echo4(const FrameBytes& payload, const FrameBytes& options = {}) {
  return with_checksums(ipv4_frame(kProtocolIcmp, icmp_message(kIcmpEchoRequest, payload), {}, options));
}

FrameBytes echo6(const FrameBytes& payload) {
  return with_checksums(ipv6_frame(kProtocolIcmpv6, icmp_message(kIcmpv6EchoRequest, payload)));
}

/// To the solicited-node group of the responder's address.
FrameBytes solicitation(const FrameBytes& options, const Ipv6Address& source = kTestSourceV6) {
  FrameBytes message(NeighbourView::kHeaderLength);
  NeighbourMessage fields;
  fields.target = kTestDestinationV6;
  emit(fields, message.data());
  FrameBytes bytes = ipv6_frame(kProtocolIcmpv6, message + options, 255);
  store_address(bytes.data(), MacAddress{{0x33, 0x33, 0xff, 0x12, 0x34, 0x02}});
  store_address(bytes.data() + kIp + Ipv6View::kSource, source);
  store_address(bytes.data() + kIp + Ipv6View::kDestination,
                Ipv6Address{{0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, 0x12, 0x34, 2}});
  return with_checksums(bytes);
}

const FrameBytes kSourceOption{1, 1, 2, 0, 0, 0, 0, 1};
const FrameBytes kNonceOption{14, 1, 1, 2, 3, 4, 5, 6};

FrameBytes answer(const Responder& responder, const FrameBytes& bytes) {
  SegmentedFrame frame(bytes);
  EXPECT_TRUE(responder.answer(frame.ref()));
  return frame.bytes();
}

void expect_silence(const Responder& responder, const FrameBytes& bytes) {
  SegmentedFrame frame(bytes);
  EXPECT_FALSE(responder.answer(frame.ref()));
  EXPECT_EQ(frame.bytes(), bytes);
}

FrameBytes with(FrameBytes bytes, std::size_t at, std::uint8_t value) {
  bytes.at(at) = value;
  return bytes;
}

template <typename Header>
Header parsed(const FrameBytes& bytes, std::size_t at) {
  Header header;
  EXPECT_EQ(parse(bytes.data() + at, static_cast<std::uint32_t>(bytes.size() - at), header), Verdict::forward);
  return header;
}

TEST(Responder, ArpReply) {
  const FrameBytes reply = answer(responder4(), arp_request());
  EXPECT_EQ(parsed<EthernetHeader>(reply, 0), (EthernetHeader{kTestSourceMac, kTestDestinationMac, kEtherTypeArp}));
  const ArpPacket expected{kArpReply, kTestDestinationMac, kTestDestinationV4, kTestSourceMac, kTestSourceV4};
  EXPECT_EQ(parsed<ArpPacket>(reply, kIp), expected);
  EXPECT_EQ(reply.size(), arp_request().size());
}

TEST(Responder, ArpReplyInsideATagAndToAProbe) {
  const FrameBytes request = tagged(arp_request(), kEtherTypeVlan, 5);
  const FrameBytes reply = answer(responder4(), request);
  EXPECT_EQ(parsed<VlanTag>(reply, 14).id, 5);
  EXPECT_EQ(parsed<ArpPacket>(reply, 18).operation, kArpReply);
  FrameBytes probe = arp_request();  // RFC 5227: no sender address yet
  store_address(probe.data() + kIp + ArpView::kSenderIp, Ipv4Address{});
  EXPECT_EQ(parsed<ArpPacket>(answer(responder4(), probe), kIp).target_ip, Ipv4Address{});
}

TEST(Responder, NoReplyToOtherArp) {
  const FrameBytes request = arp_request();
  expect_silence(responder6(), request);
  expect_silence(responder4(), with(request, kIp + ArpView::kTargetIp + 3, 9));
  expect_silence(responder4(), with(request, kIp + ArpView::kOperation + 1, kArpReply));
  expect_silence(responder4(), with(request, kIp + ArpView::kSenderMac, 3));
  expect_silence(responder4(), with(request, EthernetView::kSource, 3));
  expect_silence(responder4(), with(request, EthernetView::kDestination, 0x04));
  FrameBytes gratuitous = request;
  store_address(gratuitous.data() + kIp + ArpView::kSenderIp, kTestDestinationV4);
  expect_silence(responder4(), gratuitous);
}

/// RFC 5227, 2.4: any ARP packet whose sender address is ours and whose sender hardware address is not.
TEST(Responder, ArpFromItsAddressByAnotherStationIsAConflict) {
  AddressWatch watch;
  const Responder responder(kTestDestinationMac, {kTestDestinationV4, 24}, {.watch = &watch});
  FrameBytes claim = arp_request();
  store_address(claim.data() + kIp + ArpView::kSenderIp, kTestDestinationV4);
  expect_silence(responder, claim);
  EXPECT_EQ(watch.conflicts(), 1U);
  EXPECT_EQ(watch.other(), kTestSourceMac);
  expect_silence(responder, with(claim, kIp + ArpView::kOperation + 1, kArpReply));
  EXPECT_EQ(watch.conflicts(), 2U);
  FrameBytes ours = claim;
  store_address(ours.data() + kIp + ArpView::kSenderMac, kTestDestinationMac);
  expect_silence(responder, ours);
  expect_silence(responder, with(claim, kIp + ArpView::kSenderMac, 3));
  (void)answer(responder, arp_request());
  FrameBytes probe = arp_request();
  store_address(probe.data() + kIp + ArpView::kSenderIp, Ipv4Address{});
  (void)answer(responder, probe);
  EXPECT_EQ(watch.conflicts(), 2U);
}

TEST(Responder, EchoReply) {
  const FrameBytes reply = answer(responder4(), echo4(counting(31)) + FrameBytes(3));
  EXPECT_EQ(parsed<EthernetHeader>(reply, 0), (EthernetHeader{kTestSourceMac, kTestDestinationMac, kEtherTypeIpv4}));
  const auto ip = parsed<Ipv4Header>(reply, kIp);
  EXPECT_EQ(ip.source, kTestDestinationV4);
  EXPECT_EQ(ip.destination, kTestSourceV4);
  EXPECT_EQ(ip.time_to_live, 64);
  const auto icmp = parsed<IcmpHeader>(reply, kIp + 20);
  EXPECT_EQ(icmp.type, kIcmpEchoReply);
  EXPECT_EQ(icmp.identifier, 0x1234);
  SegmentedFrame frame(reply);
  EXPECT_EQ(verdict_of(frame.ref()), Verdict::forward);
}

TEST(Responder, EchoReplyOfZeroesHasAChecksumThatReceiversTake) {
  FrameBytes zeroes = ipv4_frame(kProtocolIcmp, FrameBytes(16));
  zeroes[kIp + 20] = kIcmpEchoRequest;
  const FrameBytes reply = answer(responder4(), with_checksums(zeroes));
  EXPECT_EQ(parsed<IcmpHeader>(reply, kIp + 20).checksum, 0xffff);
}

TEST(Responder, EchoReplyOfIpv6) {
  const FrameBytes reply = answer(responder6(), echo6(counting(31)));
  const auto ip = parsed<Ipv6Header>(reply, kIp);
  EXPECT_EQ(ip.source, kTestDestinationV6);
  EXPECT_EQ(ip.destination, kTestSourceV6);
  EXPECT_EQ(parsed<IcmpHeader>(reply, kIp + 40).type, kIcmpv6EchoReply);
  SegmentedFrame frame(reply);
  EXPECT_EQ(verdict_of(frame.ref()), Verdict::forward);
}

TEST(Responder, EchoReplyBehindAnExtensionHeader) {
  const FrameBytes extension{kProtocolIcmpv6, 0, 1, 4, 0, 0, 0, 0};
  const FrameBytes request =
      ipv6_frame(kExtensionDestination, extension + icmp_message(kIcmpv6EchoRequest, counting(8)));
  const FrameBytes reply = answer(responder6(), with_checksums(request));
  EXPECT_EQ(parsed<IcmpHeader>(reply, kIp + 48).type, kIcmpv6EchoReply);
}

TEST(Responder, NoReplyToOtherProtocols) {
  expect_silence(responder4(), with_checksums(ipv4_frame(kProtocolUdp, udp_datagram(counting(8)))));
  expect_silence(responder6(), with_checksums(ipv6_frame(kProtocolTcp, tcp_segment(counting(8)))));
  expect_silence(responder4(), ethernet_frame(0x88cc, counting(40)));
  expect_silence(responder4(), counting(13));
}

TEST(Responder, NoReplyToOtherEcho) {
  const FrameBytes request = echo4(counting(8));
  expect_silence(responder6(), request);
  expect_silence(responder4(), echo6(counting(8)));
  expect_silence(responder4(), with(request, 5, 9));                         // another host's MAC address
  expect_silence(responder4(), with_checksums(with(request, kIp + 19, 9)));  // another IP address
  expect_silence(responder4(), with_checksums(with(request, kIp + 20, kIcmpEchoReply)));
  expect_silence(responder4(), with_checksums(with(request, kIp + 21, 1)));
  expect_silence(responder4(), with_checksums(with(request, kIp + Ipv4View::kSource, 224)));
  expect_silence(responder4(), with(request, request.size() - 1, 0xee));          // wrong checksum
  expect_silence(responder4(), echo4(counting(8), {131, 7, 4, 10, 0, 0, 1, 0}));  // on its way elsewhere
  FrameBytes broadcast = request;
  store_address(broadcast.data(), kBroadcast);
  expect_silence(responder4(), broadcast);
  Ipv4Header fragment;
  fragment.more_fragments = true;
  expect_silence(responder4(), ipv4_frame(kProtocolIcmp, icmp_message(kIcmpEchoRequest, counting(8)), fragment));
  expect_silence(responder6(), with_checksums(with(echo6(counting(8)), kIp + Ipv6View::kSource, 0xff)));
}

TEST(Responder, NeighbourAdvertisement) {
  const FrameBytes reply = answer(responder6(), solicitation(kSourceOption));
  EXPECT_EQ(parsed<EthernetHeader>(reply, 0), (EthernetHeader{kTestSourceMac, kTestDestinationMac, kEtherTypeIpv6}));
  const auto ip = parsed<Ipv6Header>(reply, kIp);
  EXPECT_EQ(ip.source, kTestDestinationV6);
  EXPECT_EQ(ip.destination, kTestSourceV6);
  EXPECT_EQ(ip.hop_limit, 255);
  EXPECT_EQ(ip.payload_length, 32);
  const auto message = parsed<NeighbourMessage>(reply, kIp + 40);
  EXPECT_EQ(message.type, kNeighbourAdvertisement);
  EXPECT_EQ(message.flags, kAdvertisementSolicited | kAdvertisementOverride);
  EXPECT_EQ(message.target, kTestDestinationV6);
  EXPECT_EQ(message.link_layer, kTestDestinationMac);
  SegmentedFrame frame(reply);
  EXPECT_EQ(verdict_of(frame.ref()), Verdict::forward);
}

TEST(Responder, NeighbourAdvertisementToTheAddressInTheOption) {
  const FrameBytes reply = answer(responder6(), solicitation(kNonceOption + with(kSourceOption, 7, 7)));
  EXPECT_EQ(reply[5], 7);
  EXPECT_EQ(parsed<Ipv6Header>(reply, kIp).payload_length, 32);
  SegmentedFrame frame(reply);
  EXPECT_EQ(verdict_of(frame.ref()), Verdict::forward);
}

TEST(Responder, NeighbourAdvertisementWhenAskedByUnicast) {
  FrameBytes request = solicitation(kSourceOption);
  store_address(request.data(), kTestDestinationMac);
  store_address(request.data() + kIp + Ipv6View::kDestination, kTestDestinationV6);
  const FrameBytes reply = answer(responder6(), with_checksums(request));
  EXPECT_EQ(parsed<Ipv6Header>(reply, kIp).destination, kTestSourceV6);
}

TEST(Responder, NeighbourAdvertisementToAllWhenTheAddressIsProbed) {
  const FrameBytes reply = answer(responder6(), solicitation(kNonceOption, Ipv6Address{}));
  EXPECT_EQ(load_address<MacAddress>(reply.data()), (MacAddress{{0x33, 0x33, 0, 0, 0, 1}}));
  EXPECT_EQ(parsed<Ipv6Header>(reply, kIp).destination,
            (Ipv6Address{{0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}}));
  EXPECT_EQ(parsed<NeighbourMessage>(reply, kIp + 40).flags, kAdvertisementOverride);
}

/// RFC 4862, 5.4.4; valid as RFC 4861, 7.1.2, has it.
TEST(Responder, AdvertisementOfItsAddressByAnotherStationIsAConflict) {
  AddressWatch watch;
  const Responder responder(kTestDestinationMac, {kTestDestinationV6, 64}, {.watch = &watch});
  const MacAddress other{{2, 0, 0, 0, 0, 0x55}};
  const FrameBytes probed = solicitation(kNonceOption, Ipv6Address{});
  const FrameBytes claim = answer(Responder(other, {kTestDestinationV6, 64}), probed);
  expect_silence(responder, claim);
  EXPECT_EQ(watch.conflicts(), 1U);
  EXPECT_EQ(watch.other(), other);
  expect_silence(responder, answer(responder6(), probed));  // our own, come back
  expect_silence(responder, with(claim, kIp + Ipv6View::kHopLimit, 64));
  expect_silence(responder, with(claim, claim.size() - 1, 0x56));  // a wrong checksum
  expect_silence(Responder(kTestDestinationMac, {kTestSourceV6, 64}, {.watch = &watch}), claim);
  expect_silence(responder6(), claim);
  EXPECT_EQ(watch.conflicts(), 1U);
}

TEST(Responder, NoReplyToOtherSolicitations) {
  const FrameBytes request = solicitation(kSourceOption);
  expect_silence(responder4(), request);
  expect_silence(responder6(), solicitation(kSourceOption, Ipv6Address{}));                    // RFC 4861, 7.1.1
  expect_silence(responder6(), solicitation(with(kSourceOption, 2, 3)));                       // a group's MAC address
  expect_silence(responder6(), with_checksums(with(request, kIp + Ipv6View::kHopLimit, 64)));  // from off the link
  expect_silence(responder6(), with_checksums(with(request, kIp + 39, 9)));       // another address's group
  expect_silence(responder6(), with_checksums(with(request, kIp + 40 + 23, 9)));  // another target
  expect_silence(responder6(), with_checksums(with(request, kIp + 40, kNeighbourAdvertisement)));
  expect_silence(responder6(), with(request, request.size() - 1, 0xee));  // wrong checksum
}

/// A frame with bytes behind it that do not belong to it yet.
FrameBytes answer_with_room(const Responder& responder, const FrameBytes& bytes) {
  SegmentedFrame longer(bytes + FrameBytes(Responder::kMostGrowth));
  EXPECT_TRUE(responder.answer(longer.ref()));
  return longer.bytes();
}

/// RFC 4862, 5.4.3: a node answers whoever probes its address, and 5.4.2: a probe has no option.
TEST(Responder, ProbesWithoutOptionsAreAnsweredToAllWithTheTargetsOption) {
  const FrameBytes probe = solicitation({}, Ipv6Address{});
  ASSERT_EQ(probe.size(), 78U);
  expect_silence(responder6(), probe);  // RFC 4861, 7.2.4: the option MUST be there, and there is no room for it
  const FrameBytes reply = answer_with_room(responder6(), probe);
  EXPECT_EQ(parsed<Ipv6Header>(reply, kIp).payload_length, 32);
  EXPECT_EQ(parsed<Ipv6Header>(reply, kIp).hop_limit, 255);
  EXPECT_EQ(to_string(IpAddress{parsed<Ipv6Header>(reply, kIp).destination}), "ff02::1");
  const auto message = parsed<NeighbourMessage>(reply, kIp + 40);
  EXPECT_EQ(message.flags, 0x2000'0000U) << "override, not solicited";
  EXPECT_TRUE(message.has_link_layer);
  EXPECT_EQ(message.link_layer, kTestDestinationMac);
  SegmentedFrame frame(reply);
  EXPECT_EQ(verdict_of(frame.ref()), Verdict::forward);
}

/// RFC 4861, 7.2.4: the target's option MAY be left out when the solicitation was unicast.
TEST(Responder, UnicastSolicitationsWithoutOptionsAreAnsweredInPlace) {
  FrameBytes request = solicitation({});
  store_address(request.data(), kTestDestinationMac);
  store_address(request.data() + kIp + Ipv6View::kDestination, kTestDestinationV6);
  request = with_checksums(request);
  const FrameBytes reply = answer(responder6(), request);
  EXPECT_EQ(reply.size(), request.size());
  EXPECT_EQ(parsed<Ipv6Header>(reply, kIp).payload_length, 24);
  const auto message = parsed<NeighbourMessage>(reply, kIp + 40);
  EXPECT_EQ(message.flags, 0x6000'0000U) << "solicited, override";
  EXPECT_FALSE(message.has_link_layer);
  EXPECT_EQ(load_address<MacAddress>(reply.data()), kTestSourceMac) << "where the frame came from";
  SegmentedFrame frame(reply);
  EXPECT_EQ(verdict_of(frame.ref()), Verdict::forward);
}

/// RFC 4861, 4.4: the flags are R, S and O, from the highest bit on.
TEST(Responder, RoutersSaySo) {
  const Responder router(kTestDestinationMac, {kTestDestinationV6, 64}, {.router = true});
  EXPECT_EQ(parsed<NeighbourMessage>(answer(router, solicitation(kSourceOption)), kIp + 40).flags, 0xe000'0000U);
}

/// A query as RFC 3810, 5.1, and RFC 2710, 3, have it.
FrameBytes query(const FrameBytes& message, const char* destination = "ff02::1", const char* source = "fe80::7",
                 const FrameBytes& extension = {kProtocolIcmpv6, 0, 5, 2, 0, 0, 1, 0}) {
  FrameBytes bytes = ipv6_frame(0, extension + message, 1);
  const auto to = std::get<Ipv6Address>(*parse_ip(destination));
  store_address(bytes.data(), group_mac(to));
  store_address(bytes.data() + kIp + Ipv6View::kSource, std::get<Ipv6Address>(*parse_ip(source)));
  store_address(bytes.data() + kIp + Ipv6View::kDestination, to);
  return with_checksums(bytes);
}

const FrameBytes kNoGroup(16);
const FrameBytes kOwnGroup{0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, 0x12, 0x34, 2};
const FrameBytes kQueryHead{130, 0, 0, 0, 0x27, 0x10, 0, 0};  // maximum response: 10 s
const FrameBytes kQueryTail{2, 125, 0, 0};                    // robustness 2, every 125 s, no source

std::string hex(const FrameBytes& bytes) {
  std::string text;
  for (const std::uint8_t byte : bytes) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

TEST(Responder, ListenerQueriesAreAnsweredWithTheSolicitedNodeGroup) {
  for (const char* to : {"ff02::1", "ff02::1:ff12:3402"}) {
    const bool general = std::string(to) == "ff02::1";
    const FrameBytes question = query(kQueryHead + (general ? kNoGroup : kOwnGroup) + kQueryTail, to);
    const FrameBytes reply = answer(responder6(), question);
    EXPECT_EQ(reply.size(), question.size());
    // RFC 3810, 5.2: to ff02::16 with hop limit 1 and a router alert (RFC 2711), one record, "is exclude" of no source;
    // from :: without a link-local address (5.2.13).
    EXPECT_EQ(hex({reply.begin(), reply.begin() + 62}),
              "333300000016"
              "020000000002"
              "86dd"
              "60000000"
              "0024"
              "00"
              "01"
              "00000000000000000000000000000000"
              "ff020000000000000000000000000016"
              "3a00050200000100");
    EXPECT_EQ(hex({reply.begin() + 66, reply.end()}),
              "00000001"
              "02000000"
              "ff0200000000000000000001ff123402");
    EXPECT_EQ(reply[62], 143);
    SegmentedFrame frame(reply);
    EXPECT_EQ(verdict_of(frame.ref()), Verdict::forward);
  }
}

/// RFC 3810, 8.2.1: a querier of version 1 gets reports of version 1 (RFC 2710, 3), to the group itself.
TEST(Responder, ListenerQueriesOfVersion1AreAnsweredInThatVersion) {
  const Responder responder(kTestDestinationMac, {kTestDestinationV6, 64},
                            {.reporter = std::get<Ipv6Address>(*parse_ip("fe80::2"))});
  const FrameBytes reply = answer(responder, query(kQueryHead + kNoGroup));
  EXPECT_EQ(hex({reply.begin(), reply.begin() + 62}),
            "3333ff123402"
            "020000000002"
            "86dd"
            "60000000"
            "0020"
            "00"
            "01"
            "fe800000000000000000000000000002"
            "ff0200000000000000000001ff123402"
            "3a00050200000100");
  EXPECT_EQ(reply[62], 131);
  EXPECT_EQ(hex({reply.begin() + 66, reply.end()}),
            "00000000"
            "ff0200000000000000000001ff123402");
  SegmentedFrame frame(reply);
  EXPECT_EQ(verdict_of(frame.ref()), Verdict::forward);
}

/// RFC 3810, 6.2: who wants all sources says of those asked about that it wants each.
TEST(Responder, ListenerQueriesAboutSourcesAreAnsweredWithThem) {
  const FrameBytes sources = counting(32);
  FrameBytes tail = kQueryTail;
  tail[3] = 2;
  const FrameBytes reply = answer(responder6(), query(kQueryHead + kOwnGroup + tail + sources, "ff02::1:ff12:3402"));
  EXPECT_EQ(hex({reply.begin() + 66, reply.end()}),
            "00000001"
            "01000002"
            "ff0200000000000000000001ff123402" +
                hex(sources));
  SegmentedFrame frame(reply);
  EXPECT_EQ(verdict_of(frame.ref()), Verdict::forward);
}

/// RFC 3810, 5.1.14, 6.2 and 8.1.
TEST(Responder, NoReplyToOtherListenerQueries) {
  const FrameBytes general = kQueryHead + kNoGroup + kQueryTail;
  expect_silence(responder4(), query(general));
  expect_silence({kTestDestinationMac, {kTestDestinationV6, 64}, {.queries = false}}, query(general));
  expect_silence(responder6(), query(general, "ff02::1", "fd00::7"));  // not from the link
  expect_silence(responder6(), query(general, "ff02::1", "::"));
  expect_silence(responder6(), query(general, "ff02::2"));  // not to us
  expect_silence(responder6(),
                 query(general, "ff02::1", "fe80::7", {kProtocolIcmpv6, 0, 1, 4, 0, 0, 0, 0}));  // no alert
  expect_silence(responder6(), query(general, "ff02::1", "fe80::7", {kProtocolIcmpv6, 0, 5, 2, 0, 1, 1, 0}));  // RSVP's
  expect_silence(responder6(), with(query(general), kIp + Ipv6View::kHopLimit, 2));
  expect_silence(responder6(), query(kQueryHead + kNoGroup + FrameBytes{2, 125}));         // of no version
  expect_silence(responder6(), query(kQueryHead + with(kOwnGroup, 15, 9) + kQueryTail));   // another group
  expect_silence(responder6(), query(kQueryHead + kOwnGroup + FrameBytes{2, 125, 0, 9}));  // sources that are not there
  FrameBytes damaged = query(general);
  damaged.back() ^= 1;
  expect_silence(responder6(), damaged);
}

TEST(Responder, ListenerQueriesThatArePassedOnAreNoted) {
  AddressWatch watch;
  const Responder responder(kTestDestinationMac, {kTestDestinationV6, 64}, {.queries = false, .watch = &watch});
  expect_silence(responder, query(kQueryHead + kNoGroup + kQueryTail));
  EXPECT_EQ(watch.take_queries(), AddressWatch::kQueryV2);
  EXPECT_EQ(watch.take_queries(), AddressWatch::kNoQuery);
  expect_silence(responder, query(kQueryHead + kNoGroup));
  EXPECT_EQ(watch.take_queries(), AddressWatch::kQueryV1);
  expect_silence(responder, query(kQueryHead + kNoGroup + kQueryTail, "ff02::1", "fd00::7"));  // not from the link
  EXPECT_EQ(watch.take_queries(), AddressWatch::kNoQuery);
}

TEST(Responder, NeighbourDiscoveryOnlyInTheFirstSegment) {
  SegmentedFrame frame(solicitation(kSourceOption), {60});
  EXPECT_FALSE(responder6().answer(frame.ref()));
  EXPECT_EQ(frame.bytes(), solicitation(kSourceOption));
}

RC_GTEST_PROP(ResponderProperty, EchoInAnySegmentsHasTheReplyOfOne, (bool v4, const FrameBytes& payload)) {
  const FrameBytes request = v4 ? echo4(payload) : echo6(payload);
  const Responder responder = v4 ? responder4() : responder6();
  auto cuts = *rc::gen::container<std::vector<std::uint32_t>>(10, rc::gen::inRange(0U, 20U));
  cuts.insert(cuts.begin(), *rc::gen::inRange(14U, 70U));
  SegmentedFrame whole(request);
  SegmentedFrame pieces(request, cuts);
  RC_ASSERT(responder.answer(whole.ref()));
  RC_ASSERT(responder.answer(pieces.ref()));
  RC_ASSERT(pieces.bytes() == whole.bytes());
  RC_ASSERT(verdict_of(pieces.ref()) == Verdict::forward);
  RC_ASSERT(!responder.answer(pieces.ref()));
}

}  // namespace
}  // namespace warpline::packet
