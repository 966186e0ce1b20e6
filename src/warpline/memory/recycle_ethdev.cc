// SPDX-License-Identifier: Apache-2.0
#define ALLOW_EXPERIMENTAL_API  // rte_eth_recycle_mbufs, unchanged since 23.11
#include <rte_ethdev.h>
#include <rte_version.h>

#include "warpline/memory/recycle_hook.h"

namespace warpline::memory {

#if RTE_VERSION >= RTE_VERSION_NUM(23, 11, 0, 0)
namespace {

/// A call moves one batch; so many in a poll are more than a burst.
constexpr unsigned kMostBatches = 16;

class RecycleMbufs final : public EthdevRecycling {
 public:
  explicit RecycleMbufs(const rte_eth_recycle_rxq_info& info) : info_(info) {}

  [[nodiscard]] std::uint16_t requirement() const override { return info_.refill_requirement; }

  std::uint16_t move(port::PortQueue rx, port::PortQueue tx) override {
    std::uint16_t moved = 0;
    for (unsigned batch = 0; batch < kMostBatches; ++batch) {
      const std::uint16_t more = rte_eth_recycle_mbufs(rx.port, rx.queue, tx.port, tx.queue, &info_);
      if (more == 0) break;
      moved = static_cast<std::uint16_t>(moved + more);
    }
    return moved;
  }

 private:
  rte_eth_recycle_rxq_info info_;
};

}  // namespace

std::shared_ptr<EthdevRecycling> EthdevRecycling::of(port::PortQueue rx) {
  rte_eth_recycle_rxq_info info{};
  if (rte_eth_recycle_rx_queue_info_get(rx.port, rx.queue, &info) != 0) return nullptr;
  return std::make_shared<RecycleMbufs>(info);
}
#else
std::shared_ptr<EthdevRecycling> EthdevRecycling::of(port::PortQueue /*rx*/) { return nullptr; }
#endif

}  // namespace warpline::memory
