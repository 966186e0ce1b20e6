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
  std::array<std::uint8_t, 6> bytes{};
  auto operator<=>(const MacAddress&) const = default;
};

struct Ipv4Address {
  std::array<std::uint8_t, 4> bytes{};
  auto operator<=>(const Ipv4Address&) const = default;
};

struct Ipv6Address {
  std::array<std::uint8_t, 16> bytes{};
  auto operator<=>(const Ipv6Address&) const = default;
};

using IpAddress = std::variant<Ipv4Address, Ipv6Address>;

/// An interface's own address and the length of its prefix, such as 10.0.0.1/24 or fd00::1/64.
struct InterfaceAddress {
  IpAddress address;
  std::uint8_t prefix_length = 0;
  auto operator<=>(const InterfaceAddress&) const = default;
};

/// A UDP or TCP port of an address, such as 10.0.0.1:7000 or [fd00::1]:7000.
struct SocketAddress {
  IpAddress address;
  std::uint16_t port = 0;
  auto operator<=>(const SocketAddress&) const = default;
};

// Parsers refuse anything but the whole, canonical notation with a usage error that quotes the text.
[[nodiscard]] Result<MacAddress> parse_mac(std::string_view text);
[[nodiscard]] Result<IpAddress> parse_ip(std::string_view text);
[[nodiscard]] Result<InterfaceAddress> parse_interface_address(std::string_view text);
[[nodiscard]] Result<SocketAddress> parse_socket_address(std::string_view text);

[[nodiscard]] std::string to_string(const MacAddress& mac);
[[nodiscard]] std::string to_string(const IpAddress& address);
[[nodiscard]] std::string to_string(const InterfaceAddress& address);
[[nodiscard]] std::string to_string(const SocketAddress& address);

}  // namespace warpline
