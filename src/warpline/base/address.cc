// SPDX-License-Identifier: Apache-2.0
#include "warpline/base/address.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <net/if.h>

#include <cctype>
#include <charconv>

namespace warpline {
namespace {

Error unreadable(std::string_view text, std::string_view kind, std::string_view example) {
  return usage_error(fmt::format("cannot read '{}'", text), fmt::format("it is no {}", kind),
                     fmt::format("write it like {}", example));
}

}  // namespace

Result<MacAddress> parse_mac(std::string_view text) {
  const Error error = unreadable(text, "MAC address", "02:00:00:00:00:01");
  MacAddress mac;
  if (text.size() != 17) return error;
  for (std::size_t i = 0; i < mac.bytes.size(); ++i) {
    const char* const digits = &text[3 * i];
    const auto [end, failure] = std::from_chars(digits, digits + 2, mac.bytes[i], 16);
    if (failure != std::errc{} || end != digits + 2) return error;
    if (i + 1 < mac.bytes.size() && text[3 * i + 2] != ':') return error;
  }
  return mac;
}

Result<IpAddress> parse_ip(std::string_view text) {
  const std::string terminated(text);
  if (Ipv4Address v4; inet_pton(AF_INET, terminated.c_str(), v4.bytes.data()) == 1) return IpAddress{v4};
  if (Ipv6Address v6; inet_pton(AF_INET6, terminated.c_str(), v6.bytes.data()) == 1) return IpAddress{v6};
  return unreadable(text, "IP address", "10.0.0.1 or fd00::1");
}

Result<InterfaceAddress> parse_interface_address(std::string_view text) {
  const Error error = unreadable(text, "address with a prefix length", "10.0.0.1/24 or fd00::1/64");
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return error;
  const auto address = parse_ip(text.substr(0, slash));
  const std::string_view digits = text.substr(slash + 1);
  unsigned length = 0;
  const auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), length);
  if (!address || failure != std::errc{} || end != digits.data() + digits.size()) return error;
  const unsigned longest = std::holds_alternative<Ipv4Address>(*address) ? 32 : 128;
  if (length > longest) return error;
  return InterfaceAddress{*address, static_cast<std::uint8_t>(length)};
}

Result<SocketAddress> parse_socket_address(std::string_view text) {
  const Error error = unreadable(text, "address with a port", "10.0.0.1:7000 or [fd00::1]:7000");
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return error;
  std::string_view host = text.substr(0, colon);
  const bool brackets = host.size() >= 2 && host.front() == '[' && host.back() == ']';
  if (brackets) host = host.substr(1, host.size() - 2);
  std::uint32_t scope = 0;
  if (const std::size_t percent = host.find('%'); brackets && percent != std::string_view::npos) {
    scope = if_nametoindex(std::string(host.substr(percent + 1)).c_str());
    if (scope == 0) {
      return usage_error(fmt::format("cannot read '{}'", text), "there is no such interface",
                         "name one that `ip link` shows");
    }
    host = host.substr(0, percent);
  }
  const auto address = parse_ip(host);
  const std::string_view digits = text.substr(colon + 1);
  std::uint16_t port = 0;
  const auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (!address || failure != std::errc{} || end != digits.data() + digits.size() || port == 0) return error;
  if (std::holds_alternative<Ipv6Address>(*address) != brackets) return error;
  return SocketAddress{*address, port, scope};
}

std::string to_string(const MacAddress& mac) { return fmt::format("{:02x}", fmt::join(mac.bytes, ":")); }

std::string to_string(const IpAddress& address) {
  char text[INET6_ADDRSTRLEN];
  if (const auto* v4 = std::get_if<Ipv4Address>(&address))
    return inet_ntop(AF_INET, v4->bytes.data(), text, sizeof text);
  return inet_ntop(AF_INET6, std::get<Ipv6Address>(address).bytes.data(), text, sizeof text);
}

std::string to_string(const InterfaceAddress& address) {
  return fmt::format("{}/{}", to_string(address.address), address.prefix_length);
}

std::string to_string(const SocketAddress& address) {
  const bool v4 = std::holds_alternative<Ipv4Address>(address.address);
  char name[IF_NAMESIZE];
  const bool named = address.scope != 0 && if_indextoname(address.scope, name) != nullptr;
  const std::string scope = named ? fmt::format("%{}", name) : "";
  return fmt::format("{}{}{}{}:{}", v4 ? "" : "[", to_string(address.address), scope, v4 ? "" : "]", address.port);
}

}  // namespace warpline
