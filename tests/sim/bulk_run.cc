// SPDX-License-Identifier: Apache-2.0
#include "sim/bulk_run.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace warpline::sim {

std::int64_t quantile(std::vector<std::int64_t> values, double fraction) {
  if (values.empty()) return 0;
  const auto rank = static_cast<std::size_t>(std::ceil(fraction * static_cast<double>(values.size())));
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(std::max<std::size_t>(rank, 1) - 1);
  std::nth_element(values.begin(), at, values.end());
  return *at;
}

}  // namespace warpline::sim
