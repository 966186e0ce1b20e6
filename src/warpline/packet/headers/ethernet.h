// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <string>

#include "warpline/base/address.h"
#include "warpline/base/host_device.h"
#include "warpline/base/verdict.h"
#include "warpline/packet/byte_order.h"

namespace warpline::packet {

/// EtherTypes (IEEE 802 numbers), host order.
inline constexpr std::uint16_t kEtherTypeIpv4 = 0x0800;
inline constexpr std::uint16_t kEtherTypeArp = 0x0806;      ///< ARP (RFC 826)
inline constexpr std::uint16_t kEtherTypeVlan = 0x8100;     ///< 802.1Q C-tag
inline constexpr std::uint16_t kEtherTypeIpv6 = 0x86dd;     ///< IPv6 (RFC 2464)
inline constexpr std::uint16_t kEtherTypeService = 0x88a8;  ///< 802.1ad S-tag
inline constexpr std::uint16_t kEtherTypeOldQinq = 0x9100;  ///< outer tag before 802.1ad

/// An Ethernet II header's fields. `ether_type` below 0x600 is an 802.3 length.
struct EthernetHeader {
  MacAddress destination;        ///< MAC address of the receiving station
  MacAddress source;             ///< MAC address of the sending station
  std::uint16_t ether_type = 0;  ///< of what follows, or of its tag
  bool operator==(const EthernetHeader&) const = default;
};

/// Borrows the bytes of a header that check() found whole.
class EthernetView {
 public:
  /// @{
  /// Where the fields begin, and how long the header is: bytes.
  static constexpr std::uint32_t kDestination = 0;
  static constexpr std::uint32_t kSource = 6;
  static constexpr std::uint32_t kEtherType = 12;
  static constexpr std::uint32_t kHeaderLength = 14;
  /// @}

  /// Borrows kHeaderLength bytes, which outlive it.
  WARPLINE_HD explicit constexpr EthernetView(const std::uint8_t* bytes) : bytes_(bytes) {}

  /// Verdict::forward, or why these `length` bytes hold no header.
  [[nodiscard]] WARPLINE_HD static constexpr Verdict check(const std::uint8_t*, std::uint32_t length) {
    return length < kHeaderLength ? Verdict::runt : Verdict::forward;
  }

  /// @{
  /// The six bytes of the MAC address.
  [[nodiscard]] WARPLINE_HD constexpr const std::uint8_t* destination() const { return bytes_ + kDestination; }
  [[nodiscard]] WARPLINE_HD constexpr const std::uint8_t* source() const { return bytes_ + kSource; }
  /// @}

  /// In host byte order.
  [[nodiscard]] WARPLINE_HD constexpr std::uint16_t ether_type() const { return load_be16(bytes_ + kEtherType); }

 private:
  const std::uint8_t* bytes_;
};

/// Fills `header` in when the verdict is `forward`.
[[nodiscard]] WARPLINE_HD inline Verdict parse(const std::uint8_t* bytes, std::uint32_t length,
                                               EthernetHeader& header) {
  if (const Verdict verdict = EthernetView::check(bytes, length); verdict != Verdict::forward) return verdict;
  const EthernetView view(bytes);
  header = {load_address<MacAddress>(view.destination()), load_address<MacAddress>(view.source()), view.ether_type()};
  return Verdict::forward;
}

/// Writes 14 bytes.
WARPLINE_HD inline void emit(const EthernetHeader& header, std::uint8_t* bytes) {
  store_address(bytes + EthernetView::kDestination, header.destination);
  store_address(bytes + EthernetView::kSource, header.source);
  store_be16(bytes + EthernetView::kEtherType, header.ether_type);
}

/// "02:00:00:00:00:01 > 02:00:00:00:00:02 type 0x0800"
[[nodiscard]] std::string to_string(const EthernetHeader& header);

/// Exchanges destination and source. Reads 14 bytes, writes 12; on a device, where each access of a host's memory is a
/// transfer of its own, reads and writes an aligned 16 bytes at once.
WARPLINE_HD inline void swap_macs(std::uint8_t* ethernet) {
#if defined(__CUDA_ARCH__)
  if (reinterpret_cast<std::uintptr_t>(ethernet) % sizeof(uint4) == 0) {
    uint4 words = *reinterpret_cast<uint4*>(ethernet);
    const uint3 old{words.x, words.y, words.z};
    words.x = old.y >> 16 | old.z << 16;
    words.y = old.z >> 16 | old.x << 16;
    words.z = old.x >> 16 | old.y << 16;
    *reinterpret_cast<uint4*>(ethernet) = words;
    return;
  }
#endif
  std::uint64_t front;  // destination, and the source's first two bytes
  std::uint64_t back;   // source, and the EtherType
  std::memcpy(&front, ethernet, sizeof(front));
  std::memcpy(&back, ethernet + EthernetView::kSource, sizeof(back));
  const std::uint64_t low = (back & 0xffff'ffff'ffffU) | front << 48;
  const auto high = static_cast<std::uint32_t>(front >> 16);
  std::memcpy(ethernet, &low, sizeof(low));
  std::memcpy(ethernet + sizeof(low), &high, sizeof(high));
}

}  // namespace warpline::packet
