// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <csignal>

namespace warpline {

/// While it lives, the first SIGINT and the first SIGTERM set a flag, a second one of the same ends the process (the
/// default action). Restores what was there before. One at a time.
class StopOnSignal {
 public:
  StopOnSignal();
  StopOnSignal(const StopOnSignal&) = delete;
  StopOnSignal& operator=(const StopOnSignal&) = delete;
  ~StopOnSignal();

  /// Set by the handler; read by any thread, relaxed.
  [[nodiscard]] static const std::atomic<bool>& requested();
  /// The signal that came, or 0.
  [[nodiscard]] static int signal();

 private:
  struct sigaction interrupt_;
  struct sigaction terminate_;
};

}  // namespace warpline
