// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include <CLI/CLI.hpp>

#include "config/sources.h"
#include "warpline/base/nearest.h"

namespace warpline::config {
namespace {

/// CLI11 takes arguments last first, and reads "--name=" as "--name" with the next argument as its value.
std::vector<std::string> reversed_for_cli11(const std::vector<std::string>& arguments) {
  std::vector<std::string> result;
  for (const std::string& argument : arguments) {
    const bool empty_value = argument.starts_with("--") && argument.find('=') == argument.size() - 1;
    result.push_back(empty_value ? argument.substr(0, argument.size() - 1) : argument);
    if (empty_value) result.emplace_back();
  }
  std::ranges::reverse(result);
  return result;
}

Error unknown_argument(Command command, const std::string& argument) {
  if (argument.size() < 2 || argument[0] != '-') {
    return usage_error(fmt::format("unexpected argument '{}'", argument),
                       fmt::format("{} takes options only", name(command)),
                       "write it behind the option that it belongs to");
  }
  const std::string given = argument.substr(0, argument.find('='));
  const std::string bare = given.substr(given.starts_with("--") ? 2 : 1);
  std::vector<std::string> known, owners;
  for (const Option& option : options()) {
    if (option.taken_by(command)) known.push_back(option.flag());
    const bool is_short = given.size() == 2 && option.short_name == given[1];
    if ((option.name != bare && !is_short) || option.taken_by(command)) continue;
    for (const Command owner : option.commands) owners.emplace_back(name(owner));
  }
  known.emplace_back("--help");
  if (!owners.empty()) {
    return usage_error(fmt::format("unknown option '{}'", given),
                       fmt::format("it is an option of {}", fmt::join(owners, " and ")), "leave it out");
  }
  return usage_error(fmt::format("unknown option '{}'", given), fmt::format("{} has no such option", name(command)),
                     fmt::format("did you mean {}?", nearest("--" + bare, known)));
}

using Declared = std::vector<std::pair<const Option*, CLI::Option*>>;

/// CLI11 refuses nothing else than an option at the end without its value, or a flag with one; its text begins with
/// the option's name.
Error unreadable(const Declared& declared, const std::string& text) {
  const std::string subject = text.substr(0, text.find(':'));
  for (const auto& [option, flag] : declared) {
    if (subject != option->flag() || option->arity == Arity::flag) continue;
    return usage_error(fmt::format("cannot use {}", option->flag()), "its value is missing",
                       fmt::format("write {} {}", option->flag(), option->argument));
  }
  return usage_error("cannot read the command line", text, "--help names the options");
}

std::vector<std::string> texts_of(const Option& option, const std::vector<std::string>& results) {
  if (option.positional || (option.arity != Arity::list && option.arity != Arity::by_port)) return results;
  std::vector<std::string> texts;
  for (const std::string& result : results) {
    for (std::string& part : split(result, option.separator)) texts.push_back(std::move(part));
  }
  return texts;
}

}  // namespace

std::vector<Assignment> read_flags(Command command, const std::vector<std::string>& arguments, Problems& problems) {
  CLI::App app;
  app.set_help_flag();
  app.allow_extras();
  Declared declared;
  for (const Option& option : options()) {
    if (!option.taken_by(command)) continue;
    std::string names = option.flag();
    if (option.short_name != 0) names = fmt::format("-{},{}", option.short_name, names);
    CLI::Option* flag = option.arity == Arity::flag ? app.add_flag(names) : app.add_option(names)->expected(1);
    flag->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)->allow_extra_args(option.positional);
    if (option.positional) flag->expected(0, CLI::detail::expected_max_vector_size);
    declared.emplace_back(&option, flag);
  }

  try {
    app.parse(reversed_for_cli11(arguments));
  } catch (const CLI::ParseError& error) {
    problems.push_back(unreadable(declared, error.what()));
    return {};
  }
  for (const std::string& extra : app.remaining()) {
    if (extra == "--") continue;
    problems.push_back(unknown_argument(command, extra));
    break;  // what follows may be its value
  }

  std::vector<Assignment> assignments;
  for (const auto& [option, flag] : declared) {
    if (flag->count() == 0) continue;
    const std::vector<std::string>& results = flag->results();
    const bool repeatable = option->arity == Arity::list || option->arity == Arity::by_port;
    if (!repeatable && results.size() > 1) {
      problems.push_back(usage_error(fmt::format("{} is given {} times", option->flag(), results.size()),
                                     "it has one value", "leave all but one out"));
      continue;
    }
    assignments.push_back({option, texts_of(*option, results), {Source::flag, option->flag()}});
  }
  return assignments;
}

}  // namespace warpline::config
