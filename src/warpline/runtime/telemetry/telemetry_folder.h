// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>

#include "warpline/base/result.h"

namespace warpline::runtime {

/// Returns the folder in which DPDK has the telemetry socket of a process that is called `name`, as EAL chooses it for
/// this user.
[[nodiscard]] std::filesystem::path telemetry_folder(const std::string& name);

/// Returns the path of the socket at which captures attach to a process that is called `name`.
[[nodiscard]] std::filesystem::path capture_socket(const std::string& name);

/// Refuses the name of a process that answers: DPDK would choose another for the second, and nobody would find it.
[[nodiscard]] Result<void> check_telemetry_name(const std::string& name);

/// Takes away the sockets of a folder, and the folder if nothing else is in it: the user chose its name, so it may be
/// another's too.
void remove_telemetry_sockets(const std::filesystem::path& folder);

}  // namespace warpline::runtime
