// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

#include "warpline/base/units.h"

namespace warpline::stream {

/// What is known of a segment between its transmission and its acknowledgement.
enum class SegmentFate : std::uint8_t {
  flying,  ///< on its way, as far as is known
  stored,  ///< the peer has it: a selective acknowledgement said so (RFC 2018)
  lost,    ///< to be sent again
};

/// A segment that is not acknowledged. A FIN is one of its own, of length 1. Uninitialised memory until it is pushed.
struct SentSegment {
  std::uint64_t begin;           ///< offset in the stream
  std::int64_t sent_at;          ///< ns of the clock, of the last time
  std::uint32_t length;          ///< sequence numbers
  std::uint32_t earlier, later;  ///< of those that fly: places of the ones sent before and after it
  SegmentFate fate;
  bool again;  ///< it was sent more than once
  bool fin;

  [[nodiscard]] std::uint64_t end() const { return begin + length; }
};

/// The segments of a connection that are not acknowledged, without gaps from the oldest to the newest, in memory that
/// its owner has: a ring of a power of two. A segment is named by its place in the ring, which it keeps. Those that fly
/// are also linked by the time at which they were last sent, as RACK wants it (RFC 8985, 6.2). One thread.
class SentSegments {
 public:
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

  /// Begins anew in `ring`, of `capacity` segments.
  void reset(SentSegment* ring, std::uint32_t capacity) {
    *this = SentSegments{};
    ring_ = ring;
    mask_ = capacity - 1;
  }

  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] bool full() const { return size_ == mask_ + 1; }
  [[nodiscard]] std::uint32_t size() const { return size_; }
  [[nodiscard]] const SentSegment& operator[](std::uint32_t place) const { return ring_[place]; }
  [[nodiscard]] std::uint32_t oldest() const { return first_; }             ///< unless empty()
  [[nodiscard]] std::uint32_t newest() const { return behind(size_ - 1); }  ///< unless empty()
  [[nodiscard]] std::uint32_t earliest_sent() const { return earliest_; }   ///< of those that fly, or kNone
  [[nodiscard]] std::uint64_t bytes(SegmentFate fate) const { return bytes_[index(fate)]; }
  [[nodiscard]] std::uint32_t count(SegmentFate fate) const { return count_[index(fate)]; }

  /// Adds the segment behind the newest one. Not if full().
  void push(std::uint64_t begin, std::uint32_t length, bool fin, Nanos now) {
    const std::uint32_t place = behind(size_++);
    SentSegment& segment = at(place);
    segment = {begin, now.value, length, kNone, kNone, SegmentFate::flying, false, fin};
    count_in(segment);
    link(place);
  }

  /// Removes what ends at or before `offset`, and cuts what begins before it. Calls fn(segment) for each segment that
  /// is removed.
  template <typename F>
  void acknowledge(std::uint64_t offset, F&& fn) {
    while (size_ != 0) {
      SentSegment& segment = at(first_);
      if (segment.begin >= offset) return;
      if (segment.end() > offset) {
        const auto cut = static_cast<std::uint32_t>(offset - segment.begin);
        bytes_[index(segment.fate)] -= cut;
        segment.begin = offset;
        segment.length -= cut;
        return;
      }
      fn(std::as_const(segment));
      if (segment.fate == SegmentFate::flying) unlink(first_);
      count_out(segment);
      first_ = behind(1);
      --size_;
      if (lost_from_ != 0) --lost_from_;
    }
  }

  /// Enters that the peer has bytes `[begin, end)`. Calls fn(segment) for each segment that lies in them whole and was
  /// not known to be stored. Returns where the last of these segments ends, known ones among them; `begin` if none
  /// does.
  template <typename F>
  std::uint64_t store(std::uint64_t begin, std::uint64_t end, F&& fn) {
    std::uint64_t entered = begin;
    for (std::uint32_t i = first_from(begin); i < size_; ++i) {
      const std::uint32_t place = behind(i);
      SentSegment& segment = at(place);
      if (segment.end() > end) break;
      entered = segment.end();
      if (segment.fate == SegmentFate::stored) continue;
      fn(std::as_const(segment));
      move_to(place, SegmentFate::stored);
    }
    return entered;
  }

