// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>

#include "warpline/base/units.h"

namespace warpline::service {

/// RequestPacer says when requests are due at a steady rate, whatever became of those before (an open loop). Time is a
/// parameter. One thread.
class RequestPacer {
 public:
  /// Makes a pacer of `per_second` requests; one of 0 has no request due.
  explicit RequestPacer(double per_second = 0) : nanos_each_(per_second > 0 ? 1e9 / per_second : 0) {}

  [[nodiscard]] bool paces() const { return nanos_each_ > 0; }
  [[nodiscard]] bool started() const { return started_; }
  /// Request 0 is due `now`.
  void start(Nanos now) {
    started_ = true;
    start_ = now;
  }
  /// Returns when a request is due.
  [[nodiscard]] Nanos time_of(std::uint64_t request) const {
    return Nanos{start_.value + std::llround(static_cast<double>(request) * nanos_each_)};
  }
  /// Returns whether it is due by now.
  [[nodiscard]] bool due(std::uint64_t request, Nanos now) const {
    return started_ && paces() && time_of(request) <= now;
  }

 private:
  double nanos_each_;
  bool started_ = false;
  Nanos start_;
};

}  // namespace warpline::service
