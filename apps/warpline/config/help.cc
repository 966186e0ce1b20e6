// SPDX-License-Identifier: Apache-2.0
#include "config/help.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

namespace warpline::config {
namespace {

struct Heading {
  std::string_view section;
  std::string_view text;
};
constexpr Heading kHeadings[] = {
    {"", "Configuration"},      {"port", "Ports"},         {"run", "Run"},           {"runtime", "Cores and memory"},
    {"pool", "Packet buffers"}, {"forward", "Forwarding"}, {"l3forward", "Routing"}, {"ingest", "Ingest"},
    {"traffic", "Traffic"},     {"bench", "Benchmark"},    {"report", "Page"},       {"message", "Messages"},
    {"key", "Key file"},        {"stream", "Streams"},     {"metrics", "Metrics"},   {"capture", "Capture"},
    {"selftest", "Self-test"},  {"attach", "Process"},     {"setup", "Set-up"},
};

std::string text_of(const nlohmann::json& value) {
  if (value.is_array()) {
    std::string joined;
    for (const auto& element : value) joined += (joined.empty() ? "" : ",") + text_of(element);
    return joined;
  }
  return value.is_string() ? value.get<std::string>() : value.dump();
}

std::string line(const Option& option) {
  if (option.positional) return fmt::format("  {:<26} {}\n", option.argument, option.help);
  const std::string dashed = option.short_name == 0 ? fmt::format("    {}", option.flag())
                                                    : fmt::format("-{}, {}", option.short_name, option.flag());
  const std::string head = option.argument.empty() ? dashed : fmt::format("{} {}", dashed, option.argument);
  const std::string note = value_note(option);
  return fmt::format("  {:<26} {}{}\n", head, option.help, note.empty() ? note : fmt::format(" [{}]", note));
}

std::string usage(Command command, std::optional<Role> role) {
  if (command == Command::config) {
    return "Usage: warpline config show|check [COMMAND] [options of that command]\n\n"
           "COMMAND is forward, l3forward, ingest, generate, message [server|client|daemon] or stream "
           "[receive|proxy].\n"
           "show prints every value with where it came from, and the plan of cores.\n"
           "check names every problem, one a line, and ends with 2 when there is one.\n";
  }
  if (command == Command::bench) {
    return fmt::format("Usage: warpline bench {} [options]\n\n{}\n", fmt::join(kBenchNames, "|"), summary(command));
  }
  if (command == Command::report) {
    return fmt::format("Usage: warpline report FILES... --html FILE\n\n{}\n", summary(command));
  }
  if (command == Command::message_key) {
    return fmt::format(
        "Usage: warpline message key new [--name NAME] [--append] FILE\n       warpline message key show FILE\n\n{}\n"
        "new makes a key of the kernel's random numbers, in a new file that its owner alone may read, or with "
        "--append\n"
        "behind those that FILE has. show prints the id and the name of each, never the key.\n",
        summary(command));
  }
  if (const std::span<const Role> roles = roles_of(command); !roles.empty()) {
    std::vector<std::string_view> names;
    for (const Role each : roles) {
      if (!role || each == *role) names.push_back(name(each));
    }
    return fmt::format("Usage: warpline {} {} [options]\n\n{}\n", name(command), fmt::join(names, "|"),
                       summary(command));
  }
  return fmt::format("Usage: warpline {} [options]\n\n{}\n", name(command), summary(command));
}

}  // namespace

std::string_view summary(Command command) {
  constexpr std::string_view kSummaries[] = {
      "receive, process, transmit",
      "receive, route, transmit",
      "receive into GPU memory and hand over to a consumer that checks every byte",
      "send traffic at a rate and check what comes back",
      "reliable messages and requests over UDP: server, client, or daemon for many programs",
      "make and show the files of keys that message encrypts with",
      "take TCP connections and receive them into files or hand them on as messages; open some and send",
      "make one of the published tables; bench list names them",
      "draw the JSON of runs and benchmarks as one page for a browser",
      "show or check the effective configuration with the origin of each value",
      "say what this machine lacks, and the command that mends it",
      "try all features between two ports, and perhaps with a GPU: what works, what to set, what is fastest",
      "tell a running process: reload reads its configuration and files again",
      "show what a running process does, as a table in a terminal",
      "write packets of a running process to a pcapng file, dropped ones with the reason",
      "show packets' ways through a running process, with the times at each stage",
      "print what a NIC, hugepages or an ordinary user need for DPDK, do it, or put back what was there before",
  };
  static_assert(std::size(kSummaries) == kEnumNames<Command>.size());
  return kSummaries[static_cast<std::size_t>(command)];
}

std::vector<OptionGroup> option_groups(Command command, std::optional<Role> role) {
  std::vector<OptionGroup> groups;
  for (const Heading& heading : kHeadings) {
    OptionGroup group{heading.text, {}};
    for (const Option& option : options()) {
      const bool has = option.taken_by(command) && option.is_for(role) && option.section == heading.section;
      if (has) group.options.push_back(&option);
    }
    if (!group.options.empty()) groups.push_back(std::move(group));
  }
  return groups;
}

std::string value_note(const Option& option) {
  const auto note = [&](const auto& access, const auto& built_in) {
    const std::string fallback = option.arity == Arity::flag ? "" : text_of(access.get(built_in));
    std::string text = access.allowed;
    if (!fallback.empty()) text += (text.empty() ? "" : "; ") + ("default " + fallback);
    return text;
  };
  if (const auto* access = std::get_if<Access<Config>>(&option.access)) return note(*access, Config{});
  if (const auto* access = std::get_if<Access<port::PortSettings>>(&option.access))
    return note(*access, port::PortSettings{});
  return {};
}

std::string program_help() {
  std::string text = "Usage: warpline COMMAND [options]\n\nCommands:\n";
  for (const Command command : kCommands) text += fmt::format("  {:<11} {}\n", name(command), summary(command));
  text +=
      "\nwarpline COMMAND --help names the options; warpline --version the build.\n"
      "Every option is also an environment variable, such as WARPLINE_FORWARD_BURST=64, and most are keys of the file\n"
      "that --config names. A flag wins over the environment, the environment over the file.\n";
  return text;
}

std::string command_help(Command command, std::optional<Role> role) {
  std::string text = usage(command, role);
  for (const OptionGroup& group : option_groups(command, role)) {
    text += fmt::format("\n{}:\n", group.heading);
    for (const Option* const option : group.options) text += line(*option);
  }
  if (command != Command::config) {
    std::string prefix(name(command));
    std::ranges::transform(prefix, prefix.begin(),
                           [](unsigned char c) { return c == ' ' ? '_' : static_cast<char>(std::toupper(c)); });
    text += fmt::format("\nEnvironment: WARPLINE_{}_OPTION, upper case, '_' for '-'.\n", prefix);
    text += "Numbers take K M G Ki Mi Gi; times ns us ms s; rates 40gbit, 14.88Mpps.\n";
  }
  return text;
}

std::optional<std::string> requested_text(const std::vector<std::string>& arguments, std::string_view version) {
  const auto end = std::ranges::find(arguments, "--");
  const auto asks = [&](std::string_view wanted) { return std::find(arguments.begin(), end, wanted) != end; };
  if (!arguments.empty() && arguments[0] == "--version") return fmt::format("warpline {}\n", version);
  if (!asks("--help") && !asks("-h")) return std::nullopt;
  if (arguments.size() > 2 && arguments[0] == "message" && arguments[1] == "key") {
    return command_help(Command::message_key);
  }
  for (const Command command : kCommands) {
    if (arguments[0] != name(command)) continue;
    for (const Role role : roles_of(command)) {
      if (arguments[1] == name(role)) return command_help(command, role);
    }
    return command_help(command);
  }
  if (arguments[0].starts_with('-')) return program_help();
  return std::nullopt;
}

}  // namespace warpline::config
