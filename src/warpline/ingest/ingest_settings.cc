// SPDX-License-Identifier: Apache-2.0
#include "warpline/ingest/ingest_settings.h"

#include <fmt/format.h>

#include <algorithm>

namespace warpline::ingest {

Result<void> resolve(const IngestSettings& ingest, datapath::DatapathSettings& datapath) {
  datapath::ForwardSettings& forward = datapath.forward;
  forward.engine = ingest.engine.value_or(forward.engine);
  const bool on_gpu = runs_on_gpu(forward.engine);
  if (!on_gpu && ingest.path == IngestPath::device) {
    return usage_error("the path device", "the CPU, which runs the consumer, cannot read GPU memory",
                       "use zerocopy or copy, or an engine on a GPU");
  }
  const bool in_host_memory = ingest.memory.value_or(memory::MemoryKind::host) == memory::MemoryKind::host;
  if (!on_gpu && !in_host_memory) {
    return usage_error(fmt::format("the engine {} with {} memory", name(forward.engine), name(*ingest.memory)),
                       "the CPU runs the consumer, and finds packets and frames in host memory",
                       "use host memory, or an engine on a GPU");
  }
  if (on_gpu && ingest.memory && in_host_memory) {
    return usage_error(fmt::format("the engine {} with host memory", name(forward.engine)),
                       "a GPU cannot read ordinary host memory", "leave the memory unset, or use an engine on the CPU");
  }
  datapath.pool.memory = pool_memory(ingest.path, on_gpu);
  forward.model = datapath::ModelKind::run_to_completion;
  forward.workload = WorkloadKind::user;  // the consumer reads all bytes, so they are counted
  forward.frees_at_once = copies(ingest.path) && !ingest.transmit;
  forward.adaptive_burst = ingest.adaptive;
  if (ingest.adaptive) {
    const std::uint16_t ring = datapath.ports.empty() ? datapath.loopback_port.rx_ring : datapath.ports.front().rx_ring;
    forward.burst = std::min(forward.burst, ring);
  }
  if (!ingest.transmit) forward.recycle = memory::RecycleWay::off;
  return {};
}

}  // namespace warpline::ingest
