// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "vnic/faults/faults.h"
#include "vnic/faults/faults_testing.h"
#include "warpline/base/property_testing.h"
#include "warpline/base/units.h"
#include "warpline/packet/frame_testing.h"

namespace warpline::vnic {
namespace {

__extension__ using Wide = unsigned __int128;

FaultConfig limited(std::uint64_t bits_per_s, std::uint32_t queue_bytes = 1 << 18, std::uint32_t ecn_bytes = 0) {
  FaultConfig config;
  config.bits_per_s = bits_per_s;
  config.queue_bytes = queue_bytes;
  config.ecn_bytes = ecn_bytes;
  return config;
}

std::vector<std::uint64_t> releases(const Wire& wire) {
  std::vector<std::uint64_t> all;
  all.reserve(wire.sink.deliveries.size());
  for (const auto& delivery : wire.sink.deliveries) all.push_back(delivery.release_nanos);
  return all;
}

TEST(RateLimit, FramesLeaveWhenTheirLastBitHas) {
  Wire slow(limited(1'000'000'000));
  slow.send_numbered(3);  // 64 + 24 bytes take 704 ns
  EXPECT_EQ(releases(slow), (std::vector<std::uint64_t>{704, 1408, 2112}));
  Wire fast(limited(10'000'000'000));
  fast.send_numbered(5);  // 70.4 ns
  EXPECT_EQ(releases(fast), (std::vector<std::uint64_t>{71, 141, 212, 282, 352}));
}

TEST(RateLimit, AnIdleLineStartsAtOnce) {
  Wire wire(limited(10'000'000'000));
  wire.send(frame_of_number(0, 64), 0);
  wire.send(frame_of_number(1, 64), 70);   // still on the line for 0.4 ns
  wire.send(frame_of_number(2, 64), 141);  // free since 140.8
  wire.send(frame_of_number(3, 64), 5000);
  EXPECT_EQ(releases(wire), (std::vector<std::uint64_t>{71, 141, 212, 5071}));
}

WARPLINE_PROPERTY(RateLimit, NoFractionIsEverLost, ()) {
  const auto rate = *rc::gen::inRange<std::uint64_t>(1'000'000, 400'000'000'000);
  const auto length = *rc::gen::inRange<std::size_t>(14, 9000);
  Wire wire(limited(rate, UINT32_MAX));
  wire.send_numbered(300, length);
  for (std::uint64_t i = 0; i < 300; ++i) {
    const Wide bits_nanos = Wide{i + 1} * (length + kLayer1Overhead) * 8 * 1'000'000'000;
    RC_ASSERT(wire.sink.deliveries[i].release_nanos == static_cast<std::uint64_t>((bits_nanos + rate - 1) / rate));
  }
}

TEST(RateLimit, WhatDoesNotFitTheQueueIsLost) {
  Wire wire(limited(1'000'000'000, 3 * 88));
  wire.send_numbered(5);
  EXPECT_EQ(wire.numbers(), (std::vector<std::uint32_t>{0, 1, 2}));
  EXPECT_EQ(wire.counts.get(Count::tx_queue_full), 2U);
  EXPECT_EQ(wire.faults.queued_bytes(0), 264U);
  EXPECT_EQ(wire.faults.queued_bytes(8), 263U);
  EXPECT_EQ(wire.faults.queued_bytes(2112), 0U);
  wire.send(frame_of_number(5, 64), 703);  // one byte of the first is still on the line
  wire.send(frame_of_number(6, 64), 704);
  EXPECT_EQ(wire.numbers(), (std::vector<std::uint32_t>{0, 1, 2, 6}));
  EXPECT_TRUE(wire.conserves());
}

TEST(RateLimit, ANewRateCountsFromTheNextFrameOn) {
  Wire wire(limited(10'000'000'000));
  wire.send_numbered(1);
  wire.faults.configure(limited(1'000'000'000));
  wire.send(frame_of_number(1, 64), 0);
  EXPECT_EQ(releases(wire), (std::vector<std::uint64_t>{71, 71 + 704}));
}

packet::FrameBytes ipv4_with(std::uint8_t type_of_service) {
  packet::Ipv4Header header;
  header.type_of_service = type_of_service;
  return packet::with_checksums(
      packet::ipv4_frame(packet::kProtocolUdp, packet::udp_datagram(packet::counting(40)), header));
}

packet::FrameBytes ipv6_with(std::uint8_t traffic_class) {
  packet::FrameBytes frame =
      packet::with_checksums(packet::ipv6_frame(packet::kProtocolUdp, packet::udp_datagram(packet::counting(40))));
  frame[15] = static_cast<std::uint8_t>(frame[15] | traffic_class << 4);
  return frame;
}

/// What becomes of a frame that finds `depth` bytes or more in the queue.
packet::FrameBytes behind_queue(const packet::FrameBytes& frame, std::uint32_t before, Wire& wire) {
  wire.send_numbered(before, 76);
  wire.send(frame, 0);
  return wire.sink.deliveries.back().bytes;
}

TEST(Ecn, MarksCapablePacketsAboveTheDepthOnly) {
  for (std::uint8_t field = 0; field < 4; ++field) {
    for (const std::uint8_t dscp : {std::uint8_t{0}, std::uint8_t{0xfc}}) {
      for (const bool vlan : {false, true}) {
        const bool capable = field == 1 || field == 2;
        const auto service = static_cast<std::uint8_t>(dscp | field);
        const auto frame = [&](std::uint8_t s) {
          return vlan ? packet::tagged(ipv4_with(s), 0x8100, 7) : ipv4_with(s);
        };
        Wire below(limited(1'000'000'000, 1 << 18, 300));
        EXPECT_EQ(behind_queue(frame(service), 2, below), frame(service));
        EXPECT_EQ(below.counts.get(Count::fault_ecn_marked), 0U);
        // The checksum is right too: it is that of a packet made so.
        Wire above(limited(1'000'000'000, 1 << 18, 300));
        EXPECT_EQ(behind_queue(frame(service), 3, above), frame(capable ? service | 3 : service));
        EXPECT_EQ(above.counts.get(Count::fault_ecn_marked), capable ? 1U : 0U);
      }
    }
    Wire above(limited(1'000'000'000, 1 << 18, 300));
    const bool capable = field == 1 || field == 2;
    EXPECT_EQ(behind_queue(ipv6_with(field), 3, above), ipv6_with(capable ? 3 : field));
  }
}

TEST(Ecn, ReadsNothingBehindAFramesEnd) {
  const packet::FrameBytes whole = packet::tagged(ipv4_with(2), 0x8100, 7);
  for (std::size_t length = 1; length < 38; ++length) {
    Wire wire(limited(1'000'000'000, 1 << 18, 1));
    const packet::FrameBytes cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length));
    EXPECT_EQ(behind_queue(cut, 1, wire), cut);
  }
}

}  // namespace
}  // namespace warpline::vnic
