// SPDX-License-Identifier: Apache-2.0
#include "warpline/transport/internal/socket_errors.h"

#include <linux/errqueue.h>
#include <netinet/icmp6.h>
#include <netinet/in.h>
#include <netinet/ip_icmp.h>
#include <sys/socket.h>

#include <array>
#include <cstring>
#include <ctime>

#include "warpline/transport/internal/socket_addresses.h"

namespace warpline::transport {
namespace {

/// Errors come with all notes that datagrams come with, and one of their own behind them.
constexpr std::size_t kControl = 512;

SocketError::Kind kind_of(const sock_extended_err& error) {
  using Kind = SocketError::Kind;
  if (error.ee_origin == SO_EE_ORIGIN_ICMP) {
    const bool port = error.ee_type == ICMP_DEST_UNREACH && error.ee_code == ICMP_PORT_UNREACH;
    return port ? Kind::unreachable : Kind::other;
  }
  if (error.ee_origin == SO_EE_ORIGIN_ICMP6) {
    const bool port = error.ee_type == ICMP6_DST_UNREACH && error.ee_code == ICMP6_DST_UNREACH_NOPORT;
    return port ? Kind::unreachable : Kind::other;
  }
  return Kind::local;
}

}  // namespace

void report_errors(int handle, bool v6, bool on) {
  const int value = on ? 1 : 0;
  (void)::setsockopt(handle, IPPROTO_IP, IP_RECVERR, &value, sizeof value);
  if (v6) (void)::setsockopt(handle, IPPROTO_IPV6, IPV6_RECVERR, &value, sizeof value);
}

SocketError next_error(int handle, std::span<std::uint8_t> bytes) {
  alignas(cmsghdr) std::array<std::uint8_t, kControl> control;
  AnyAddress to{};
  iovec piece{bytes.data(), bytes.size()};
  msghdr message{};
  message.msg_name = &to;
  message.msg_namelen = sizeof to;
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t length = ::recvmsg(handle, &message, MSG_ERRQUEUE | MSG_DONTWAIT);
  if (length < 0) return {};
  SocketError said{SocketError::Kind::local, {}, static_cast<std::size_t>(length)};
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr; header = CMSG_NXTHDR(&message, header)) {
    const bool v4 = header->cmsg_level == IPPROTO_IP && header->cmsg_type == IP_RECVERR;
    const bool v6 = header->cmsg_level == IPPROTO_IPV6 && header->cmsg_type == IPV6_RECVERR;
    if (!v4 && !v6) continue;
    sock_extended_err error;
    std::memcpy(&error, CMSG_DATA(header), sizeof error);
    said.kind = kind_of(error);
  }
  if (said.kind != SocketError::Kind::local) said.to = peer_of(to);
  return said;
}

}  // namespace warpline::transport
