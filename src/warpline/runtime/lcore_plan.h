// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "warpline/base/result.h"
#include "warpline/machine/topology.h"
#include "warpline/runtime/runtime_settings.h"

namespace warpline::runtime {

inline constexpr int kAnyNode = -1;   ///< in the place of a NUMA node: unknown, or any will do
inline constexpr int kNoWorker = -1;  ///< in the place of a worker's index: none

/// A thread that is to have an lcore.
struct WorkerRequest {
  std::string name{};    ///< "rx 0", "engine 0.1"
  std::string queues{};  ///< what it serves, for people: "port 0 rx 0, port 1 tx 0"; may be empty
  int node = kAnyNode;   ///< of its port
  int near = kNoWorker;  ///< index of the worker that it exchanges packets with: its node is taken when `node` is any
};

/// A worker with its place.
struct PlacedWorker {
  WorkerRequest request;  ///< what was asked for
  unsigned lcore;         ///< DPDK's lcore id
  machine::Cpu cpu;       ///< the one processor that it is pinned to
  bool shares_cpu;        ///< other workers are pinned there too
  bool gives_way =
      false;  ///< other threads need its processor: it yields when idle, and more under real-time scheduling
};

/// Where every thread of the data path runs.
struct LcorePlan {
  std::vector<PlacedWorker> workers;  ///< in the order of the requests
  unsigned control_lcore = 0;         ///< of the main thread
  std::vector<int> control_cpus;      ///< it floats over these
  bool control_shares = false;        ///< some of those have workers
  std::vector<std::string> notes;     ///< what costs rate or latency, each one line
};

/// What the plan may use.
struct LcoreLimits {
  std::uint32_t lcores = 0;  ///< processors that the workers may use; 0: one each, as far as the machine goes
  bool share_cores = false;  ///< more lcores than processors is meant
  bool real_time = false;    ///< threads are scheduled in real time: where a worker polls, no other runs by itself
};

/// Places each worker: on its port's NUMA node before elsewhere, on a physical core of its own before a sibling, on a
/// processor of its own before a shared one; the machine's first core is taken last, so that control has it. Pure and
/// deterministic. Usage error: more lcores than processors without share_cores, or more workers than DPDK has lcores.
[[nodiscard]] Result<LcorePlan> plan_lcores(const machine::Topology& topology,
                                            const std::vector<WorkerRequest>& workers, const LcoreLimits& limits);

/// Places the workers on this machine as far as the settings let them. The calling thread is scheduled as they will be.
/// Errors are those of plan_lcores(), and an environment error if the machine cannot be read.
[[nodiscard]] Result<LcorePlan> place_workers(const RuntimeSettings& settings,
                                              const std::vector<WorkerRequest>& workers);

/// A table for people, one line a worker, then the notes.
[[nodiscard]] std::string format(const LcorePlan& plan);

/// The plan as EAL's --lcores takes it: "0@(0-1),1@2,2@3".
[[nodiscard]] std::string eal_lcores(const LcorePlan& plan);

}  // namespace warpline::runtime
