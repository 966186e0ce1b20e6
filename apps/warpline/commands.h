// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "config/load.h"

namespace warpline {

inline constexpr int kInterrupted = 130;  ///< exit code after SIGINT or SIGTERM

// One function a command, each in the file of its name. They return the program's exit code.

int run_forward(const LoadedConfig& loaded);
int run_l3forward(const LoadedConfig& loaded);
int run_generate(const LoadedConfig& loaded);
int run_message(const LoadedConfig& loaded);
int run_bench(const LoadedConfig& loaded);
int run_bench_recycle(const LoadedConfig& loaded);  ///< a table in a process of its own
int run_config(const LoadedConfig& loaded);
int run_doctor(const LoadedConfig& loaded);

}  // namespace warpline
