// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "warpline/base/host_device.h"

namespace warpline::packet {

static_assert(std::endian::native == std::endian::little, "swap_macs and the checksums count on it");

namespace big_endian {

// No alignment is asked for. At run time on the host one move and one swap, said so: GCC gathers the bytes of several
// stores into one that it assembles with shifts.

template <typename T>
[[nodiscard]] WARPLINE_HD constexpr T load(const std::uint8_t* bytes) {
#if !defined(__CUDA_ARCH__)
  if (!std::is_constant_evaluated()) {
    T value;
    std::memcpy(&value, bytes, sizeof(T));
    if constexpr (sizeof(T) == 2) return __builtin_bswap16(value);
    if constexpr (sizeof(T) == 4) return __builtin_bswap32(value);
    if constexpr (sizeof(T) == 8) return __builtin_bswap64(value);
  }
#endif
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i) value = value << 8 | bytes[i];
  return static_cast<T>(value);
}

template <typename T>
WARPLINE_HD constexpr void store(std::uint8_t* bytes, T value) {
#if !defined(__CUDA_ARCH__)
  if (!std::is_constant_evaluated()) {
    if constexpr (sizeof(T) == 2) value = __builtin_bswap16(value);
    if constexpr (sizeof(T) == 4) value = __builtin_bswap32(value);
    if constexpr (sizeof(T) == 8) value = __builtin_bswap64(value);
    std::memcpy(bytes, &value, sizeof(T));
    return;
  }
#endif
  for (std::size_t i = 0; i < sizeof(T); ++i) bytes[i] = static_cast<std::uint8_t>(value >> (8 * (sizeof(T) - 1 - i)));
}

}  // namespace big_endian

/// Two bytes in network order.
[[nodiscard]] WARPLINE_HD constexpr std::uint16_t load_be16(const std::uint8_t* bytes) {
  return big_endian::load<std::uint16_t>(bytes);
}

/// Four bytes in network order.
[[nodiscard]] WARPLINE_HD constexpr std::uint32_t load_be32(const std::uint8_t* bytes) {
  return big_endian::load<std::uint32_t>(bytes);
}

/// Eight bytes in network order.
[[nodiscard]] WARPLINE_HD constexpr std::uint64_t load_be64(const std::uint8_t* bytes) {
  return big_endian::load<std::uint64_t>(bytes);
}

/// Writes two bytes in network order.
WARPLINE_HD constexpr void store_be16(std::uint8_t* bytes, std::uint16_t value) { big_endian::store(bytes, value); }

/// Writes four bytes in network order.
WARPLINE_HD constexpr void store_be32(std::uint8_t* bytes, std::uint32_t value) { big_endian::store(bytes, value); }

/// Writes eight bytes in network order.
WARPLINE_HD constexpr void store_be64(std::uint8_t* bytes, std::uint64_t value) { big_endian::store(bytes, value); }

/// An address out of a header. `Address` is one of base/address.h, which hold nothing but their bytes.
template <typename Address>
[[nodiscard]] WARPLINE_HD inline Address load_address(const std::uint8_t* bytes) {
  Address address;
  std::memcpy(&address, bytes, sizeof(Address));
  return address;
}

/// Writes an address into a header, in as many bytes as it has.
template <typename Address>
WARPLINE_HD inline void store_address(std::uint8_t* bytes, const Address& address) {
  std::memcpy(bytes, &address, sizeof(Address));
}

/// Whether the first `n` bytes at `a` and `b` are the same.
[[nodiscard]] WARPLINE_HD constexpr bool equal_bytes(const std::uint8_t* a, const std::uint8_t* b, std::uint32_t n) {
  for (std::uint32_t i = 0; i < n; ++i) {
    if (a[i] != b[i]) return false;
  }
  return true;
}

}  // namespace warpline::packet
