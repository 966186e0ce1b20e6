// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "config/help.h"
#include "page.h"

namespace warpline::manual {
namespace {

using config::Option;

/// Text as roff takes it: what would be a command or a hyphen is neither.
std::string roff(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '\\') {
      result += "\\e";
    } else if (c == '-') {
      result += "\\-";
    } else if ((c == '.' || c == '\'') && (result.empty() || result.back() == '\n')) {
      result += std::string("\\&") + c;
    } else {
      result += c;
    }
  }
  return result;
}

std::string upper(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

std::string head(std::string_view name, std::string_view summary, std::string_view version, std::string_view date) {
  return fmt::format(".TH {} 1 {} \"warpline {}\" \"User Commands\"\n.SH NAME\n{} \\- {}\n", upper(roff(name)), date,
                     version, roff(name), roff(summary));
}

std::string entry(const Option& option) {
  std::string text = ".TP\n";
  if (option.positional) {
    text += fmt::format("\\fI{}\\fR\n", roff(option.argument));
  } else {
    if (option.short_name != 0) text += fmt::format("\\fB\\-{}\\fR, ", option.short_name);
    text += fmt::format("\\fB{}\\fR", roff(option.flag()));
    text += option.argument.empty() ? "\n" : fmt::format(" \\fI{}\\fR\n", roff(option.argument));
  }
  std::string help(option.help);
  help.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(help.front())));
  text += roff(help);
  if (const std::string note = config::value_note(option); !note.empty()) text += fmt::format(" [{}]", roff(note));
  return text + ".\n";
}

std::string synopsis(const Page& page) {
  if (page.command == config::Command::config) return "show|check [COMMAND] [options of that command]";
  if (page.command == config::Command::bench) return "NAME [options]";
  if (page.command == config::Command::report) return "FILES... --html FILE";
  if (page.command == config::Command::message_key) return "new|show [options] FILE";
  return "[options]";
}

std::string exit_statuses() {
  constexpr std::pair<int, std::string_view> kStatuses[] = {
      {0, "Done"},
      {1, "A threshold was missed"},
      {2, "Usage or configuration"},
      {3, "The environment is not ready"},
      {4, "Data did not come out as it should"},
      {5, "The peer is gone or timed out"},
      {130, "Interrupted, after a full report"},
  };
  std::string text = ".SH EXIT STATUS\n";
  for (const auto& [status, meaning] : kStatuses) text += fmt::format(".TP\n{}\n{}.\n", status, meaning);
  return text;
}

std::string see_also(const std::string& own) {
  std::vector<std::string> names;
  if (own != "warpline") names.emplace_back("warpline");
  for (const Page& page : pages()) {
    if (page.name() != own) names.push_back(page.name());
  }
  std::ranges::sort(names);
  std::string text = ".SH SEE ALSO\n";
  for (const std::string& name : names)
    text += fmt::format(".BR {} (1){}\n", roff(name), name == names.back() ? "" : ",");
  return text;
}

}  // namespace

std::string man_page(const Page& page, std::string_view version, std::string_view date) {
  std::string text = head(page.name(), config::summary(page.command), version, date);
  text += fmt::format(".SH SYNOPSIS\n.B warpline {}\n{}\n", page.words(), roff(synopsis(page)));
  text += ".SH OPTIONS\nNumbers take K M G Ki Mi Gi; times ns us ms s; rates 40gbit, 14.88Mpps.\n";
  for (const config::OptionGroup& group : config::option_groups(page.command, page.role)) {
    text += fmt::format(".SS {}\n", group.heading);
    for (const Option* const option : group.options) text += entry(*option);
  }
  std::string prefix = page.words().substr(0, page.role ? page.words().find(' ') : std::string::npos);
  std::ranges::replace(prefix, ' ', '_');
  text += fmt::format(
      ".SH ENVIRONMENT\n.TP\n\\fBWARPLINE_{}_\\fR\\fIOPTION\\fR\nEvery option, in upper case and with _ for \\-. "
      "A flag wins over the environment, the environment over the file of \\-\\-config.\n",
      upper(prefix));
  return text + exit_statuses() + see_also(page.name());
}

std::string program_man_page(std::string_view version, std::string_view date) {
  std::string text = head("warpline", "moves packets between NICs, processors and GPUs", version, date);
  text += ".SH SYNOPSIS\n.B warpline\n\\fICOMMAND\\fR [options]\n.br\n.B warpline\n\\-\\-help | \\-\\-version\n";
  text +=
      ".SH DESCRIPTION\nEach command has a page of its own. Data goes to standard output, all else to standard "
      "error.\n.SH COMMANDS\n";
  for (const Page& page : pages()) {
    text += fmt::format(".TP\n.BR {} (1)\n{}.\n", roff(page.name()), roff(config::summary(page.command)));
  }
  text +=
      ".SH SIGNALS\n.TP\nSIGINT, SIGTERM\nStop receiving, drain, report; a second one ends the process at once.\n"
      ".TP\nSIGHUP\nRead the configuration and its files again.\n";
  return text + exit_statuses() + see_also("warpline");
}

}  // namespace warpline::manual
