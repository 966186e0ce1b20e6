// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "config/sources.h"
#include "warpline/base/nearest.h"

namespace warpline::config {
namespace {

/// Returns the names of the variables of a command.
std::vector<std::string> variables_of(Command command) {
  std::vector<std::string> names;
  for (const Option& option : options()) {
    if (option.taken_by(command)) names.push_back(option.variable(command));
  }
  return names;
}

/// Returns the beginning that the names of a command's variables share: "WARPLINE_FORWARD_".
std::string option_prefix(Command command) {
  const Option& any = options().front();
  const std::string variable = any.variable(command);
  return variable.substr(0, variable.size() - any.name.size());
}

/// Returns true for a variable of a command whose name begins with this one's, as `message key` with `message`.
bool is_of_another(Command command, const std::string& variable) {
  return std::ranges::any_of(kCommands, [&](Command other) {
    return other != command && std::ranges::any_of(options(), [&](const Option& option) {
             return option.taken_by(other) && option.variable(other) == variable;
           });
  });
}

/// Returns true for a variable that Kubernetes sets for a Service called `warpline-COMMAND`, as it does in each
/// container of the Service's namespace: NAME_SERVICE_HOST, NAME_SERVICE_PORT[_...], NAME_PORT with a URL,
/// NAME_PORT_9400_TCP[_...].
bool is_of_kubernetes(std::string_view option, std::string_view value) {
  if (option == "SERVICE_HOST" || option == "SERVICE_PORT" || option.starts_with("SERVICE_PORT_")) return true;
  if (option == "PORT")
    return value.starts_with("tcp://") || value.starts_with("udp://") || value.starts_with("sctp://");
  constexpr std::string_view kPort = "PORT_";
  return option.starts_with(kPort) && option.size() > kPort.size() && option[kPort.size()] >= '0' &&
         option[kPort.size()] <= '9';
}

}  // namespace

std::vector<Assignment> read_environment(Command command, const Environment& environment, Problems& problems) {
  std::vector<Assignment> assignments;
  const std::vector<std::string> known = variables_of(command);
  const std::string prefix = option_prefix(command);
  for (auto entry = environment.lower_bound(prefix); entry != environment.end(); ++entry) {
    const auto& [variable, value] = *entry;
    if (!variable.starts_with(prefix)) break;
    if (is_of_kubernetes(std::string_view(variable).substr(prefix.size()), value)) continue;
    if (std::ranges::find(known, variable) == known.end()) {
      if (is_of_another(command, variable)) continue;
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
