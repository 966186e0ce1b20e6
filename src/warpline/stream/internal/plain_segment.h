// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "warpline/base/host_device.h"
#include "warpline/packet/headers/ethernet.h"
#include "warpline/packet/headers/ipv4.h"
#include "warpline/packet/headers/tcp.h"
#include "warpline/stream/internal/segment_reading.h"

namespace warpline::stream {

/// The first bytes of a frame in words of 4, as a little-endian machine loads them: for fields whose places are known
/// when this is compiled, so that a GPU has them in registers.
struct FrameWords {
  static constexpr std::uint32_t kCount = 17;  ///< as far as TCP's timestamps behind IPv4
  std::uint32_t words[kCount];

  /// Returns the field at byte `kAt`, in host byte order.
  template <std::uint32_t kAt>
  [[nodiscard]] WARPLINE_HD std::uint32_t be16() const {
    static_assert(kAt % 2 == 0);
    const std::uint32_t half = words[kAt / 4] >> kAt % 4 * 8;
    return (half & 0xff) << 8 | (half >> 8 & 0xff);
  }
  template <std::uint32_t kAt>
  [[nodiscard]] WARPLINE_HD std::uint32_t be32() const {
    return be16<kAt>() << 16 | be16<kAt + 2>();
  }
};

/// Reads a segment with the headers that almost all have: no VLAN tag, IPv4 without options and whole, TCP without
/// options or with timestamps alone, laid out as RFC 7323, appendix A, has them. False, with `reading` undefined, for
/// any other frame: that is for read_segment(), which says the same of these, where checksums are right. `length`: of
/// the frame, in bytes; what `head` has behind its end is not looked at.
[[nodiscard]] WARPLINE_HD inline bool read_plain_segment(const FrameWords& head, std::uint32_t length,
                                                         SegmentReading& reading) {
  constexpr std::uint32_t kIp = packet::EthernetView::kHeaderLength;
  constexpr std::uint32_t kTcp = kIp + packet::Ipv4View::kHeaderLength;
  constexpr std::uint32_t kOptions = kTcp + packet::TcpView::kHeaderLength;
  constexpr std::uint32_t kVersion4AndNoOptions = 0x45;
  constexpr std::uint32_t kTimestampsLength = 12;
  constexpr std::uint32_t kTwoNopsAndTimestamps = 0x0101'080a;
  if (length < kOptions) return false;
  const std::uint32_t lengths = head.be16<kTcp + packet::TcpView::kDataOffset>();
  const std::uint32_t header = (lengths >> 12) * 4;
  const std::uint32_t total = head.be16<kIp + packet::Ipv4View::kTotalLength>();
  const std::uint32_t headers = packet::Ipv4View::kHeaderLength + header;
  const bool plain = head.be16<packet::EthernetView::kEtherType>() == packet::kEtherTypeIpv4 &&
                     head.be16<kIp + packet::Ipv4View::kVersionIhl>() >> 8 == kVersion4AndNoOptions &&
                     (head.be16<kIp + packet::Ipv4View::kFragment>() & 0x3fff) == 0 &&
                     (head.be16<kIp + packet::Ipv4View::kTimeToLive>() & 0xff) == packet::kProtocolTcp &&
                     total <= length - kIp && total >= headers;
  if (!plain) return false;
  reading.has_timestamp = header == packet::TcpView::kHeaderLength + kTimestampsLength;
  if (reading.has_timestamp) {
    if (head.be32<kOptions>() != kTwoNopsAndTimestamps) return false;
    reading.timestamp = head.be32<kOptions + 4>();
    reading.timestamp_echo = head.be32<kOptions + 8>();
  } else if (header != packet::TcpView::kHeaderLength) {
    return false;
  }
  reading.flags = static_cast<std::uint8_t>(lengths);
  if ((reading.flags & packet::kTcpUrg) != 0) {
    reading.urgent = static_cast<std::uint16_t>(head.be16<kTcp + packet::TcpView::kUrgent>());
  }
  reading.sequence = head.be32<kTcp + packet::TcpView::kSequence>();
  reading.acknowledgement = head.be32<kTcp + packet::TcpView::kAcknowledgement>();
  reading.payload_offset = kIp + headers;
  reading.payload_length = total - headers;
  reading.key.remote[1] = kMappedIpv4 | head.be32<kIp + packet::Ipv4View::kSource>();
  reading.key.local[1] = kMappedIpv4 | head.be32<kIp + packet::Ipv4View::kDestination>();
  reading.key.remote_port = static_cast<std::uint16_t>(head.be16<kTcp + packet::TcpView::kSourcePort>());
  reading.key.local_port = static_cast<std::uint16_t>(head.be16<kTcp + packet::TcpView::kDestinationPort>());
  return true;
}

}  // namespace warpline::stream
