// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "config/load.h"
#include "warpline/base/result.h"

namespace warpline::python {

/// Reads a command line, without the program's name, and the environment, as the program does. A usage error says which
/// option is wrong.
[[nodiscard]] Result<config::LoadedConfig> load_command(const std::vector<std::string>& arguments);

/// The thread that controls a run in this process. One run at a time: DPDK, which stays for the next one, has names and
/// cores for one. It knows nothing of Python.
class RunThread {
 public:
  RunThread() = default;
  RunThread(const RunThread&) = delete;
  RunThread& operator=(const RunThread&) = delete;
  ~RunThread();

  /// Begins `run`, and `over` behind it, when another run may begin. `what` names it in the usage error that another
  /// one runs.
  [[nodiscard]] Result<void> start(std::string_view what, std::function<Result<void>()> run,
                                   std::function<void()> over);
  /// Whether this process is the one that it was started in: a forked one has no such thread.
  [[nodiscard]] bool is_here() const;
  /// Waits so long until the run has begun, or could not, and returns whether that is so. Any thread.
  [[nodiscard]] bool wait_until_started(int milliseconds);
  /// Asks the run to end. Any thread.
  void stop() { stopping_.store(true, std::memory_order_relaxed); }
  /// Returns when the run has ended, and `over` with it. Any thread, more than once.
  void join();
  /// Why the run could not be started, or failed. After join().
  [[nodiscard]] const std::optional<Error>& failure() const { return failure_; }
  /// What say() was given since the last call, by lines. Any thread.
  [[nodiscard]] std::vector<std::string> lines();

  // For `run`.

  [[nodiscard]] const std::atomic<bool>& stopping() const { return stopping_; }  ///< set by stop()
  void say_started();
  void say(std::string_view text);  ///< for lines(), with newlines

 private:
  int process_ = 0;
  std::atomic<bool> stopping_{false};
  std::optional<Error> failure_;
  std::mutex lock_;  ///< of what follows
  std::condition_variable changed_;
  bool started_ = false;
  bool ended_ = false;
  std::string said_;
  std::mutex joining_;
  std::thread thread_;
};

}  // namespace warpline::python
