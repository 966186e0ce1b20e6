// SPDX-License-Identifier: Apache-2.0
#include "warpline/flow/packet_reading.h"

#include <gtest/gtest.h>

#include <string_view>
#include <vector>

#include "warpline/packet/frame_testing.h"

namespace warpline::flow {
namespace {

using packet::FrameBytes;
using packet::operator+;

FramePlan plan_of(std::string_view text, PacketForm form = PacketForm::datagram) {
  return *make_frame_plan(*parse_frame_description(text), form);
}

PacketReading reading_of(const FramePlan& plan, const FrameBytes& bytes, const std::vector<std::uint32_t>& cuts = {}) {
  packet::SegmentedFrame frame(bytes, cuts);
  return read_packet(plan, frame.ref());
}

/// Whatever the packet is cut to, in length or into pieces, no byte beyond it is looked at, and only the whole is
/// placed.
void expect_cuts_do_no_harm(const FramePlan& plan, const FrameBytes& bytes, std::uint32_t needed) {
  const PacketReading whole = reading_of(plan, bytes);
  for (std::uint32_t length = 0; length <= bytes.size(); ++length) {
    const PacketReading cut = reading_of(plan, FrameBytes(bytes.begin(), bytes.begin() + length));
    EXPECT_EQ(cut.placement == Placement::placed, length >= needed) << length;
    const PacketReading pieces = reading_of(plan, bytes, {length / 2, length - length / 2});
    EXPECT_EQ(pieces.placement, whole.placement);
    EXPECT_EQ(pieces.number, whole.number);
    EXPECT_EQ(pieces.key, whole.key);
    EXPECT_EQ(pieces.payload_offset, whole.payload_offset);
  }
}

FrameBytes spead_item(bool immediate, std::uint16_t id, std::uint64_t value) {
  FrameBytes bytes(8);
  packet::store_be64(bytes.data(), (immediate ? 1ULL << 63 : 0) | std::uint64_t{id} << 48 | value);
  return bytes;
}

struct SpeadPacket {
  std::uint64_t heap = 7;
  std::uint64_t size = 2500;
  std::uint64_t offset = 0;
  std::uint64_t length = 900;
  std::uint32_t magic = 0x53040206;
  bool more_items = true;

