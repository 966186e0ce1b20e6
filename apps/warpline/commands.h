// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "config/load.h"
#include "warpline/base/result.h"

namespace warpline {

inline constexpr int kInterrupted = 130;  ///< exit code after SIGINT or SIGTERM

// One function a command, each in the file of its name. They return the program's exit code, or the error that ended
// the command: main() prints it, and its kind is the exit code.

Result<int> run_forward(const LoadedConfig& loaded);
Result<int> run_l3forward(const LoadedConfig& loaded);
Result<int> run_generate(const LoadedConfig& loaded);
Result<int> run_message(const LoadedConfig& loaded);
Result<int> run_bench(const LoadedConfig& loaded);
Result<int> run_bench_recycle(const LoadedConfig& loaded);  ///< a table in a process of its own
Result<int> run_config(const LoadedConfig& loaded);
Result<int> run_doctor(const LoadedConfig& loaded);

}  // namespace warpline
