// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sandbox/sandbox.h"
#include "warpline/base/result.h"

namespace warpline::sandbox {

/// Makes Landlock's rules for files, and returns their descriptor, which each thread takes with
/// landlock_restrict_self(2). Beside what `needs` names, the system's own files may be read, and devices used. With
/// them no socket of TCP is bound or connected any more. `version` is landlock_version(), not 0.
[[nodiscard]] Result<int> make_file_rules(const Needs& needs, int version);

}  // namespace warpline::sandbox
