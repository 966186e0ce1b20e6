// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <string>

#include "warpline/base/host_device.h"
#include "warpline/base/verdict.h"
#include "warpline/packet/byte_order.h"

namespace warpline::packet {

/// Flags of the header's 14th byte (RFC 9293, RFC 3168).
inline constexpr std::uint8_t kTcpFin = 0x01;
inline constexpr std::uint8_t kTcpSyn = 0x02;  ///< opens the connection
inline constexpr std::uint8_t kTcpRst = 0x04;  ///< aborts the connection
inline constexpr std::uint8_t kTcpPsh = 0x08;  ///< to be handed to the receiver at once
inline constexpr std::uint8_t kTcpAck = 0x10;  ///< the acknowledgement number counts
inline constexpr std::uint8_t kTcpUrg = 0x20;  ///< the urgent pointer counts
inline constexpr std::uint8_t kTcpEce = 0x40;  ///< congestion was experienced, or ECN is offered
inline constexpr std::uint8_t kTcpCwr = 0x80;  ///< the congestion window was reduced

/// Option kinds whose length is checked (RFC 9293, 7323, 2018).
inline constexpr std::uint8_t kTcpOptionEnd = 0;
inline constexpr std::uint8_t kTcpOptionNop = 1;            ///< one byte, aligns the next option
inline constexpr std::uint8_t kTcpOptionMss = 2;            ///< maximum segment size
inline constexpr std::uint8_t kTcpOptionWindowScale = 3;    ///< shift of the window (RFC 7323)
inline constexpr std::uint8_t kTcpOptionSackPermitted = 4;  ///< RFC 2018
inline constexpr std::uint8_t kTcpOptionSack = 5;           ///< blocks that arrived (RFC 2018)
inline constexpr std::uint8_t kTcpOptionTimestamps = 8;     ///< RFC 7323

/// A TCP header's fields (RFC 9293, section 3.1), in host byte order.
struct TcpHeader {
  std::uint16_t source_port = 0;       ///< the sender's
  std::uint16_t destination_port = 0;  ///< the receiver's
  std::uint32_t sequence = 0;          ///< of the first byte of payload, or of the SYN
  std::uint32_t acknowledgement = 0;   ///< next sequence number expected
  std::uint8_t flags = 0;              ///< kTcpFin and the others
  std::uint16_t window = 0;            ///< unscaled
  std::uint16_t checksum = 0;          ///< over the whole segment
  std::uint16_t urgent = 0;            ///< urgent data ends so many bytes after `sequence`
  std::uint8_t options_length = 0;     ///< a multiple of 4, at most 40
  std::uint8_t options[40] = {};       ///< as on the wire, padded
  bool operator==(const TcpHeader&) const = default;
};

/// Borrows the bytes of a header that check() found well formed.
class TcpView {
 public:
  /// @{
  /// Where the fields begin, and how long the header is without and with all options: bytes.
  static constexpr std::uint32_t kSourcePort = 0;
  static constexpr std::uint32_t kDestinationPort = 2;
  static constexpr std::uint32_t kSequence = 4;
  static constexpr std::uint32_t kAcknowledgement = 8;
  static constexpr std::uint32_t kDataOffset = 12;
  static constexpr std::uint32_t kFlags = 13;
  static constexpr std::uint32_t kWindow = 14;
  static constexpr std::uint32_t kChecksum = 16;
  static constexpr std::uint32_t kUrgent = 18;
  static constexpr std::uint32_t kHeaderLength = 20;
  static constexpr std::uint32_t kMaxHeaderLength = 60;
  /// @}

  /// Borrows header_length() bytes, which outlive it.
  WARPLINE_HD explicit constexpr TcpView(const std::uint8_t* bytes) : bytes_(bytes) {}

  /// `length`: bytes left in the datagram, of which `bytes` holds the first min(length, header_length()).
  [[nodiscard]] WARPLINE_HD static constexpr Verdict check(const std::uint8_t* bytes, std::uint32_t length) {
    if (length < kHeaderLength) return Verdict::tcp_truncated;
    const TcpView view(bytes);
    const std::uint32_t header = view.header_length();
    if (header < kHeaderLength || header > length) return Verdict::tcp_data_offset;
    return options_well_formed(view.options(), view.options_length()) ? Verdict::forward : Verdict::tcp_options;
  }

