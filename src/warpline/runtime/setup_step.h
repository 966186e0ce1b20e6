// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "warpline/base/time/progress_lines.h"
#include "warpline/base/units.h"

namespace warpline::runtime {

/// A call of set-up or clean-up that may take long, or never return: DPDK, a driver, CUDA. While a StepWatch lives, it
/// is named on stderr if it takes longer than allowed, with how far it is where that is known. Used by the control
/// thread; scopes may nest, then the innermost counts and the outer one begins anew when it ends.
class SetupStep {
 public:
  enum class Of : std::uint8_t {
    set_up,    ///< nothing to report yet: an interrupt gives up on it after a while
    clean_up,  ///< follows the report: only a second signal cuts it short
    running,   ///< packets flow meanwhile: likewise, and so for the steps within
  };

  /// `what` continues "still ...": "starting DPDK".
  explicit SetupStep(std::string what, Of of = Of::set_up);
  /// A step of set-up of so many parts, of about the same length, which advance() counts.
  SetupStep(std::string what, std::uint64_t parts, std::string_view unit = "");
  /// A step of set-up that fills so much memory: what the process has more than before is how far it is.
  SetupStep(std::string what, Bytes memory);
  SetupStep(const SetupStep&) = delete;
  SetupStep& operator=(const SetupStep&) = delete;
  ~SetupStep();

  /// Says that another part is done.
  void advance() { done_.store(done_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed); }

 private:
  friend class StepWatch;

  SetupStep(std::string what, Of of, std::uint64_t parts, std::string_view unit, std::optional<std::uint64_t> memory);
  /// Returns a line about a step that has taken so long.
  [[nodiscard]] std::string progress(std::chrono::nanoseconds elapsed) const;

  std::string what_;
  Of of_;
  SetupStep* outer_ = nullptr;
  std::chrono::steady_clock::time_point since_;
  std::uint64_t parts_;                         ///< 0: nobody knows
  std::string_view unit_;                       ///< of the parts
  std::optional<std::uint64_t> memory_before_;  ///< of the process, MiB: parts are what it has more
  std::atomic<std::uint64_t> done_{0};
  std::optional<ProgressOutput> output_;             ///< set once there was a line
  std::chrono::steady_clock::time_point next_line_;  ///< when the next one is due
  bool named_ = false;
};

/// The thread that watches the steps: it sleeps unless a step is overdue. Under real-time scheduling it is of higher
/// priority than its creator, so that a step that spins cannot keep it from running. One at a time; the control thread
/// makes it before the first step and destroys it after the last one.
class StepWatch {
 public:
  struct Limits {
    std::chrono::nanoseconds quiet_for = kQuietProgress;              ///< before a step tells how far it is
    std::chrono::nanoseconds named_after = std::chrono::seconds(10);  ///< a step of no known length may be stuck
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
  /// Tells how far a step is, if that is due. Returns when it is again.
  [[nodiscard]] std::chrono::nanoseconds tell_progress(SetupStep& step, std::chrono::nanoseconds now) const;

  Limits limits_;
  bool ending_ = false;
  std::thread thread_;
};

}  // namespace warpline::runtime
