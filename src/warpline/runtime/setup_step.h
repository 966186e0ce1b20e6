// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <thread>

namespace warpline::runtime {

/// A call of set-up or clean-up that may take long, or never return: DPDK, a driver, CUDA. While a StepWatch lives, it
/// is named on stderr if it takes longer than allowed. Used by the control thread; scopes may nest, then the innermost
/// counts and the outer one begins anew when it ends.
class SetupStep {
 public:
  enum class Of : std::uint8_t {
    set_up,    ///< nothing to report yet: an interrupt gives up on it after a while
    clean_up,  ///< follows the report: only a second signal cuts it short
  };

  /// `what` continues "still ...": "starting DPDK".
  explicit SetupStep(std::string what, Of of = Of::set_up);
  SetupStep(const SetupStep&) = delete;
  SetupStep& operator=(const SetupStep&) = delete;
  ~SetupStep();

 private:
  friend class StepWatch;

  std::string what_;
  Of of_;
  SetupStep* outer_;
  std::chrono::steady_clock::time_point since_;
  bool named_ = false;
};

/// The thread that watches the steps: it sleeps unless a step is overdue. Under real-time scheduling it is of higher
/// priority than its creator, so that a step that spins cannot keep it from running. One at a time; the control thread
/// makes it before the first step and destroys it after the last one.
class StepWatch {
 public:
  struct Limits {
    std::chrono::nanoseconds named_after = std::chrono::seconds(10);  ///< a step says that it still runs
    /// After an interrupt, a step of set-up ends the process with exit code 130, naming itself. The rest of a second is
    /// the system's, which takes back gigabytes.
    std::chrono::nanoseconds given_up_after = std::chrono::milliseconds(500);
  };

  explicit StepWatch(const Limits& limits);
  StepWatch(const StepWatch&) = delete;
  StepWatch& operator=(const StepWatch&) = delete;
  ~StepWatch();

  /// An interrupt has come. Async-signal-safe; any thread.
  static void interrupt();

 private:
  friend class SetupStep;

  void run();
  /// Acts on what is overdue, and arms the timer for what will be next.
  void look();

  Limits limits_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace warpline::runtime
