// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>

#include "warpline/base/large_vector.h"
#include "warpline/base/units.h"

namespace warpline {

/// Names an entry of a PacingWheel until it has fired or was cancelled; a later entry never has the same name.
struct WheelHandle {
  std::uint32_t index = std::numeric_limits<std::uint32_t>::max();
  std::uint32_t generation = 0;

  [[nodiscard]] bool scheduled() const { return index != std::numeric_limits<std::uint32_t>::max(); }
  bool operator==(const WheelHandle&) const = default;
};

/// A hierarchical timing wheel (Varghese, Lauck, SOSP 1987, scheme 7; for pacing: Saeed et al., "Carousel", SIGCOMM
/// 2017): levels of 64 slots with a bitmap each, as many as any deadline needs. One thread. schedule and cancel take
/// constant time, advance constant time for each entry that fires and, at most once a level, for each that nears;
/// a long time without entries costs nothing. Memory is taken by the constructor alone.
///
/// An entry fires at the first advance() not before its deadline rounded up to a tick; equal ticks fire in the order of
/// schedule(). A clock that steps back stops the wheel's time for a moment: what waits keeps its remaining wait. One
/// that leaps fires what is due, each entry once.
template <typename T>
class PacingWheel {
 public:
  /// At most `capacity` (> 0) entries at once; deadlines are rounded up to multiples of `tick` (> 0) after `start`.
  PacingWheel(std::uint32_t capacity, Nanos tick, Nanos start)
      : tick_(static_cast<std::uint64_t>(std::max<std::int64_t>(tick.value, 1))), last_now_(start), nodes_(capacity) {
    slots_.fill(Slot{});
    for (std::uint32_t i = 0; i < capacity; ++i) nodes_[i].next = i + 1 < capacity ? i + 1 : kNone;
    free_ = capacity > 0 ? 0 : kNone;
  }

  [[nodiscard]] std::uint32_t size() const { return size_; }
  [[nodiscard]] std::uint32_t capacity() const { return static_cast<std::uint32_t>(nodes_.size()); }

  /// Not scheduled() if the wheel is full. A deadline in the past fires at the next advance(); inside of advance(), a
  /// tick later at the soonest.
  WheelHandle schedule(T value, Nanos at) {
    if (free_ == kNone) return {};
    const std::uint32_t index = free_;
    Node& node = nodes_[index];
    free_ = node.next;
    node.value = std::move(value);
    node.due = std::max(tick_at_or_after(at), floor_);
    insert(index);
    ++size_;
    return {index, node.generation};
  }

  /// False if it has fired or was cancelled.
  bool cancel(WheelHandle handle) {
    if (handle.index >= nodes_.size()) return false;
    const Node& node = nodes_[handle.index];
    if (node.slot == kFree || node.generation != handle.generation) return false;
    unlink(handle.index);
    release(handle.index);
    return true;
  }

  /// Calls fn(T&&) for up to `limit` entries that are due, in the order of their ticks; fn may schedule and cancel.
  /// Returns how many.
  template <typename Fn>
  std::size_t advance(Nanos now, Fn&& fn, std::size_t limit = std::numeric_limits<std::size_t>::max()) {
    move_clock(now);
    const std::uint64_t end = elapsed_ / tick_;
    floor_ = end + 1;
    std::size_t fired = 0;
    while (fired < limit) {
      const std::uint64_t due = next_tick();
      if (due > end) {
        current_ = std::max(current_, end);
        break;
      }
      current_ = due;
      cascade();
      const Slot& slot = slots_[due % kSlots];
      while (slot.first != kNone && fired < limit) {
        const std::uint32_t index = slot.first;
        unlink(index);
        T value = std::move(nodes_[index].value);
        release(index);
        ++fired;
        fn(std::move(value));
      }
    }
    floor_ = 0;
    return fired;
  }

  /// No entry fires before this time of the clock last given to advance(); the largest time if there is none. For
  /// whoever sleeps or simulates: at it the wheel may have to be advanced several times, each time nearer, until one
  /// fires.
  [[nodiscard]] Nanos next_deadline() const {
    constexpr auto kLargest = std::numeric_limits<std::int64_t>::max();
    const std::uint64_t due = next_tick();
    if (due == kNever) return Nanos{kLargest};
    __extension__ using Wide = unsigned __int128;
    const Wide wait = Wide{due} * tick_ > elapsed_ ? Wide{due} * tick_ - elapsed_ : 0;
    const std::uint64_t room = static_cast<std::uint64_t>(kLargest) - static_cast<std::uint64_t>(last_now_.value);
    if (wait >= room) return Nanos{kLargest};
    return Nanos{
        static_cast<std::int64_t>(static_cast<std::uint64_t>(last_now_.value) + static_cast<std::uint64_t>(wait))};
  }

