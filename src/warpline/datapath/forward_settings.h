// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "warpline/base/enum_names.h"
#include "warpline/base/kinds.h"
#include "warpline/base/units.h"
#include "warpline/memory/pool_settings.h"
#include "warpline/port/port_settings.h"
#include "warpline/runtime/lcore_plan.h"

namespace warpline::datapath {

/// Which cores a packet passes.
enum class ModelKind : std::uint8_t {
  automatic,          ///< what suits the engine
  run_to_completion,  ///< one core receives, works and transmits
  pipeline,           ///< one core receives, one transmits, an engine between them
};
constexpr auto names_of(ModelKind) { return enum_names<ModelKind>({"automatic", "run-to-completion", "pipeline"}); }

/// What a run does when a GPU engine fails.
enum class GpuFailure : std::uint8_t {
  stop,      ///< the run ends
  failover,  ///< the same work goes on, on host threads
};
constexpr auto names_of(GpuFailure) { return enum_names<GpuFailure>({"stop", "failover"}); }

/// The loops of a forwarder or a router, and what they do with each packet.
struct ForwardSettings {
  std::uint16_t pipelines = 1;  ///< queue pairs a port, each with its own loop
  std::uint16_t burst = 64;     ///< packets a batch at most
  bool adaptive_burst = false;  ///< batches are as large as load and engine ask, and `burst` at most
  std::optional<Nanos>
      deadline{};  ///< longest that a packet waits for its batch to fill; unset: 0 where nothing is won
                   ///< by waiting, in run-to-completion inline, else 20 us, or 100 us if batches adapt
  EngineKind engine = EngineKind::inline_;  ///< who does the work
  ProcessorKind io = ProcessorKind::cpu;    ///< who moves packets on: gpu is GPU-driven I/O, the engine by itself
  ModelKind model = ModelKind::automatic;   ///< automatic: pipeline for the thread engine, else run-to-completion
  WorkloadKind workload = WorkloadKind::mac_swap;  ///< what is done to each packet
  Nanos packet_time{0};                            ///< of the spin workload
  std::uint16_t ctas = 1;         ///< host threads an engine, or CTAs of a persistent kernel: then 16 if not given
  std::uint16_t ring_slots = 16;  ///< bursts in flight between receive and transmit, a power of two
  std::uint32_t tx_retries = 64;  ///< transmit attempts before the rest of a batch is dropped as tx_full
  std::uint32_t tx_first = 0;     ///< packets that each port sends before forwarding begins
  std::vector<std::uint16_t> gpus = {0};  ///< CUDA ordinals, at most one per pipeline
  Nanos watchdog{1'000'000'000};          ///< a GPU engine with work that makes no progress for so long has failed
  GpuFailure on_gpu_failure = GpuFailure::stop;                ///< whether the run then ends or goes on
  memory::RecycleWay recycle = memory::RecycleWay::automatic;  ///< how sent buffers come back to the receive queues
  bool nvtx = false;                                           ///< NVTX ranges for the stages of a burst
  bool frees_at_once = false;  ///< packets are copied as they are received, so bursts hold no buffers
  bool loopback = false;       ///< between software NICs of the program's own, ports that a cable joins, or one looped
  std::string persona{};       ///< of a loopback's near NIC, as net_vnic's devargs name it; empty: its own

  /// Returns the CUDA ordinal of the GPU of a pipeline. Pipelines use the GPUs in turn, so that the numbers of two
  /// GPUs' pipelines differ by at most one.
  [[nodiscard]] std::uint16_t gpu_of(std::size_t pipeline) const { return gpus[pipeline % gpus.size()]; }
  /// Returns the buffers that all bursts of one pipeline hold at most. A ring full of bursts of 512 is no state that an
  /// engine needs: those that adapt become large where few are in flight, so four of the largest, or 32 packets in
  /// every slot, are their bound. The receiving stage keeps it (BurstAllowance), and pools are made for it.
  [[nodiscard]] std::uint32_t most_held() const {
    if (frees_at_once) return 0;
    const std::uint32_t all = std::uint32_t{burst} * ring_slots;
    return adaptive_burst ? std::min(all, std::max(4U * burst, 32U * ring_slots)) : all;
  }
  bool operator==(const ForwardSettings&) const = default;
};

/// What a forwarder or a router is made from.
struct DatapathSettings {
  std::vector<port::PortSettings> ports{};  ///< of a loopback none, the near one and the far one, or one that is both
  port::PortSettings
      loopback_port{};  ///< of a loopback without ports: the set-up of both its software NICs; its spec is not read
  memory::PoolSettings pool{};    ///< where packets are placed
  ForwardSettings forward{};      ///< loops and work
  std::uint32_t lcores = 0;       ///< RuntimeSettings::lcores
  std::uint64_t packets = 0;      ///< to receive, then the run is done; 0: no bound
  std::string loopback_faults{};  ///< what goes wrong on a loopback's wire to here, as net_vnic's devargs name it

  /// Returns whether the program makes the ports of a loopback itself.
  [[nodiscard]] bool own_loopback() const { return forward.loopback && ports.empty(); }
  /// Returns the set-up of a port by its index in the layout; of a loopback 1 is the far one, which may be the near
  /// one.
  [[nodiscard]] const port::PortSettings& port(std::size_t index) const {
    if (own_loopback()) return loopback_port;
    return ports[forward.loopback && ports.size() == 1 ? 0 : index];
  }
  /// Returns the NUMA nodes of the ports that are forwarded on: of a loopback the near one's. `of_ports` are those of
  /// `ports`.
  [[nodiscard]] std::vector<int> near_nodes(const std::vector<int>& of_ports) const {
    if (!forward.loopback) return of_ports;
    return {of_ports.empty() ? runtime::kAnyNode : of_ports.front()};
  }
};

}  // namespace warpline::datapath
