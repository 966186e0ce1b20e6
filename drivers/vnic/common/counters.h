// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

namespace warpline::vnic {

/// Every way in which the device loses or changes a frame, and every other thing worth a counter: the names of the
/// extended statistics. Losses on the way in count at the receiving port, those on the way out at the sending one.
// clang-format off
#define VNIC_COUNTERS(X)                                                                                         \
  X(rx_packets) X(rx_bytes)             /* by the driver, as the application gets them */                        \
  X(tx_packets) X(tx_bytes)             /* by the engine, as they leave their queue */                           \
  X(rx_no_descriptor)   /* the packet buffer was full because the driver posted too few buffers */               \
  X(rx_no_mbuf)         /* the driver found no mbuf to post */                                                   \
  X(rx_bad_ip_checksum) X(rx_bad_l4_checksum)                                                                    \
  X(rx_runt) X(rx_giant) X(rx_filtered) /* another MAC address */                                                \
  X(rx_flow_dropped) X(rx_too_long)     /* more than the posted buffers may hold without scatter */              \
  X(rx_link_down) X(rx_stopped)         /* the port, or the queue steered to, was not started, or is stopped */  \
  X(tx_no_peer) X(tx_link_down) X(tx_malformed) /* a descriptor that the device cannot follow */                 \
  X(tx_iommu_fault) X(rx_iommu_fault)   /* an address outside of all mapped memory */                            \
  X(tx_copy_failed) X(rx_copy_failed)   /* the program's copy engine failed while they were under way */         \
  X(tx_kept) X(tx_exchanged) X(tx_spoiled) /* wire=static with a copy engine: frames that came back with the MAC \
       addresses that the wire had supplied, with the same exchanged, and with others */ \
  X(tx_queue_full)      /* the finite queue before the rate limit */                                             \
  X(fault_loss) X(fault_duplicate) X(fault_reorder) X(fault_corrupt) X(fault_truncate) X(fault_ecn_marked)       \
  X(fault_stall_polls) X(fault_reset) X(fault_flap) X(fault_rx_out_polls) X(fault_tx_full_polls)                 \
  X(recycled)           /* mbufs */                                                                              \
  X(recycle_refused_pool) X(recycle_refused_shared) /* mbufs of another pool, or somebody else's too */          \
  X(recycle_refused_threshold) /* calls: no whole batch was sent yet */                                          \
  X(recycle_refused_full)  /* calls: the receive ring has no room for a batch */                                 \
  X(recycle_refused_empty) /* calls: the device has not reported the oldest batch yet */                         \
  X(mempool_gets) X(mempool_puts)       /* mbufs that the driver took from pools to post, and gave back to them */ \
  X(engine_cycles) X(engine_calls)      /* of the inline engine, by the driver: one call in 16 is timed */
// clang-format on

enum class Count : std::uint8_t {
#define VNIC_COUNT(name) name,
  VNIC_COUNTERS(VNIC_COUNT)
#undef VNIC_COUNT
};

inline constexpr unsigned kCounts = 0
#define VNIC_COUNT(name) +1
    VNIC_COUNTERS(VNIC_COUNT)
#undef VNIC_COUNT
    ;

inline constexpr const char* kCountNames[] = {
#define VNIC_COUNT(name) #name,
    VNIC_COUNTERS(VNIC_COUNT)
#undef VNIC_COUNT
};

/// One a queue and direction, so that each has one writer at a time (its queue's owner, or the holder of the egress
/// lock); any thread reads the sum. Relaxed.
class alignas(64) Counters {
 public:
  void add(Count count, std::uint64_t n = 1) {
    std::atomic<std::uint64_t>& cell = cells_[static_cast<unsigned>(count)];
    cell.store(cell.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint64_t get(Count count) const {
    return cells_[static_cast<unsigned>(count)].load(std::memory_order_relaxed);
  }
  void reset() {
    for (auto& cell : cells_) cell.store(0, std::memory_order_relaxed);
  }

 private:
  std::atomic<std::uint64_t> cells_[kCounts]{};
};

}  // namespace warpline::vnic
