// SPDX-License-Identifier: Apache-2.0
#include "warpline/packet/verify.h"

#include <gtest/gtest.h>

#include <string_view>

#include "warpline/packet/frame_testing.h"

namespace warpline::packet {
namespace {

FrameBytes from_hex(std::string_view text) {
  FrameBytes bytes;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
    bytes.push_back(static_cast<std::uint8_t>(std::stoi(std::string(text.substr(i, 2)), nullptr, 16)));
  }
  return bytes;
}

Verdict verdict_of(const FrameBytes& bytes) {
  SegmentedFrame frame(bytes);
  return packet::verdict_of(frame.ref());
}

struct Golden {
  const char* name;
  const char* hex;
};

/// Made by a few lines of Python that share no code with this project. All payloads have an odd length.
constexpr Golden kGolden[] = {
    {"udp4", "0200000000020200000000010800450000211c4640004011324fc0000201c63364020fa00035000df8f57761727021"},
    {"tcp4",
     "02000000000202000000000108004500002d1c4640004006324ec0000201c63364020fa000500000000100000002501804"
     "00a4cb00007761727021"},
    {"icmp4", "0200000000020200000000010800450000211c4640004001325fc0000201c63364020800ed25000700017761727021"},
    {"udp6",
     "02000000000202000000000186dd60000000000d114020010db800000000000000000000000120010db8000000000000"
     "0000000000020fa00035000d89b87761727021"},
    {"tcp6",
     "02000000000202000000000186dd600000000019064020010db800000000000000000000000120010db8000000000000"
     "0000000000020fa00050000000010000000250180400358e00007761727021"},
    {"icmp6",
     "02000000000202000000000186dd60000000000d3a4020010db800000000000000000000000120010db8000000000000"
     "00000000000280001969000700017761727021"},
};

TEST(Verify, FramesMadeElsewhereAreRight) {
  for (const Golden& golden : kGolden) {
    EXPECT_EQ(name(verdict_of(from_hex(golden.hex))), "forward") << golden.name;
  }
}

TEST(Verify, UpdatingARightFrameChangesNothing) {
  for (const Golden& golden : kGolden) {
    EXPECT_EQ(with_checksums(from_hex(golden.hex)), from_hex(golden.hex)) << golden.name;
  }
}

TEST(Verify, AnyChangedBitBehindEthernetIsSeen) {
  for (const Golden& golden : kGolden) {
    const FrameBytes right = from_hex(golden.hex);
    for (std::size_t bit = 14 * 8; bit < right.size() * 8; ++bit) {
      FrameBytes wrong = right;
      wrong[bit / 8] ^= static_cast<std::uint8_t>(1U << bit % 8);
      SegmentedFrame frame(wrong);
      const ParsedFrame parsed = parse(frame.ref());
      // Class, flow label and hop limit of IPv6 are under no checksum; a changed protocol may have none.
      const bool uncovered = parsed.l3 == L3Kind::ipv6 && bit / 8 < 14 + Ipv6View::kSource;
      if (uncovered) continue;
      EXPECT_TRUE(is_drop(verify_checksums(frame.ref(), parsed))) << golden.name << " bit " << bit;
    }
  }
}

TEST(Verify, UdpOverIpv4MayGoWithoutAChecksum) {
  FrameBytes bytes = from_hex(kGolden[0].hex);
  store_be16(bytes.data() + 40, 0);
  EXPECT_EQ(verdict_of(bytes), Verdict::forward);
}

TEST(Verify, UdpChecksumThatComesOutAsZeroIsWrittenAsAllOnes) {
  FrameBytes bytes = from_hex(kGolden[0].hex);
  bytes.back() = 0;
  // Adding what the checksum says brings the sum to 0xffff, so the checksum to 0.
  store_be16(bytes.data() + 42, 0);
  bytes = with_checksums(bytes);
  store_be16(bytes.data() + 42, load_be16(bytes.data() + 40));
  bytes = with_checksums(bytes);
  EXPECT_EQ(load_be16(bytes.data() + 40), 0xffff);
  EXPECT_EQ(verdict_of(bytes), Verdict::forward);
}

TEST(Verify, PaddingIsUnderNoChecksum) {
  for (const Golden& golden : kGolden) {
    EXPECT_EQ(verdict_of(from_hex(golden.hex) + FrameBytes(9, 0xee)), Verdict::forward) << golden.name;
  }
}

TEST(Verify, FragmentsAndSourceRoutedFramesAreCheckedInTheirHeaderAlone) {
  Ipv4Header first;
  first.more_fragments = true;
  EXPECT_EQ(verdict_of(ipv4_frame(kProtocolUdp, counting(16), first)), Verdict::forward);
  const FrameBytes route{131, 7, 4, 10, 0, 0, 1, 0};
  FrameBytes routed = ipv4_frame(kProtocolUdp, udp_datagram(counting(5)), {}, route);
  store_be16(routed.data() + 14 + 28 + UdpView::kChecksum, 0x1234);
  EXPECT_EQ(verdict_of(routed), Verdict::forward);
  routed[14 + Ipv4View::kTimeToLive] ^= 1;
  EXPECT_EQ(verdict_of(routed), Verdict::ipv4_checksum);
}

TEST(Verify, TheParsersVerdictStands) {
  EXPECT_EQ(verdict_of(ipv4_frame(kProtocolUdp, counting(7))), Verdict::udp_truncated);
  EXPECT_EQ(verdict_of(counting(13)), Verdict::runt);
}

}  // namespace
}  // namespace warpline::packet
