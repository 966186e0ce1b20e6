// SPDX-License-Identifier: Apache-2.0
// Counters of the calling thread, as Linux gives them.

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "warpline/base/statistics/perf_counters.h"

namespace warpline {
namespace {

constexpr std::uint64_t kConfigs[] = {PERF_COUNT_HW_CPU_CYCLES, PERF_COUNT_HW_INSTRUCTIONS,
                                      PERF_COUNT_HW_CACHE_REFERENCES, PERF_COUNT_HW_CACHE_MISSES};

std::size_t page_bytes() { return static_cast<std::size_t>(sysconf(_SC_PAGESIZE)); }

class Kernel final : public PerfSystem {
 public:
  int open(PerfEvent event) override {
    perf_event_attr attributes{};
    attributes.size = sizeof attributes;
    attributes.type = PERF_TYPE_HARDWARE;
    attributes.config = kConfigs[static_cast<std::size_t>(event)];
    attributes.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
    // What ordinary users may count (/proc/sys/kernel/perf_event_paranoid up to 2).
    attributes.exclude_kernel = 1;
    attributes.exclude_hv = 1;
    const auto file = static_cast<int>(syscall(SYS_perf_event_open, &attributes, 0, -1, -1, PERF_FLAG_FD_CLOEXEC));
    return file >= 0 ? file : -errno;
  }

  const volatile perf_event_mmap_page* map(int file) override {
#if defined(__x86_64__)
    void* const page = mmap(nullptr, page_bytes(), PROT_READ, MAP_SHARED, file, 0);
    return page == MAP_FAILED ? nullptr : static_cast<const volatile perf_event_mmap_page*>(page);
#else
    static_cast<void>(file);
    return nullptr;
#endif
  }

  void close(int file, const volatile perf_event_mmap_page* page) override {
    if (page != nullptr) munmap(const_cast<perf_event_mmap_page*>(page), page_bytes());
    ::close(file);
  }

  bool read(int file, PerfReading& reading) override {
    return ::read(file, &reading, sizeof reading) == sizeof reading;
  }

  std::uint64_t rdpmc(std::uint32_t index) override {
#if defined(__x86_64__)
    std::uint32_t low;
    std::uint32_t high;
    asm volatile("lfence\n\trdpmc" : "=a"(low), "=d"(high) : "c"(index) : "memory");
    return std::uint64_t{high} << 32 | low;
#else
    static_cast<void>(index);
    return 0;
#endif
  }
};

}  // namespace

PerfSystem& PerfSystem::kernel() {
  static Kernel kernel;
  return kernel;
}

}  // namespace warpline
