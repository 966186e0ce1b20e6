// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <span>

namespace warpline {

/// A 128-bit key as two little-endian words.
struct SipKey {
  std::uint64_t k0 = 0;
  std::uint64_t k1 = 0;
};

[[nodiscard]] inline SipKey sip_key(const std::array<std::uint8_t, 16>& bytes) {
  SipKey key;
  std::memcpy(&key.k0, bytes.data(), 8);
  std::memcpy(&key.k1, bytes.data() + 8, 8);
  return key;
}

/// SipHash-2-4 (Aumasson, Bernstein: "SipHash: a fast short-input PRF", INDOCRYPT 2012): who does not know the key
/// cannot tell it from random.
[[nodiscard]] inline std::uint64_t siphash(const SipKey& key, std::span<const std::uint8_t> message) {
  std::uint64_t v0 = key.k0 ^ 0x736f6d6570736575U;
  std::uint64_t v1 = key.k1 ^ 0x646f72616e646f6dU;
  std::uint64_t v2 = key.k0 ^ 0x6c7967656e657261U;
  std::uint64_t v3 = key.k1 ^ 0x7465646279746573U;
  const auto round = [&] {
    v0 += v1;
    v2 += v3;
    v1 = std::rotl(v1, 13) ^ v0;
    v3 = std::rotl(v3, 16) ^ v2;
    v0 = std::rotl(v0, 32);
    v2 += v1;
    v0 += v3;
    v1 = std::rotl(v1, 17) ^ v2;
    v3 = std::rotl(v3, 21) ^ v0;
    v2 = std::rotl(v2, 32);
  };
  const auto absorb = [&](std::uint64_t word) {
    v3 ^= word;
    round();
    round();
    v0 ^= word;
  };
  std::size_t at = 0;
  for (; at + 8 <= message.size(); at += 8) {
    std::uint64_t word;
    std::memcpy(&word, message.data() + at, 8);
    absorb(word);
  }
  std::uint64_t last = static_cast<std::uint64_t>(message.size()) << 56;
  for (std::size_t i = 0; at + i < message.size(); ++i) last |= std::uint64_t{message[at + i]} << (8 * i);
  absorb(last);
  v2 ^= 0xff;
  for (int i = 0; i < 4; ++i) round();
  return v0 ^ v1 ^ v2 ^ v3;
}

/// Returns the SipHash of whole words, for fixed-size inputs.
template <std::size_t kWords>
[[nodiscard]] std::uint64_t siphash(const SipKey& key, const std::array<std::uint64_t, kWords>& words) {
  std::array<std::uint8_t, 8 * kWords> bytes;
  std::memcpy(bytes.data(), words.data(), bytes.size());
  return siphash(key, std::span<const std::uint8_t>(bytes));
}

}  // namespace warpline
