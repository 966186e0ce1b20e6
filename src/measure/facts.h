// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include <nlohmann/json.hpp>

namespace warpline {

/// {version, type, compiler, dpdk, arch} of this program.
[[nodiscard]] nlohmann::ordered_json build_facts();

/// {cpu, cores, nodes, kernel, os, memory_bytes, hugepages {size: count}}. `root` stands in for / in tests.
[[nodiscard]] nlohmann::ordered_json host_facts(const std::filesystem::path& root = "/");

}  // namespace warpline
