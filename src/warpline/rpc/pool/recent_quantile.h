// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "warpline/base/units.h"
#include "warpline/message/types.h"

namespace warpline::rpc {

/// A quantile of the latest kWindow durations. It follows a change within so many calls, and forgets what was before.
class RecentQuantile {
 public:
  static constexpr std::size_t kWindow = 256;  ///< durations that it is made of
  static constexpr std::size_t kPeriod = 32;   ///< durations after which it is made anew
  static constexpr std::size_t kFirst = 8;     ///< durations after which it is made first

  /// `fraction`: between 0 and 1.
  explicit RecentQuantile(double fraction) : fraction_(fraction) {}

  void record(Nanos duration);
  /// The least of the durations that no more than 1 - fraction of them exceed. kNever until kFirst were recorded.
  [[nodiscard]] Nanos value() const { return value_; }

 private:
  double fraction_;
  std::array<std::int64_t, kWindow> latest_{};
  std::uint64_t recorded_ = 0;
  Nanos value_ = message::kNever;
};

}  // namespace warpline::rpc
