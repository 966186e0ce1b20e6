// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "warpline/base/host_device.h"
#include "warpline/base/verdict.h"
#include "warpline/packet/byte_order.h"

namespace warpline::packet {

/// A UDP header's fields (RFC 768), in host byte order.
struct UdpHeader {
  std::uint16_t source_port = 0;       ///< the sender's
  std::uint16_t destination_port = 0;  ///< the receiver's
  std::uint16_t length = 8;            ///< header and payload
  std::uint16_t checksum = 0;          ///< 0: none (IPv4 only)
  bool operator==(const UdpHeader&) const = default;
};

/// Borrows the bytes of a header that check() found well formed (RFC 768).
class UdpView {
 public:
  /// @{
  /// Where the fields begin, and how long the header is: bytes.
  static constexpr std::uint32_t kSourcePort = 0;
  static constexpr std::uint32_t kDestinationPort = 2;
  static constexpr std::uint32_t kLength = 4;
  static constexpr std::uint32_t kChecksum = 6;
  static constexpr std::uint32_t kHeaderLength = 8;
  /// @}

  /// Borrows kHeaderLength bytes, which outlive it.
  WARPLINE_HD explicit constexpr UdpView(const std::uint8_t* bytes) : bytes_(bytes) {}

  /// `length`: bytes left in the datagram.
  [[nodiscard]] WARPLINE_HD static constexpr Verdict check(const std::uint8_t* bytes, std::uint32_t length) {
    if (length < kHeaderLength) return Verdict::udp_truncated;
    const std::uint32_t own = load_be16(bytes + kLength);
    return own < kHeaderLength || own > length ? Verdict::udp_length : Verdict::forward;
  }

  /// @{
  /// The field as in UdpHeader, in host byte order.
  [[nodiscard]] WARPLINE_HD constexpr std::uint16_t source_port() const { return load_be16(bytes_ + kSourcePort); }
  [[nodiscard]] WARPLINE_HD constexpr std::uint16_t destination_port() const {
    return load_be16(bytes_ + kDestinationPort);
  }
  [[nodiscard]] WARPLINE_HD constexpr std::uint16_t length() const { return load_be16(bytes_ + kLength); }
  [[nodiscard]] WARPLINE_HD constexpr std::uint16_t checksum() const { return load_be16(bytes_ + kChecksum); }
  /// @}

 private:
  const std::uint8_t* bytes_;
};

/// Fills `header` in when the verdict is `forward`.
[[nodiscard]] WARPLINE_HD constexpr Verdict parse(const std::uint8_t* bytes, std::uint32_t length, UdpHeader& header) {
  if (const Verdict verdict = UdpView::check(bytes, length); verdict != Verdict::forward) return verdict;
  const UdpView view(bytes);
  header = {view.source_port(), view.destination_port(), view.length(), view.checksum()};
  return Verdict::forward;
}

/// Writes 8 bytes, the checksum as it is given: whole frames are made by packet/udp_frame.h.
WARPLINE_HD constexpr void emit(const UdpHeader& header, std::uint8_t* bytes) {
  store_be16(bytes + UdpView::kSourcePort, header.source_port);
  store_be16(bytes + UdpView::kDestinationPort, header.destination_port);
  store_be16(bytes + UdpView::kLength, header.length);
  store_be16(bytes + UdpView::kChecksum, header.checksum);
}

/// "udp 49152 > 9 length 26"
[[nodiscard]] std::string to_string(const UdpHeader& header);

}  // namespace warpline::packet
