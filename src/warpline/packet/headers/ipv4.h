// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "warpline/base/address.h"
#include "warpline/base/host_device.h"
#include "warpline/base/verdict.h"
#include "warpline/packet/byte_order.h"
#include "warpline/packet/checksum.h"

namespace warpline::packet {

/// Protocol numbers (IANA), shared by IPv4 and IPv6.
inline constexpr std::uint8_t kProtocolIcmp = 1;
inline constexpr std::uint8_t kProtocolTcp = 6;      ///< RFC 9293
inline constexpr std::uint8_t kProtocolUdp = 17;     ///< RFC 768
inline constexpr std::uint8_t kProtocolIcmpv6 = 58;  ///< RFC 4443

/// Option types of RFC 791 and RFC 2113 whose inside is checked.
inline constexpr std::uint8_t kIpv4OptionEnd = 0;
inline constexpr std::uint8_t kIpv4OptionNop = 1;            ///< one byte, aligns the next option
inline constexpr std::uint8_t kIpv4OptionRecordRoute = 7;    ///< collects the addresses of routers
inline constexpr std::uint8_t kIpv4OptionTimestamp = 68;     ///< collects times, with or without addresses
inline constexpr std::uint8_t kIpv4OptionLooseRoute = 131;   ///< source route with gaps
inline constexpr std::uint8_t kIpv4OptionStreamId = 136;     ///< of SATNET, obsolete
inline constexpr std::uint8_t kIpv4OptionStrictRoute = 137;  ///< source route without gaps
inline constexpr std::uint8_t kIpv4OptionRouterAlert = 148;  ///< routers look at it (RFC 2113)

/// An IPv4 header's fields (RFC 791), in host byte order.
struct Ipv4Header {
  std::uint8_t type_of_service = 0;   ///< DSCP and ECN
  std::uint16_t total_length = 20;    ///< header and payload
  std::uint16_t identification = 0;   ///< the same in all fragments of a datagram
  bool dont_fragment = false;         ///< DF
  bool more_fragments = false;        ///< MF: this is not the last fragment
  std::uint16_t fragment_offset = 0;  ///< in units of 8 bytes
  std::uint8_t time_to_live = 64;     ///< hops left
  std::uint8_t protocol = 0;          ///< of the payload, such as kProtocolUdp
  std::uint16_t checksum = 0;         ///< as read; emit() works it out
  Ipv4Address source;                 ///< the sender's address
  Ipv4Address destination;            ///< the receiver's, or the next one of a source route
  std::uint8_t options_length = 0;    ///< a multiple of 4, at most 40
  std::uint8_t options[40] = {};      ///< as on the wire, padded
  bool operator==(const Ipv4Header&) const = default;
};

/// Borrows the bytes of a header that check() found well formed.
class Ipv4View {
 public:
  /// @{
  /// Where the fields begin, and how long the header is without and with all options: bytes.
  static constexpr std::uint32_t kVersionIhl = 0;
  static constexpr std::uint32_t kTypeOfService = 1;
  static constexpr std::uint32_t kTotalLength = 2;
  static constexpr std::uint32_t kIdentification = 4;
  static constexpr std::uint32_t kFragment = 6;
  static constexpr std::uint32_t kTimeToLive = 8;
  static constexpr std::uint32_t kProtocol = 9;
  static constexpr std::uint32_t kChecksum = 10;
  static constexpr std::uint32_t kSource = 12;
  static constexpr std::uint32_t kDestination = 16;
  static constexpr std::uint32_t kHeaderLength = 20;
  static constexpr std::uint32_t kMaxHeaderLength = 60;
  /// @}

  /// Borrows header_length() bytes, which outlive it.
  WARPLINE_HD explicit constexpr Ipv4View(const std::uint8_t* bytes) : bytes_(bytes) {}

  /// `length`: bytes left in the frame, of which `bytes` holds the first min(length, header_length()). Leaves the
  /// header's checksum to verify_checksums().
  [[nodiscard]] WARPLINE_HD static constexpr Verdict check(const std::uint8_t* bytes, std::uint32_t length);

