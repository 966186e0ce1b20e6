// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace warpline::sim {

/// Something to which events happen at their time.
class Actor {
 public:
  /// `what` as given to EventQueue::at().
  virtual void act(std::uint64_t what) = 0;

 protected:
  ~Actor() = default;
};

/// Virtual time, in nanoseconds from 0. What happens at the same time happens in the order in which it was asked for,
/// so that a run is a function of its parameters.
class EventQueue {
 public:
  [[nodiscard]] std::int64_t now() const { return now_; }
  [[nodiscard]] bool empty() const { return heap_.empty(); }

  /// A time that is over is now.
  void at(std::int64_t time, Actor& actor, std::uint64_t what) {
    heap_.push_back({std::max(time, now_), order_++, &actor, what});
    std::push_heap(heap_.begin(), heap_.end(), later);
  }

  /// All that happens up to and at `time`.
  void run_until(std::int64_t time) {
    while (!heap_.empty() && heap_.front().time <= time) step();
    now_ = std::max(now_, time);
  }

  void step() {
    std::pop_heap(heap_.begin(), heap_.end(), later);
    const Event event = heap_.back();
    heap_.pop_back();
    now_ = event.time;
    event.actor->act(event.what);
  }

 private:
  struct Event {
    std::int64_t time;
    std::uint64_t order;
    Actor* actor;
    std::uint64_t what;
  };
  static bool later(const Event& a, const Event& b) { return a.time != b.time ? a.time > b.time : a.order > b.order; }

  std::vector<Event> heap_;
  std::int64_t now_ = 0;
  std::uint64_t order_ = 0;
};

}  // namespace warpline::sim
