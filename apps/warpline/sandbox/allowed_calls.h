// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sandbox/sandbox.h"
#include "warpline/base/result.h"

namespace warpline::sandbox {

/// Lets all threads of the process make the system calls that a run with these needs makes, and no other (seccomp(2)):
/// those fail with EPERM. For good; the process has no_new_privs from then on.
[[nodiscard]] Result<void> allow_calls(const Needs& needs);

}  // namespace warpline::sandbox
