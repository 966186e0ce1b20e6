// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "warpline/base/result.h"
#include "warpline/base/units.h"
#include "warpline/runtime/lcore_plan.h"
#include "warpline/runtime/runtime_settings.h"

namespace warpline::runtime {

/// DPDK's environment: one a process, started by the thread that then is the control lcore. Leaves no file, socket,
/// hugepage or changed affinity behind.
class Eal {
 public:
  /// Places these workers as place_workers() does, and starts DPDK for them. `port_specs`: only their PCI addresses
  /// count here (vdevs are plugged in by Port::open). `memory`: what all pools and rings will need; without hugepages
  /// it is reserved immediately, but not touched. With settings.keep the first call starts DPDK with more than that,
  /// and later calls find it started: a later call that needs more returns an error. Usage and environment errors.
  [[nodiscard]] static Result<Eal> start(const RuntimeSettings& settings, const std::vector<WorkerRequest>& workers,
                                         const std::vector<std::string>& port_specs, Bytes memory);
  /// Starts DPDK for workers that have their places already.
  [[nodiscard]] static Result<Eal> start_planned(const RuntimeSettings& settings, LcorePlan plan,
                                                 const std::vector<std::string>& port_specs, Bytes memory);
  Eal(Eal&& other) noexcept;  ///< takes over stopping DPDK
  Eal& operator=(Eal&&) = delete;
  ~Eal();

  /// Says that DPDK ends next: from here on pools leave their memory to its end, which unmaps all there is. To free one
  /// is to clear it, page after page, which takes seconds for gigabytes. Control thread. A DPDK that is kept does not
  /// end: nothing is said.
  static void begin_end();
  /// Returns true after begin_end(). Any thread.
  [[nodiscard]] static bool is_ending();
  /// Returns true if DPDK was started to be kept, so that lcores go wherever a plan has them. Any thread.
  [[nodiscard]] static bool is_kept();

  [[nodiscard]] const LcorePlan& plan() const { return plan_; }
  [[nodiscard]] bool hugepages() const { return hugepages_; }  ///< true if DPDK's memory is of hugepages
  /// What costs rate, each one line: no hugepages, and the command that mends it.
  [[nodiscard]] const std::vector<std::string>& notes() const { return notes_; }

 private:
  Eal() = default;
  /// Starts DPDK, or finds it kept.
  [[nodiscard]] static Result<Eal> start_kept(const RuntimeSettings& settings, const LcorePlan& plan,
                                              const std::vector<std::string>& port_specs, Bytes memory);
  /// `filled`: what of `memory` will be written.
  [[nodiscard]] static Result<Eal> start_once(const RuntimeSettings& settings, const LcorePlan& plan,
                                              const std::string& lcores, const std::vector<std::string>& port_specs,
                                              Bytes memory, Bytes filled);

  LcorePlan plan_;
  bool owner_ = false;
  bool hugepages_ = false;
  std::vector<int> affinity_;  ///< of the starting thread, before
  std::vector<std::string> notes_;
  std::string telemetry_dir_;  ///< EAL's folder, if it has its telemetry's socket
};

/// Arguments for rte_eal_init, without the program's name. Pure.
[[nodiscard]] Result<std::vector<std::string>> eal_arguments(const RuntimeSettings& settings, const LcorePlan& plan,
                                                             const std::vector<std::string>& port_specs, Bytes memory,
                                                             bool hugepages, const std::string& file_prefix);

}  // namespace warpline::runtime
