// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "warpline/base/result.h"

namespace warpline {

/// All addresses hold their bytes in network order, as on the wire.
struct MacAddress {
  std::array<std::uint8_t, 6> bytes{};  ///< the first is sent first
  auto operator<=>(const MacAddress&) const = default;
};

/// An IPv4 address.
struct Ipv4Address {
  std::array<std::uint8_t, 4> bytes{};  ///< 10.0.0.1 is {10, 0, 0, 1}
  auto operator<=>(const Ipv4Address&) const = default;
};

/// An IPv6 address.
struct Ipv6Address {
  std::array<std::uint8_t, 16> bytes{};  ///< fd00::1 begins with 0xfd
  auto operator<=>(const Ipv6Address&) const = default;
};

/// An address of either family.
using IpAddress = std::variant<Ipv4Address, Ipv6Address>;

/// An interface's own address and the length of its prefix, such as 10.0.0.1/24 or fd00::1/64.
struct InterfaceAddress {
  IpAddress address{};             ///< the interface's own, host bits included
  std::uint8_t prefix_length = 0;  ///< bits: 0 to 32, of IPv6 0 to 128
  auto operator<=>(const InterfaceAddress&) const = default;
};

/// A UDP or TCP port of an address, such as 10.0.0.1:7000, [fd00::1]:7000 or [fe80::1%eth0]:7000.
struct SocketAddress {
  IpAddress address{};      ///< of the host
  std::uint16_t port = 0;   ///< in host byte order
  std::uint32_t scope = 0;  ///< of a link-local IPv6 address: the interface's index (RFC 4007); otherwise 0
  auto operator<=>(const SocketAddress&) const = default;
};

// Parsers refuse anything but the whole, canonical notation with a usage error that quotes the text.
[[nodiscard]] Result<MacAddress> parse_mac(std::string_view text);                      ///< "02:00:00:00:00:01"
[[nodiscard]] Result<IpAddress> parse_ip(std::string_view text);                        ///< "10.0.0.1", "fd00::1"
[[nodiscard]] Result<InterfaceAddress> parse_interface_address(std::string_view text);  ///< "10.0.0.1/24"
[[nodiscard]] Result<SocketAddress> parse_socket_address(std::string_view text);        ///< "10.0.0.1:7000"

[[nodiscard]] std::string to_string(const MacAddress& mac);            ///< as parse_mac() reads it
[[nodiscard]] std::string to_string(const IpAddress& address);         ///< as parse_ip() reads it
[[nodiscard]] std::string to_string(const InterfaceAddress& address);  ///< as parse_interface_address() reads it
[[nodiscard]] std::string to_string(const SocketAddress& address);     ///< as parse_socket_address() reads it

}  // namespace warpline
