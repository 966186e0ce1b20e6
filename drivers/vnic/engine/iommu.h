// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace warpline::vnic {

/// Which addresses the device may touch: EAL's own memory, as it grows and shrinks, and what was mapped for it by
/// rte_dev_dma_map. Any control thread changes it, engines read it at any time, without a lock.
class Iommu {
  struct Range {
    std::uint64_t begin;
    std::uint64_t length;
  };
  /// By begin; neighbours that touch are one.
  using Table = std::vector<Range>;

 public:
  /// The range that a reader found last. One a reader, who owns it.
  class Cache {
    friend class Iommu;
    const Table* table_ = nullptr;
    std::uint64_t begin_ = 0;
    std::uint64_t length_ = 0;
  };

  Iommu();
  ~Iommu();
  Iommu(const Iommu&) = delete;
  Iommu& operator=(const Iommu&) = delete;

  /// Takes in all memory segments that EAL has now, and follows it from now on. Called at start.
  void take_eal_memory();
  /// 0, or a negative errno: EINVAL for nothing or past the end of the address space, EEXIST when some of it is mapped.
  int map(std::uintptr_t address, std::size_t length);
  /// 0, or -ENOENT: only what one map() took in.
  int unmap(std::uintptr_t address, std::size_t length);

  /// True if all of [address, address + length) is mapped. A few comparisons when it lies where the last one did.
  [[nodiscard]] bool allows(std::uint64_t address, std::uint32_t length, Cache& cache) const {
    const Table* const table = table_.load(std::memory_order_acquire);
    const std::uint64_t into = address - cache.begin_;
    if (table == cache.table_ && into < cache.length_ && length <= cache.length_ - into) [[likely]]
      return true;
    return find(*table, address, length, cache);
  }

 private:
  [[nodiscard]] static bool find(const Table& table, std::uint64_t address, std::uint32_t length, Cache& cache);
  static void on_memory_event(int event, const void* address, std::size_t length, void* self);
  void publish();

  std::mutex mutex_;           ///< among those who change it
  std::vector<Range> eal_;     ///< by begin, disjoint
  std::vector<Range> mapped_;  ///< by rte_dev_dma_map, one each
  bool follows_eal_ = false;
  /// All tables there ever were: a reader may hold an old one, and two of one address must not differ.
  std::vector<std::unique_ptr<const Table>> tables_;
  std::atomic<const Table*> table_;
};

}  // namespace warpline::vnic