  /// Declares a segment that flies lost.
  void lose(std::uint32_t place) {
    move_to(place, SegmentFate::lost);
    if (count_[index(SegmentFate::lost)] == 1 || age(place) < lost_from_) lost_from_ = age(place);
  }

  /// Declares all lost that fly; those also that were stored if `forget_stored`, for who said so has thrown them away.
  void lose_all(bool forget_stored) {
    for (std::uint32_t i = 0; i < size_; ++i) {
      const SegmentFate fate = at(behind(i)).fate;
      if (fate == SegmentFate::flying || (forget_stored && fate == SegmentFate::stored)) lose(behind(i));
    }
  }

  /// Returns the oldest one that is lost; kNone if there is none.
  [[nodiscard]] std::uint32_t first_lost() {
    if (count_[index(SegmentFate::lost)] == 0) return kNone;
    while (at(behind(lost_from_)).fate != SegmentFate::lost) ++lost_from_;
    return behind(lost_from_);
  }

  /// Enters that a segment that was lost, or flies, is sent again.
  void resend(std::uint32_t place, Nanos now) {
    SentSegment& segment = at(place);
    if (segment.fate == SegmentFate::flying) unlink(place);
    count_out(segment);
    segment.fate = SegmentFate::flying;
    segment.again = true;
    segment.sent_at = now.value;
    count_in(segment);
    link(place);
  }

 private:
  static constexpr std::size_t index(SegmentFate fate) { return static_cast<std::size_t>(fate); }
  [[nodiscard]] SentSegment& at(std::uint32_t place) { return ring_[place]; }
  [[nodiscard]] std::uint32_t behind(std::uint32_t i) const { return (first_ + i) & mask_; }
  [[nodiscard]] std::uint32_t age(std::uint32_t place) const { return (place - first_) & mask_; }

  /// Place among the segments of the first one that begins at or behind `offset`.
  [[nodiscard]] std::uint32_t first_from(std::uint64_t offset) const {
    std::uint32_t low = 0;
    std::uint32_t high = size_;
    while (low < high) {
      const std::uint32_t middle = low + (high - low) / 2;
      if ((*this)[behind(middle)].begin < offset) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  }

  void move_to(std::uint32_t place, SegmentFate fate) {
    SentSegment& segment = at(place);
    if (segment.fate == SegmentFate::flying) unlink(place);
    count_out(segment);
    segment.fate = fate;
    count_in(segment);
  }

  void count_in(const SentSegment& segment) {
    bytes_[index(segment.fate)] += segment.length;
    ++count_[index(segment.fate)];
  }
  void count_out(const SentSegment& segment) {
    bytes_[index(segment.fate)] -= segment.length;
    --count_[index(segment.fate)];
  }

  void link(std::uint32_t place) {
    SentSegment& segment = at(place);
    segment.earlier = latest_;
    segment.later = kNone;
    (latest_ == kNone ? earliest_ : at(latest_).later) = place;
    latest_ = place;
  }
  void unlink(std::uint32_t place) {
    const SentSegment& segment = at(place);
    (segment.earlier == kNone ? earliest_ : at(segment.earlier).later) = segment.later;
    (segment.later == kNone ? latest_ : at(segment.later).earlier) = segment.earlier;
  }

  SentSegment* ring_ = nullptr;
  std::uint32_t mask_ = 0;
  std::uint32_t first_ = 0;
  std::uint32_t size_ = 0;
  std::uint32_t earliest_ = kNone;
  std::uint32_t latest_ = kNone;
  std::uint32_t lost_from_ = 0;  ///< of the oldest segments so many are not lost
  std::uint32_t count_[3] = {};
  std::uint64_t bytes_[3] = {};
};

}  // namespace warpline::stream
