// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <vector>

#include "warpline/runtime/lcore_plan.h"

namespace warpline {

/// The workers of `generate`: one a queue pair, port by port. `nodes`: NUMA node of each port.
[[nodiscard]] inline std::vector<runtime::WorkerRequest> traffic_requests(const std::vector<int>& nodes,
                                                                          std::uint16_t queues) {
  std::vector<runtime::WorkerRequest> requests;
  for (std::size_t port = 0; port < nodes.size(); ++port) {
    for (std::uint16_t queue = 0; queue < queues; ++queue) {
      requests.push_back({.name = fmt::format("traffic {}", requests.size()),
                          .queues = fmt::format("port {} queue {}", port, queue),
                          .node = nodes[port]});
    }
  }
  return requests;
}

}  // namespace warpline
