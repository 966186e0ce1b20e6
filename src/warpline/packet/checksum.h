// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>

#include "warpline/base/frame.h"
#include "warpline/base/host_device.h"
#include "warpline/packet/byte_order.h"
#include "warpline/packet/frame_bytes.h"

namespace warpline::packet {

/// The sum of the 16-bit words of `n` bytes, and of the last byte if that has no other, in the machine's byte order;
/// not folded. For pieces that are worth a call, with AVX2 where the processor has it.
[[nodiscard]] std::uint64_t sum_long(const std::uint8_t* bytes, std::uint32_t n);
/// The same of bytes that are copied meanwhile, so that they are read once.
[[nodiscard]] std::uint64_t copy_and_sum_long(std::uint8_t* to, const std::uint8_t* from, std::uint32_t n);

/// The one's complement sum of RFC 1071, fed piece by piece; pieces may have odd lengths. Holds up to 2^32 bytes.
class ChecksumSum {
 public:
  /// Adds the next `n` bytes of the message.
  WARPLINE_HD void add(const std::uint8_t* bytes, std::uint32_t n) { add_part(sum_native(bytes, n), n); }

  /// Copies the next `n` bytes of the message to `to`, and adds them.
  void add_copied(std::uint8_t* to, const std::uint8_t* from, std::uint32_t n) {
    if (n < kWorthACall) {
      std::memcpy(to, from, n);
      add(from, n);
      return;
    }
    add_part(copy_and_sum_long(to, from, n), n);
  }

  /// Adds a 16-bit field given in host order. Only at even offsets.
  WARPLINE_HD constexpr void add16(std::uint16_t value) { sum_ += swap16(value); }

  /// Adds all that `other` was fed, as the next piece of the message. Only at even offsets.
  WARPLINE_HD constexpr void add(const ChecksumSum& other) {
    sum_ += fold(other.sum_);
    odd_ = other.odd_;
  }

  /// Adds `n` bytes of `frame` from `offset` on, across its segments. False when the segments hold fewer.
  [[nodiscard]] WARPLINE_HD bool add(FrameRef frame, std::uint32_t offset, std::uint32_t n) {
    return for_each_piece(frame, offset, n,
                          [this](const std::uint8_t* piece, std::uint32_t count) { add(piece, count); });
  }

  /// The checksum to store, in host order: 0 over a message that includes its right checksum.
  [[nodiscard]] WARPLINE_HD constexpr std::uint16_t checksum() const {
    return static_cast<std::uint16_t>(~swap16(fold(sum_)));
  }

 private:
  static constexpr std::uint32_t kWorthACall = 192;  ///< bytes

  WARPLINE_HD void add_part(std::uint64_t sum, std::uint32_t n) {
    const std::uint16_t part = fold(sum);
    // A piece that begins at an odd offset has its bytes in the other halves of the words (RFC 1071, 2(B)).
    sum_ += odd_ ? swap16(part) : part;
    odd_ ^= (n & 1) != 0;
  }

  [[nodiscard]] WARPLINE_HD static constexpr std::uint16_t swap16(std::uint16_t value) {
    return static_cast<std::uint16_t>(value << 8 | value >> 8);
  }

  [[nodiscard]] WARPLINE_HD static constexpr std::uint16_t fold(std::uint64_t sum) {
    sum = (sum & 0xffffffffU) + (sum >> 32);
    sum = (sum & 0xffffffffU) + (sum >> 32);
    sum = (sum & 0xffffU) + (sum >> 16);
    sum = (sum & 0xffffU) + (sum >> 16);
    return static_cast<std::uint16_t>(sum);
  }

  /// In the byte order of the machine, which only turns the sum's two bytes around (RFC 1071, 2(B)).
  [[nodiscard]] WARPLINE_HD static std::uint64_t sum_native(const std::uint8_t* bytes, std::uint32_t n) {
#if !defined(__CUDA_ARCH__)
    if (n >= kWorthACall) return sum_long(bytes, n);
#endif
    return sum_short(bytes, n);
  }

  template <typename T>
  [[nodiscard]] WARPLINE_HD static T native(const std::uint8_t* bytes) {
    T value;
    std::memcpy(&value, bytes, sizeof(value));
    return value;
  }

  friend std::uint64_t sum_long(const std::uint8_t* bytes, std::uint32_t n);
  friend std::uint64_t copy_and_sum_long(std::uint8_t* to, const std::uint8_t* from, std::uint32_t n);
  [[nodiscard]] WARPLINE_HD static std::uint64_t sum_short(const std::uint8_t* bytes, std::uint32_t n) {
    std::uint64_t sum = 0;
    // What is carried out comes in again, for 2^64 is 1 modulo 65535.
    const auto add = [&sum](std::uint64_t word) {
      sum += word;
      sum += sum < word ? 1 : 0;
    };
    for (; n >= 8; n -= 8, bytes += 8) add(native<std::uint64_t>(bytes));
    if ((n & 4) != 0) {
      add(native<std::uint32_t>(bytes));
      bytes += 4;
    }
    if ((n & 2) != 0) {
      add(native<std::uint16_t>(bytes));
      bytes += 2;
    }
    if ((n & 1) != 0) add(bytes[0]);
    return sum;
  }

  std::uint64_t sum_ = 0;
  bool odd_ = false;
};

/// The Internet checksum of `n` bytes, in host order.
[[nodiscard]] WARPLINE_HD inline std::uint16_t checksum(const std::uint8_t* bytes, std::uint32_t n) {
  ChecksumSum sum;
  sum.add(bytes, n);
  return sum.checksum();
}

/// The checksum after one 16-bit field at an even offset went from `before` to `after` (RFC 1624, equation 3).
/// Right for messages that are not all zero afterwards.
[[nodiscard]] WARPLINE_HD constexpr std::uint16_t update_checksum(std::uint16_t checksum, std::uint16_t before,
                                                                  std::uint16_t after) {
  std::uint32_t sum = static_cast<std::uint16_t>(~checksum);
  sum += static_cast<std::uint16_t>(~before);
  sum += after;
  sum = (sum & 0xffffU) + (sum >> 16);
  sum = (sum & 0xffffU) + (sum >> 16);
  return static_cast<std::uint16_t>(~sum);
}

/// The sum over IPv4's pseudo header (RFC 768, RFC 9293 3.1). `addresses`: source, then destination, 8 bytes.
[[nodiscard]] WARPLINE_HD inline ChecksumSum pseudo_header_v4(const std::uint8_t* addresses, std::uint8_t protocol,
                                                              std::uint32_t length) {
  ChecksumSum sum;
  sum.add(addresses, 8);
  sum.add16(protocol);
  sum.add16(static_cast<std::uint16_t>(length));
  return sum;
}

/// The sum over IPv6's pseudo header (RFC 8200, 8.1). `addresses`: source, then final destination, 32 bytes.
[[nodiscard]] WARPLINE_HD inline ChecksumSum pseudo_header_v6(const std::uint8_t* addresses, std::uint8_t protocol,
                                                              std::uint32_t length) {
  ChecksumSum sum;
  sum.add(addresses, 32);
  sum.add16(static_cast<std::uint16_t>(length >> 16));
  sum.add16(static_cast<std::uint16_t>(length));
  sum.add16(protocol);
  return sum;
}

}  // namespace warpline::packet
