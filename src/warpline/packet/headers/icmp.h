// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "warpline/base/host_device.h"
#include "warpline/base/verdict.h"
#include "warpline/packet/byte_order.h"

namespace warpline::packet {

inline constexpr std::uint8_t kIcmpEchoReply = 0;    ///< type of an answer to ping
inline constexpr std::uint8_t kIcmpEchoRequest = 8;  ///< type of a ping

/// The first eight bytes of an ICMP message (RFC 792). `identifier` and `sequence` are those of echo; in other messages
/// they are the two halves of the word in their place.
struct IcmpHeader {
  std::uint8_t type = 0;         ///< kIcmpEchoReply, kIcmpEchoRequest or another
  std::uint8_t code = 0;         ///< what it means is up to the type
  std::uint16_t checksum = 0;    ///< over the whole message
  std::uint16_t identifier = 0;  ///< tells one pinging program from another
  std::uint16_t sequence = 0;    ///< counts the requests of one program
  bool operator==(const IcmpHeader&) const = default;
};

/// Borrows the bytes of a header that check() found whole. Serves ICMP and ICMPv6, whose messages begin alike.
class IcmpView {
 public:
  /// @{
  /// Where the fields begin, and how long the header is: bytes.
  static constexpr std::uint32_t kType = 0;
  static constexpr std::uint32_t kCode = 1;
  static constexpr std::uint32_t kChecksum = 2;
  static constexpr std::uint32_t kIdentifier = 4;
  static constexpr std::uint32_t kSequence = 6;
  static constexpr std::uint32_t kHeaderLength = 8;
  /// @}

  /// Borrows kHeaderLength bytes, which outlive it.
  WARPLINE_HD explicit constexpr IcmpView(const std::uint8_t* bytes) : bytes_(bytes) {}

  /// `length`: bytes left in the datagram.
  [[nodiscard]] WARPLINE_HD static constexpr Verdict check(const std::uint8_t*, std::uint32_t length) {
    return length < kHeaderLength ? Verdict::icmp_truncated : Verdict::forward;
  }

  /// @{
  /// The field as in IcmpHeader, in host byte order.
  [[nodiscard]] WARPLINE_HD constexpr std::uint8_t type() const { return bytes_[kType]; }
  [[nodiscard]] WARPLINE_HD constexpr std::uint8_t code() const { return bytes_[kCode]; }
  [[nodiscard]] WARPLINE_HD constexpr std::uint16_t checksum() const { return load_be16(bytes_ + kChecksum); }
  [[nodiscard]] WARPLINE_HD constexpr std::uint16_t identifier() const { return load_be16(bytes_ + kIdentifier); }
  [[nodiscard]] WARPLINE_HD constexpr std::uint16_t sequence() const { return load_be16(bytes_ + kSequence); }
  /// @}

 private:
  const std::uint8_t* bytes_;
};

/// Fills `header` in when the verdict is `forward`.
[[nodiscard]] WARPLINE_HD constexpr Verdict parse(const std::uint8_t* bytes, std::uint32_t length, IcmpHeader& header) {
  if (const Verdict verdict = IcmpView::check(bytes, length); verdict != Verdict::forward) return verdict;
  const IcmpView view(bytes);
  header = {view.type(), view.code(), view.checksum(), view.identifier(), view.sequence()};
  return Verdict::forward;
}

/// Writes 8 bytes, the checksum as it is given: it covers what follows too (update_checksums() knows).
WARPLINE_HD constexpr void emit(const IcmpHeader& header, std::uint8_t* bytes) {
  bytes[IcmpView::kType] = header.type;
  bytes[IcmpView::kCode] = header.code;
  store_be16(bytes + IcmpView::kChecksum, header.checksum);
  store_be16(bytes + IcmpView::kIdentifier, header.identifier);
  store_be16(bytes + IcmpView::kSequence, header.sequence);
}

/// "icmp echo request id 1 seq 2", or type and code in numbers
[[nodiscard]] std::string to_string(const IcmpHeader& header);

}  // namespace warpline::packet
