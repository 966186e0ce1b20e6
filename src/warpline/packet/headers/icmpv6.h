// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <string>

#include "warpline/base/address.h"
#include "warpline/base/host_device.h"
#include "warpline/base/verdict.h"
#include "warpline/packet/byte_order.h"
#include "warpline/packet/frame_bytes.h"
#include "warpline/packet/headers/icmp.h"

namespace warpline::packet {

// ICMPv6 (RFC 4443) echo has the layout of ICMP's: IcmpHeader and IcmpView serve it. Here: neighbour
// discovery and multicast listener discovery.
inline constexpr std::uint8_t kIcmpv6EchoRequest = 128;       ///< type (RFC 4443, 4.1)
inline constexpr std::uint8_t kIcmpv6EchoReply = 129;         ///< type (RFC 4443, 4.2)
inline constexpr std::uint8_t kListenerQuery = 130;           ///< type (RFC 3810, 5.1; RFC 2710, 3)
inline constexpr std::uint8_t kListenerReportV1 = 131;        ///< type (RFC 2710, 3)
inline constexpr std::uint8_t kListenerReportV2 = 143;        ///< type (RFC 3810, 5.2)
inline constexpr std::uint8_t kNeighbourSolicitation = 135;   ///< type (RFC 4861, 4.3)
inline constexpr std::uint8_t kNeighbourAdvertisement = 136;  ///< type (RFC 4861, 4.4)
inline constexpr std::uint8_t kOptionSourceLinkLayer = 1;     ///< option of a solicitation (RFC 4861, 4.6.1)
inline constexpr std::uint8_t kOptionTargetLinkLayer = 2;     ///< option of an advertisement (RFC 4861, 4.6.1)
/// What the flags of an advertisement are called in its first word (RFC 4861, 4.4).
inline constexpr std::uint32_t kAdvertisementRouter = 0x8000'0000;  ///< the sender is a router
inline constexpr std::uint32_t kAdvertisementSolicited = 0x4000'0000;
inline constexpr std::uint32_t kAdvertisementOverride = 0x2000'0000;  ///< replaces what the neighbour knew

/// A neighbour solicitation or advertisement (RFC 4861, 4.3 and 4.4), with at most the one option that it needs.
struct NeighbourMessage {
  std::uint8_t type = kNeighbourSolicitation;  ///< kNeighbourSolicitation or kNeighbourAdvertisement
  std::uint16_t checksum = 0;                  ///< over the whole message
  std::uint32_t flags = 0;                     ///< of an advertisement
  Ipv6Address target;                          ///< whose MAC address is asked for or told
  bool has_link_layer = false;  ///< the sender's option in a solicitation, the target's in an advertisement
  MacAddress link_layer;        ///< in that option
  bool operator==(const NeighbourMessage&) const = default;
};

/// Borrows the bytes of a message that check() found well formed.
class NeighbourView {
 public:
  /// @{
  /// Where the field begins: bytes.
  static constexpr std::uint32_t kFlags = 4;
  static constexpr std::uint32_t kTarget = 8;
  /// @}

  static constexpr std::uint32_t kHeaderLength = 24;  ///< options follow
  static constexpr std::uint32_t kOptionLength = 8;   ///< of a link-layer option for Ethernet

  /// Borrows the whole message of `length` bytes, which outlive it.
  WARPLINE_HD constexpr NeighbourView(const std::uint8_t* bytes, std::uint32_t length)
      : bytes_(bytes), length_(length) {}

  /// `bytes` holds the whole message of `length` bytes. A code other than 0, or options that do not fill it exactly,
  /// are malformed (RFC 4861, 7.1).
  [[nodiscard]] WARPLINE_HD static constexpr Verdict check(const std::uint8_t* bytes, std::uint32_t length) {
    if (length < kHeaderLength) return Verdict::icmp_truncated;
    if (bytes[IcmpView::kCode] != 0) return Verdict::neighbour_malformed;
    for (std::uint32_t at = kHeaderLength; at < length;) {
      if (length - at < kOptionLength) return Verdict::neighbour_malformed;
      const std::uint32_t option = bytes[at + 1] * 8U;
      if (option == 0 || option > length - at) return Verdict::neighbour_malformed;
      at += option;
    }
    return Verdict::forward;
  }

