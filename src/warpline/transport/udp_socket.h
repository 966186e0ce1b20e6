// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "warpline/base/address.h"
#include "warpline/base/result.h"
#include "warpline/transport/transport.h"

namespace warpline::transport {

/// What a UdpSocket is opened with.
struct UdpSocketConfig {
  SocketAddress local{};                 ///< port 0: the kernel chooses one
  std::uint32_t datagram_bytes = 1472;   ///< the most UDP payload that is sent or received
  std::uint32_t batch = 64;              ///< datagrams a system call
  bool aggregate = true;                 ///< UDP_SEGMENT and UDP_GRO, where the kernel has them
  std::uint32_t buffer_bytes = 4 << 20;  ///< of the kernel, asked for in each direction
};

/// Datagrams through a UDP socket of the kernel, with ECN bits both ways: sendmmsg and recvmmsg, datagrams of one
/// length to one peer aggregated. IPv4 and IPv6; bound to ::, both. Bound to all addresses, each peer is answered from
/// the one that it sent to.
class UdpSocket final : public Transport {
 public:
  /// Binds a socket. Environment error: no such address, or the port is taken.
  [[nodiscard]] static Result<std::unique_ptr<UdpSocket>> open(const UdpSocketConfig& config);
  /// Binds `count` sockets, 1 to 256, to one address, for a thread each (SO_REUSEPORT): the endpoint of socket i has
  /// the number i, EndpointConfig::endpoint, of `count` EndpointConfig::endpoints. A session's packets come by the
  /// socket of its endpoint; all from a peer's port that begin sessions by one of the sockets. Until all sockets are
  /// there none takes anything. They are to be closed together: the kernel numbers those that are left anew. Errors as
  /// of open().
  [[nodiscard]] static Result<std::vector<std::unique_ptr<UdpSocket>>> open_group(const UdpSocketConfig& config,
                                                                                  std::uint32_t count);
  ~UdpSocket() override;

  /// Each datagram with the time at which the kernel had it.
  std::span<const message::Datagram> receive(Nanos now) override;
  [[nodiscard]] bool more() const override;
  std::span<message::Outgoing> room() override;
  void send(std::size_t count, Nanos now) override;
  std::span<const std::uint64_t> completed() override;
  void wait(Nanos now, Nanos until) override;
  [[nodiscard]] int descriptor() const override { return handle_; }
  [[nodiscard]] bool blocked() const override { return at_ != end_; }

  /// Whether datagrams are aggregated by UDP_SEGMENT. Off for a minute after a device below could not.
  [[nodiscard]] bool segments() const { return segments_; }
  /// As bound.
  [[nodiscard]] std::uint16_t port() const { return port_; }
  /// Whole pages in which datagrams are received and heads are made, and nothing else is.
  [[nodiscard]] std::span<std::byte> memory() const;

 private:
  struct Buffers;
  /// Whether others are bound to its address.
  enum class Sharing : std::uint8_t { none, first_of_group, next_of_group };
  static Result<std::unique_ptr<UdpSocket>> bind(const UdpSocketConfig& config, Sharing sharing);
  UdpSocket(int handle, std::uint16_t port, bool v6, const UdpSocketConfig& config, bool aggregates);
  void read_errors();
  void stop_listening();
  void listen_again();
  void flush();
  bool send_waiting();
  std::size_t assemble(std::size_t from, bool first_alone);
  void finish(std::size_t datagrams, bool sent);

  int handle_;
  std::uint16_t port_;
  bool v6_;             ///< an AF_INET6 socket
  bool aggregates_;     ///< UDP_SEGMENT may be used where devices can
  bool segments_;       ///< UDP_SEGMENT is used
  std::size_t at_ = 0;  ///< outgoing datagrams not yet taken by the kernel: [at_, end_)
  std::size_t end_ = 0;
  std::uint32_t lost_before_ = 0;  ///< SO_RXQ_OVFL as last seen
  bool errors_wait_ = false;       ///< the kernel may have said something that was not read
  bool muted_ = false;             ///< until the end of the period
  std::uint32_t errors_read_ = 0;  ///< in the period
  Nanos now_;                      ///< of the last receive() or send()
  Nanos segments_again_;           ///< when UDP_SEGMENT is used again after a device could not
  Nanos period_end_;               ///< in which so many errors are read at most
  std::unique_ptr<Buffers> buffers_;
};

}  // namespace warpline::transport
