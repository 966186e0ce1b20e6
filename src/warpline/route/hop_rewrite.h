// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>

#include "warpline/base/address.h"
#include "warpline/base/host_device.h"
#include "warpline/packet/headers/ethernet.h"
#include "warpline/packet/headers/ipv4.h"
#include "warpline/packet/headers/ipv6.h"

namespace warpline::route {

/// A MAC address in the lower 48 bits, its bytes as they lie in memory.
[[nodiscard]] WARPLINE_HD inline std::uint64_t mac_bits(const MacAddress& mac) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, mac.bytes.data(), sizeof mac.bytes);
  return bits;
}

/// Tells the common frames of a router's port from all others by one look: IPv4 without options or IPv6, untagged, to
/// the port's station, well formed as far as a router looks, from an address that a host may have. The others, good
/// or bad, take a longer way. No branch but the last.
class PlainFrames {
 public:
  static constexpr std::uint32_t kIpv4Bytes = packet::EthernetView::kHeaderLength + packet::Ipv4View::kHeaderLength;
  static constexpr std::uint32_t kIpv6Bytes = packet::EthernetView::kHeaderLength + packet::Ipv6View::kHeaderLength;

  explicit PlainFrames(const MacAddress& own) : own_(mac_bits(own)) {}

  /// `head`: bytes in the first segment, at `frame`; `length`: of the frame.
  [[nodiscard]] WARPLINE_HD bool is_ipv4(const std::uint8_t* frame, std::uint32_t head, std::uint32_t length) const {
    constexpr std::uint32_t kTypeAndVersion = 0x450008;  // 08 00, then version 4 and five words of header
    if (head < kIpv4Bytes) return false;
    const std::uint8_t* ip = frame + packet::EthernetView::kHeaderLength;
    const std::uint64_t front = load64(ip);                                   // up to the fragment's offset
    const std::uint64_t middle = load64(ip + packet::Ipv4View::kTimeToLive);  // up to the source
    const auto total = static_cast<std::uint32_t>((front >> 16 & 0xff) << 8 | (front >> 24 & 0xff));
    const auto source = static_cast<std::uint32_t>(middle >> 32 & 0xff);
    const bool plain = (load32(frame + packet::EthernetView::kEtherType) & 0xffffffU) == kTypeAndVersion;
    const bool fits = total - packet::Ipv4View::kHeaderLength <= length - kIpv4Bytes;  // wraps where total is too small
    const bool host = source - 1 < 223 && source != 127;
    const bool right = right_checksum(front, middle, load32(ip + packet::Ipv4View::kDestination));
    return (unsigned{plain} & unsigned{for_us(frame)} & unsigned{fits} & unsigned{host} & unsigned{right}) != 0;
  }

  [[nodiscard]] WARPLINE_HD bool is_ipv6(const std::uint8_t* frame, std::uint32_t head, std::uint32_t length) const {
    constexpr std::uint32_t kTypeAndVersion = 0x60dd86;  // 86 dd, then version 6 in the upper half
    if (head < kIpv6Bytes || (load32(frame + packet::EthernetView::kEtherType) & 0xf0ffffU) != kTypeAndVersion)
      return false;
    const std::uint8_t* ip = frame + packet::EthernetView::kHeaderLength;
    const bool fits = packet::load_be16(ip + packet::Ipv6View::kPayloadLength) <= length - kIpv6Bytes;
    const std::uint32_t source = packet::load_be16(ip + packet::Ipv6View::kSource);
    // ::/64 holds loopback, the unspecified and mapped addresses; fe80::/10 stays on its link; ff00::/8 are groups.
    const bool host = load64(ip + packet::Ipv6View::kSource) != 0 && (source & 0xffc0U) != 0xfe80 && source < 0xff00;
    return for_us(frame) & fits & host;
  }

 private:
  static constexpr std::uint64_t kMacMask = 0xffff'ffff'ffffU;