 private:
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();
  static constexpr std::uint16_t kFree = std::numeric_limits<std::uint16_t>::max();
  static constexpr std::uint64_t kNever = std::numeric_limits<std::uint64_t>::max();
  static constexpr std::uint64_t kLastTime = kNever / 2;  // 292 years in ns
  static constexpr unsigned kSlotBits = 6;
  static constexpr unsigned kSlots = 1U << kSlotBits;
  static constexpr unsigned kLevels = (64 + kSlotBits - 1) / kSlotBits;

  struct Node {
    T value{};
    std::uint64_t due = 0;  ///< tick
    std::uint32_t next = kNone;
    std::uint32_t previous = kNone;
    std::uint32_t generation = 0;
    std::uint16_t slot = kFree;  ///< level * kSlots + slot
  };
  struct Slot {
    std::uint32_t first = kNone;
    std::uint32_t last = kNone;
  };

  void move_clock(Nanos now) {
    if (now > last_now_) {
      const std::uint64_t step = static_cast<std::uint64_t>(now.value) - static_cast<std::uint64_t>(last_now_.value);
      elapsed_ = std::min(elapsed_ + std::min(step, kLastTime), kLastTime);
    }
    last_now_ = now;
  }

  [[nodiscard]] std::uint64_t tick_at_or_after(Nanos at) const {
    if (at <= last_now_) return current_;
    const std::uint64_t wait = static_cast<std::uint64_t>(at.value) - static_cast<std::uint64_t>(last_now_.value);
    const std::uint64_t due = elapsed_ + std::min(wait, kLastTime - 1);
    return due / tick_ + (due % tick_ != 0 ? 1 : 0);
  }

  /// The level of a tick is that of the highest group of bits in which it differs from current_: all that is nearer
  /// lies in lower levels, and a slot above level 0 is always one that current_ has not yet entered.
  void insert(std::uint32_t index) {
    Node& node = nodes_[index];
    node.due = std::max(node.due, current_);
    const std::uint64_t differs = node.due ^ current_;
    const unsigned level = differs == 0 ? 0 : (static_cast<unsigned>(std::bit_width(differs)) - 1) / kSlotBits;
    const unsigned in_level = static_cast<unsigned>(node.due >> (level * kSlotBits)) % kSlots;
    node.slot = static_cast<std::uint16_t>(level * kSlots + in_level);
    Slot& slot = slots_[node.slot];
    node.next = kNone;
    node.previous = slot.last;
    (slot.last == kNone ? slot.first : nodes_[slot.last].next) = index;
    slot.last = index;
    occupied_[level] |= std::uint64_t{1} << in_level;
  }

  void unlink(std::uint32_t index) {
    const Node& node = nodes_[index];
    Slot& slot = slots_[node.slot];
    (node.previous == kNone ? slot.first : nodes_[node.previous].next) = node.next;
    (node.next == kNone ? slot.last : nodes_[node.next].previous) = node.previous;
    if (slot.first == kNone) occupied_[node.slot / kSlots] &= ~(std::uint64_t{1} << (node.slot % kSlots));
  }

  void release(std::uint32_t index) {
    Node& node = nodes_[index];
    node.slot = kFree;
    ++node.generation;
    node.next = free_;
    free_ = index;
    --size_;
  }

  /// The tick of the first slot occupied, exact on level 0, its first on the others; kNever if there is none. Lower
  /// levels come first, see insert().
  [[nodiscard]] std::uint64_t next_tick() const {
    for (unsigned level = 0; level < kLevels; ++level) {
      if (occupied_[level] == 0) continue;
      const unsigned shift = level * kSlotBits;
      const unsigned above = shift + kSlotBits;
      const std::uint64_t block = above < 64 ? (current_ >> above) << above : 0;
      return block + (static_cast<std::uint64_t>(std::countr_zero(occupied_[level])) << shift);
    }
    return kNever;
  }

  /// Brings down the slots that begin at current_, from above so that the order of schedule() is kept.
  void cascade() {
    for (unsigned level = kLevels - 1; level > 0; --level) {
      const unsigned in_level = static_cast<unsigned>(current_ >> (level * kSlotBits)) % kSlots;
      if ((occupied_[level] >> in_level & 1) == 0) continue;
      const Slot& slot = slots_[level * kSlots + in_level];
      while (slot.first != kNone) {
        const std::uint32_t index = slot.first;
        unlink(index);
        insert(index);
      }
    }
  }

  std::uint64_t tick_;         ///< nanoseconds
  std::uint64_t elapsed_ = 0;  ///< nanoseconds that passed, steps back left out
  std::uint64_t current_ = 0;  ///< tick up to which all has fired
  std::uint64_t floor_ = 0;    ///< inside of advance(): the earliest tick that may be scheduled
  Nanos last_now_;
  std::uint32_t free_ = kNone;
  std::uint32_t size_ = 0;
  std::array<std::uint64_t, kLevels> occupied_{};
  std::array<Slot, std::size_t{kLevels} * kSlots> slots_;
  LargeVector<Node> nodes_;
};

}  // namespace warpline
