// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "warpline/base/result.h"

namespace warpline::runtime {

/// Returns the folder below which this process has DPDK's sockets and locks: that of its systemd unit
/// (RUNTIME_DIRECTORY), else /var/run for root or XDG_RUNTIME_DIR for others, or /tmp, the first that it may write to.
[[nodiscard]] std::filesystem::path runtime_folder();

/// Environment error: this user can write to none of those.
[[nodiscard]] Result<void> check_runtime_folder();

/// Has EAL use runtime_folder(), by RUNTIME_DIRECTORY of this process's environment where that differs from EAL's
/// choice.
void choose_runtime_folder();

/// Returns the folder in which a process called `name` that this process starts has its telemetry socket.
[[nodiscard]] std::filesystem::path telemetry_folder(const std::string& name);

/// Returns the folders in which running processes have theirs, one folder per name: first where this process would have
/// its own, then those of systemd units with a RuntimeDirectory, which are below `run`.
[[nodiscard]] std::vector<std::filesystem::path> telemetry_folders(const std::filesystem::path& run = "/run");

/// Returns the path of the socket at which captures attach to the process whose telemetry folder that is.
[[nodiscard]] std::filesystem::path capture_socket(const std::filesystem::path& folder);

/// Refuses the name of a process that answers: DPDK would choose another for the second, and nobody would find it.
[[nodiscard]] Result<void> check_telemetry_name(const std::string& name);

/// Takes away the sockets of a folder, and the folder if nothing else is in it: the user chose its name, so it may be
/// another's too.
void remove_telemetry_sockets(const std::filesystem::path& folder);

}  // namespace warpline::runtime
