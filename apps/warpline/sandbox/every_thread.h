// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace warpline::sandbox {

/// Runs `step` in every other thread of the process by a signal, so it must be async-signal-safe, and returns when all
/// have done it; threads that start meanwhile do it too. Returns the names of threads that did not within a second,
/// for they take no signals. One at a time.
[[nodiscard]] std::vector<std::string> run_in_every_thread(void (*step)());

}  // namespace warpline::sandbox
