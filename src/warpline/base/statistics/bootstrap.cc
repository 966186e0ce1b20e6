// SPDX-License-Identifier: Apache-2.0
#include "warpline/base/statistics/bootstrap.h"

#include <algorithm>
#include <cstddef>
#include <random>

namespace warpline {

double median_of(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  if (values.size() % 2 != 0) return *middle;
  return (*std::ranges::max_element(values.begin(), middle) + *middle) / 2;
}

Estimate estimate(std::span<const double> values, std::uint64_t seed) {
  constexpr std::size_t kResamples = 2000;
  std::mt19937_64 random(seed);
  std::uniform_int_distribution<std::size_t> any(0, values.size() - 1);
  std::vector<double> medians(kResamples);
  std::vector<double> sample(values.size());
  for (double& median : medians) {
    for (double& value : sample) value = values[any(random)];
    median = median_of(sample);
  }
  std::ranges::sort(medians);
  return {median_of({values.begin(), values.end()}), medians[kResamples / 40],
          medians[kResamples - 1 - kResamples / 40]};
}

Estimate estimate_ratio(std::span<const double> a, std::span<const double> b, std::uint64_t seed) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) ratios.push_back(a[i] / b[i]);
  return estimate(ratios, seed);
}

}  // namespace warpline
