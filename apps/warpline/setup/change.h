// SPDX-License-Identifier: Apache-2.0
// One thing of a machine that set-up changes: how, and how it is put back.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "setup/machine_files.h"
#include "warpline/base/enum_names.h"
#include "warpline/base/result.h"

namespace warpline::setup {

enum class ChangeKind : std::uint8_t {
  number,  ///< in a file of sysfs
  driver,  ///< of a PCI function; the path is its folder in sysfs
  file,    ///< with all that it holds
  owner,   ///< of a file, as a number
};
constexpr auto names_of(ChangeKind) { return enum_names<ChangeKind>({"number", "driver", "file", "owner"}); }

struct Change {
  ChangeKind kind;
  std::string path;  ///< of the machine, absolute
  std::string value;
  bool operator==(const Change&) const = default;
};

/// What was there before a change. Of a file that was not there, and of a function without a driver, nothing.
struct Before {
  Change change;
  std::string value;
  bool operator==(const Before&) const = default;
};

/// Returns what a shell would do instead of apply().
[[nodiscard]] std::vector<std::string> commands(const MachineFiles& machine, const Change& change);

/// Returns what a machine has where `change` would be. Environment error: it cannot be looked at.
[[nodiscard]] Result<std::string> current(const MachineFiles& machine, const Change& change);

/// Makes a change, and looks whether the kernel has taken it. Environment error: it has not, and all is as it was as
/// far as the kernel let it be put back.
[[nodiscard]] Result<void> apply(MachineFiles& machine, const Change& change);

/// Puts back what was there before; of what is so already, nothing. Environment error: the kernel refuses.
[[nodiscard]] Result<void> put_back(MachineFiles& machine, const Before& before);

}  // namespace warpline::setup
