// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

// What stream_server does, by the code of a call in pieces.
inline constexpr std::uint16_t kSumLines = 1;  // pieces are lines of one number each; back go the sums so far
inline constexpr std::uint16_t kPrimes = 2;    // the request is a number; back go all primes below it, a line each

inline std::span<const std::uint8_t> bytes_of(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}
inline std::string_view text_of(std::span<const std::uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
