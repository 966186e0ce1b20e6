// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <variant>

#include "warpline/base/units.h"

namespace warpline::traffic {

/// A `SharedRate` is a rate that one thread changes while others go by it.
class SharedRate {
 public:
  explicit SharedRate(const Rate& rate) : word_(word_of(rate)) {}

  /// Any thread.
  void store(const Rate& rate) { word_.store(word_of(rate), std::memory_order_relaxed); }

  /// Returns true if it is another than `last`, which then becomes the rate.
  [[nodiscard]] bool changed(Rate& last) const {
    const double word = word_.load(std::memory_order_relaxed);
    if (word == word_of(last)) return false;
    last = word > 0 ? Rate{PacketRate{word}} : word < 0 ? Rate{BitRate{-word}} : Rate{};
    return true;
  }

 private:
  /// One word, so that no reader sees parts of two: packets are positive, bits negative, 0 is no bound.
  [[nodiscard]] static double word_of(const Rate& rate) {
    if (const auto* packets = std::get_if<PacketRate>(&rate)) return packets->value;
    if (const auto* bits = std::get_if<BitRate>(&rate)) return -bits->value;
    return 0;
  }

  std::atomic<double> word_;
};

}  // namespace warpline::traffic
