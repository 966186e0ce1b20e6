// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "config/load.h"
#include "warpline/base/result.h"

namespace warpline {

inline constexpr int kInterrupted = 130;  ///< exit code after SIGINT or SIGTERM

// One function a command, each in the file of its name. They return the program's exit code, or the error that ended
// the command: main() prints it, and its kind is the exit code.

Result<int> run_forward(const config::LoadedConfig& loaded);
Result<int> run_l3forward(const config::LoadedConfig& loaded);
Result<int> run_ingest(const config::LoadedConfig& loaded);
Result<int> run_generate(const config::LoadedConfig& loaded);
Result<int> run_message(const config::LoadedConfig& loaded);
Result<int> run_message_daemon(const config::LoadedConfig& loaded);
Result<int> run_message_key(const config::LoadedConfig& loaded);
Result<int> run_stream(const config::LoadedConfig& loaded);
Result<int> run_stream_send(const config::LoadedConfig& loaded);
Result<int> run_bench(const config::LoadedConfig& loaded);
Result<int> run_bench_copy_batch(const config::LoadedConfig& loaded);    ///< a table of runs of `ingest`
Result<int> run_bench_memcpy(const config::LoadedConfig& loaded);        ///< a table in this process
Result<int> run_bench_rate(const config::LoadedConfig& loaded);          ///< a search by runs of another command
Result<int> run_bench_recycle(const config::LoadedConfig& loaded);       ///< a table in a process of its own
Result<int> run_bench_stream_chunk(const config::LoadedConfig& loaded);  ///< likewise, between two of its ports
Result<int> run_report(const config::LoadedConfig& loaded);
Result<int> run_config(const config::LoadedConfig& loaded);
Result<int> run_doctor(const config::LoadedConfig& loaded);
Result<int> run_ctl(const config::LoadedConfig& loaded);
Result<int> run_setup(const config::LoadedConfig& loaded);
Result<int> run_top(const config::LoadedConfig& loaded);
Result<int> run_capture(const config::LoadedConfig& loaded);
Result<int> run_trace(const config::LoadedConfig& loaded);
Result<int> run_selftest(const config::LoadedConfig& loaded);

}  // namespace warpline
