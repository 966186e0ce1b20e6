// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "warpline/base/host_device.h"

namespace warpline::inspect {

/// SHA-256 (FIPS 180-4) of a stream that comes in pieces. Trivially copyable, for host and device.
class Sha256 {
 public:
  static constexpr std::size_t kBytes = 32;

  /// Takes the next bytes of the stream.
  WARPLINE_HD void add(const std::uint8_t* bytes, std::uint64_t count) {
    const std::uint64_t end = length_ + count;
    while (length_ < end) {
      const auto held = static_cast<std::uint32_t>(length_ % kBlock);
      if (held == 0 && end - length_ >= kBlock) {
        compress(bytes);
        bytes += kBlock;
        length_ += kBlock;
      } else {
        block_[held] = *bytes++;
        ++length_;
        if (held == kBlock - 1) compress(block_);
      }
    }
  }

  /// Returns the digest of all bytes so far, as which more may come.
  [[nodiscard]] WARPLINE_HD std::array<std::uint8_t, kBytes> digest() const {
    Sha256 last = *this;
    const std::uint64_t bits = length_ * 8;
    constexpr std::uint8_t kEnd = 0x80;
    constexpr std::uint8_t kZero = 0;
    last.add(&kEnd, 1);
    while (last.length_ % kBlock != kBlock - 8) last.add(&kZero, 1);
    for (int shift = 56; shift >= 0; shift -= 8) {
      const auto byte = static_cast<std::uint8_t>(bits >> shift);
      last.add(&byte, 1);
    }
    std::array<std::uint8_t, kBytes> result{};
    for (std::uint32_t i = 0; i < kBytes; ++i) {
      result[i] = static_cast<std::uint8_t>(last.state_[i / 4] >> (24 - 8 * (i % 4)));
    }
    return result;
  }

  [[nodiscard]] WARPLINE_HD std::uint64_t length() const { return length_; }  ///< bytes so far

 private:
  static constexpr std::uint32_t kBlock = 64;

  /// FIPS 180-4, 4.2.2: the first 32 bits of the fractional parts of the cube roots of the first 64 primes.
  [[nodiscard]] WARPLINE_HD static std::uint32_t constant(std::uint32_t i) {
    constexpr std::uint32_t kConstants[64] = {
        0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
        0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
        0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
        0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
        0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
        0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
        0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
        0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};
    return kConstants[i];
  }

  [[nodiscard]] WARPLINE_HD static std::uint32_t load(const std::uint8_t* bytes) {
    return std::uint32_t{bytes[0]} << 24 | std::uint32_t{bytes[1]} << 16 | std::uint32_t{bytes[2]} << 8 | bytes[3];
  }

  /// FIPS 180-4, 6.2.2, with the message schedule in 16 words that go around.
  WARPLINE_HD void compress(const std::uint8_t* block) {
    std::uint32_t w[16];
    std::uint32_t v[8];
    for (std::uint32_t i = 0; i < 8; ++i) v[i] = state_[i];
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
    for (std::uint32_t i = 0; i < 64; ++i) {
      if (i < 16) {
        w[i] = load(block + 4 * i);
      } else {
        const std::uint32_t a = w[(i - 15) % 16];
        const std::uint32_t b = w[(i - 2) % 16];
        w[i % 16] += w[(i - 7) % 16] + (std::rotr(a, 7) ^ std::rotr(a, 18) ^ (a >> 3)) +
                     (std::rotr(b, 17) ^ std::rotr(b, 19) ^ (b >> 10));
      }
      const std::uint32_t choice = (v[4] & v[5]) ^ (~v[4] & v[6]);
      const std::uint32_t majority = (v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]);
      const std::uint32_t first =
          v[7] + (std::rotr(v[4], 6) ^ std::rotr(v[4], 11) ^ std::rotr(v[4], 25)) + choice + constant(i) + w[i % 16];
      const std::uint32_t second = (std::rotr(v[0], 2) ^ std::rotr(v[0], 13) ^ std::rotr(v[0], 22)) + majority;
      v[7] = v[6];
      v[6] = v[5];
      v[5] = v[4];
      v[4] = v[3] + first;
      v[3] = v[2];
      v[2] = v[1];
      v[1] = v[0];
      v[0] = first + second;
    }
    for (std::uint32_t i = 0; i < 8; ++i) state_[i] += v[i];
  }

  std::uint32_t state_[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                             0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::uint8_t block_[kBlock] = {};  ///< the bytes of the last block, until it is full
  std::uint64_t length_ = 0;
};

}  // namespace warpline::inspect
