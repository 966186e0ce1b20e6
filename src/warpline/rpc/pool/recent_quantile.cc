// SPDX-License-Identifier: Apache-2.0
#include "warpline/rpc/pool/recent_quantile.h"

#include <algorithm>
#include <cmath>

namespace warpline::rpc {

void RecentQuantile::record(Nanos duration) {
  latest_[recorded_++ % kWindow] = duration.value;
  if (recorded_ % kPeriod != 0 && recorded_ != kFirst) return;
  std::array<std::int64_t, kWindow> sorted = latest_;
  const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(recorded_, kWindow));
  const double rank = std::ceil(fraction_ * static_cast<double>(count));
  const std::size_t at = std::clamp<std::size_t>(static_cast<std::size_t>(rank), 1, count) - 1;
  std::nth_element(sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(at),
                   sorted.begin() + static_cast<std::ptrdiff_t>(count));
  value_ = {sorted[at]};
}

}  // namespace warpline::rpc
