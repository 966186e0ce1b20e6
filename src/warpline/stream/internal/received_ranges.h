// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "warpline/base/host_device.h"

namespace warpline::stream {

/// Bytes `[begin, end)` of a stream.
struct ByteRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  [[nodiscard]] WARPLINE_HD constexpr bool empty() const { return begin == end; }
  bool operator==(const ByteRange&) const = default;
};

/// What arrived behind the first hole of a stream: ranges in their order, of which no two touch. Trivially copyable,
/// for host and device; one thread at a time.
class ReceivedRanges {
 public:
  static constexpr std::uint32_t kMax = 32;

  /// Returns the bytes of an object with `count` ranges that tell all: the rest of it is as it may.
  [[nodiscard]] WARPLINE_HD static constexpr std::size_t bytes(std::uint32_t count) {
    return sizeof(ReceivedRanges) - (kMax - count) * sizeof(ByteRange);
  }

  [[nodiscard]] WARPLINE_HD std::uint32_t count() const { return count_; }
  [[nodiscard]] WARPLINE_HD const ByteRange& operator[](std::uint32_t i) const { return ranges_[i]; }

  /// Returns the first range that ends at or behind `offset`; count() if there is none.
  [[nodiscard]] WARPLINE_HD std::uint32_t first_reaching(std::uint64_t offset) const {
    std::uint32_t i = 0;
    while (i < count_ && ranges_[i].end < offset) ++i;
    return i;
  }

  /// Adds a range that is not empty and merges it with those that it touches. False, and nothing changed, if it would
  /// be one more than kMax.
  [[nodiscard]] WARPLINE_HD bool insert(ByteRange range) {
    const std::uint32_t first = first_reaching(range.begin);
    std::uint32_t behind = first;
    while (behind < count_ && ranges_[behind].begin <= range.end) ++behind;
    if (first == behind) {
      if (count_ == kMax) return false;
      for (std::uint32_t i = count_; i > first; --i) ranges_[i] = ranges_[i - 1];
      ++count_;
      ranges_[first] = range;
      return true;
    }
    if (range.begin < ranges_[first].begin) ranges_[first].begin = range.begin;
    const std::uint64_t last_end = ranges_[behind - 1].end;
    ranges_[first].end = last_end > range.end ? last_end : range.end;
    remove(first + 1, behind);
    return true;
  }

  /// Removes the ranges that bytes up to `offset` reach. Returns where the last of them ends, or `offset` if that is
  /// further.
  [[nodiscard]] WARPLINE_HD std::uint64_t absorb_up_to(std::uint64_t offset) {
    std::uint32_t behind = 0;
    while (behind < count_ && ranges_[behind].begin <= offset) {
      if (ranges_[behind].end > offset) offset = ranges_[behind].end;
      ++behind;
    }
    remove(0, behind);
    return offset;
  }

 private:
  WARPLINE_HD void remove(std::uint32_t first, std::uint32_t behind) {
    const std::uint32_t removed = behind - first;
    if (removed == 0) return;
    for (std::uint32_t i = behind; i < count_; ++i) ranges_[i - removed] = ranges_[i];
    count_ -= removed;
  }

  std::uint32_t count_ = 0;
  ByteRange ranges_[kMax]{};
};

}  // namespace warpline::stream
