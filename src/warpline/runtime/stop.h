// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <csignal>
#include <optional>

#include "warpline/runtime/setup_step.h"

namespace warpline::runtime {

/// While it lives, the first SIGINT or SIGTERM sets a flag, and a second of either ends the process at once by the
/// signal's default action. The thread that makes it, and threads that this one starts later, are not interrupted: the
/// signals go to the thread of the StepWatch, so they are heard even while all others spin or are stuck in a call.
/// Restores what was there before. One at a time.
class StopOnSignal {
 public:
  /// Takes the signals over. `limits`: how long a step may run before it is named, and how long, once interrupted,
  /// before it is given up.
  explicit StopOnSignal(const StepWatch::Limits& limits = {});
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
  sigset_t mask_;  ///< of the thread that made it
  std::optional<StepWatch> watch_;
};

}  // namespace warpline::runtime
