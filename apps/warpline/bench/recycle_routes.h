// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "warpline/base/result.h"
#include "warpline/datapath/queue_path.h"
#include "warpline/port/port.h"
#include "warpline/route/neighbours.h"
#include "warpline/router/lpm_tables.h"
#include "warpline/router/route_lcore.h"
#include "warpline/router/route_stage.h"

struct rte_mempool;

namespace warpline {

/// `l3forward`'s loop between two ports whose wires never touch a payload: each routes all that it receives to the
/// other. The frames lie in the pools' buffers from the beginning and are received again and again, until their time to
/// live is over; what routing writes into them leads them on.
class BenchRoutes {
 public:
  /// Hops that each frame has to live.
  static constexpr std::uint32_t kHops = 250;

  /// `paths` and `pools` by port. Fills every buffer of the pools.
  [[nodiscard]] static Result<std::unique_ptr<BenchRoutes>> make(const std::vector<Port>& ports,
                                                                 const std::vector<QueuePath*>& paths,
                                                                 const std::vector<rte_mempool*>& pools,
                                                                 std::uint32_t frame_bytes);
  [[nodiscard]] Stage* stage() { return stage_.get(); }

 private:
  explicit BenchRoutes(std::vector<RoutePort> ports) : ports_(std::move(ports)), neighbours_(kNeighbours), budget_(0) {}

  static constexpr std::uint32_t kNeighbours = 64;

  const std::vector<RoutePort> ports_;
  NeighbourTable neighbours_;
  PacketBudget budget_;
  GenerationSwitch<LpmTables> generations_;
  std::unique_ptr<RouteLcore> lcore_;
  std::unique_ptr<RouteStage<LpmTables>> stage_;
};

}  // namespace warpline
