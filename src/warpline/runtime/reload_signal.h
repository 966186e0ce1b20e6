// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <csignal>

namespace warpline::runtime {

/// While it lives, SIGHUP asks for files to be read again instead of ending the process. Restores what was there
/// before. One at a time.
class ReloadOnSignal {
 public:
  ReloadOnSignal();
  ReloadOnSignal(const ReloadOnSignal&) = delete;
  ReloadOnSignal& operator=(const ReloadOnSignal&) = delete;
  ~ReloadOnSignal();

  /// Whether the signal has come since the last call: several count as one.
  [[nodiscard]] static bool take();

 private:
  struct sigaction before_;
};

}  // namespace warpline::runtime
