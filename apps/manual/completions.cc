// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "config/help.h"
#include "page.h"

namespace warpline::manual {
namespace {

using config::Arity;
using config::Command;
using config::Option;

/// Words behind the command's, before its options.
std::vector<std::string> tasks(Command command) {
  std::vector<std::string> words;
  for (const config::Role role : config::roles_of(command)) words.emplace_back(name(role));
  if (command == Command::message) words.emplace_back("key");
  if (command == Command::bench) words.assign(std::begin(config::kBenchNames), std::end(config::kBenchNames));
  if (command == Command::config) words = {"show", "check"};
  return words;
}

/// The first words of command lines; "message key" is two.
std::vector<Command> commands() {
  std::vector<Command> all(std::begin(config::kCommands), std::end(config::kCommands));
  std::erase(all, Command::message_key);
  return all;
}

std::vector<const Option*> options_of(const Page& page) {
  std::vector<const Option*> all;
  for (const config::OptionGroup& group : config::option_groups(page.command, page.role)) {
    all.insert(all.end(), group.options.begin(), group.options.end());
  }
  return all;
}

bool has_value(const Option& option) { return option.arity != Arity::flag; }
bool repeats(const Option& option) { return option.arity == Arity::list || option.arity == Arity::by_port; }

/// In single quotes of zsh's _arguments: brackets and colons part what belongs to an option.
std::string for_zsh(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') result += '\\';
    result += c == '\'' ? "'\\''" : std::string(1, c);
  }
  return result;
}

std::string for_fish(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '\'' || c == '\\') result += '\\';
    result += c;
  }
  return result;
}

}  // namespace

std::string bash_completion() {
  std::vector<std::string_view> names;
  for (const Command command : commands()) names.push_back(name(command));
  std::string text = fmt::format(R"(# bash completion for warpline
_warpline() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD - 1]}}
  local page=${{COMP_WORDS[1]}} words=
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    COMPREPLY=($(compgen -W "{} --help --version" -- "$current"))
    return
  fi
  case $page in
)",
                                 fmt::join(names, " "));
  for (const Command command : commands()) {
    const std::vector<std::string> second = tasks(command);
    if (second.empty()) continue;
    text += fmt::format(
        "    {})\n      if ((COMP_CWORD == 2)); then\n        COMPREPLY=($(compgen -W \"{}\" -- \"$current\"))\n"
        "        return\n      fi\n",
        name(command), fmt::join(second, " "));
    if (!config::roles_of(command).empty()) text += "      page+=\" ${COMP_WORDS[2]}\"\n";
    text += "      ;;\n";
  }
  text += "  esac\n  case $page:$previous in\n";
  std::string words;
  for (const Page& page : pages()) {
    std::vector<std::string> flags;
    for (const Option* const option : options_of(page)) {
      if (!option->positional) flags.push_back(option->flag());
      if (!has_value(*option) || option->positional) continue;
      std::string pattern = fmt::format("\"{}\":{}", page.words(), option->flag());
      if (option->short_name != 0) pattern += fmt::format(" | \"{}\":-{}", page.words(), option->short_name);
      const std::vector<std::string> known = choices(*option);
      const std::string completion = is_path(*option) ? "compgen -f"
                                     : known.empty()  ? ""
                                                      : fmt::format("compgen -W \"{}\"", fmt::join(known, " "));
      text += fmt::format("    {})", pattern);
      text += completion.empty()
                  ? " return ;;\n"
                  : fmt::format("\n      COMPREPLY=($({} -- \"$current\"))\n      return\n      ;;\n", completion);
    }
    flags.emplace_back("--help");
    words += fmt::format("    \"{}\") words=\"{}\" ;;\n", page.words(), fmt::join(flags, " "));
  }
  return text + "  esac\n  case $page in\n" + words +
         "  esac\n  COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n}\ncomplete -o filenames -F _warpline "
         "warpline\n";
}

