// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "warpline/base/result.h"

namespace warpline::sandbox {

/// What a run still needs once it is set up. What it has open stays open, whatever it is.
struct Needs {
  std::vector<std::filesystem::path> reads;   ///< files that are read again
  std::vector<std::filesystem::path> writes;  ///< folders in which files are made or removed
  bool asks_kernel = false;      ///< drivers ask the kernel about interfaces, by sockets that they open for it
  bool sets_interfaces = false;  ///< interfaces of the kernel are told to go down at the end
  bool xdp = false;              ///< among them some with a program in the kernel, which is taken away at the end
  bool physical = false;         ///< devices reach memory by physical addresses, and more memory may be wanted
  bool gpu = false;      ///< CUDA runs, whose driver makes system calls and opens files of its own: these stay free
  bool secrets = false;  ///< there are keys in memory: it is never written to a file when the process crashes
};

/// What a process may still do.
struct Restrictions {
  std::vector<std::string> capabilities;  ///< that it keeps, of its effective ones; by their names, "CAP_NET_ADMIN"
  bool no_new_privs = false;              ///< no program that it starts gains any
  bool seccomp = false;                   ///< system calls beyond the run's own fail with EPERM
  int landlock = 0;                ///< version of what the kernel has, of which files are restricted; 0: none has
  bool core_dumps = true;          ///< its memory may be written to a file when it crashes
  std::vector<std::string> notes;  ///< what it keeps and why, each one line
};

/// Gives up, in all threads of the process and for good, what a run does not need. What the kernel does not have is
/// left out; what it refuses is an environment error. Once, by the control thread, when all threads that are not of
/// its own making have been started; such a thread that takes no signals keeps what it has, and a note says so.
[[nodiscard]] Result<Restrictions> restrict_process(const Needs& needs);

/// Returns what this process may do now, as the kernel says.
[[nodiscard]] Restrictions read_restrictions();

/// Returns the version of Landlock that the kernel has; 0: none.
[[nodiscard]] int landlock_version();

}  // namespace warpline::sandbox