  /// The length in bytes, with options.
  [[nodiscard]] WARPLINE_HD constexpr std::uint32_t header_length() const { return (bytes_[kVersionIhl] & 0x0fU) * 4; }

  /// @{
  /// The field as in Ipv4Header, in host byte order.
  [[nodiscard]] WARPLINE_HD constexpr std::uint8_t type_of_service() const { return bytes_[kTypeOfService]; }
  [[nodiscard]] WARPLINE_HD constexpr std::uint16_t total_length() const { return load_be16(bytes_ + kTotalLength); }
  [[nodiscard]] WARPLINE_HD constexpr std::uint16_t identification() const {
    return load_be16(bytes_ + kIdentification);
  }
  [[nodiscard]] WARPLINE_HD constexpr bool dont_fragment() const { return (bytes_[kFragment] & 0x40) != 0; }
  [[nodiscard]] WARPLINE_HD constexpr bool more_fragments() const { return (bytes_[kFragment] & 0x20) != 0; }
  /// @}

  /// In units of 8 bytes.
  [[nodiscard]] WARPLINE_HD constexpr std::uint16_t fragment_offset() const {
    return load_be16(bytes_ + kFragment) & 0x1fff;
  }
  /// Whether this is a part of a datagram, the first one too.
  [[nodiscard]] WARPLINE_HD constexpr bool is_fragment() const { return (load_be16(bytes_ + kFragment) & 0x3fff) != 0; }

  /// @{
  /// The field as in Ipv4Header, in host byte order.
  [[nodiscard]] WARPLINE_HD constexpr std::uint8_t time_to_live() const { return bytes_[kTimeToLive]; }
  [[nodiscard]] WARPLINE_HD constexpr std::uint8_t protocol() const { return bytes_[kProtocol]; }
  [[nodiscard]] WARPLINE_HD constexpr std::uint16_t checksum() const { return load_be16(bytes_ + kChecksum); }
  /// @}

  /// @{
  /// The four bytes of the address.
  [[nodiscard]] WARPLINE_HD constexpr const std::uint8_t* source() const { return bytes_ + kSource; }
  [[nodiscard]] WARPLINE_HD constexpr const std::uint8_t* destination() const { return bytes_ + kDestination; }
  /// @}

  /// The options: options_length() bytes.
  [[nodiscard]] WARPLINE_HD constexpr const std::uint8_t* options() const { return bytes_ + kHeaderLength; }
  /// A multiple of 4, at most 40.
  [[nodiscard]] WARPLINE_HD constexpr std::uint32_t options_length() const { return header_length() - kHeaderLength; }

  /// A source route with hops still to go: the destination address is not the final one.
  [[nodiscard]] WARPLINE_HD constexpr bool is_source_routed() const;

 private:
  [[nodiscard]] WARPLINE_HD static constexpr bool options_well_formed(const std::uint8_t* options,
                                                                      std::uint32_t length);

