// SPDX-License-Identifier: Apache-2.0
#include "nccl/socket_nic.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "nccl/interfaces.h"
#include "warpline/transport/udp_socket.h"

namespace warpline::nccl {
namespace {

constexpr std::uint32_t kBatch = 32;  ///< datagrams a system call

/// Bytes of UDP payload that the interface carries in one piece.
std::uint32_t payload_of(const NicFacts& on) {
  const bool v4 = std::holds_alternative<Ipv4Address>(on.address);
  constexpr std::uint32_t kLeast = 1200;
  return std::max(on.mtu, kLeast + 48) - (v4 ? 28 : 48);
}

/// What the kernel has given, which may be less than was asked for; it counts its own overhead.
std::uint32_t receive_buffer_of(int socket) {
  int bytes = 0;
  socklen_t length = sizeof bytes;
  return ::getsockopt(socket, SOL_SOCKET, SO_RCVBUF, &bytes, &length) == 0 ? static_cast<std::uint32_t>(bytes) : 0;
}

class Sockets final : public NicTransports {
 public:
  LaneTransport of_lane(std::uint32_t number) override {
    transport::UdpSocket& socket = *sockets[number];
    return {socket, socket.port(), datagram_bytes, receive_buffer_of(socket.descriptor())};
  }

  std::uint32_t datagram_bytes = 0;
  std::vector<std::unique_ptr<transport::UdpSocket>> sockets;
};

class SocketNic final : public Nic {
 public:
  explicit SocketNic(NicFacts facts) : facts_(std::move(facts)) {}

  [[nodiscard]] const NicFacts& facts() const override { return facts_; }

  Result<std::shared_ptr<NicTransports>> open(const Settings& settings) override {
    auto made = std::make_shared<Sockets>();
    made->datagram_bytes = std::min(settings.datagram_bytes, payload_of(facts_));
    for (std::uint32_t i = 0; i < settings.lanes; ++i) {
      WARPLINE_TRY(auto socket, transport::UdpSocket::open({.local = {.address = facts_.address},
                                                            .datagram_bytes = made->datagram_bytes,
                                                            .batch = kBatch,
                                                            .buffer_bytes = settings.buffer_bytes}));
      made->sockets.push_back(std::move(socket));
    }
    return std::shared_ptr<NicTransports>(std::move(made));
  }

 private:
  NicFacts facts_;
};

}  // namespace

Result<Nics> find_socket_nics(const Settings& settings) {
  WARPLINE_TRY(auto all, list_interfaces(settings.family));
  std::string names;
  for (const NicFacts& one : all) names += (names.empty() ? "" : ", ") + one.name;
  Nics nics;
  for (NicFacts& one : choose(std::move(all), settings.interfaces))
    nics.push_back(std::make_unique<SocketNic>(std::move(one)));
  if (nics.empty()) {
    return environment_error(
        "network interfaces",
        fmt::format("NCCL_SOCKET_IFNAME='{}' leaves none of {}", settings.interfaces, names.empty() ? "none" : names),
        "unset it, or name one that is up and has an address");
  }
  return nics;
}

}  // namespace warpline::nccl
