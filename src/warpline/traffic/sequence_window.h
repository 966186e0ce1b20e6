// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "warpline/traffic/zeroed_array.h"

namespace warpline::traffic {

/// Which of the last `size` sequence numbers of a stream have arrived. One thread.
class SequenceWindow {
 public:
  enum class Arrival : std::uint8_t {
    fresh,      ///< for the first time
    duplicate,  ///< again
    late,       ///< too far behind the highest to know
  };

  /// `size`: a power of two, at least 64.
  explicit SequenceWindow(std::uint64_t size) : size_(size), words_(size / 64) {}

  /// Amortised constant time: what a jump ahead skips is cleared once, and never more than the window.
  Arrival mark(std::uint64_t sequence) {
    if (sequence == end_) [[likely]] {
      word(sequence) |= bit(sequence);
      ++end_;
      return Arrival::fresh;
    }
    if (sequence > end_) {
      skip_to(sequence);
      word(sequence) |= bit(sequence);
      return Arrival::fresh;
    }
    if (end_ - sequence > size_) return Arrival::late;
    if ((word(sequence) & bit(sequence)) != 0) return Arrival::duplicate;
    word(sequence) |= bit(sequence);
    return Arrival::fresh;
  }

  /// One more than the highest sequence number that arrived.
  [[nodiscard]] std::uint64_t end() const { return end_; }

 private:
  [[nodiscard]] std::uint64_t& word(std::uint64_t sequence) { return words_[(sequence & (size_ - 1)) / 64]; }
  [[nodiscard]] static std::uint64_t bit(std::uint64_t sequence) { return std::uint64_t{1} << (sequence % 64); }

  void skip_to(std::uint64_t sequence) {
    if (sequence - end_ >= size_) {
      std::ranges::fill(words_, 0);
    } else {
      for (std::uint64_t skipped = end_; skipped < sequence;) {
        if (skipped % 64 == 0 && sequence - skipped >= 64) {
          word(skipped) = 0;
          skipped += 64;
        } else {
          word(skipped) &= ~bit(skipped);
          ++skipped;
        }
      }
    }
    end_ = sequence + 1;
  }

  std::uint64_t size_;
  std::uint64_t end_ = 0;
  ZeroedArray<std::uint64_t> words_;
};

}  // namespace warpline::traffic
