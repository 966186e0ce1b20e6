// SPDX-License-Identifier: Apache-2.0
#include "examples/decrement_ttl.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "warpline/packet/frame_testing.h"

namespace warpline {
namespace {

/// A UDP datagram with such a TTL in a frame with so many tags; the header's checksum is worked out over all of it.
packet::FrameBytes v4_frame(std::uint8_t ttl, std::uint16_t identification, unsigned tags = 0,
                            const packet::FrameBytes& options = {}) {
  packet::Ipv4Header header;
  header.time_to_live = ttl;
  header.identification = identification;
  packet::FrameBytes frame =
      packet::ipv4_frame(packet::kProtocolUdp, packet::udp_datagram(packet::counting(18)), header, options);
  for (unsigned i = 0; i < tags; ++i) frame = packet::tagged(frame, packet::kEtherTypeVlan, 7);
  return frame;
}

packet::FrameBytes v6_frame(std::uint8_t hop_limit) {
  return packet::ipv6_frame(packet::kProtocolUdp, packet::udp_datagram(packet::counting(18)), hop_limit);
}

/// What becomes of `sent`, cut into segments of such lengths.
void expect_becomes(const packet::FrameBytes& sent, Verdict verdict, const packet::FrameBytes& left,
                    const std::vector<std::uint32_t>& lengths = {}) {
  packet::SegmentedFrame frame(sent, lengths);
  EXPECT_EQ(UserWork{}(frame.ref()), verdict);
  EXPECT_EQ(frame.bytes(), left);
}

TEST(DecrementTtl, AFrameOnTheWireByHand) {
  // 198.18.0.1 > 198.19.0.1, UDP, TTL 64. A TTL less takes 0x0100 off the header's sum, so adds it to the checksum.
  const packet::FrameBytes sent = {2, 0,  0,  0,    0,    2,   2,  0, 0, 0,   0,  1, 8, 0,    0x45, 0, 0, 28, 0, 0, 0,
                                   0, 64, 17, 0xee, 0xa9, 198, 18, 0, 1, 198, 19, 0, 1, 0xc0, 0,    0, 9, 0,  8, 0, 0};
  packet::FrameBytes left = sent;
  left[22] = 63;
  left[24] = 0xef;
  expect_becomes(sent, Verdict::forward, left);
}

TEST(DecrementTtl, EveryTtlAndChecksum) {
  for (unsigned ttl = 2; ttl <= 255; ++ttl) {
    expect_becomes(v4_frame(static_cast<std::uint8_t>(ttl), 0), Verdict::forward,
                   v4_frame(static_cast<std::uint8_t>(ttl - 1), 0));
    expect_becomes(v6_frame(static_cast<std::uint8_t>(ttl)), Verdict::forward,
                   v6_frame(static_cast<std::uint8_t>(ttl - 1)));
  }
  for (unsigned identification = 0; identification <= 0xffff; ++identification) {
    expect_becomes(v4_frame(64, static_cast<std::uint16_t>(identification)), Verdict::forward,
                   v4_frame(63, static_cast<std::uint16_t>(identification)));
  }
}

TEST(DecrementTtl, DropsWhatHasNoHopLeft) {
  for (const std::uint8_t hops : {0, 1}) {
    expect_becomes(v4_frame(hops, 5), Verdict::user_drop, v4_frame(hops, 5));
    expect_becomes(v6_frame(hops), Verdict::user_drop, v6_frame(hops));
  }
}

TEST(DecrementTtl, FindsTheHeaderBehindTagsAndAcrossSegments) {
  const packet::FrameBytes options(8, packet::kIpv4OptionNop);
  for (unsigned tags = 0; tags <= 2; ++tags) {
    for (std::uint32_t cut = 1; cut < 44; ++cut) {
      expect_becomes(v4_frame(9, 5, tags, options), Verdict::forward, v4_frame(8, 5, tags, options), {cut, 1});
    }
  }
  for (std::uint32_t cut = 1; cut < 60; ++cut) expect_becomes(v6_frame(9), Verdict::forward, v6_frame(8), {cut, 1});
}

TEST(DecrementTtl, AWrongChecksumStaysWrong) {
  packet::FrameBytes sent = v4_frame(64, 5);
  sent[24] ^= 0x10;
  packet::SegmentedFrame frame(sent);
  EXPECT_EQ(UserWork{}(frame.ref()), Verdict::forward);
  EXPECT_EQ(packet::verdict_of(frame.ref()), Verdict::ipv4_checksum);
}

TEST(DecrementTtl, LeavesOtherFramesAloneAndDropsMalformedOnes) {
  for (const packet::FrameBytes& sent : {packet::arp_frame({}), packet::ethernet_frame(0x88b5, packet::counting(46))}) {
    expect_becomes(sent, Verdict::forward, sent);
  }
  packet::FrameBytes cut_short = v4_frame(64, 5);
  cut_short.resize(30);
  expect_becomes(cut_short, Verdict::ipv4_truncated, cut_short);
}

}  // namespace
}  // namespace warpline