  [[nodiscard]] WARPLINE_HD static std::uint32_t load32(const std::uint8_t* bytes) {
    std::uint32_t word;
    std::memcpy(&word, bytes, sizeof word);
    return word;
  }
  [[nodiscard]] WARPLINE_HD static std::uint64_t load64(const std::uint8_t* bytes) {
    std::uint64_t word;
    std::memcpy(&word, bytes, sizeof word);
    return word;
  }
  [[nodiscard]] WARPLINE_HD bool for_us(const std::uint8_t* frame) const { return (load64(frame) & kMacMask) == own_; }
  /// Returns whether the checksum of a header without options is right. The header is in three words, because one's
  /// complement sums may be taken of any width and folded (RFC 1071, 2(C)).
  [[nodiscard]] WARPLINE_HD static bool right_checksum(std::uint64_t front, std::uint64_t middle, std::uint32_t back) {
    std::uint64_t sum = (front & 0xffff'ffffU) + (front >> 32) + (middle & 0xffff'ffffU) + (middle >> 32) + back;
    sum = (sum & 0xffffU) + (sum >> 16 & 0xffffU) + (sum >> 32);
    sum = (sum & 0xffffU) + (sum >> 16);
    return sum == 0xffff;
  }

  std::uint64_t own_;
};

/// What a router changes in a frame that it passes on by one of its ports: the stations, and a hop less to live.
class HopRewrite {
 public:
  explicit HopRewrite(const MacAddress& own) : first_(mac_bits(own) << 48), rest_(mac_bits(own) >> 16) {}

  /// `mac`: of the next hop, in the lower 48 bits.
  WARPLINE_HD void stations(std::uint8_t* frame, std::uint64_t mac) const {
    const std::uint64_t front = mac | first_;
    const auto back = static_cast<std::uint32_t>(rest_);
    std::memcpy(frame, &front, sizeof front);
    std::memcpy(frame + sizeof front, &back, sizeof back);
  }

  /// As it lies in memory: IPv4's time to live, protocol and checksum, or IPv6's hop limit.
  struct Life {
    std::uint32_t word;
    /// No packet that a router passes on has less than 2.
    [[nodiscard]] WARPLINE_HD bool is_over() const { return (word & 0xff) <= 1; }
    /// IPv4's checksum wraps when the time to live is one less: 2 in 65536.
    [[nodiscard]] WARPLINE_HD bool wraps() const { return word >= 0xfffe'0000U; }
  };
  [[nodiscard]] WARPLINE_HD static Life life_v4(const std::uint8_t* ip) {
    Life life;
    std::memcpy(&life.word, ip + packet::Ipv4View::kTimeToLive, sizeof life.word);
    return life;
  }

  /// Time to live one less, which must be 2 or more, and the checksum with it (RFC 1624: one's complement 0x0100 more,
  /// never ending at 0xffff where it was not). The checksum must not wrap.
  WARPLINE_HD static void live_less_v4(std::uint8_t* ip, Life life) {
    const std::uint32_t less = life.word + kOne - 1;
    std::memcpy(ip + packet::Ipv4View::kTimeToLive, &less, sizeof less);
  }
  /// Does the same with any checksum, also one that wraps.
  WARPLINE_HD static void live_less_v4(std::uint8_t* ip) {
    Life life = life_v4(ip);
    if (life.wraps()) life.word += kOne;
    live_less_v4(ip, life);
  }

  [[nodiscard]] WARPLINE_HD static Life life_v6(const std::uint8_t* ip) { return {ip[packet::Ipv6View::kHopLimit]}; }
  /// Hop limit one less, which must be 2 or more.
  WARPLINE_HD static void live_less_v6(std::uint8_t* ip, Life life) {
    ip[packet::Ipv6View::kHopLimit] = static_cast<std::uint8_t>(life.word - 1);
  }
  WARPLINE_HD static void live_less_v6(std::uint8_t* ip) { live_less_v6(ip, life_v6(ip)); }

 private:
  static constexpr std::uint32_t kOne = 0x10000;  ///< checksum 0x0100 in Life, in the machine's byte order

  std::uint64_t first_;  ///< the first two bytes, where they go
  std::uint64_t rest_;   ///< the other four
};

}  // namespace warpline::route
