// SPDX-License-Identifier: Apache-2.0
#include "workload/checksum.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "packet/parse.h"
#include "packet/verify.h"
#include "workload/test_frames.h"

namespace warpline {
namespace {

/// An Ethernet and IPv4 header with `payload` behind, its IPv4 checksum right, no other.
Octets ipv4(std::uint8_t protocol, const Octets& payload) {
  Octets bytes = udp_frame(static_cast<std::uint32_t>(payload.size()) - 8);
  bytes[23] = protocol;
  bytes[24] = bytes[25] = 0;
  store_be16(&bytes[24], checksum(&bytes[14], 20));
  std::copy(payload.begin(), payload.end(), bytes.begin() + 34);
  return bytes;
}

/// The same over IPv6.
Octets ipv6(std::uint8_t next_header, const Octets& payload) {
  Octets bytes = udp_frame(static_cast<std::uint32_t>(payload.size()) - 8, true);
  bytes[20] = next_header;
  std::copy(payload.begin(), payload.end(), bytes.begin() + 54);
  return bytes;
}

Octets sound(Octets bytes) {
  CutFrame cut(bytes);
  const ParsedFrame parsed = parse(cut.frame());
  EXPECT_EQ(parsed.verdict, Verdict::forward);
  update_checksums(cut.frame(), parsed);
  return cut.bytes();
}

Octets front(Octets bytes, std::size_t length) {
  bytes.resize(length);
  return bytes;
}

constexpr std::uint8_t kIcmp = 1;
constexpr std::uint8_t kTcp = 6;
constexpr std::uint8_t kIcmpv6 = 58;

Octets tcp_header() {
  Octets header(24);
  header[12] = 0x60;  // data offset 6: one word of options, all "end of list"
  return header;
}

Octets arp_request() {
  Octets bytes(60);
  const Octets head{0x08, 0x06, 0, 1, 0x08, 0x00, 6, 4, 0, 1};
  std::copy(head.begin(), head.end(), bytes.begin() + 12);
  return bytes;
}

TEST(ChecksumVerify, ForwardsSoundFramesUnchanged) {
  const std::vector<Octets> frames{udp_frame(0),
                                   udp_frame(1473),
                                   udp_frame(31, true),
                                   tagged(udp_frame(18), 2),
                                   arp_request(),
                                   sound(ipv4(kTcp, tcp_header())),
                                   sound(ipv6(kTcp, tcp_header())),
                                   sound(ipv4(kIcmp, Octets(9, 8))),
                                   sound(ipv6(kIcmpv6, Octets(8, 0x80)))};
  for (const Octets& frame : frames) {
    CutFrame cut(frame);
    EXPECT_EQ(ChecksumVerify{}(cut.frame()), Verdict::forward);
    EXPECT_EQ(cut.bytes(), frame);
  }
}

TEST(ChecksumVerify, DropsEveryDamageByItsName) {
  struct Case {
    Verdict expected;
    Octets bytes;
  };
  const Octets udp4 = udp_frame(18);
  const Octets udp6 = udp_frame(18, true);
  const Octets tcp = sound(ipv4(kTcp, tcp_header()));
  const Octets icmp = sound(ipv4(kIcmp, Octets(8, 8)));
  Octets options = ipv4(89, Octets(20));  // the first four bytes of its payload become options
  options[14] = 0x46;
  const std::vector<Case> cases{
      {Verdict::runt, front(udp4, 13)},
      {Verdict::vlan_truncated, front(tagged(udp4, 1), 17)},
      {Verdict::vlan_nested, tagged(udp4, 3)},
      {Verdict::arp_truncated, front(arp_request(), 30)},
      {Verdict::arp_malformed, with(arp_request(), 18, 7)},
      {Verdict::ipv4_truncated, front(udp4, 33)},
      {Verdict::ipv4_version, with(udp4, 14, 0x55)},
      {Verdict::ipv4_header_length, with(udp4, 14, 0x44)},
      {Verdict::ipv4_total_length, with(udp4, 16, 0xff)},
      {Verdict::ipv4_options, with(with(options, 34, 7), 35, 1)},
      {Verdict::ipv4_checksum, with(udp4, 22, 63)},
      {Verdict::ipv6_truncated, front(udp6, 53)},
      {Verdict::ipv6_version, with(udp6, 14, 0x40)},
      {Verdict::ipv6_payload_length, with(udp6, 18, 0xff)},
      {Verdict::ipv6_extension, ipv6(0, Octets(8, 0xff))},
      {Verdict::icmp_truncated, with(ipv6(kIcmpv6, Octets(8)), 19, 7)},
      {Verdict::udp_truncated, with(udp6, 19, 7)},
      {Verdict::tcp_truncated, with(ipv6(kTcp, Octets(20)), 19, 19)},
      {Verdict::icmp_checksum, with(icmp, 38, 9)},
      {Verdict::udp_length, with(udp4, 38, 0xff)},
      {Verdict::udp_checksum, with(udp4, 42, static_cast<std::uint8_t>(udp4[42] + 1))},
      {Verdict::udp_checksum, with(with(udp6, 60, 0), 61, 0)},
      {Verdict::tcp_data_offset, with(tcp, 46, 0x40)},
      {Verdict::tcp_options, with(with(tcp, 54, 2), 55, 1)},
      {Verdict::tcp_checksum, with(tcp, 48, 1)},
  };
  for (const Case& each : cases) {
    CutFrame cut(each.bytes);
    EXPECT_EQ(name(ChecksumVerify{}(cut.frame())), name(each.expected));
    EXPECT_EQ(cut.bytes(), each.bytes);
  }
}

TEST(ChecksumVerify, UdpOverIpv4MayGoWithoutOne) {
  const Octets none = with(with(udp_frame(18), 40, 0), 41, 0);
  CutFrame cut(none);
  EXPECT_EQ(ChecksumVerify{}(cut.frame()), Verdict::forward);
}

}  // namespace
}  // namespace warpline
