// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "warpline/base/units.h"

namespace warpline::rpc {

/// How many retries and hedges there may be for how many calls.
struct RetryBudgetSettings {
  double per_call = 0.1;     ///< retries that each call pays for: a tenth more load at most
  double per_second = 10.0;  ///< retries that time pays for, so that programs of few calls may retry, too
  double most = 100.0;       ///< retries that may be saved up; there are so many at the beginning
};

/// A bucket of tokens: calls and time put some in, each retry or hedge takes one. So a fault that makes all calls fail
/// does not multiply the load of the servers that are left (Finagle's RetryBudget; gRPC's retry throttling, gRFC A6).
class RetryBudget {
 public:
  RetryBudget(const RetryBudgetSettings& settings, Nanos now)
      : settings_(settings), tokens_(settings.most), filled_(now) {}

  /// A call came.
  void add_call() { tokens_ = std::min(tokens_ + settings_.per_call, settings_.most); }
  /// Takes a token for a retry or hedge. False: there is none.
  [[nodiscard]] bool take(Nanos now) {
    constexpr double kSecond = 1e9;
    if (now > filled_) {
      const double seconds = static_cast<double>(now.value - filled_.value) / kSecond;
      tokens_ = std::min(tokens_ + settings_.per_second * seconds, settings_.most);
      filled_ = now;
    }
    if (tokens_ < 1) return false;
    tokens_ -= 1;
    return true;
  }

 private:
  RetryBudgetSettings settings_;
  double tokens_;
  Nanos filled_;  ///< when time last paid
};

}  // namespace warpline::rpc
