// SPDX-License-Identifier: Apache-2.0
#include "warpline/gpu/gpu_place.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <list>
#include <map>
#include <mutex>
#include <set>
#include <utility>
#include <vector>

namespace warpline::gpu {
namespace {

std::mutex mutex;
std::map<int, std::list<KernelDemand>> taken_of;  ///< by ordinal; nodes stay where they are

/// The part of a multiprocessor that one CTA takes.
double share(const KernelDemand& demand) { return 1.0 / demand.ctas_per_multiprocessor; }

constexpr double kRounding = 1e-9;

/// The smallest sum above `bound`, up to 1, of any number of any of `shares`; 2 if there is none.
double smallest_sum_above(double bound, const std::set<double>& shares) {
  std::vector<double> sums{0};
  double smallest = 2;
  for (const double share : shares) {
    for (std::size_t i = 0; i < sums.size(); ++i) {
      const double sum = sums[i] + share;
      if (sum > 1 + kRounding) continue;
      if (sum > bound + kRounding) {
        smallest = std::min(smallest, sum);
      } else if (std::ranges::none_of(sums, [&](double known) { return std::abs(known - sum) < kRounding; })) {
        sums.push_back(sum);
      }
    }
  }
  return smallest;
}

/// Whether all CTAs of `kernel` find places, wherever those of `others` are. A multiprocessor turns one away only if
/// more than 1 - share is taken of one of its resources, that is the smallest sum of shares above that: so one is left
/// if all others together do not come to that on each. The other bound is the better one for large CTAs: a CTA of
/// another kernel spoils one multiprocessor at most.
bool finds_place(const KernelDemand& kernel, const std::list<KernelDemand>& others, std::uint32_t multiprocessors) {
  std::uint64_t same = kernel.ctas;
  std::uint64_t foreign = 0;
  double sum = (kernel.ctas - 1) * share(kernel);
  std::set<double> shares{share(kernel)};
  for (const KernelDemand& other : others) {
    (other.kernel == kernel.kernel ? same : foreign) += other.ctas;
    sum += other.ctas * share(other);
    shares.insert(share(other));
  }
  if (sum < multiprocessors * smallest_sum_above(1 - share(kernel), shares) - kRounding) return true;
  return foreign < multiprocessors && same <= (multiprocessors - foreign) * kernel.ctas_per_multiprocessor;
}

Error no_place(int gpu, std::string why) {
  return environment_error(fmt::format("the kernels of this run on GPU {}", gpu), std::move(why),
                           "use fewer pipelines, fewer --ctas, or several GPUs; with -m device on a software NIC each "
                           "pipeline runs two more kernels, with -m pinned none");
}

}  // namespace

Result<GpuPlace> GpuPlace::claim(int gpu, std::uint32_t multiprocessors, KernelDemand demand) {
  if (demand.ctas_per_multiprocessor == 0) return no_place(gpu, "one of them is larger than a multiprocessor");
  const std::lock_guard lock(mutex);
  std::list<KernelDemand>& taken = taken_of[gpu];
  if (taken.size() == kResidentGrids) {
    return no_place(gpu, fmt::format("there are more than {}, and a GPU runs no more at a time", kResidentGrids));
  }
  if (finds_place(demand, taken, multiprocessors)) {
    taken.push_back(demand);
    return GpuPlace(gpu, &taken.back());
  }
  std::uint64_t ctas = demand.ctas;
  for (const KernelDemand& kernel : taken) ctas += kernel.ctas;
  return no_place(gpu, fmt::format("{} kernels of {} CTAs may not all find a place at a time on its {} multiprocessors",
                                   taken.size() + 1, ctas, multiprocessors));
}

void GpuPlace::Release::operator()(KernelDemand* demand) const {
  const std::lock_guard lock(mutex);
  taken_of[gpu].remove_if([&](const KernelDemand& taken) { return &taken == demand; });
}

}  // namespace warpline::gpu
