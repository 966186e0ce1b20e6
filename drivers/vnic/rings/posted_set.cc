// SPDX-License-Identifier: Apache-2.0
#include "vnic/rings/posted_set.h"

#ifndef NDEBUG

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <new>

#include "vnic/common/log.h"

namespace warpline::vnic {
namespace {

/// Mbufs lie on cache lines: one bit for each line of a region.
constexpr unsigned kRegionShift = 21;
constexpr std::uint64_t kLines = (std::uint64_t{1} << kRegionShift) / RTE_CACHE_LINE_SIZE;
constexpr std::size_t kMostRegions = 1 << 14;  ///< 32 GiB of mbufs

struct Region {
  std::uint64_t number;
  std::atomic<std::uint64_t> bits[kLines / 64];
};

/// Open addressing, never shrinks: regions stay for the process.
std::atomic<Region*> regions[kMostRegions];

/// The place of the region with that number, or the free one where it would be.
std::atomic<Region*>& place_of(std::uint64_t number) {
  std::size_t at = number * 0x9e3779b97f4a7c15U >> 50U;
  for (std::size_t tried = 0; tried < kMostRegions; ++tried, at = (at + 1) % kMostRegions) {
    const Region* const region = regions[at].load(std::memory_order_acquire);
    if (region == nullptr || region->number == number) return regions[at];
  }
  log_error("mbufs in more than %zu regions: debug builds cannot watch them", kMostRegions);
  std::abort();
}

/// Sets or clears the mbuf's bit and returns what it was.
bool exchange(const rte_mbuf* mbuf, bool value) {
  const auto address = reinterpret_cast<std::uintptr_t>(mbuf);
  Region* const region = place_of(address >> kRegionShift).load(std::memory_order_acquire);
  if (region == nullptr) {
    log_error("mbuf %p is of no pool that a receive queue was set up with", static_cast<const void*>(mbuf));
    std::abort();
  }
  const std::uint64_t line = address / RTE_CACHE_LINE_SIZE % kLines;
  const std::uint64_t bit = std::uint64_t{1} << line % 64;
  std::atomic<std::uint64_t>& word = region->bits[line / 64];
  const std::uint64_t before =
      value ? word.fetch_or(bit, std::memory_order_relaxed) : word.fetch_and(~bit, std::memory_order_relaxed);
  return (before & bit) != 0;
}

}  // namespace

void PostedSet::admit(const rte_mbuf* mbuf) {
  const std::uint64_t number = reinterpret_cast<std::uintptr_t>(mbuf) >> kRegionShift;
  for (;;) {
    std::atomic<Region*>& place = place_of(number);
    if (place.load(std::memory_order_acquire) != nullptr) return;
    auto* const region = new Region{};
    region->number = number;
    Region* none = nullptr;
    if (place.compare_exchange_strong(none, region, std::memory_order_release)) return;
    delete region;  // another's came in between, perhaps of another number
  }
}

void PostedSet::insert(const rte_mbuf* mbuf) {
  if (!exchange(mbuf, true)) return;
  log_error("mbuf %p is posted twice", static_cast<const void*>(mbuf));
  std::abort();
}

void PostedSet::remove(const rte_mbuf* mbuf) {
  if (exchange(mbuf, false)) return;
  log_error("mbuf %p was taken out of a receive ring in which it was not", static_cast<const void*>(mbuf));
  std::abort();
}

}  // namespace warpline::vnic

#endif