  /// @{
  /// The field as in TcpHeader, in host byte order.
  [[nodiscard]] WARPLINE_HD constexpr std::uint16_t source_port() const { return load_be16(bytes_ + kSourcePort); }
  [[nodiscard]] WARPLINE_HD constexpr std::uint16_t destination_port() const {
    return load_be16(bytes_ + kDestinationPort);
  }
  [[nodiscard]] WARPLINE_HD constexpr std::uint32_t sequence() const { return load_be32(bytes_ + kSequence); }
  [[nodiscard]] WARPLINE_HD constexpr std::uint32_t acknowledgement() const {
    return load_be32(bytes_ + kAcknowledgement);
  }
  /// @}

  /// The length in bytes, with options.
  [[nodiscard]] WARPLINE_HD constexpr std::uint32_t header_length() const { return (bytes_[kDataOffset] >> 4) * 4U; }

  /// @{
  /// The field as in TcpHeader, in host byte order.
  [[nodiscard]] WARPLINE_HD constexpr std::uint8_t flags() const { return bytes_[kFlags]; }
  [[nodiscard]] WARPLINE_HD constexpr std::uint16_t window() const { return load_be16(bytes_ + kWindow); }
  [[nodiscard]] WARPLINE_HD constexpr std::uint16_t checksum() const { return load_be16(bytes_ + kChecksum); }
  [[nodiscard]] WARPLINE_HD constexpr std::uint16_t urgent() const { return load_be16(bytes_ + kUrgent); }
  /// @}

  /// The options: options_length() bytes.
  [[nodiscard]] WARPLINE_HD constexpr const std::uint8_t* options() const { return bytes_ + kHeaderLength; }
  /// A multiple of 4, at most 40.
  [[nodiscard]] WARPLINE_HD constexpr std::uint32_t options_length() const { return header_length() - kHeaderLength; }

 private:
  [[nodiscard]] WARPLINE_HD static constexpr bool length_fits(std::uint8_t kind, std::uint32_t length) {
    switch (kind) {
      case kTcpOptionMss:
        return length == 4;
      case kTcpOptionWindowScale:
        return length == 3;
      case kTcpOptionSackPermitted:
        return length == 2;
      case kTcpOptionSack:
        return length >= 10 && (length - 2) % 8 == 0;
      case kTcpOptionTimestamps:
        return length == 10;
      default:
        return length >= 2;
    }
  }

  [[nodiscard]] WARPLINE_HD static constexpr bool options_well_formed(const std::uint8_t* options,
                                                                      std::uint32_t length) {
    std::uint32_t at = 0;
    while (at < length && options[at] != kTcpOptionEnd) {
      if (options[at] == kTcpOptionNop) {
        ++at;
        continue;
      }
      if (length - at < 2) return false;
      const std::uint32_t option = options[at + 1];
      if (!length_fits(options[at], option) || option > length - at) return false;
      at += option;
    }
    return true;
  }

  const std::uint8_t* bytes_;
};

/// Fills `header` in when the verdict is `forward`.
[[nodiscard]] WARPLINE_HD inline Verdict parse(const std::uint8_t* bytes, std::uint32_t length, TcpHeader& header) {
  if (const Verdict verdict = TcpView::check(bytes, length); verdict != Verdict::forward) return verdict;
  const TcpView view(bytes);
  header = TcpHeader{};
  header.source_port = view.source_port();
  header.destination_port = view.destination_port();
  header.sequence = view.sequence();
  header.acknowledgement = view.acknowledgement();
  header.flags = view.flags();
  header.window = view.window();
  header.checksum = view.checksum();
  header.urgent = view.urgent();
  header.options_length = static_cast<std::uint8_t>(view.options_length());
  std::memcpy(header.options, view.options(), header.options_length);
  return Verdict::forward;
}

/// Writes 20 + options_length bytes, the checksum as it is given.
WARPLINE_HD inline void emit(const TcpHeader& header, std::uint8_t* bytes) {
  store_be16(bytes + TcpView::kSourcePort, header.source_port);
  store_be16(bytes + TcpView::kDestinationPort, header.destination_port);
  store_be32(bytes + TcpView::kSequence, header.sequence);
  store_be32(bytes + TcpView::kAcknowledgement, header.acknowledgement);
  bytes[TcpView::kDataOffset] = static_cast<std::uint8_t>((TcpView::kHeaderLength + header.options_length) / 4 << 4);
  bytes[TcpView::kFlags] = header.flags;
  store_be16(bytes + TcpView::kWindow, header.window);
  store_be16(bytes + TcpView::kChecksum, header.checksum);
  store_be16(bytes + TcpView::kUrgent, header.urgent);
  std::memcpy(bytes + TcpView::kHeaderLength, header.options, header.options_length);
}

/// "tcp 5001 > 80 SA seq 1 ack 2 window 65535", then urgent pointer and bytes of options where there are any
[[nodiscard]] std::string to_string(const TcpHeader& header);

}  // namespace warpline::packet
