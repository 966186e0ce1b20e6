// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "warpline/base/result.h"
#include "warpline/gpu/device.h"

namespace warpline::doctor {

enum class Health : std::uint8_t {
  ok,
  warning,  ///< slower, or one kind of port or engine is not to be had
  missing,  ///< `forward --loopback` cannot run
};

struct Check {
  std::string name;
  Health health = Health::ok;
  std::string found;  ///< what there is, one line
  std::string fix;    ///< the command that mends it; empty when ok
};

[[nodiscard]] std::string_view name(Health health);

/// Looks at the machine through `root`/sys, `root`/proc, `root`/dev and the folder of DPDK's drivers under it. Changes
/// nothing, starts nothing.
[[nodiscard]] std::vector<Check> examine_machine(const std::filesystem::path& root = "/");

/// One line for each GPU, and what keeps GPUs and NICs apart. Of `gpus`, what list_gpus() answered, and `root`/sys and
/// `root`/proc. Empty where there is no GPU: examine_machine() says so.
[[nodiscard]] std::vector<Check> examine_gpus(const Result<std::vector<gpu::GpuFacts>>& gpus,
                                              const std::filesystem::path& root = "/");

// The single checks, in the order of examine_machine().
[[nodiscard]] Check check_hugepages(const std::filesystem::path& root);
[[nodiscard]] Check check_memory(const std::filesystem::path& root);
[[nodiscard]] Check check_locked_memory(const std::filesystem::path& root);
[[nodiscard]] Check check_cores(const std::filesystem::path& root);
[[nodiscard]] Check check_isolation(const std::filesystem::path& root);
[[nodiscard]] Check check_governor(const std::filesystem::path& root);
[[nodiscard]] Check check_numa(const std::filesystem::path& root);
[[nodiscard]] Check check_cpu_features(const std::filesystem::path& root);
[[nodiscard]] Check check_dpdk(const std::filesystem::path& root);
[[nodiscard]] Check check_drivers(const std::filesystem::path& root);
[[nodiscard]] Check check_vnic(const std::filesystem::path& root);
[[nodiscard]] Check check_network_devices(const std::filesystem::path& root);
[[nodiscard]] Check check_vfio(const std::filesystem::path& root);
[[nodiscard]] Check check_privileges(const std::filesystem::path& root);
[[nodiscard]] Check check_tun(const std::filesystem::path& root);
[[nodiscard]] Check check_gpu(const std::filesystem::path& root);
[[nodiscard]] Check check_runtime_folder();

}  // namespace warpline::doctor
