// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "warpline/runtime/dpdk_log.h"

namespace warpline::runtime {

/// How DPDK is started, and on which cores.
struct RuntimeSettings {
  std::uint32_t lcores = 0;  ///< cores the workers may use; 0: one each, as far as the machine goes
  bool share_cores = false;  ///< more lcores than cores is meant
  bool hugepages = true;     ///< false: never; true: where the machine has them
  std::string eal{};         ///< further EAL arguments, separated by spaces
  /// What DPDK and its drivers log, from the start of DPDK on; `eal` may say otherwise.
  LogLevel log_level = LogLevel::error;
  bool keep = false;  ///< DPDK stays for further runs of this process, which say so too (kept_eal.h)
  std::string
      telemetry{};  ///< name of DPDK's telemetry socket, as dpdk-telemetry.py --file-prefix takes it; empty: none
  bool operator==(const RuntimeSettings&) const = default;
};

}  // namespace warpline::runtime
