// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "warpline/base/host_device.h"
#include "warpline/base/verdict.h"
#include "warpline/packet/byte_order.h"
#include "warpline/packet/headers/ethernet.h"

namespace warpline::packet {

/// A frame with more tags than these two (802.1ad: service and customer) is dropped as `vlan_nested`.
inline constexpr std::uint8_t kMaxVlanTags = 2;

/// Whether a tag follows this EtherType.
[[nodiscard]] WARPLINE_HD constexpr bool is_vlan(std::uint16_t ether_type) {
  return ether_type == kEtherTypeVlan || ether_type == kEtherTypeService || ether_type == kEtherTypeOldQinq;
}

/// What follows the tag's own EtherType.
struct VlanTag {
  std::uint8_t priority = 0;     ///< PCP, 0..7
  bool drop_eligible = false;    ///< DEI
  std::uint16_t id = 0;          ///< VID, 0..4095
  std::uint16_t ether_type = 0;  ///< of what the tag wraps
  bool operator==(const VlanTag&) const = default;
};

/// Borrows the four bytes after a tag's EtherType.
class VlanView {
 public:
  /// @{
  /// Where the fields begin, and how long all that is: bytes.
  static constexpr std::uint32_t kControl = 0;
  static constexpr std::uint32_t kEtherType = 2;
  static constexpr std::uint32_t kHeaderLength = 4;
  /// @}

  /// Borrows kHeaderLength bytes, which outlive it.
  WARPLINE_HD explicit constexpr VlanView(const std::uint8_t* bytes) : bytes_(bytes) {}

  /// Verdict::forward, or why these `length` bytes hold no tag.
  [[nodiscard]] WARPLINE_HD static constexpr Verdict check(const std::uint8_t*, std::uint32_t length) {
    return length < kHeaderLength ? Verdict::vlan_truncated : Verdict::forward;
  }

  /// Priority, drop eligibility and id in one word (TCI).
  [[nodiscard]] WARPLINE_HD constexpr std::uint16_t control() const { return load_be16(bytes_ + kControl); }
  /// The EtherType of what the tag wraps.
  [[nodiscard]] WARPLINE_HD constexpr std::uint16_t ether_type() const { return load_be16(bytes_ + kEtherType); }

 private:
  const std::uint8_t* bytes_;
};

/// Fills `tag` in when the verdict is `forward`.
[[nodiscard]] WARPLINE_HD constexpr Verdict parse(const std::uint8_t* bytes, std::uint32_t length, VlanTag& tag) {
  if (const Verdict verdict = VlanView::check(bytes, length); verdict != Verdict::forward) return verdict;
  const VlanView view(bytes);
  const std::uint16_t control = view.control();
  tag.priority = static_cast<std::uint8_t>(control >> 13);
  tag.drop_eligible = (control & 0x1000) != 0;
  tag.id = control & 0x0fff;
  tag.ether_type = view.ether_type();
  return Verdict::forward;
}

/// Writes 4 bytes. Bits beyond the widths of priority and id are cut off.
WARPLINE_HD constexpr void emit(const VlanTag& tag, std::uint8_t* bytes) {
  const int control = (tag.priority & 7) << 13 | (tag.drop_eligible ? 0x1000 : 0) | (tag.id & 0x0fff);
  store_be16(bytes + VlanView::kControl, static_cast<std::uint16_t>(control));
  store_be16(bytes + VlanView::kEtherType, tag.ether_type);
}

/// "vlan 7 priority 3 dei type 0x0800"
[[nodiscard]] std::string to_string(const VlanTag& tag);

}  // namespace warpline::packet
