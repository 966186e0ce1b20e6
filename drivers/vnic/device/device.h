// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ethdev_driver.h>

#include <array>
#include <atomic>
#include <cstdint>

#include "vnic/common/counters.h"
#include "vnic/common/limits.h"
#include "vnic/engine/hardware.h"
#include "vnic/rings/queue.h"

namespace warpline::vnic {

/// One port: its hardware, and what the driver keeps of it. Lives from probe to close; ethdev's private data holds a
/// pointer to it.
///
/// Threads: set-up by one control thread at a time. Each queue's driver part belongs to the lcore that polls it.
struct Device : Hardware {
  using Hardware::Hardware;

  rte_eth_dev* ethdev = nullptr;

  std::array<RxQueue*, kMaxQueues> rx{};
  std::array<TxQueue*, kMaxQueues> tx{};

  std::atomic<bool> started{false};
  std::uint32_t link_looks = 0;  ///< link_up_after, those that are left; control thread
  bool link_wanted = true;       ///< rte_eth_dev_set_link_up and _down

  // The control thread's.
  /// Keeps what a queue has counted when it goes.
  void retire(const Counters& counters) {
    for (unsigned i = 0; i < kCounts; ++i) retired[i] += counters.get(static_cast<Count>(i));
  }
  std::array<std::uint64_t, kCounts> retired{};  ///< of queues that are gone
  std::uint64_t retired_parity = 0;
  std::array<std::uint64_t, kCounts> reset_at{};  ///< what the counters stood at when statistics were reset
  struct Traffic {
    std::uint64_t packets = 0;
    std::uint64_t bytes = 0;
  };
  std::array<Traffic, kMaxQueues> rx_reset_at{};
  std::array<Traffic, kMaxQueues> tx_reset_at{};
};

[[nodiscard]] inline Device& device_of(rte_eth_dev* dev) { return **static_cast<Device**>(dev->data->dev_private); }

}  // namespace warpline::vnic
