// SPDX-License-Identifier: Apache-2.0
#include "vnic/wire/tx_checksum.h"

#include <gtest/gtest.h>

#include <vector>

#include <rte_ip.h>
#include <rte_tcp.h>
#include <rte_udp.h>

#include "vnic/rings/descriptor.h"
#include "warpline/packet/parse.h"
#include "warpline/packet/udp_frame.h"
#include "warpline/packet/verify.h"

namespace warpline::vnic {
namespace {

constexpr std::uint8_t kL2 = 14;

std::vector<std::uint8_t> udp_frame(const IpAddress& source, const IpAddress& destination, std::uint32_t length) {
  std::vector<std::uint8_t> frame(length);
  for (std::uint32_t i = 0; i < length; ++i) frame[i] = static_cast<std::uint8_t>(i * 37);
  packet::UdpFrame header;
  header.source = source;
  header.destination = destination;
  header.source_port = 7;
  header.destination_port = 9;
  EXPECT_NE(packet::emit(header, frame), 0U);
  return frame;
}

std::vector<std::uint8_t> v4(std::uint32_t length) {
  return udp_frame(Ipv4Address{{10, 0, 0, 1}}, Ipv4Address{{10, 0, 0, 2}}, length);
}

Verdict verdict(std::vector<std::uint8_t>& frame) {
  const auto length = static_cast<std::uint32_t>(frame.size());
  Segment segment{frame.data(), length, 0, Verdict::forward};
  const FrameRef whole{&segment, 1, length};
  return packet::verify_checksums(whole, packet::parse(whole));
}

bool fill(std::vector<std::uint8_t>& frame, std::uint64_t word) {
  Segment segment{frame.data(), static_cast<std::uint32_t>(frame.size()), 0, Verdict::forward};
  const DeviceSums sums = sum_up({&segment, 1, segment.length}, word);
  if (sums.fits) sums.store(frame.data());
  return sums.fits;
}

/// What an application does before it hands a frame over.
void leave_to_device(std::vector<std::uint8_t>& frame) {
  auto* const ip = reinterpret_cast<rte_ipv4_hdr*>(frame.data() + kL2);
  auto* const udp = reinterpret_cast<rte_udp_hdr*>(ip + 1);
  ip->hdr_checksum = 0xdead;
  udp->dgram_cksum = rte_ipv4_phdr_cksum(ip, 0);
}

/// The word of a frame whose UDP checksum alone is the device's.
constexpr std::uint64_t kUdpAlone = tx_word(0, kL2, 20, kTxUdpSum);

/// As an application leaves it that has made IPv4's checksum itself.
std::vector<std::uint8_t> plain(std::uint32_t length) {
  std::vector<std::uint8_t> frame = v4(length);
  auto* const ip = reinterpret_cast<rte_ipv4_hdr*>(frame.data() + kL2);
  reinterpret_cast<rte_udp_hdr*>(ip + 1)->dgram_cksum = rte_ipv4_phdr_cksum(ip, 0);
  return frame;
}

/// In pieces, the first of `head` bytes.
struct Pieces {
  Pieces(std::vector<std::uint8_t>& frame, std::uint32_t head)
      : segments{{frame.data(), head, 0, Verdict::forward},
                 {frame.data() + head, static_cast<std::uint32_t>(frame.size()) - head, 0, Verdict::forward}},
        ref{segments, static_cast<std::uint16_t>(head == frame.size() ? 1 : 2),
            static_cast<std::uint32_t>(frame.size())} {}
  Segment segments[2];
  FrameRef ref;
};

TEST(TxChecksum, PlainUdpIsCopiedAsItWouldBeFilledIn) {
  for (const std::uint32_t length : {60U, 61U, 122U, 300U, 1514U}) {
    for (const std::uint32_t padding : {0U, 1U, 4U}) {
      std::vector<std::uint8_t> frame = plain(length);
      frame.resize(length + padding, 0x77);
      for (const std::uint32_t head : {42U, 45U, 59U, static_cast<std::uint32_t>(frame.size())}) {
        const Pieces pieces(frame, head);
        ASSERT_TRUE(is_plain_udp(pieces.ref, kUdpAlone));
        std::vector<std::uint8_t> copy(frame.size());
        copy_plain_udp(pieces.ref, copy.data());
        std::vector<std::uint8_t> expected = frame;
        ASSERT_TRUE(fill(expected, kUdpAlone));
        EXPECT_EQ(copy, expected) << length << " + " << padding << " in pieces from " << head;
        EXPECT_EQ(verdict(copy), Verdict::forward);
      }
    }
  }
}

TEST(TxChecksum, OnlyWhatIsRightInAllIsPlainUdp) {
  const std::vector<std::uint8_t> good = plain(100);
  const auto takes = [](std::vector<std::uint8_t> frame, std::uint32_t head, std::uint64_t word) {
    const Pieces pieces(frame, head);
    return is_plain_udp(pieces.ref, word);
  };
  EXPECT_TRUE(takes(good, 100, kUdpAlone));
  EXPECT_FALSE(takes(good, 41, kUdpAlone));
  EXPECT_FALSE(takes(good, 100, tx_word(0, kL2, 20, kTxUdpSum | kTxIpSum)));
  EXPECT_FALSE(takes(good, 100, tx_word(0, kL2, 24, kTxUdpSum)));
  EXPECT_FALSE(takes(good, 100, tx_word(0, kL2 + 4, 20, kTxUdpSum)));
  // Any byte of the headers but UDP's ports and the stations may not be another.
  for (std::uint32_t at = 12; at < kL2 + 28U; ++at) {
    if (at >= kL2 + 20U && at < kL2 + 24U) continue;
    std::vector<std::uint8_t> bad = good;
    bad[at] ^= 0x21;
    EXPECT_FALSE(takes(bad, 100, kUdpAlone)) << at;
  }
}

TEST(TxChecksum, FillsInIpv4AndUdp) {
  for (const std::uint32_t length : {42U, 43U, 64U, 1499U, 1514U}) {
    std::vector<std::uint8_t> frame = v4(length);
    const std::vector<std::uint8_t> right = frame;
    leave_to_device(frame);
    ASSERT_TRUE(fill(frame, tx_word(0, kL2, 20, kTxIpSum | kTxUdpSum)));
    EXPECT_EQ(frame, right) << length;
  }
}

TEST(TxChecksum, StopsWhereTheIpPacketEnds) {
  std::vector<std::uint8_t> frame = v4(50);
  leave_to_device(frame);
  frame.resize(60, 0xee);  // Ethernet's padding
  ASSERT_TRUE(fill(frame, tx_word(0, kL2, 20, kTxIpSum | kTxUdpSum)));
  EXPECT_EQ(verdict(frame), Verdict::forward);
}

TEST(TxChecksum, FillsInUdpOverIpv6) {
  std::vector<std::uint8_t> frame = udp_frame(Ipv6Address{{0xfd, 1}}, Ipv6Address{{0xfd, 2}}, 99);
  const std::vector<std::uint8_t> right = frame;
  auto* const ip = reinterpret_cast<rte_ipv6_hdr*>(frame.data() + kL2);
  reinterpret_cast<rte_udp_hdr*>(ip + 1)->dgram_cksum = rte_ipv6_phdr_cksum(ip, 0);
  ASSERT_TRUE(fill(frame, tx_word(0, kL2, 40, kTxUdpSum)));
  EXPECT_EQ(frame, right);
}

TEST(TxChecksum, FillsInTcp) {
  std::vector<std::uint8_t> frame = v4(120);
  auto* const ip = reinterpret_cast<rte_ipv4_hdr*>(frame.data() + kL2);
  auto* const tcp = reinterpret_cast<rte_tcp_hdr*>(ip + 1);
  ip->next_proto_id = IPPROTO_TCP;
  tcp->data_off = 5 << 4;
  tcp->cksum = rte_ipv4_phdr_cksum(ip, 0);
  ASSERT_TRUE(fill(frame, tx_word(0, kL2, 20, kTxIpSum | kTxTcpSum)));
  EXPECT_EQ(verdict(frame), Verdict::forward);
}

TEST(TxChecksum, AUdpChecksumOfZeroIsSentAsOnes) {
  std::vector<std::uint8_t> frame = v4(44);
  // The two bytes of payload that make the sum all ones.
  for (std::uint32_t value = 0; value < 0x10000; ++value) {
    packet::store_be16(frame.data() + 42, static_cast<std::uint16_t>(value));
    leave_to_device(frame);
    ASSERT_TRUE(fill(frame, tx_word(0, kL2, 20, kTxIpSum | kTxUdpSum)));
    if (packet::load_be16(frame.data() + 40) == 0xffff) {
      EXPECT_EQ(verdict(frame), Verdict::forward);
      return;
    }
    ASSERT_NE(packet::load_be16(frame.data() + 40), 0);
  }
  FAIL() << "no such payload";
}

TEST(TxChecksum, RefusesWhatTheFrameDoesNotHold) {
  std::vector<std::uint8_t> frame = v4(64);
  EXPECT_FALSE(fill(frame, tx_word(0, 60, 20, kTxIpSum)));
  EXPECT_FALSE(fill(frame, tx_word(0, kL2, 0, kTxIpSum)));
  EXPECT_FALSE(fill(frame, tx_word(0, kL2, 60, kTxUdpSum)));
  EXPECT_FALSE(fill(frame, tx_word(0, kL2, 40, kTxTcpSum)));
  EXPECT_FALSE(fill(frame, tx_word(0, 127, 511, kTxUdpSum)));
  packet::store_be16(frame.data() + kL2 + 2, 51);  // one more than there is
  EXPECT_FALSE(fill(frame, tx_word(0, kL2, 20, kTxIpSum)));
  frame[kL2] = 0x50;
  EXPECT_FALSE(fill(frame, tx_word(0, kL2, 20, kTxIpSum)));
}

}  // namespace
}  // namespace warpline::vnic
