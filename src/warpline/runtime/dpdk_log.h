// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "warpline/base/enum_names.h"

namespace warpline::runtime {

/// Makes DPDK's log ours: lines go to stderr, or, while a CapturedLog lives, to that. Idempotent.
void route_dpdk_log();

/// The least severe messages that are logged, by the names that DPDK has for them.
enum class LogLevel : std::uint8_t { critical, error, warning, notice, info, debug };
constexpr auto names_of(LogLevel) {
  return enum_names<LogLevel>({"critical", "error", "warning", "notice", "info", "debug"});
}

/// Has DPDK and its drivers log messages of this level and of more severe ones. Any time after the start of DPDK.
void set_log_level(LogLevel level);

/// The file descriptor of the process's stderr, also while a CapturedLog has taken the place of number 2. Any thread.
[[nodiscard]] int stderr_descriptor();

/// Keeps what DPDK says while a set-up call is tried: the reason for a failure, noise after a success. What was kept
/// goes to stderr at the end if more than errors is logged, for somebody has asked for that, and before the process
/// crashes or aborts meanwhile, as in rte_panic(). One at a time, in the control thread.
class CapturedLog {
 public:
  enum class Scope {
    log,        ///< what goes through rte_log
    all_output  ///< that and what DPDK prints to stdout and stderr past its log, as rte_eal_init does
  };

  explicit CapturedLog(Scope scope = Scope::log);
  CapturedLog(const CapturedLog&) = delete;
  CapturedLog& operator=(const CapturedLog&) = delete;
  ~CapturedLog();

  /// The first line said, without its prefix; `otherwise` when nothing was.
  [[nodiscard]] std::string reason(const std::string& otherwise) const;

 private:
  int log_ = -1;     ///< memory file of what went through rte_log
  int output_ = -1;  ///< memory file of what was printed; -1: that is not captured
  int saved_stdout_ = -1;
};

}  // namespace warpline::runtime
