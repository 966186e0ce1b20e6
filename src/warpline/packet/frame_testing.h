// SPDX-License-Identifier: Apache-2.0
#pragma once

// Frames for tests, fuzz targets and micro-benchmarks; the program itself includes none of this.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "warpline/base/frame.h"
#include "warpline/packet/parse.h"
#include "warpline/packet/verify.h"

namespace warpline::packet {

using FrameBytes = std::vector<std::uint8_t>;

inline constexpr MacAddress kTestSourceMac{{0x02, 0, 0, 0, 0, 0x01}};
inline constexpr MacAddress kTestDestinationMac{{0x02, 0, 0, 0, 0, 0x02}};
inline constexpr Ipv4Address kTestSourceV4{{198, 18, 0, 1}};
inline constexpr Ipv4Address kTestDestinationV4{{198, 19, 0, 1}};
inline constexpr Ipv6Address kTestSourceV6{{0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1}};
inline constexpr Ipv6Address kTestDestinationV6{{0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x12, 0x34, 2}};

/// Owns a frame cut into segments, each in an allocation of just its size: a sanitizer sees every byte read too far.
class SegmentedFrame {
 public:
  /// One segment.
  explicit SegmentedFrame(std::span<const std::uint8_t> bytes) : SegmentedFrame(bytes, {}) {}

  /// `lengths`: of all segments but the last, which takes the rest; cut short where the bytes end. Zero is a length.
  SegmentedFrame(std::span<const std::uint8_t> bytes, const std::vector<std::uint32_t>& lengths) {
    for (const std::uint32_t length : lengths) {
      const std::size_t take = length < bytes.size() ? length : bytes.size();
      append(bytes.first(take));
      bytes = bytes.subspan(take);
    }
    append(bytes);
    for (std::size_t i = 0; i < segments_.size(); ++i) {
      segments_[i].more = static_cast<std::uint16_t>(segments_.size() - 1 - i);
    }
  }

  [[nodiscard]] FrameRef ref() { return frame_at(segments_.data()); }

  [[nodiscard]] FrameBytes bytes() const {
    FrameBytes all;
    for (const Segment& segment : segments_) all.insert(all.end(), segment.data, segment.data + segment.length);
    return all;
  }

 private:
  void append(std::span<const std::uint8_t> bytes) {
    storage_.push_back(std::make_unique<std::uint8_t[]>(bytes.size()));
    std::copy(bytes.begin(), bytes.end(), storage_.back().get());
    segments_.push_back({storage_.back().get(), static_cast<std::uint32_t>(bytes.size()), 0, Verdict::forward});
  }

  std::vector<std::unique_ptr<std::uint8_t[]>> storage_;
  std::vector<Segment> segments_;
};

[[nodiscard]] inline FrameBytes operator+(FrameBytes front, const FrameBytes& back) {
  front.insert(front.end(), back.begin(), back.end());
  return front;
}

/// `n` bytes that count up from `first`.
[[nodiscard]] inline FrameBytes counting(std::size_t n, std::uint8_t first = 0) {
  FrameBytes bytes(n);
  for (std::size_t i = 0; i < n; ++i) bytes[i] = static_cast<std::uint8_t>(first + i);
  return bytes;
}

[[nodiscard]] inline FrameBytes ethernet_frame(std::uint16_t ether_type, const FrameBytes& payload) {
  FrameBytes header(EthernetView::kHeaderLength);
  emit(EthernetHeader{kTestDestinationMac, kTestSourceMac, ether_type}, header.data());
  return header + payload;
}

/// `frame` with a tag put before all those that it has.
[[nodiscard]] inline FrameBytes tagged(FrameBytes frame, std::uint16_t tag_type, std::uint16_t control) {
  const FrameBytes tag{static_cast<std::uint8_t>(tag_type >> 8), static_cast<std::uint8_t>(tag_type),
                       static_cast<std::uint8_t>(control >> 8), static_cast<std::uint8_t>(control)};
  frame.insert(frame.begin() + EthernetView::kEtherType, tag.begin(), tag.end());
  return frame;
}

/// An Ethernet frame with an IPv4 datagram; lengths and addresses are filled in, the header's checksum is right.
[[nodiscard]] inline FrameBytes ipv4_frame(std::uint8_t protocol, const FrameBytes& payload, Ipv4Header header = {},
                                           const FrameBytes& options = {}) {
  header.protocol = protocol;
  header.source = kTestSourceV4;
  header.destination = kTestDestinationV4;
  header.options_length = static_cast<std::uint8_t>(options.size());
  std::copy(options.begin(), options.end(), header.options);
  FrameBytes bytes(Ipv4View::kHeaderLength + options.size());
  header.total_length = static_cast<std::uint16_t>(bytes.size() + payload.size());
  emit(header, bytes.data());
  return ethernet_frame(kEtherTypeIpv4, bytes + payload);
}

/// An Ethernet frame with an IPv6 datagram; `payload` begins with the extension headers, if any.
[[nodiscard]] inline FrameBytes ipv6_frame(std::uint8_t next_header, const FrameBytes& payload,
                                           std::uint8_t hop_limit = 64) {
  Ipv6Header header;
  header.payload_length = static_cast<std::uint16_t>(payload.size());
  header.next_header = next_header;
  header.hop_limit = hop_limit;
  header.source = kTestSourceV6;
  header.destination = kTestDestinationV6;
  FrameBytes bytes(Ipv6View::kHeaderLength);
  emit(header, bytes.data());
  return ethernet_frame(kEtherTypeIpv6, bytes + payload);
}

[[nodiscard]] inline FrameBytes udp_datagram(const FrameBytes& payload) {
  FrameBytes header(UdpView::kHeaderLength);
  emit(UdpHeader{49152, 9, static_cast<std::uint16_t>(header.size() + payload.size()), 0}, header.data());
  return header + payload;
}

[[nodiscard]] inline FrameBytes tcp_segment(const FrameBytes& payload, const FrameBytes& options = {}) {
  TcpHeader tcp;
  tcp.source_port = 49152;
  tcp.destination_port = 80;
  tcp.sequence = 0x01020304;
  tcp.acknowledgement = 0x05060708;
  tcp.flags = kTcpAck | kTcpPsh;
  tcp.window = 512;
  tcp.options_length = static_cast<std::uint8_t>(options.size());
  std::copy(options.begin(), options.end(), tcp.options);
  FrameBytes header(TcpView::kHeaderLength + options.size());
  emit(tcp, header.data());
  return header + payload;
}

[[nodiscard]] inline FrameBytes icmp_message(std::uint8_t type, const FrameBytes& payload) {
  FrameBytes header(IcmpView::kHeaderLength);
  emit(IcmpHeader{type, 0, 0, 0x1234, 1}, header.data());
  return header + payload;
}

[[nodiscard]] inline FrameBytes arp_frame(const ArpPacket& packet) {
  FrameBytes bytes(ArpView::kHeaderLength);
  emit(packet, bytes.data());
  return ethernet_frame(kEtherTypeArp, bytes);
}

/// The same frame with right checksums wherever the parser finds room for one.
[[nodiscard]] inline FrameBytes with_checksums(const FrameBytes& bytes) {
  SegmentedFrame frame(bytes);
  const ParsedFrame parsed = parse(frame.ref());
  if (!is_drop(parsed.verdict)) update_checksums(frame.ref(), parsed);
  return frame.bytes();
}

/// What parse() and then verify_checksums() say.
[[nodiscard]] inline Verdict verdict_of(FrameRef frame) { return verify_checksums(frame, parse(frame)); }

}  // namespace warpline::packet
