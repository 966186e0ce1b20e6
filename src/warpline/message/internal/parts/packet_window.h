// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace warpline::message {

/// Which packet numbers of a peer arrived: each is taken once, and from it acknowledgements are made. All below base()
/// arrived or were given up by their sender; of those above, up to kSpan are remembered.
class PacketWindow {
 public:
  static constexpr std::uint32_t kSpan = 960;  ///< of 16 words, so that the first and last never share one

  static constexpr std::size_t kOftenUsed = 16;  ///< bytes, the first: without gaps no others are touched

  enum class Answer : std::uint8_t { fresh, duplicate, stale, beyond };

  [[nodiscard]] std::uint64_t base() const { return base_; }
  /// One past the largest that arrived.
  [[nodiscard]] std::uint64_t end() const { return end_; }
  [[nodiscard]] bool gap() const { return end_ > base_; }

  /// What a packet would be, whose sender gave up all below `floor` (<= number).
  [[nodiscard]] Answer ask(std::uint64_t number, std::uint64_t floor) const {
    if (number < base_) return Answer::stale;
    const std::uint64_t base = floor > base_ ? floor : base_;
    if (number - base >= kSpan) return Answer::beyond;
    // Bits stand only for numbers below end_.
    return number < end_ && bit(number) ? Answer::duplicate : Answer::fresh;
  }

  /// Remembers a fresh one.
  void take(std::uint64_t number, std::uint64_t floor) {
    if (floor > base_) raise(floor);
    if (number == base_ && end_ <= base_) {
      base_ = end_ = number + 1;
      return;
    }
    words_[number / 64 % kWords] |= std::uint64_t{1} << (number % 64);
    if (number >= end_) end_ = number + 1;
    if (number == base_) advance();
  }

  /// Words of an acknowledgement: bit i of word w is packet (base() / 64 + w) * 64 + i. None without a gap.
  [[nodiscard]] std::uint32_t word_count() const {
    return gap() ? static_cast<std::uint32_t>((end_ - 1) / 64 - base_ / 64 + 1) : 0;
  }
  [[nodiscard]] std::uint64_t word(std::uint32_t w) const { return words_[(base_ / 64 + w) % kWords]; }

 private:
  static constexpr std::uint32_t kWords = 16;

  [[nodiscard]] bool bit(std::uint64_t number) const {
    return (words_[number / 64 % kWords] >> (number % 64) & 1) != 0;
  }

  void raise(std::uint64_t floor) {
    if (floor >= end_) {
      if (gap()) words_.fill(0);
      base_ = end_ = floor;
      return;
    }
    clear_below(floor);
    if (bit(base_)) advance();
  }

  /// base_ has arrived: to the first that has not.
  void advance() {
    std::uint64_t to = base_;
    for (;;) {
      const auto arrived = static_cast<unsigned>(std::countr_one(words_[to / 64 % kWords] >> (to % 64)));
      const auto left_of_word = static_cast<unsigned>(64 - to % 64);
      to += arrived;
      if (arrived < left_of_word || to >= end_) break;
    }
    clear_below(to);
  }

  void clear_below(std::uint64_t to) {
    while (base_ < to) {
      const std::uint64_t next = (base_ / 64 + 1) * 64;
      if (next <= to) {
        words_[base_ / 64 % kWords] = 0;
        base_ = next;
      } else {
        words_[to / 64 % kWords] &= ~std::uint64_t{0} << (to % 64);
        base_ = to;
      }
    }
  }

  std::uint64_t base_ = 0;
  std::uint64_t end_ = 0;  ///< above base_ only while there is a gap
  std::array<std::uint64_t, kWords> words_{};
};

}  // namespace warpline::message