  /// @{
  /// The field as in NeighbourMessage, in host byte order.
  [[nodiscard]] WARPLINE_HD constexpr std::uint8_t type() const { return bytes_[IcmpView::kType]; }
  [[nodiscard]] WARPLINE_HD constexpr std::uint16_t checksum() const { return load_be16(bytes_ + IcmpView::kChecksum); }
  [[nodiscard]] WARPLINE_HD constexpr std::uint32_t flags() const { return load_be32(bytes_ + kFlags); }
  /// @}

  /// 16 bytes of the IPv6 address.
  [[nodiscard]] WARPLINE_HD constexpr const std::uint8_t* target() const { return bytes_ + kTarget; }

  /// The six bytes of the first option of `kind` (source or target link layer), or nullptr.
  [[nodiscard]] WARPLINE_HD constexpr const std::uint8_t* link_layer(std::uint8_t kind) const {
    for (std::uint32_t at = kHeaderLength; at < length_; at += bytes_[at + 1] * 8U) {
      if (bytes_[at] == kind && bytes_[at + 1] == 1) return bytes_ + at + 2;
    }
    return nullptr;
  }

 private:
  const std::uint8_t* bytes_;
  std::uint32_t length_;
};

/// check() for a message at `offset` of a frame, in whatever segments. O(options).
[[nodiscard]] WARPLINE_HD inline Verdict check_neighbour(FrameRef frame, std::uint32_t offset, std::uint32_t length) {
  std::uint8_t scratch[2];
  if (length < NeighbourView::kHeaderLength) return Verdict::icmp_truncated;
  const std::uint8_t* head = bytes_at(frame, offset, 2, scratch);
  if (head == nullptr || head[IcmpView::kCode] != 0) return Verdict::neighbour_malformed;
  for (std::uint32_t at = NeighbourView::kHeaderLength; at < length;) {
    if (length - at < NeighbourView::kOptionLength) return Verdict::neighbour_malformed;
    const std::uint8_t* option = bytes_at(frame, offset + at, 2, scratch);
    const std::uint32_t size = option == nullptr ? 0 : option[1] * 8U;
    if (size == 0 || size > length - at) return Verdict::neighbour_malformed;
    at += size;
  }
  return Verdict::forward;
}

/// The option that a message of `type` has its link-layer address in.
[[nodiscard]] WARPLINE_HD constexpr std::uint8_t link_layer_option(std::uint8_t type) {
  return type == kNeighbourSolicitation ? kOptionSourceLinkLayer : kOptionTargetLinkLayer;
}

/// Fills `message` in when the verdict is `forward`.
[[nodiscard]] WARPLINE_HD inline Verdict parse(const std::uint8_t* bytes, std::uint32_t length,
                                               NeighbourMessage& message) {
  if (const Verdict verdict = NeighbourView::check(bytes, length); verdict != Verdict::forward) return verdict;
  const NeighbourView view(bytes, length);
  message = NeighbourMessage{};
  message.type = view.type();
  message.checksum = view.checksum();
  message.flags = view.flags();
  message.target = load_address<Ipv6Address>(view.target());
  if (const std::uint8_t* mac = view.link_layer(link_layer_option(message.type)); mac != nullptr) {
    message.has_link_layer = true;
    message.link_layer = load_address<MacAddress>(mac);
  }
  return Verdict::forward;
}

/// Writes 24 bytes, 32 with a link-layer option; the checksum as it is given.
WARPLINE_HD inline void emit(const NeighbourMessage& message, std::uint8_t* bytes) {
  bytes[IcmpView::kType] = message.type;
  bytes[IcmpView::kCode] = 0;
  store_be16(bytes + IcmpView::kChecksum, message.checksum);
  store_be32(bytes + NeighbourView::kFlags, message.flags);
  store_address(bytes + NeighbourView::kTarget, message.target);
  if (!message.has_link_layer) return;
  std::uint8_t* option = bytes + NeighbourView::kHeaderLength;
  option[0] = link_layer_option(message.type);
  option[1] = 1;
  store_address(option + 2, message.link_layer);
}

/// "neighbour solicitation for fd00::1 from 02:00:00:00:00:01"
[[nodiscard]] std::string to_string(const NeighbourMessage& message);

}  // namespace warpline::packet
