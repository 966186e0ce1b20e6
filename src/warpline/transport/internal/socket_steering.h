// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace warpline::transport {

// What the kernel does with datagrams before a socket has them. Each call returns whether the kernel did as asked, with
// errno if not.

/// Has the socket take nothing until open_socket_filter().
[[nodiscard]] bool close_socket_filter(int socket);
[[nodiscard]] bool open_socket_filter(int socket);

/// Has a packet of a session go to the socket of its group (SO_REUSEPORT) that the packet names: the first byte of the
/// session is the endpoint's number, and sockets are numbered in the order in which they were bound. All other packets,
/// hellos above all, and those for `sockets` or more go by the hash of addresses and ports, as without this.
[[nodiscard]] bool steer_by_endpoint(int socket, std::uint32_t sockets);

}  // namespace warpline::transport
