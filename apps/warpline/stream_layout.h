// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "warpline/runtime/lcore_plan.h"

namespace warpline {

/// The worker of `stream receive`. `node`: NUMA node of the port.
[[nodiscard]] inline std::vector<runtime::WorkerRequest> stream_requests(int node) {
  return {{.name = "stream 0", .queues = "queue 0", .node = node}};
}

}  // namespace warpline
