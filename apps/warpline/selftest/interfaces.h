// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "selftest/step.h"

namespace warpline::selftest {

/// What the kernel says of the ports' interfaces and devices, by the file that it says it in: MTU and flags of each
/// interface that a port uses or that belongs to its PCI device, the driver of that device.
using KernelState = std::map<std::string, std::string>;

/// Reads it. `root` stands in for / in tests. What cannot be read is left out.
[[nodiscard]] KernelState kernel_state(const std::vector<std::string>& ports, const std::filesystem::path& root = "/");

/// Returns the step that compares it with what it was, and writes back what can be: ok if all is as it was.
[[nodiscard]] StepResult put_back(const KernelState& before, const std::vector<std::string>& ports,
                                  const std::filesystem::path& root = "/");

}  // namespace warpline::selftest
