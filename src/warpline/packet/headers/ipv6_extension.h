// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "warpline/base/frame.h"
#include "warpline/base/host_device.h"
#include "warpline/base/verdict.h"
#include "warpline/packet/byte_order.h"
#include "warpline/packet/frame_bytes.h"

namespace warpline::packet {

/// Next-header values of extension headers (RFC 8200, 4; RFC 4302; RFC 6275; RFC 7401; RFC 5533).
inline constexpr std::uint8_t kExtensionHopByHop = 0;
inline constexpr std::uint8_t kExtensionRouting = 43;         ///< addresses still to be visited
inline constexpr std::uint8_t kExtensionFragment = 44;        ///< a fragment's place in its datagram
inline constexpr std::uint8_t kExtensionAuthentication = 51;  ///< authentication header
inline constexpr std::uint8_t kExtensionNone = 59;            ///< nothing follows
inline constexpr std::uint8_t kExtensionDestination = 60;     ///< options for the destination
inline constexpr std::uint8_t kExtensionMobility = 135;       ///< mobile IPv6
inline constexpr std::uint8_t kExtensionHip = 139;            ///< host identity protocol
inline constexpr std::uint8_t kExtensionShim6 = 140;          ///< multihoming

/// A longer chain is dropped: no honest sender makes one, and each header costs a look.
inline constexpr std::uint32_t kMaxIpv6Extensions = 8;

/// True if `next_header` says that an extension header follows; false for kExtensionNone.
[[nodiscard]] WARPLINE_HD constexpr bool is_ipv6_extension(std::uint8_t next_header) {
  switch (next_header) {
    case kExtensionHopByHop:
    case kExtensionRouting:
    case kExtensionFragment:
    case kExtensionAuthentication:
    case kExtensionDestination:
    case kExtensionMobility:
    case kExtensionHip:
    case kExtensionShim6:
      return true;
    default:
      return false;
  }
}

/// What lies behind the extension headers.
struct Ipv6Chain {
  std::uint8_t protocol = 0;   ///< of what follows the chain
  std::uint32_t offset = 0;    ///< in the frame, of what follows the chain
  bool fragment = false;       ///< a true fragment; an atomic one (RFC 6946) counts as whole
  bool source_routed = false;  ///< the destination address is not the final one
};

/// Bytes of the extension header whose first two bytes are `head`.
[[nodiscard]] WARPLINE_HD constexpr std::uint32_t ipv6_extension_length(std::uint8_t kind, const std::uint8_t* head) {
  switch (kind) {
    case kExtensionFragment:
      return 8;
    case kExtensionAuthentication:
      return (head[1] + 2U) * 4;
    default:
      return (head[1] + 1U) * 8;
  }
}

/// Whether the options that fill `[offset, end)` are well formed: type-length-value, Pad1 alone has no length.
[[nodiscard]] WARPLINE_HD inline bool ipv6_options_well_formed(FrameRef frame, std::uint32_t offset,
                                                               std::uint32_t end) {
  std::uint8_t scratch[2];
  while (offset < end) {
    const std::uint8_t* type = bytes_at(frame, offset, 1, scratch);
    if (type == nullptr) return false;
    if (*type == 0) {
      ++offset;
      continue;
    }
    const std::uint8_t* head = end - offset >= 2 ? bytes_at(frame, offset, 2, scratch) : nullptr;
    if (head == nullptr || head[1] > end - offset - 2) return false;
    offset += 2U + head[1];
  }
  return true;
}

/// Walks the chain that begins at `offset` with a header of kind `next_header`, in a datagram that ends at `end`.
/// O(extension headers and options).
[[nodiscard]] WARPLINE_HD inline Verdict walk_ipv6_extensions(FrameRef frame, std::uint32_t offset, std::uint32_t end,
                                                              std::uint8_t next_header, Ipv6Chain& chain) {
  chain = Ipv6Chain{next_header, offset, false, false};
  for (std::uint32_t count = 0; is_ipv6_extension(chain.protocol); ++count) {
    const std::uint8_t kind = chain.protocol;
    if (count == kMaxIpv6Extensions) return Verdict::ipv6_extension;
    if (kind == kExtensionHopByHop && count != 0) return Verdict::ipv6_extension;  // RFC 8200, 4.1: first or not at all
    const std::uint32_t left = end - chain.offset;
    std::uint8_t scratch[8];
    const std::uint8_t* head = left >= 8 ? bytes_at(frame, chain.offset, 8, scratch) : nullptr;
    if (head == nullptr) return Verdict::ipv6_extension;
    const std::uint32_t length = ipv6_extension_length(kind, head);
    if (length > left) return Verdict::ipv6_extension;

    if (kind == kExtensionHopByHop || kind == kExtensionDestination) {
      if (!ipv6_options_well_formed(frame, chain.offset + 2, chain.offset + length)) return Verdict::ipv6_extension;
    } else if (kind == kExtensionRouting) {
      const bool hops_left = head[3] != 0;
      chain.source_routed = chain.source_routed || hops_left;
    } else if (kind == kExtensionFragment) {
      const std::uint32_t position = load_be16(head + 2) & 0xfff8;  // in bytes
      const bool more = (head[3] & 1) != 0;
      const std::uint32_t part = left - length;
      if (position + part > 0xffff || (more && part % 8 != 0)) return Verdict::ip_fragment;
      chain.fragment = position != 0 || more;
    }
    chain.protocol = head[0];
    chain.offset += length;
    if (chain.fragment) return Verdict::forward;
  }
  return Verdict::forward;
}

}  // namespace warpline::packet
