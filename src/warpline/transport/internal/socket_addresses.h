// SPDX-License-Identifier: Apache-2.0
// Addresses of the kernel and of messages.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <cstring>

#include "warpline/base/address.h"
#include "warpline/message/types.h"

namespace warpline::transport {

/// An address as the kernel has it, of either family.
union AnyAddress {
  sockaddr base;
  sockaddr_in v4;
  sockaddr_in6 v6;
};

/// IPv4-mapped addresses begin so.
inline constexpr std::array<std::uint8_t, 12> kMappedPrefix = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

[[nodiscard]] inline bool is_mapped(const message::PeerAddress& peer) {
  return std::memcmp(peer.ip.data(), kMappedPrefix.data(), kMappedPrefix.size()) == 0;
}

[[nodiscard]] inline message::PeerAddress peer_of(const AnyAddress& address) {
  message::PeerAddress peer;
  if (address.base.sa_family == AF_INET) {
    std::memcpy(peer.ip.data(), kMappedPrefix.data(), kMappedPrefix.size());
    std::memcpy(peer.ip.data() + kMappedPrefix.size(), &address.v4.sin_addr, 4);
    peer.port = ntohs(address.v4.sin_port);
  } else {
    std::memcpy(peer.ip.data(), &address.v6.sin6_addr, 16);
    peer.port = ntohs(address.v6.sin6_port);
    peer.scope = address.v6.sin6_scope_id;
  }
  return peer;
}

/// Returns the address's length; 0 if an IPv4 socket cannot reach it.
[[nodiscard]] inline socklen_t address_of(const message::PeerAddress& peer, bool v6_socket, AnyAddress& address) {
  address = {};
  if (v6_socket) {
    address.v6.sin6_family = AF_INET6;
    address.v6.sin6_port = htons(peer.port);
    address.v6.sin6_scope_id = peer.scope;
    std::memcpy(&address.v6.sin6_addr, peer.ip.data(), 16);
    return sizeof(address.v6);
  }
  if (!is_mapped(peer)) return 0;
  address.v4.sin_family = AF_INET;
  address.v4.sin_port = htons(peer.port);
  std::memcpy(&address.v4.sin_addr, peer.ip.data() + kMappedPrefix.size(), 4);
  return sizeof(address.v4);
}

[[nodiscard]] inline socklen_t local_address(const SocketAddress& local, AnyAddress& address) {
  address = {};
  if (const auto* v4 = std::get_if<Ipv4Address>(&local.address)) {
    address.v4.sin_family = AF_INET;
    address.v4.sin_port = htons(local.port);
    std::memcpy(&address.v4.sin_addr, v4->bytes.data(), 4);
    return sizeof(address.v4);
  }
  address.v6.sin6_family = AF_INET6;
  address.v6.sin6_port = htons(local.port);
  address.v6.sin6_scope_id = local.scope;
  std::memcpy(&address.v6.sin6_addr, std::get<Ipv6Address>(local.address).bytes.data(), 16);
  return sizeof(address.v6);
}

[[nodiscard]] inline bool is_any(const AnyAddress& address) {
  if (address.base.sa_family == AF_INET) return address.v4.sin_addr.s_addr == htonl(INADDR_ANY);
  return IN6_IS_ADDR_UNSPECIFIED(&address.v6.sin6_addr);
}

}  // namespace warpline::transport