std::string zsh_completion() {
  std::string text = "#compdef warpline\n_warpline() {\n  local -a known\n  if ((CURRENT == 2)); then\n    known=(\n";
  for (const Command command : commands()) {
    text += fmt::format("      '{}:{}'\n", name(command), for_zsh(config::summary(command)));
  }
  text += "    )\n    _describe command known\n    return\n  fi\n  local page=$words[2]\n  case $page in\n";
  for (const Command command : commands()) {
    const std::vector<std::string> second = tasks(command);
    if (second.empty()) continue;
    text += fmt::format(
        "    ({})\n      if ((CURRENT == 3)); then\n        known=({})\n        _describe task known\n        return\n "
        "     fi\n",
        name(command), fmt::join(second, " "));
    if (!config::roles_of(command).empty()) text += "      page+=\" $words[3]\"\n";
    text += "      shift words\n      ((CURRENT--))\n      ;;\n";
  }
  text += "  esac\n  shift words\n  ((CURRENT--))\n  case $page in\n";
  for (const Page& page : pages()) {
    text += fmt::format("    ('{}')\n      _arguments -s", page.words());
    for (const Option* const option : options_of(page)) {
      std::string action = is_path(*option) ? "_files" : " ";
      if (const auto known = choices(*option); !known.empty()) action = fmt::format("({})", fmt::join(known, " "));
      const std::string value = has_value(*option) ? fmt::format(":{}:{}", for_zsh(option->argument), action) : "";
      if (option->positional) {
        text += fmt::format(" \\\n        '*{}'", value);
        continue;
      }
      const std::string help = fmt::format("[{}]{}", for_zsh(option->help), value);
      const std::string_view many = repeats(*option) ? "*" : "";
      text += fmt::format(" \\\n        '{}{}{}'", many, option->flag(), help);
      if (option->short_name != 0) text += fmt::format(" \\\n        '{}-{}{}'", many, option->short_name, help);
    }
    text += " \\\n        '--help[name the options]'\n      ;;\n";
  }
  return text + "  esac\n}\n_warpline \"$@\"\n";
}

std::string fish_completion() {
  std::string text =
      "# fish completion for warpline\n"
      "function __warpline_at --description 'true if the words of the command line begin so'\n"
      "  set -l words (commandline -opc)\n"
      "  set -e words[1]\n"
      "  set -l most (count $argv)\n"
      "  test (count $words) -ge $most; and test \"$words[1..$most]\" = \"$argv\"\n"
      "end\n"
      "function __warpline_behind --description 'true if these are all words so far'\n"
      "  test (count (commandline -opc)) -eq (math (count $argv) + 1); and __warpline_at $argv\n"
      "end\n"
      "complete -c warpline -f\n";
  for (const Command command : commands()) {
    text += fmt::format("complete -c warpline -n 'test (count (commandline -opc)) -eq 1' -a {} -d '{}'\n",
                        name(command), for_fish(config::summary(command)));
    const std::vector<std::string> second = tasks(command);
    if (!second.empty())
      text += fmt::format("complete -c warpline -n '__warpline_behind {}' -a '{}'\n", name(command),
                          fmt::join(second, " "));
  }
  for (const Page& page : pages()) {
    for (const Option* const option : options_of(page)) {
      if (option->positional) {
        text += fmt::format("complete -c warpline -n '__warpline_at {}' -F\n", page.words());
        continue;
      }
      text += fmt::format("complete -c warpline -n '__warpline_at {}' -l {}", page.words(), option->name);
      if (option->short_name != 0) text += fmt::format(" -s {}", option->short_name);
      if (const auto known = choices(*option); !known.empty()) {
        text += fmt::format(" -x -a '{}'", fmt::join(known, " "));
      } else if (has_value(*option)) {
        text += is_path(*option) ? " -r -F" : " -x";
      }
      text += fmt::format(" -d '{}'\n", for_fish(option->help));
    }
  }
  return text;
}

}  // namespace warpline::manual