  [[nodiscard]] FrameBytes bytes() const {
    FrameBytes header(8);
    packet::store_be32(header.data(), magic);
    header[7] = more_items ? 6 : 4;
    FrameBytes all = std::move(header) + spead_item(true, 1, heap) + spead_item(true, 2, size) +
                     spead_item(true, 3, offset) + spead_item(true, 4, length);
    if (more_items) all = std::move(all) + spead_item(true, 0x1600, 99) + spead_item(false, 0x3300, 0);
    return std::move(all) + packet::counting(static_cast<std::size_t>(length));
  }
};

TEST(PacketReading, NumbersAtFixedPlaces) {
  const FrameBytes bytes{0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, 0xfe, 1, 2, 3};
  const auto number = [&](std::string_view seq) {
    return reading_of(plan_of("packets=1,window=1,jump=1,payload=8:4,seq=" + std::string(seq)), bytes).number;
  };
  EXPECT_EQ(number("0:64"), 0x0123456789abcdefU);
  EXPECT_EQ(number("0:64:le"), 0xefcdab8967452301U);
  EXPECT_EQ(number("2:16"), 0x4567U);
  EXPECT_EQ(number("2:16:le"), 0x6745U);
  EXPECT_EQ(number("1:20"), 0x34567U) << "the low 20 bits of 3 bytes";
  EXPECT_EQ(number("1:20:le"), 0x74523U);
  EXPECT_EQ(number("7:5"), 0x0fU);
}

TEST(PacketReading, ShortPacketsAreNamed) {
  const FramePlan plan = plan_of("packets=4,seq=0:64,payload=8:20,stream=4:16");
  const FrameBytes bytes = packet::counting(31);
  expect_cuts_do_no_harm(plan, bytes, 28);
  EXPECT_EQ(reading_of(plan, packet::counting(27)).placement, Placement::too_short);
  EXPECT_EQ(reading_of(plan, bytes).key, 0x0405U);
}

TEST(PacketReading, PartsOfSpeadHeaps) {
  const FramePlan plan = plan_of("format=spead,packets=6,payload=1000,heap=2500,first=900");
  const PacketReading first = reading_of(plan, SpeadPacket{}.bytes());
  EXPECT_EQ(first.placement, Placement::placed);
  EXPECT_EQ(first.number, 7U);
  EXPECT_EQ(first.part, 0U);
  EXPECT_EQ(first.payload_offset, 8U + 6 * 8);
  const PacketReading last = reading_of(plan, SpeadPacket{.offset = 1900, .length = 600, .more_items = false}.bytes());
  EXPECT_EQ(last.placement, Placement::placed);
  EXPECT_EQ(last.part, 2U);
  EXPECT_EQ(last.payload_offset, 8U + 4 * 8);
  const auto bytes = SpeadPacket{}.bytes();
  expect_cuts_do_no_harm(plan, bytes, static_cast<std::uint32_t>(bytes.size()));
}

TEST(PacketReading, WhatIsNoSpeadPacketOfTheHeapIsNamed) {
  const FramePlan plan = plan_of("format=spead,packets=6,payload=1000,heap=2500,first=900");
  const auto placement = [&](const SpeadPacket& of) { return reading_of(plan, of.bytes()).placement; };
  EXPECT_EQ(placement({.magic = 0x53040306}), Placement::malformed);
  EXPECT_EQ(placement({.size = 900}), Placement::unrelated) << "descriptors, the end of a stream";
  EXPECT_EQ(placement({.offset = 1}), Placement::malformed);
  EXPECT_EQ(placement({.offset = 901, .length = 1000}), Placement::malformed);
  EXPECT_EQ(placement({.offset = 900, .length = 999}), Placement::malformed);
  EXPECT_EQ(placement({.offset = 2900, .length = 1000}), Placement::malformed);
  EXPECT_EQ(placement({.offset = (1ULL << 47) + 900, .length = 1000}), Placement::malformed);
  FrameBytes without = SpeadPacket{}.bytes();
  without[8 + 2 * 8 + 1] = 9;  // another item where the offset was
  EXPECT_EQ(reading_of(plan, without).placement, Placement::malformed);
  FrameBytes endless = SpeadPacket{}.bytes();
  endless[6] = 0xff;
  EXPECT_EQ(reading_of(plan, endless).placement, Placement::too_short);
}

/// With stream identifier, seconds, fraction and, if asked for, class and trailer.
FrameBytes vita_packet(std::uint32_t type, std::uint32_t tsf, bool more, std::uint32_t seconds,
                       std::uint64_t fraction) {
  FrameBytes bytes(4 + 4 + (more ? 8 : 0) + 4 + 8);
  std::uint8_t* at = bytes.data() + 4;
  packet::store_be32(at, 0xabcd);
  at += more ? 12 : 4;
  packet::store_be32(at, seconds);
  packet::store_be64(at + 4, fraction);
  bytes = std::move(bytes) + packet::counting(more ? 44 : 40);
  const auto words = static_cast<std::uint32_t>(bytes.size() / 4);
  packet::store_be32(bytes.data(), type << 28 | (more ? 3U << 26 : 0) | 1U << 22 | tsf << 20 | words);
  return bytes;
}

TEST(PacketReading, TimestampsOfVita49) {
  const FramePlan counted = plan_of("format=vita49,packets=4,payload=40,step=10,rate=1000,stream=4:32");
  const PacketReading plain = reading_of(counted, vita_packet(1, 1, false, 3, 250));
  EXPECT_EQ(plain.placement, Placement::placed);
  EXPECT_EQ(plain.number, 3250U);
  EXPECT_EQ(plain.payload_offset, 20U);
  EXPECT_EQ(plain.key, 0xabcdU);
  const PacketReading more = reading_of(counted, vita_packet(1, 1, true, 3, 251));
  EXPECT_EQ(more.number, 3251U);
  EXPECT_EQ(more.payload_offset, 28U);
  EXPECT_EQ(reading_of(counted, vita_packet(4, 1, false, 3, 0)).placement, Placement::unrelated) << "context";
  EXPECT_EQ(reading_of(counted, vita_packet(1, 3, false, 3, 0)).placement, Placement::malformed) << "no sample count";
  const FramePlan free_running = plan_of("format=vita49,packets=4,payload=40,step=10");
  EXPECT_EQ(reading_of(free_running, vita_packet(1, 3, false, 3, 250)).number, 250U);
  EXPECT_EQ(reading_of(free_running, vita_packet(1, 1, false, 3, 250)).placement, Placement::malformed);
  const FrameBytes bytes = vita_packet(1, 1, true, 3, 250);
  expect_cuts_do_no_harm(counted, bytes, static_cast<std::uint32_t>(bytes.size()));
  FrameBytes lies = vita_packet(1, 1, false, 3, 250);
  lies[3] = 4;  // words
  EXPECT_EQ(reading_of(counted, lies).placement, Placement::malformed);
}

TEST(PacketReading, UdpInEthernetFrames) {
  const FramePlan plan = plan_of("format=counter,packets=4,payload=8,stream=5-tuple", PacketForm::ethernet);
  FrameBytes payload(8);
  packet::store_be64(payload.data(), 77);
  payload = std::move(payload) + packet::counting(8);
  const FrameBytes four =
      packet::with_checksums(packet::ipv4_frame(packet::kProtocolUdp, packet::udp_datagram(payload)));
  const PacketReading reading = reading_of(plan, four);
  EXPECT_EQ(reading.placement, Placement::placed);
  EXPECT_EQ(reading.number, 77U);
  EXPECT_EQ(reading.payload_offset, 50U);
  const FrameBytes six =
      packet::with_checksums(packet::ipv6_frame(packet::kProtocolUdp, packet::udp_datagram(payload)));
  const PacketReading other = reading_of(plan, packet::tagged(six, packet::kEtherTypeVlan, 5));
  EXPECT_EQ(other.placement, Placement::placed);
  EXPECT_EQ(other.payload_offset, 74U);
  EXPECT_NE(other.key, reading.key);
  FrameBytes other_port = four;
  other_port[35] ^= 1;
  EXPECT_NE(reading_of(plan, other_port).key, reading.key);
  FrameBytes padded = packet::with_checksums(
      packet::ipv4_frame(packet::kProtocolUdp, packet::udp_datagram(FrameBytes(payload.begin(), payload.end() - 1))));
  padded.resize(64);
  EXPECT_EQ(reading_of(plan, padded).placement, Placement::too_short) << "padding is no payload";
  const FrameBytes tcp = packet::ipv4_frame(packet::kProtocolTcp, packet::tcp_segment(payload));
  EXPECT_EQ(reading_of(plan, tcp).placement, Placement::unrelated);
  EXPECT_EQ(reading_of(plan, FrameBytes(5)).placement, Placement::unrelated);
  const FramePlan raw = plan_of("from=ethernet,packets=4,seq=42:64,payload=50:8", PacketForm::ethernet);
  EXPECT_EQ(reading_of(raw, four).number, 77U);
  EXPECT_EQ(reading_of(raw, four).payload_offset, 50U);
}

TEST(PacketReading, FormsThatDoNotHaveWhatIsWantedAreRefused) {
  for (const char* text :
       {"from=ethernet,packets=4,seq=42:64,payload=50:8", "format=counter,packets=4,payload=8,stream=5-tuple"}) {
    EXPECT_FALSE(make_frame_plan(*parse_frame_description(text), PacketForm::datagram).ok()) << text;
  }
}

}  // namespace
}  // namespace warpline::flow
