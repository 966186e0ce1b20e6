// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <bit>
#include <cstdint>

namespace warpline::message {

/// Which fragments of a message are there (at its receiver) or acknowledged (at its sender). Those more than kSpan
/// beyond the first missing one are not sent, and not taken.
class FragmentWindow {
 public:
  static constexpr std::uint32_t kSpan = 960;

  enum class Answer : std::uint8_t { fresh, duplicate, beyond };

  /// All below are there.
  [[nodiscard]] std::uint32_t base() const { return base_; }

  [[nodiscard]] bool any() const {
    if (base_ != 0) return true;
    for (const std::uint64_t word : words_) {
      if (word != 0) return true;
    }
    return false;
  }

  [[nodiscard]] bool has(std::uint32_t fragment) const {
    return fragment < base_ || (fragment - base_ < kSpan && bit(fragment));
  }

  Answer add(std::uint32_t fragment) {
    if (fragment < base_) return Answer::duplicate;
    if (fragment - base_ >= kSpan) return Answer::beyond;
    if (bit(fragment)) return Answer::duplicate;
    words_[fragment / 64 % kWords] |= std::uint64_t{1} << (fragment % 64);
    while (bit(base_)) {
      words_[base_ / 64 % kWords] &= ~(std::uint64_t{1} << (base_ % 64));
      ++base_;
    }
    return Answer::fresh;
  }

 private:
  static constexpr std::uint32_t kWords = 16;
  [[nodiscard]] bool bit(std::uint32_t fragment) const {
    return (words_[fragment / 64 % kWords] >> (fragment % 64) & 1) != 0;
  }

  std::array<std::uint64_t, kWords> words_{};
  std::uint32_t base_ = 0;
};

}  // namespace warpline::message
