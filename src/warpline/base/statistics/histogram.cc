// SPDX-License-Identifier: Apache-2.0
#include "warpline/base/statistics/histogram.h"

#include <algorithm>
#include <cmath>

namespace warpline {

void Histogram::merge(const Histogram& other) {
  for (std::size_t i = 0; i < kBuckets; ++i) bump(buckets_[i], other.buckets_[i].load(std::memory_order_relaxed));
  bump(count_, other.count());
  max_.store(std::max(max(), other.max()), std::memory_order_relaxed);
}

std::uint64_t Histogram::quantile(double fraction) const {
  const std::uint64_t total = count();
  if (total == 0) return 0;
  const double wanted = std::ceil(fraction * static_cast<double>(total));
  const std::uint64_t rank = std::clamp<std::uint64_t>(static_cast<std::uint64_t>(wanted), 1, total);
  std::uint64_t seen = 0;
  for (std::size_t i = 0; i < kBuckets; ++i) {
    seen += buckets_[i].load(std::memory_order_relaxed);
    if (seen >= rank) return i + 1 == kBuckets ? max() : std::min(bucket_end(i), max());
  }
  return max();
}

}  // namespace warpline
