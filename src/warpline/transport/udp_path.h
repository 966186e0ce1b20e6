// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "warpline/base/address.h"
#include "warpline/message/types.h"
#include "warpline/packet/checksum.h"

namespace warpline::transport {

/// Who computes the checksum of a UDP datagram that is sent.
enum class UdpChecksum : std::uint8_t {
  software,  ///< UdpPath::write(), with the CPU
  device,    ///< the field holds the pseudo header's sum, as DPDK's drivers want it
  none,      ///< over IPv4 alone; over IPv6 as `software`
};

/// Ethernet, VLAN, IP and UDP headers from one station to one peer, built once and then written before each datagram.
class UdpPath {
 public:
  /// What the headers are made from.
  struct Ends {
    MacAddress own_mac;                 ///< source of the frames
    MacAddress next_mac;                ///< destination of the frames: the peer's, or the next hop's
    std::optional<std::uint16_t> vlan;  ///< the tag's control word
    IpAddress own;                      ///< source of the datagrams
    std::uint16_t own_port = 0;         ///< source port, in host byte order
    message::PeerAddress peer;          ///< of the family of `own`
  };

  /// Bytes of the longest headers: Ethernet, one tag, IPv6, UDP.
  static constexpr std::uint32_t kMaxLength = 14 + 4 + 40 + 8;

  UdpPath() = default;
  /// Builds the headers from one end to the other.
  explicit UdpPath(const Ends& ends);

  /// The other end.
  [[nodiscard]] const message::PeerAddress& peer() const { return peer_; }
  /// Bytes of the headers, 42 to 66; 0 of a path that leads nowhere.
  [[nodiscard]] std::uint32_t length() const { return length_; }
  /// Bytes of the Ethernet header and its tag: 14 or 18.
  [[nodiscard]] std::uint32_t l2_length() const { return l3_at_; }
  [[nodiscard]] std::uint32_t l3_length() const { return v4_ ? 20 : 40; }  ///< bytes of the IP header
  [[nodiscard]] bool v4() const { return v4_; }                            ///< true if the datagrams go over IPv4

  /// Writes length() bytes to `at`, where the datagram in `pieces` follows, 65,000 bytes at most. With `device` its
  /// bytes are not looked at. `ecn`: IP's two bits.
  void write(std::uint8_t* at, std::span<const std::span<const std::uint8_t>> pieces, std::uint8_t ecn,
             UdpChecksum checksum) const;

 private:
  std::array<std::uint8_t, kMaxLength> bytes_{};
  std::uint8_t length_ = 0;
  std::uint8_t l3_at_ = 0;
  bool v4_ = true;
  std::uint16_t own_port_ = 0;
  message::PeerAddress peer_;
  packet::ChecksumSum l3_sum_;      ///< IPv4's header without its length and type of service
  packet::ChecksumSum pseudo_sum_;  ///< the pseudo header without its length
};

}  // namespace warpline::transport
