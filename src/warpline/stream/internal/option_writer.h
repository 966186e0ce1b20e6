// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "warpline/base/host_device.h"
#include "warpline/packet/byte_order.h"
#include "warpline/packet/headers/tcp.h"

namespace warpline::stream {

/// Appends options to a header, which keeps them a multiple of four bytes long. For host and device.
class OptionWriter {
 public:
  WARPLINE_HD explicit OptionWriter(packet::TcpHeader& tcp) : tcp_(tcp) {}

  WARPLINE_HD void mss(std::uint16_t bytes) {
    put(packet::kTcpOptionMss, 4);
    put16(bytes);
  }
  WARPLINE_HD void window_scale(std::uint8_t shift) {
    byte(packet::kTcpOptionNop);
    put(packet::kTcpOptionWindowScale, 3);
    byte(shift);
  }
  WARPLINE_HD void selective() {
    byte(packet::kTcpOptionNop);
    byte(packet::kTcpOptionNop);
    put(packet::kTcpOptionSackPermitted, 2);
  }
  WARPLINE_HD void timestamps(std::uint32_t value, std::uint32_t echo) {
    byte(packet::kTcpOptionNop);
    byte(packet::kTcpOptionNop);
    put(packet::kTcpOptionTimestamps, 10);
    put32(value);
    put32(echo);
  }
  WARPLINE_HD void begin_blocks(std::uint32_t count) {
    byte(packet::kTcpOptionNop);
    byte(packet::kTcpOptionNop);
    put(packet::kTcpOptionSack, static_cast<std::uint8_t>(2 + 8 * count));
  }
  WARPLINE_HD void block(std::uint32_t begin, std::uint32_t end) {
    put32(begin);
    put32(end);
  }
  /// Returns how many blocks find place.
  [[nodiscard]] WARPLINE_HD std::uint32_t room_for_blocks() const {
    return (sizeof(tcp_.options) - tcp_.options_length - 4) / 8;
  }

 private:
  WARPLINE_HD void byte(std::uint8_t value) { tcp_.options[tcp_.options_length++] = value; }
  WARPLINE_HD void put(std::uint8_t kind, std::uint8_t length) {
    byte(kind);
    byte(length);
  }
  WARPLINE_HD void put16(std::uint16_t value) {
    packet::store_be16(tcp_.options + tcp_.options_length, value);
    tcp_.options_length += 2;
  }
  WARPLINE_HD void put32(std::uint32_t value) {
    packet::store_be32(tcp_.options + tcp_.options_length, value);
    tcp_.options_length += 4;
  }

  packet::TcpHeader& tcp_;
};

}  // namespace warpline::stream
