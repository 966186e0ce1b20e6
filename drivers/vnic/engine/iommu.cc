// SPDX-License-Identifier: Apache-2.0
#include "vnic/engine/iommu.h"

#include <algorithm>
#include <cerrno>

#include <rte_memory.h>

namespace warpline::vnic {
namespace {

/// rte_mem_event_callback_unregister finds a callback by name and argument.
constexpr const char* kCallbackName = "net_vnic";

}  // namespace

Iommu::Iommu() : table_(nullptr) { publish(); }

Iommu::~Iommu() {
  if (follows_eal_) rte_mem_event_callback_unregister(kCallbackName, this);
}

void Iommu::on_memory_event(int event, const void* address, std::size_t length, void* self) {
  const rte_memseg_list* const list = rte_mem_virt2memseg_list(address);
  if (list != nullptr && list->external != 0) return;
  Iommu& iommu = *static_cast<Iommu*>(self);
  const std::scoped_lock lock(iommu.mutex_);
  const std::uint64_t begin = reinterpret_cast<std::uintptr_t>(address);
  // What came may be in already; what goes may be a part of what came.
  std::vector<Range> rest;
  for (const Range& range : iommu.eal_) {
    const std::uint64_t end = range.begin + range.length;
    if (range.begin < begin) rest.push_back({range.begin, std::min(end, begin) - range.begin});
    if (end > begin + length) {
      const std::uint64_t from = std::max(range.begin, begin + length);
      rest.push_back({from, end - from});
    }
  }
  if (event == RTE_MEM_EVENT_ALLOC) rest.push_back({begin, length});
  iommu.eal_ = std::move(rest);
  iommu.publish();
}

void Iommu::take_eal_memory() {
  if (!follows_eal_) {
    // Refused where EAL's memory never changes (--no-huge, --legacy-mem): then there is nothing to follow.
    follows_eal_ = rte_mem_event_callback_register(
                       kCallbackName,
                       [](rte_mem_event event, const void* address, std::size_t length, void* self) {
                         on_memory_event(event, address, length, self);
                       },
                       this) == 0;
  }
  // EAL holds its own lock during the walk, as it does when it tells of changes: so they take ours in one order.
  struct Walk {
    Iommu& iommu;
    std::unique_lock<std::mutex> lock;
  } walk{*this, {}};
  rte_memseg_contig_walk(
      [](const rte_memseg_list* list, const rte_memseg* segment, std::size_t length, void* argument) {
        Walk& at = *static_cast<Walk*>(argument);
        if (!at.lock.owns_lock()) {
          at.lock = std::unique_lock(at.iommu.mutex_);
          at.iommu.eal_.clear();
        }
        if (list->external == 0) at.iommu.eal_.push_back({segment->addr_64, length});
        return 0;
      },
      &walk);
  if (walk.lock.owns_lock()) publish();
}

int Iommu::map(std::uintptr_t address, std::size_t length) {
  if (length == 0 || address + length - 1 < address) return -EINVAL;
  const std::scoped_lock lock(mutex_);
  const auto overlaps = [&](const Range& range) {
    return address < range.begin + range.length && range.begin < address + length;
  };
  if (std::any_of(eal_.begin(), eal_.end(), overlaps) || std::any_of(mapped_.begin(), mapped_.end(), overlaps)) {
    return -EEXIST;
  }
  mapped_.push_back({address, length});
  publish();
  return 0;
}

int Iommu::unmap(std::uintptr_t address, std::size_t length) {
  const std::scoped_lock lock(mutex_);
  const auto found = std::find_if(mapped_.begin(), mapped_.end(),
                                  [&](const Range& range) { return range.begin == address && range.length == length; });
  if (found == mapped_.end()) return -ENOENT;
  mapped_.erase(found);
  publish();
  return 0;
}

bool Iommu::find(const Table& table, std::uint64_t address, std::uint32_t length, Cache& cache) {
  auto after = std::upper_bound(table.begin(), table.end(), address,
                                [](std::uint64_t value, const Range& range) { return value < range.begin; });
  if (after == table.begin()) return false;
  const Range& range = *--after;
  const std::uint64_t into = address - range.begin;
  if (into >= range.length || length > range.length - into) return false;
  cache.table_ = &table;
  cache.begin_ = range.begin;
  cache.length_ = range.length;
  return true;
}

void Iommu::publish() {
  Table sorted = eal_;
  sorted.insert(sorted.end(), mapped_.begin(), mapped_.end());
  std::sort(sorted.begin(), sorted.end(), [](const Range& a, const Range& b) { return a.begin < b.begin; });
  auto table = std::make_unique<Table>();
  for (const Range& range : sorted) {
    if (!table->empty() && table->back().begin + table->back().length == range.begin) {
      table->back().length += range.length;
    } else {
      table->push_back(range);
    }
  }
  table_.store(table.get(), std::memory_order_release);
  tables_.push_back(std::move(table));
}

}  // namespace warpline::vnic
