// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#include "base/host_device.h"

namespace warpline {

static_assert(std::endian::native == std::endian::little, "swap_macs and the checksums count on it");

// Byte by byte, so that no alignment is asked for; compilers make one load and one swap of it on the host.

[[nodiscard]] WARPLINE_HD constexpr std::uint16_t load_be16(const std::uint8_t* bytes) {
  return static_cast<std::uint16_t>(bytes[0] << 8 | bytes[1]);
}

[[nodiscard]] WARPLINE_HD constexpr std::uint32_t load_be32(const std::uint8_t* bytes) {
  return std::uint32_t{load_be16(bytes)} << 16 | load_be16(bytes + 2);
}

[[nodiscard]] WARPLINE_HD constexpr std::uint64_t load_be64(const std::uint8_t* bytes) {
  return std::uint64_t{load_be32(bytes)} << 32 | load_be32(bytes + 4);
}

WARPLINE_HD constexpr void store_be16(std::uint8_t* bytes, std::uint16_t value) {
  bytes[0] = static_cast<std::uint8_t>(value >> 8);
  bytes[1] = static_cast<std::uint8_t>(value);
}

WARPLINE_HD constexpr void store_be32(std::uint8_t* bytes, std::uint32_t value) {
  store_be16(bytes, static_cast<std::uint16_t>(value >> 16));
  store_be16(bytes + 2, static_cast<std::uint16_t>(value));
}

WARPLINE_HD constexpr void store_be64(std::uint8_t* bytes, std::uint64_t value) {
  store_be32(bytes, static_cast<std::uint32_t>(value >> 32));
  store_be32(bytes + 4, static_cast<std::uint32_t>(value));
}

/// An address out of a header. `Address` is one of base/address.h, which hold nothing but their bytes.
template <typename Address>
[[nodiscard]] WARPLINE_HD inline Address load_address(const std::uint8_t* bytes) {
  Address address;
  std::memcpy(&address, bytes, sizeof(Address));
  return address;
}

template <typename Address>
WARPLINE_HD inline void store_address(std::uint8_t* bytes, const Address& address) {
  std::memcpy(bytes, &address, sizeof(Address));
}

[[nodiscard]] WARPLINE_HD constexpr bool equal_bytes(const std::uint8_t* a, const std::uint8_t* b, std::uint32_t n) {
  for (std::uint32_t i = 0; i < n; ++i) {
    if (a[i] != b[i]) return false;
  }
  return true;
}

}  // namespace warpline
