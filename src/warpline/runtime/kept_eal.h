// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "warpline/base/result.h"
#include "warpline/base/units.h"
#include "warpline/runtime/lcore_plan.h"
#include "warpline/runtime/runtime_settings.h"

namespace warpline::runtime {

/// What DPDK was started with by a process that makes several runs, one after the other. It can be started once in a
/// process, so the first run starts it for others, too: lcores go wherever a plan has them, and there is more memory
/// than the first run needs. It stays until the process ends.
struct KeptEal {
  unsigned workers = 0;                  ///< lcores beside the control thread's
  std::vector<int> cpus;                 ///< that any of them may run on
  Bytes memory;                          ///< without hugepages: of all pools and rings of a run
  bool hugepages = false;                ///< memory is of hugepages: as much as the machine has
  bool wants_hugepages = false;          ///< RuntimeSettings::hugepages
  std::string eal;                       ///< RuntimeSettings::eal
  LogLevel log_level = LogLevel::error;  ///< RuntimeSettings::log_level
  std::vector<std::string> pci;          ///< specs of the PCI devices that it may drive
  int process = 0;                       ///< that started it

  /// Works out how it is started for a first run on these processors.
  [[nodiscard]] static Result<KeptEal> for_first_run(const RuntimeSettings& settings, const LcorePlan& plan,
                                                     const std::vector<std::string>& port_specs, Bytes memory,
                                                     std::vector<int> cpus);
  /// Returns the lcores as EAL's --lcores takes them: "0@(0-1),(1-8)@(0-1)".
  [[nodiscard]] std::string lcores() const;
  /// Says what a later run needs and this DPDK lacks: a usage or environment error.
  [[nodiscard]] Result<void> check(const RuntimeSettings& settings, const LcorePlan& plan,
                                   const std::vector<std::string>& port_specs, Bytes needed) const;
};

}  // namespace warpline::runtime
