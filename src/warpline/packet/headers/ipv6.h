// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "warpline/base/address.h"
#include "warpline/base/host_device.h"
#include "warpline/base/verdict.h"
#include "warpline/packet/byte_order.h"

namespace warpline::packet {

/// An IPv6 header's fields (RFC 8200, section 3), in host byte order.
struct Ipv6Header {
  std::uint8_t traffic_class = 0;    ///< DSCP and ECN
  std::uint32_t flow_label = 0;      ///< 20 bits
  std::uint16_t payload_length = 0;  ///< all that follows this header
  std::uint8_t next_header = 0;      ///< of what follows: a protocol or an extension header
  std::uint8_t hop_limit = 64;       ///< hops left
  Ipv6Address source;                ///< the sender's address
  Ipv6Address destination;           ///< the receiver's, or the next one of a routing header
  bool operator==(const Ipv6Header&) const = default;
};

/// Borrows the bytes of a header that check() found well formed. Extension headers: packet/ipv6_extension.h.
class Ipv6View {
 public:
  /// @{
  /// Where the fields begin, and how long the header is: bytes.
  static constexpr std::uint32_t kVersion = 0;
  static constexpr std::uint32_t kPayloadLength = 4;
  static constexpr std::uint32_t kNextHeader = 6;
  static constexpr std::uint32_t kHopLimit = 7;
  static constexpr std::uint32_t kSource = 8;
  static constexpr std::uint32_t kDestination = 24;
  static constexpr std::uint32_t kHeaderLength = 40;
  /// @}

  /// Borrows kHeaderLength bytes, which outlive it.
  WARPLINE_HD explicit constexpr Ipv6View(const std::uint8_t* bytes) : bytes_(bytes) {}

  /// `length`: bytes left in the frame. Jumbograms (RFC 2675) do not exist here: their payload length of 0 is taken at
  /// its word.
  [[nodiscard]] WARPLINE_HD static constexpr Verdict check(const std::uint8_t* bytes, std::uint32_t length) {
    if (length < kHeaderLength) return Verdict::ipv6_truncated;
    if (bytes[kVersion] >> 4 != 6) return Verdict::ipv6_version;
    if (load_be16(bytes + kPayloadLength) > length - kHeaderLength) return Verdict::ipv6_payload_length;
    return Verdict::forward;
  }

  /// @{
  /// The field as in Ipv6Header, in host byte order.
  [[nodiscard]] WARPLINE_HD constexpr std::uint8_t traffic_class() const {
    return static_cast<std::uint8_t>(load_be16(bytes_ + kVersion) >> 4);
  }
  [[nodiscard]] WARPLINE_HD constexpr std::uint32_t flow_label() const {
    return load_be32(bytes_ + kVersion) & 0xfffff;
  }
  [[nodiscard]] WARPLINE_HD constexpr std::uint16_t payload_length() const {
    return load_be16(bytes_ + kPayloadLength);
  }
  [[nodiscard]] WARPLINE_HD constexpr std::uint8_t next_header() const { return bytes_[kNextHeader]; }
  [[nodiscard]] WARPLINE_HD constexpr std::uint8_t hop_limit() const { return bytes_[kHopLimit]; }
  /// @}

  /// @{
  /// The 16 bytes of the address.
  [[nodiscard]] WARPLINE_HD constexpr const std::uint8_t* source() const { return bytes_ + kSource; }
  [[nodiscard]] WARPLINE_HD constexpr const std::uint8_t* destination() const { return bytes_ + kDestination; }
  /// @}

 private:
  const std::uint8_t* bytes_;
};

/// Fills `header` in when the verdict is `forward`.
[[nodiscard]] WARPLINE_HD inline Verdict parse(const std::uint8_t* bytes, std::uint32_t length, Ipv6Header& header) {
  if (const Verdict verdict = Ipv6View::check(bytes, length); verdict != Verdict::forward) return verdict;
  const Ipv6View view(bytes);
  header.traffic_class = view.traffic_class();
  header.flow_label = view.flow_label();
  header.payload_length = view.payload_length();
  header.next_header = view.next_header();
  header.hop_limit = view.hop_limit();
  header.source = load_address<Ipv6Address>(view.source());
  header.destination = load_address<Ipv6Address>(view.destination());
  return Verdict::forward;
}

/// Writes 40 bytes.
WARPLINE_HD inline void emit(const Ipv6Header& header, std::uint8_t* bytes) {
  store_be32(bytes + Ipv6View::kVersion,
             6U << 28 | std::uint32_t{header.traffic_class} << 20 | (header.flow_label & 0xfffff));
  store_be16(bytes + Ipv6View::kPayloadLength, header.payload_length);
  bytes[Ipv6View::kNextHeader] = header.next_header;
  bytes[Ipv6View::kHopLimit] = header.hop_limit;
  store_address(bytes + Ipv6View::kSource, header.source);
  store_address(bytes + Ipv6View::kDestination, header.destination);
}

/// "fd00::1 > fd00::2 next 17 length 26 hops 64", then class and flow label where not 0
[[nodiscard]] std::string to_string(const Ipv6Header& header);

}  // namespace warpline::packet
