// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/load.h"
#include "run_thread.h"
#include "warpline/base/result.h"
#include "warpline/service/streams/kept/kept_streams.h"
#include "warpline/stream_port/run/stream_run.h"

namespace warpline::python {

/// One run of `warpline stream receive` in this process, whose connections go to an inbox, with the thread that
/// controls it. It knows nothing of Python.
class StreamSession {
 public:
  /// Begins a run with a command line, "stream receive --port ...", without the program's name. With `tells_progress`
  /// there are lines() while it lasts. A usage error says which option is wrong.
  [[nodiscard]] static Result<std::shared_ptr<StreamSession>> begin(const std::vector<std::string>& arguments,
                                                                    bool tells_progress);
  StreamSession(const StreamSession&) = delete;
  StreamSession& operator=(const StreamSession&) = delete;
  ~StreamSession();

  /// Waits so long until it listens or could not be started, and returns whether that is so.
  [[nodiscard]] bool wait_until_started(int milliseconds) { return thread_.wait_until_started(milliseconds); }
  [[nodiscard]] service::StreamInbox& inbox() { return *inbox_; }

  /// Resets all connections, and returns when the run has ended. Bytes that somebody has stay what they are. Any
  /// thread, more than once.
  void close();
  /// Returns when the run has ended: after the inbox has. Any thread.
  void join() { thread_.join(); }

  // After join().

  /// Why the run could not be started, or failed.
  [[nodiscard]] const std::optional<Error>& failure() const { return thread_.failure(); }
  /// The report, as JSON; empty if there is none.
  [[nodiscard]] const std::string& report() const { return report_; }
  /// What the program would have ended with.
  [[nodiscard]] int exit_code() const { return exit_code_; }

  /// What --json-stream would have told since the last call. Any thread.
  [[nodiscard]] std::vector<std::string> lines() { return thread_.lines(); }

 private:
  StreamSession(config::LoadedConfig loaded, std::shared_ptr<service::StreamInbox> inbox, bool tells_progress)
      : loaded_(std::move(loaded)), inbox_(std::move(inbox)), tells_progress_(tells_progress) {}

  /// The whole life of the control thread.
  [[nodiscard]] Result<void> control();
  [[nodiscard]] Result<void> run();
  /// Returns when the run is to end.
  void supervise(const stream_port::StreamRun& run);

  config::LoadedConfig loaded_;
  std::shared_ptr<service::StreamInbox> inbox_;
  bool tells_progress_;
  std::string report_;
  int exit_code_ = 0;
  RunThread thread_;  ///< the last: it works on all of this
};

}  // namespace warpline::python
