// SPDX-License-Identifier: Apache-2.0
#include "warpline/transport/internal/socket_steering.h"

#include <linux/filter.h>
#include <sys/socket.h>

#include <array>
#include <span>

#include "warpline/packet/headers/message_header.h"

// Linux has it since 4.5; C libraries may be older.
#ifndef SO_ATTACH_REUSEPORT_CBPF
#define SO_ATTACH_REUSEPORT_CBPF 51
#endif

namespace warpline::transport {
namespace {

constexpr std::uint32_t kByHash = 0xffffffff;  ///< no socket has this number: the kernel takes the hash

bool attach(int socket, int option, std::span<sock_filter> instructions) {
  const sock_fprog program{static_cast<unsigned short>(instructions.size()), instructions.data()};
  return setsockopt(socket, SOL_SOCKET, option, &program, sizeof program) == 0;
}

}  // namespace

bool close_socket_filter(int socket) {
  std::array<sock_filter, 1> nothing = {{BPF_STMT(BPF_RET | BPF_K, 0)}};
  return attach(socket, SO_ATTACH_FILTER, nothing);
}

bool open_socket_filter(int socket) {
  const int unused = 0;
  return setsockopt(socket, SOL_SOCKET, SO_DETACH_FILTER, &unused, sizeof unused) == 0;
}

bool steer_by_endpoint(int socket, std::uint32_t sockets) {
  constexpr std::uint32_t kType = 1;      // offsets in the UDP payload, docs/message_format.md
  constexpr std::uint32_t kEndpoint = 4;  // of a session's packet
  constexpr auto kSession = static_cast<std::uint32_t>(packet::MessagePacketType::session);
  std::array<sock_filter, 7> steering = {{
      BPF_STMT(BPF_LD | BPF_B | BPF_ABS, kType),
      BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 15),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kSession, 0, 3),
      BPF_STMT(BPF_LD | BPF_B | BPF_ABS, kEndpoint),
      BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, sockets, 1, 0),
      BPF_STMT(BPF_RET | BPF_A, 0),
      BPF_STMT(BPF_RET | BPF_K, kByHash),
  }};
  return attach(socket, SO_ATTACH_REUSEPORT_CBPF, steering);
}

}  // namespace warpline::transport
