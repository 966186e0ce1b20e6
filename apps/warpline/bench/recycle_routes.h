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

namespace warpline::bench {

/// `l3forward`'s loop between two ports whose wires never touch a payload: each routes all that it receives to the
/// other. The frames lie in the pools' buffers from the beginning and are received again and again, until their time to
/// live is over; what routing writes into them leads them on.
class BenchRoutes {
 public:
  /// Hops that each frame has to live.
  static constexpr std::uint32_t kHops = 250;

  /// `paths` and `pools` by port. Fills every buffer of the pools.
  [[nodiscard]] static Result<std::unique_ptr<BenchRoutes>> make(const std::vector<port::Port>& ports,
                                                                 const std::vector<datapath::QueuePath*>& paths,
                                                                 const std::vector<rte_mempool*>& pools,
                                                                 std::uint32_t frame_bytes);
  [[nodiscard]] datapath::Stage* stage() { return stage_.get(); }

 private:
  explicit BenchRoutes(std::vector<router::RoutePort> ports)
      : ports_(std::move(ports)), neighbours_(kNeighbours), budget_(0) {}

  static constexpr std::uint32_t kNeighbours = 64;

  const std::vector<router::RoutePort> ports_;
  route::NeighbourTable neighbours_;
  datapath::PacketBudget budget_;
  router::GenerationSwitch<router::LpmTables> generations_;
  std::unique_ptr<router::RouteLcore> lcore_;
  std::unique_ptr<router::RouteStage<router::LpmTables>> stage_;
};

}  // namespace warpline::bench
