// SPDX-License-Identifier: Apache-2.0
#include "warpline/memory/recycle_watch.h"

#include <algorithm>

namespace warpline::memory {
namespace {

/// Packets of a window that must leave by a mapping: begins() to begin it, ends() to keep it. In between, what the
/// other calls save pays for those that find nothing.
constexpr std::uint64_t begins(std::uint64_t packets) { return packets - packets / 2; }
constexpr std::uint64_t ends(std::uint64_t packets) { return packets * 3 / 8; }
/// A second transmit queue is worth a call of its own from here on.
constexpr std::uint64_t worth_two(std::uint64_t packets) { return packets / 4; }

}  // namespace

RecycleWatch::Mapping RecycleWatch::wanted() const {
  std::uint8_t first = 0;
  for (std::uint8_t i = 1; i < kMostQueues; ++i) {
    if (left_[i] > left_[first]) first = i;
  }
  std::uint8_t second = first == 0 ? 1 : 0;
  for (std::uint8_t i = 0; i < kMostQueues; ++i) {
    if (i != first && left_[i] > left_[second]) second = i;
  }
  Mapping mapping;
  const std::uint64_t one = left_[first];
  const std::uint64_t two = left_[second];
  if (two != 0 && two >= worth_two(seen_) && one + two >= begins(seen_)) {
    mapping.tx = {first, second};
    mapping.count = 2;
  } else if (one != 0 && one >= begins(seen_)) {
    mapping.tx = {first, 0};
    mapping.count = 1;
  }
  return mapping;
}

const RecycleWatch::Mapping& RecycleWatch::decide() {
  if (for_good_ && mapped_.count != 0) {
    begin_window();
    return mapped_;
  }
  if (pause_ > 0) {
    --pause_;
    begin_window();
    return mapped_;
  }
  if (mapped_.count == 0) {
    mapped_ = wanted();
  } else {
    std::uint64_t through = 0;
    for (std::uint8_t i = 0; i < mapped_.count; ++i) through += left_[mapped_.tx[i]];
    const bool fits = through != 0 && through >= ends(seen_);
    if (fits && std::uint64_t{came_back_} * 2 < through) {
      back_off();
    } else if (!fits) {
      mapped_ = wanted();
    } else {
      next_pause_ = 1;
      if (const Mapping better = wanted(); better.count > mapped_.count) mapped_ = better;
    }
  }
  begin_window();
  return mapped_;
}

void RecycleWatch::set_actual(const Mapping& actual) {
  if (actual.count < mapped_.count && actual.count == 0) {
    back_off();
  } else {
    mapped_ = actual;
  }
}

void RecycleWatch::back_off() {
  mapped_ = {};
  pause_ = next_pause_;
  next_pause_ = std::min(next_pause_ * 2, kLongestPause);
}

void RecycleWatch::begin_window() {
  seen_ = came_back_ = 0;
  window_ = kWindow;
  left_.fill(0);
}

}  // namespace warpline::memory
