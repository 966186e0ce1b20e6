// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/config.h"
#include "warpline/runtime/lcore_plan.h"
#include "warpline/stream_port/run/lane_choice.h"

namespace warpline {

/// The workers of `stream`, one for each queue of the port. `node`: its NUMA node. `lanes`: behind these one more for
/// each, which takes its segments.
[[nodiscard]] inline std::vector<runtime::WorkerRequest> stream_requests(int node, std::uint16_t queues,
                                                                         bool lanes = false) {
  std::vector<runtime::WorkerRequest> requests;
  for (std::uint16_t i = 0; i < queues; ++i) {
    requests.push_back({.name = "stream " + std::to_string(i), .queues = "queue " + std::to_string(i), .node = node});
  }
  for (std::uint16_t i = 0; lanes && i < queues; ++i) {
    requests.push_back({.name = "lane " + std::to_string(i), .near = i});
  }
  return requests;
}

/// What takes the segments of `stream receive`, whose workers are placed by stream_requests().
[[nodiscard]] inline stream_port::LaneChoice stream_lanes(const config::StreamConfig& stream,
                                                          const runtime::LcorePlan& plan) {
  stream_port::LaneChoice choice{.engine = stream.engine,
                                 .rings = stream.rings(),
                                 .gpu = stream.gpu,
                                 .populate = stream.populate,
                                 .queues = stream.io == ProcessorKind::gpu};
  for (std::size_t i = stream.pipelines; i < plan.workers.size(); ++i) {
    choice.threads.push_back({static_cast<unsigned>(plan.workers[i].cpu.id), plan.workers[i].gives_way});
  }
  return choice;
}

}  // namespace warpline
