// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace warpline::sim {

/// What happens: a packet arrives somewhere, a host's loop begins a turn, or something of the traffic's.
enum class WheelKind : std::uint8_t { packet, loop, traffic };

/// What happens at a time: a link of the list of all that happens then. Its owner keeps it until it has happened.
struct WheelEvent {
  WheelEvent* next = nullptr;
  std::int64_t time = 0;  ///< virtual nanoseconds
  WheelKind kind = WheelKind::traffic;
};

/// Virtual time for millions of events in a few microseconds: a bucket for each of the next 65,536 nanoseconds, and a
/// heap for what is later. What happens at the same time happens in the order in which it was asked for.
class EventWheel {
 public:
  [[nodiscard]] std::int64_t now() const { return now_; }

  /// A time that is over is now.
  void at(std::int64_t time, WheelEvent& event) {
    event.time = std::max(time, now_);
    if (event.time - now_ < kSpan) return put(event);
    later_.push_back({event.time, order_++, &event});
    std::push_heap(later_.begin(), later_.end(), comes_later);
  }

  /// Hands all that happens up to and at `end` to `happen`.
  template <typename Happen>
  void run_until(std::int64_t end, const Happen& happen) {
    while (true) {
      Bucket& bucket = buckets_[static_cast<std::size_t>(now_ & kMask)];
      while (bucket.first != nullptr) {
        WheelEvent& event = *bucket.first;
        bucket.first = event.next;
        happen(event);
      }
      clear(now_);
      const std::int64_t next = next_time();
      if (next > end) break;
      now_ = next;
      for (; !later_.empty() && later_.front().time - now_ < kSpan; later_.pop_back()) {
        std::pop_heap(later_.begin(), later_.end(), comes_later);
        put(*later_.back().event);
      }
    }
    now_ = std::max(now_, end);
  }

 private:
  static constexpr std::int64_t kSpan = 1 << 16;
  static constexpr std::int64_t kMask = kSpan - 1;
  static constexpr std::int64_t kNone = INT64_MAX;
  struct Bucket {
    WheelEvent* first = nullptr;
    WheelEvent* last = nullptr;
  };
  struct Later {
    std::int64_t time;
    std::uint64_t order;
    WheelEvent* event;
  };
  static bool comes_later(const Later& a, const Later& b) {
    return a.time != b.time ? a.time > b.time : a.order > b.order;
  }

  void put(WheelEvent& event) {
    const auto at = static_cast<std::size_t>(event.time & kMask);
    Bucket& bucket = buckets_[at];
    event.next = nullptr;
    (bucket.first == nullptr ? bucket.first : bucket.last->next) = &event;
    bucket.last = &event;
    used_[at / 64] |= std::uint64_t{1} << (at % 64);
  }
  void clear(std::int64_t time) {
    const auto at = static_cast<std::size_t>(time & kMask);
    used_[at / 64] &= ~(std::uint64_t{1} << (at % 64));
  }
  /// Of the first event that has not happened.
  [[nodiscard]] std::int64_t next_time() const {
    const auto from = static_cast<std::size_t>(now_ & kMask);
    const std::int64_t heap = later_.empty() ? kNone : later_.front().time;
    for (std::size_t i = 0; i <= used_.size(); ++i) {
      const std::size_t word = (from / 64 + i) % used_.size();
      std::uint64_t bits = used_[word];
      if (i == 0) bits &= ~std::uint64_t{0} << (from % 64);
      if (bits == 0) continue;
      const std::size_t at = word * 64 + static_cast<std::size_t>(std::countr_zero(bits));
      return std::min(heap, now_ + static_cast<std::int64_t>((at - from) & static_cast<std::size_t>(kMask)));
    }
    return heap;
  }

  std::vector<Bucket> buckets_ = std::vector<Bucket>(kSpan);
  std::array<std::uint64_t, kSpan / 64> used_{};
  std::vector<Later> later_;
  std::int64_t now_ = 0;
  std::uint64_t order_ = 0;
};

}  // namespace warpline::sim
