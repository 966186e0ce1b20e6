// SPDX-License-Identifier: Apache-2.0
// What was there before set-up changed it, in a file for each thing that was set up.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "setup/change.h"
#include "setup/machine_files.h"
#include "setup/plan.h"
#include "warpline/base/result.h"

namespace warpline::setup {

/// Returns the file that has the record of a target, such as "hugepages" or "nic-0000:01:00.0".
[[nodiscard]] std::string record_path(std::string_view target);

/// Returns a record as text.
[[nodiscard]] std::string to_text(const std::vector<Before>& record);
/// Parses what to_text() made; of anything else, an environment error.
[[nodiscard]] Result<std::vector<Before>> parse_record(const std::string& text);

/// Makes the changes of a plan. The record is written before each, and what an earlier one says was there stays.
/// Environment error: a change was not made, and those before it are put back.
[[nodiscard]] Result<void> carry_out(MachineFiles& machine, std::string_view target, const Plan& plan);

/// Puts back what the record of a target says, the last change first, and removes the record. Returns what was put
/// back; nothing where there is no record. Environment error: something cannot be put back; the record stays.
[[nodiscard]] Result<std::vector<Before>> undo(MachineFiles& machine, std::string_view target);

}  // namespace warpline::setup
