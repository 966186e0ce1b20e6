// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include <nlohmann/json.hpp>

namespace warpline::report {

/// {version, type, compiler, dpdk} of this program.
[[nodiscard]] nlohmann::ordered_json build_facts();

/// {cpu, cpus, nodes, memory_bytes, kernel, os, hugepages {size: pages}}. `root` stands in for / in tests.
[[nodiscard]] nlohmann::ordered_json host_facts(const std::filesystem::path& root = "/");

}  // namespace warpline::report
