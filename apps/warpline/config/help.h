// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/options.h"

namespace warpline::config {

/// Options under a heading, as help and manual have them.
struct OptionGroup {
  std::string_view heading;
  std::vector<const Option*> options;
};
/// Returns those of a command, in the order of the help; of those with roles all, if none is given.
[[nodiscard]] std::vector<OptionGroup> option_groups(Command command, std::optional<Role> role = std::nullopt);
/// Returns what an option's value may be and is if it is not given: "1..512; default 64". Empty: any, and none.
[[nodiscard]] std::string value_note(const Option& option);

[[nodiscard]] std::string program_help();
/// `role`: of a command that has some, the one whose options are named; all if not given.
[[nodiscard]] std::string command_help(Command command, std::optional<Role> role = std::nullopt);

/// What -h, --help or --version anywhere before "--" asks for; none when they are not there. An option's value is
/// not looked at ("--eal=-h").
[[nodiscard]] std::optional<std::string> requested_text(const std::vector<std::string>& arguments,
                                                        std::string_view version);

}  // namespace warpline::config
