// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "config/sources.h"
#include "warpline/base/nearest.h"

namespace warpline::config {
namespace {

constexpr std::string_view kPrefix = "WARPLINE_";

/// The names of `command`'s variables, or of all commands' when the variable's name begins with no command's prefix.
std::vector<std::string> candidates(const std::string& variable) {
  std::vector<std::string> all, of_command;
  for (const Command command : kCommands) {
    for (const Option& option : options()) {
      if (!option.taken_by(command)) continue;
      all.push_back(option.variable(command));
      const std::string prefix = all.back().substr(0, kPrefix.size() + name(command).size() + 1);
      if (variable.starts_with(prefix)) of_command.push_back(all.back());
    }
  }
  return of_command.empty() ? all : of_command;
}

}  // namespace

std::vector<Assignment> read_environment(Command command, const Environment& environment, Problems& problems) {
  std::vector<Assignment> assignments;
  for (auto entry = environment.lower_bound(std::string(kPrefix)); entry != environment.end(); ++entry) {
    const auto& [variable, value] = *entry;
    if (!variable.starts_with(kPrefix)) break;
    const std::vector<std::string> known = candidates(variable);
    if (std::ranges::find(known, variable) == known.end()) {
      problems.push_back(usage_error(fmt::format("unknown environment variable '{}'", variable),
                                     "no option has that name",
                                     fmt::format("did you mean {}?", nearest(variable, known))));
      continue;
    }
    const auto matches = [&](const Option& option) {
      return option.taken_by(command) && option.variable(command) == variable;
    };
    const auto option = std::ranges::find_if(options(), matches);
    if (option == options().end()) continue;
    const bool several = option->arity == Arity::list || option->arity == Arity::by_port;
    assignments.push_back({&*option,
                           several ? split(value, option->separator) : std::vector<std::string>{value},
                           {Source::environment, variable}});
  }
  return assignments;
}

Environment process_environment() {
  Environment environment;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::size_t equals = text.find('=');
    if (equals != std::string_view::npos) environment.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return environment;
}

}  // namespace warpline::config
