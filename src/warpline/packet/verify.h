// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "warpline/base/frame.h"
#include "warpline/base/host_device.h"
#include "warpline/base/verdict.h"
#include "warpline/packet/checksum.h"
#include "warpline/packet/frame_bytes.h"
#include "warpline/packet/parse.h"

namespace warpline::packet {

/// Where the L4 checksum lies in its header.
[[nodiscard]] WARPLINE_HD constexpr std::uint32_t l4_checksum_offset(L4Kind kind) {
  switch (kind) {
    case L4Kind::udp:
      return UdpView::kChecksum;
    case L4Kind::tcp:
      return TcpView::kChecksum;
    default:
      return IcmpView::kChecksum;
  }
}

/// The sum over the pseudo header of a frame with an L4. Empty for ICMP, which has none.
[[nodiscard]] WARPLINE_HD inline ChecksumSum pseudo_header(FrameRef frame, const ParsedFrame& parsed) {
  std::uint8_t scratch[32];
  if (parsed.l4 != L4Kind::icmp && parsed.l3 == L3Kind::ipv4) {
    const std::uint8_t* addresses = bytes_at(frame, parsed.l3_offset + Ipv4View::kSource, 8, scratch);
    if (addresses != nullptr) return pseudo_header_v4(addresses, parsed.protocol, l4_total(parsed));
  } else if (parsed.l3 == L3Kind::ipv6) {
    const std::uint8_t* addresses = bytes_at(frame, parsed.l3_offset + Ipv6View::kSource, 32, scratch);
    if (addresses != nullptr) return pseudo_header_v6(addresses, parsed.protocol, l4_total(parsed));
  }
  return {};
}

/// Whether the L4 checksum covers just what this frame holds.
[[nodiscard]] WARPLINE_HD constexpr bool has_l4_checksum(const ParsedFrame& parsed) {
  return parsed.l4 != L4Kind::none && !parsed.fragment && !parsed.source_routed;
}

/// Why a packet of this kind with a wrong L4 checksum is dropped.
[[nodiscard]] WARPLINE_HD constexpr Verdict l4_checksum_verdict(L4Kind kind) {
  switch (kind) {
    case L4Kind::udp:
      return Verdict::udp_checksum;
    case L4Kind::tcp:
      return Verdict::tcp_checksum;
    default:
      return Verdict::icmp_checksum;
  }
}

/// The IPv4 header's checksum, if there is one.
[[nodiscard]] WARPLINE_HD inline Verdict verify_ip_checksum(FrameRef frame, const ParsedFrame& parsed) {
  if (parsed.l3 != L3Kind::ipv4) return Verdict::forward;
  ChecksumSum sum;
  const bool right = sum.add(frame, parsed.l3_offset, parsed.l3_length) && sum.checksum() == 0;
  return right ? Verdict::forward : Verdict::ipv4_checksum;
}

/// That of UDP, TCP, ICMP or ICMPv6; neither in fragments nor where the final destination is not known. UDP over IPv4
/// may go without one.
[[nodiscard]] WARPLINE_HD inline Verdict verify_l4_checksum(FrameRef frame, const ParsedFrame& parsed) {
  if (!has_l4_checksum(parsed)) return Verdict::forward;
  if (parsed.l4 == L4Kind::udp) {
    std::uint8_t scratch[2];
    const std::uint8_t* stored = bytes_at(frame, parsed.l4_offset + UdpView::kChecksum, 2, scratch);
    if (stored != nullptr && load_be16(stored) == 0) {
      return parsed.l3 == L3Kind::ipv4 ? Verdict::forward : Verdict::udp_checksum;
    }
  }
  ChecksumSum sum = pseudo_header(frame, parsed);
  const bool right = sum.add(frame, parsed.l4_offset, l4_total(parsed)) && sum.checksum() == 0;
  return right ? Verdict::forward : l4_checksum_verdict(parsed.l4);
}

/// First the one, then the other. Returns the parser's verdict where that is one to drop.
[[nodiscard]] WARPLINE_HD inline Verdict verify_checksums(FrameRef frame, const ParsedFrame& parsed) {
  if (is_drop(parsed.verdict)) return parsed.verdict;
  const Verdict ip = verify_ip_checksum(frame, parsed);
  return ip != Verdict::forward ? ip : verify_l4_checksum(frame, parsed);
}

/// Writes the checksums that verify_checksums() checks, whatever stood there. Needs a `parsed` that is no drop.
WARPLINE_HD inline void update_checksums(FrameRef frame, const ParsedFrame& parsed) {
  std::uint8_t field[2] = {0, 0};
  if (parsed.l3 == L3Kind::ipv4) {
    const std::uint32_t at = parsed.l3_offset + Ipv4View::kChecksum;
    scatter(frame, at, field, 2);
    ChecksumSum sum;
    if (sum.add(frame, parsed.l3_offset, parsed.l3_length)) {
      store_be16(field, sum.checksum());
      scatter(frame, at, field, 2);
    }
  }
  if (!has_l4_checksum(parsed)) return;
  const std::uint32_t at = parsed.l4_offset + l4_checksum_offset(parsed.l4);
  store_be16(field, 0);
  scatter(frame, at, field, 2);
  ChecksumSum sum = pseudo_header(frame, parsed);
  if (!sum.add(frame, parsed.l4_offset, l4_total(parsed))) return;
  std::uint16_t value = sum.checksum();
  if (parsed.l4 == L4Kind::udp && value == 0) value = 0xffff;  // RFC 768: 0 would mean none
  store_be16(field, value);
  scatter(frame, at, field, 2);
}

}  // namespace warpline::packet
