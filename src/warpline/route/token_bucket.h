// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "warpline/base/units.h"

namespace warpline::route {

/// Lets `burst` events pass at once and one every `interval` in the long run. Owner: one thread.
class TokenBucket {
 public:
  TokenBucket(std::uint32_t burst, Nanos interval) : burst_(burst), interval_(interval.value), tokens_(burst) {}

  /// Whether take() would be true.
  [[nodiscard]] bool has(Nanos now) {
    if (now.value > filled_) {
      const std::int64_t came = (now.value - filled_) / interval_;
      tokens_ = static_cast<std::uint32_t>(std::min<std::int64_t>(burst_, came + tokens_));
      filled_ += came * interval_;
    }
    return tokens_ != 0;
  }

  [[nodiscard]] bool take(Nanos now) {
    if (!has(now)) return false;
    --tokens_;
    return true;
  }

 private:
  std::uint32_t burst_;
  std::int64_t interval_;
  std::uint32_t tokens_;
  std::int64_t filled_ = 0;
};

}  // namespace warpline::route
