// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/load.h"
#include "run_thread.h"
#include "warpline/base/result.h"
#include "warpline/ingest/ingest_run.h"
#include "warpline/ingest/kept/frame_inbox.h"
#include "warpline/report/live.h"

namespace warpline::python {

/// One run of `warpline ingest` in this process, whose frames go to an inbox, with the thread that controls it. It
/// knows nothing of Python.
class IngestSession {
 public:
  /// Begins a run with a command line, "ingest --port ...", without the program's name. With `tells_progress` there are
  /// lines() while it lasts. A usage error says which option is wrong.
  [[nodiscard]] static Result<std::shared_ptr<IngestSession>> begin(const std::vector<std::string>& arguments,
                                                                    bool tells_progress);
  IngestSession(const IngestSession&) = delete;
  IngestSession& operator=(const IngestSession&) = delete;
  ~IngestSession();

  /// Waits so long until ports and engines run or could not be started, and returns whether that is so.
  [[nodiscard]] bool wait_until_started(int milliseconds) { return thread_.wait_until_started(milliseconds); }
  [[nodiscard]] ingest::FrameInbox& inbox() { return *inbox_; }

  /// Receives no more; frames that came are still to be taken. Any thread.
  void stop() { thread_.stop(); }
  /// Wants no more frames, and returns when the run has ended. Any thread, more than once.
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
  IngestSession(config::LoadedConfig loaded, std::shared_ptr<ingest::FrameInbox> inbox, bool tells_progress)
      : loaded_(std::move(loaded)), inbox_(std::move(inbox)), tells_progress_(tells_progress) {}

  /// The whole life of the control thread.
  [[nodiscard]] Result<void> control();
  [[nodiscard]] Result<void> run();
  [[nodiscard]] RunTotals totals(const ingest::IngestRun& run) const;
  [[nodiscard]] report::LiveResult supervise(ingest::IngestRun& run);
  void make_report(const ingest::IngestRun& run, const report::LiveResult& live);
  static ssize_t take_line(void* self, const char* text, std::size_t size);

  config::LoadedConfig loaded_;
  std::shared_ptr<ingest::FrameInbox> inbox_;
  bool tells_progress_;
  std::atomic<bool> closing_{false};
  std::string report_;
  int exit_code_ = 0;
  RunThread thread_;  ///< the last: it works on all of this
};

}  // namespace warpline::python
