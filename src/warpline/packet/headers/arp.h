// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "warpline/base/address.h"
#include "warpline/base/host_device.h"
#include "warpline/base/verdict.h"
#include "warpline/packet/byte_order.h"
#include "warpline/packet/headers/ethernet.h"

namespace warpline::packet {

inline constexpr std::uint16_t kArpRequest = 1;  ///< operation: who has the target address
inline constexpr std::uint16_t kArpReply = 2;    ///< operation: the sender has its address

/// ARP for IPv4 over Ethernet (RFC 826).
struct ArpPacket {
  std::uint16_t operation = kArpRequest;  ///< kArpRequest, kArpReply or another
  MacAddress sender_mac;                  ///< Ethernet address of who sends it
  Ipv4Address sender_ip;                  ///< IPv4 address of who sends it
  MacAddress target_mac;                  ///< of a reply: who asked; of a request: nothing
  Ipv4Address target_ip;                  ///< of a request: who is looked for
  bool operator==(const ArpPacket&) const = default;
};

/// Borrows the bytes of a packet that check() found well formed.
class ArpView {
 public:
  /// @{
  /// Where the fields begin, and how long the packet is: bytes.
  static constexpr std::uint32_t kHardwareType = 0;
  static constexpr std::uint32_t kProtocolType = 2;
  static constexpr std::uint32_t kHardwareLength = 4;
  static constexpr std::uint32_t kProtocolLength = 5;
  static constexpr std::uint32_t kOperation = 6;
  static constexpr std::uint32_t kSenderMac = 8;
  static constexpr std::uint32_t kSenderIp = 14;
  static constexpr std::uint32_t kTargetMac = 18;
  static constexpr std::uint32_t kTargetIp = 24;
  static constexpr std::uint32_t kHeaderLength = 28;
  /// @}

  /// Borrows kHeaderLength bytes, which outlive it.
  WARPLINE_HD explicit constexpr ArpView(const std::uint8_t* bytes) : bytes_(bytes) {}

  /// Whatever operation it asks for is well formed.
  [[nodiscard]] WARPLINE_HD static constexpr Verdict check(const std::uint8_t* bytes, std::uint32_t length) {
    if (length < kSenderMac) return Verdict::arp_truncated;
    const bool ipv4_over_ethernet = load_be16(bytes + kHardwareType) == 1 &&
                                    load_be16(bytes + kProtocolType) == kEtherTypeIpv4 && bytes[kHardwareLength] == 6 &&
                                    bytes[kProtocolLength] == 4;
    if (!ipv4_over_ethernet) return Verdict::arp_malformed;
    return length < kHeaderLength ? Verdict::arp_truncated : Verdict::forward;
  }

  /// In host byte order.
  [[nodiscard]] WARPLINE_HD constexpr std::uint16_t operation() const { return load_be16(bytes_ + kOperation); }

  /// @{
  /// The packet's own bytes: 6 of a MAC address, 4 of an IPv4 address.
  [[nodiscard]] WARPLINE_HD constexpr const std::uint8_t* sender_mac() const { return bytes_ + kSenderMac; }
  [[nodiscard]] WARPLINE_HD constexpr const std::uint8_t* sender_ip() const { return bytes_ + kSenderIp; }
  [[nodiscard]] WARPLINE_HD constexpr const std::uint8_t* target_mac() const { return bytes_ + kTargetMac; }
  [[nodiscard]] WARPLINE_HD constexpr const std::uint8_t* target_ip() const { return bytes_ + kTargetIp; }
  /// @}

 private:
  const std::uint8_t* bytes_;
};

/// Fills `packet` in when the verdict is `forward`.
[[nodiscard]] WARPLINE_HD inline Verdict parse(const std::uint8_t* bytes, std::uint32_t length, ArpPacket& packet) {
  if (const Verdict verdict = ArpView::check(bytes, length); verdict != Verdict::forward) return verdict;
  const ArpView view(bytes);
  packet.operation = view.operation();
  packet.sender_mac = load_address<MacAddress>(view.sender_mac());
  packet.sender_ip = load_address<Ipv4Address>(view.sender_ip());
  packet.target_mac = load_address<MacAddress>(view.target_mac());
  packet.target_ip = load_address<Ipv4Address>(view.target_ip());
  return Verdict::forward;
}

/// Writes 28 bytes.
WARPLINE_HD inline void emit(const ArpPacket& packet, std::uint8_t* bytes) {
  store_be16(bytes + ArpView::kHardwareType, 1);
  store_be16(bytes + ArpView::kProtocolType, kEtherTypeIpv4);
  bytes[ArpView::kHardwareLength] = 6;
  bytes[ArpView::kProtocolLength] = 4;
  store_be16(bytes + ArpView::kOperation, packet.operation);
  store_address(bytes + ArpView::kSenderMac, packet.sender_mac);
  store_address(bytes + ArpView::kSenderIp, packet.sender_ip);
  store_address(bytes + ArpView::kTargetMac, packet.target_mac);
  store_address(bytes + ArpView::kTargetIp, packet.target_ip);
}

/// "arp who has 10.0.0.2, tell 10.0.0.1 at 02:00:00:00:00:01", "arp 10.0.0.2 is at ..., to ...", or the operation's
/// number
[[nodiscard]] std::string to_string(const ArpPacket& packet);

}  // namespace warpline::packet
