// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "nccl/abi.h"
#include "warpline/base/result.h"

namespace warpline::nccl {

/// Has log() write to NCCL's log from now on.
void log_to(Logger logger);

/// Writes a line to the log that NCCL gave, if it gave any; any thread.
void log(LogLevel level, const std::string& line);

/// Writes what failed, why and what to do, and returns what NCCL is told.
[[nodiscard]] Status report(Status status, const Error& error);

}  // namespace warpline::nccl