  const std::uint8_t* bytes_;
};

WARPLINE_HD constexpr Verdict Ipv4View::check(const std::uint8_t* bytes, std::uint32_t length) {
  if (length < kHeaderLength) return Verdict::ipv4_truncated;
  if (bytes[kVersionIhl] >> 4 != 4) return Verdict::ipv4_version;
  const Ipv4View view(bytes);
  const std::uint32_t header = view.header_length();
  const std::uint32_t total = view.total_length();
  if (header < kHeaderLength || header > length) return Verdict::ipv4_header_length;
  if (total < kHeaderLength || total > length) return Verdict::ipv4_total_length;
  if (header > total) return Verdict::ipv4_header_length;
  if (header > kHeaderLength && !options_well_formed(view.options(), view.options_length())) {
    return Verdict::ipv4_options;
  }
  if (view.is_fragment()) {
    const std::uint32_t payload = total - header;
    const bool too_long = view.fragment_offset() * 8U + payload > 0xffff - header;
    const bool odd_middle = view.more_fragments() && payload % 8 != 0;
    if (too_long || odd_middle) return Verdict::ip_fragment;
  }
  return Verdict::forward;
}

WARPLINE_HD constexpr bool Ipv4View::options_well_formed(const std::uint8_t* options, std::uint32_t length) {
  std::uint32_t at = 0;
  while (at < length && options[at] != kIpv4OptionEnd) {
    const std::uint8_t type = options[at];
    if (type == kIpv4OptionNop) {
      ++at;
      continue;
    }
    if (length - at < 2) return false;
    const std::uint32_t option = options[at + 1];
    if (option < 2 || option > length - at) return false;
    switch (type) {
      case kIpv4OptionRecordRoute:
      case kIpv4OptionLooseRoute:
      case kIpv4OptionStrictRoute:
        if (option < 3 || (option - 3) % 4 != 0 || options[at + 2] < 4) return false;
        break;
      case kIpv4OptionTimestamp:
        if (option < 4 || options[at + 2] < 5) return false;
        break;
      case kIpv4OptionStreamId:
      case kIpv4OptionRouterAlert:
        if (option != 4) return false;
        break;
      default:
        break;
    }
    at += option;
  }
  return true;
}

WARPLINE_HD constexpr bool Ipv4View::is_source_routed() const {
  const std::uint8_t* option = options();
  const std::uint32_t length = options_length();
  std::uint32_t at = 0;
  while (at < length && option[at] != kIpv4OptionEnd) {
    if (option[at] == kIpv4OptionNop) {
      ++at;
      continue;
    }
    const bool route = option[at] == kIpv4OptionLooseRoute || option[at] == kIpv4OptionStrictRoute;
    if (route && option[at + 2] <= option[at + 1]) return true;
    at += option[at + 1];
  }
  return false;
}

/// Fills `header` in when the verdict is `forward`.
[[nodiscard]] WARPLINE_HD inline Verdict parse(const std::uint8_t* bytes, std::uint32_t length, Ipv4Header& header) {
  if (const Verdict verdict = Ipv4View::check(bytes, length); verdict != Verdict::forward) return verdict;
  const Ipv4View view(bytes);
  header = Ipv4Header{};
  header.type_of_service = view.type_of_service();
  header.total_length = view.total_length();
  header.identification = view.identification();
  header.dont_fragment = view.dont_fragment();
  header.more_fragments = view.more_fragments();
  header.fragment_offset = view.fragment_offset();
  header.time_to_live = view.time_to_live();
  header.protocol = view.protocol();
  header.checksum = view.checksum();
  header.source = load_address<Ipv4Address>(view.source());
  header.destination = load_address<Ipv4Address>(view.destination());
  header.options_length = static_cast<std::uint8_t>(view.options_length());
  std::memcpy(header.options, view.options(), header.options_length);
  return Verdict::forward;
}

/// Writes 20 + options_length bytes, with their checksum.
WARPLINE_HD inline void emit(const Ipv4Header& header, std::uint8_t* bytes) {
  const std::uint32_t length = Ipv4View::kHeaderLength + header.options_length;
  bytes[Ipv4View::kVersionIhl] = static_cast<std::uint8_t>(0x40 | length / 4);
  bytes[Ipv4View::kTypeOfService] = header.type_of_service;
  store_be16(bytes + Ipv4View::kTotalLength, header.total_length);
  store_be16(bytes + Ipv4View::kIdentification, header.identification);
  const int fragment =
      (header.dont_fragment ? 0x4000 : 0) | (header.more_fragments ? 0x2000 : 0) | (header.fragment_offset & 0x1fff);
  store_be16(bytes + Ipv4View::kFragment, static_cast<std::uint16_t>(fragment));
  bytes[Ipv4View::kTimeToLive] = header.time_to_live;
  bytes[Ipv4View::kProtocol] = header.protocol;
  store_be16(bytes + Ipv4View::kChecksum, 0);
  store_address(bytes + Ipv4View::kSource, header.source);
  store_address(bytes + Ipv4View::kDestination, header.destination);
  std::memcpy(bytes + Ipv4View::kHeaderLength, header.options, header.options_length);
  store_be16(bytes + Ipv4View::kChecksum, checksum(bytes, length));
}

/// "10.0.0.1 > 10.0.0.2 protocol 17 length 46 ttl 64", then what is out of the ordinary: id, tos, flags, options
[[nodiscard]] std::string to_string(const Ipv4Header& header);

}  // namespace warpline::packet
