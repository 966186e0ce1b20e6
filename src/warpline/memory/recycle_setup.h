// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "warpline/memory/pool_settings.h"
#include "warpline/memory/recycler.h"
#include "warpline/port/port_queue.h"

struct rte_mempool;

namespace warpline::memory {

/// `rx` is to take back the buffers of what `tx` has sent.
struct RecycleLink {
  port::PortQueue rx{};
  port::PortQueue tx{};
  rte_mempool* sent = nullptr;  ///< that all packets sent on `tx` are of; null: not known before they come
};

struct RecyclePlan {
  RecycleWay way = RecycleWay::automatic;
  std::vector<RecycleQueues> lcores{};
  /// For RecycleWay::direct; those that cannot be are refused in words. Without any, direct links each RX queue with
  /// where its first packets leave, for good. RecycleWay::automatic finds links itself and heeds none.
  std::vector<RecycleLink> links{};
};

/// What recycling was set up to.
struct Recycling {
  /// As RecyclePlan::lcores; null where nothing can ever be linked.
  std::vector<std::unique_ptr<Recycler>> lcores;
  /// Each one line: what was refused, why, and what is used instead; what had to be set up otherwise.
  std::vector<std::string> notes;

  /// Buffers that went from a transmit ring into a receive ring so far; unset where none can. Any thread.
  [[nodiscard]] std::optional<std::uint64_t> recycled() const;
};

/// Whether ports are to be set up with MBUF_FAST_FREE where that is safe.
[[nodiscard]] constexpr bool wants_fast_free(RecycleWay way) {
  return way != RecycleWay::off && way != RecycleWay::cache;
}

/// Sets queues up for plan.way. Between Port::attach and Port::start of all ports named: transmit queues whose
/// thresholds would silently keep buffers from ever moving are set up again. Control thread.
[[nodiscard]] Recycling set_up_recycling(const RecyclePlan& plan);

}  // namespace warpline::memory
