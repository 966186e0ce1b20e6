// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace warpline::protection {

using Octets = std::vector<std::uint8_t>;

/// For tests: the bytes that hexadecimal digits stand for, as standards print them.
inline Octets octets(std::string_view digits) {
  const auto value = [](char c) { return static_cast<std::uint8_t>(c <= '9' ? c - '0' : c - 'a' + 10); };
  Octets bytes;
  for (std::size_t i = 0; i + 1 < digits.size(); i += 2) {
    bytes.push_back(static_cast<std::uint8_t>(value(digits[i]) << 4 | value(digits[i + 1])));
  }
  return bytes;
}

template <typename Array>
Array array_of(std::string_view digits) {
  const Octets bytes = octets(digits);
  Array array{};
  for (std::size_t i = 0; i < array.size(); ++i) array[i] = bytes.at(i);
  return array;
}

}  // namespace warpline::protection
