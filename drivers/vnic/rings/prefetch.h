// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include <rte_mbuf.h>

namespace warpline::vnic {

/// Begins to fetch the line for writing; any address. The core that sends a packet has read its mbuf's first line, and
/// a store that has to take it away from there waits for a hundred cycles.
inline void prefetch_for_write(const void* line) {
#if defined(__x86_64__)
  asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(line)));
#else
  __builtin_prefetch(line, 1, 3);
#endif
}

/// The same for the first mbuf of a chain, or null: where an mbuf keeps its `next` depends on how DPDK was built.
inline void prefetch_head_for_write(const rte_mbuf* mbuf) {
  prefetch_for_write(mbuf);
  if constexpr (offsetof(rte_mbuf, next) >= RTE_CACHE_LINE_MIN_SIZE) {
    prefetch_for_write(
        reinterpret_cast<const void*>(reinterpret_cast<std::uintptr_t>(mbuf) + offsetof(rte_mbuf, next)));
  }
}

}  // namespace warpline::vnic
