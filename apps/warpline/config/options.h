// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <nlohmann/json.hpp>

#include "config/config.h"
#include "warpline/base/result.h"

namespace warpline::config {

inline constexpr Command kCommands[] = {
    Command::forward, Command::l3forward, Command::ingest,  Command::generate, Command::message, Command::message_key,
    Command::stream,  Command::bench,     Command::report,  Command::config,   Command::doctor,  Command::selftest,
    Command::ctl,     Command::top,       Command::capture, Command::trace,    Command::setup};

/// The roles of a command; none for most.
[[nodiscard]] std::span<const Role> roles_of(Command command);

/// One line for people: what the command is for.
[[nodiscard]] std::string_view summary(Command command);

/// How an option's value gets into a T (Config, or PortSettings for the set-up of a port) and out of it.
template <typename T>
struct Access {
  /// `texts` has exactly one element unless the option is a list. The Error quotes the text, not the option.
  std::function<Result<void>(T&, std::span<const std::string> texts)> set;
  /// Feeding this back through `set` (numbers and booleans as their text) gives the same value.
  std::function<nlohmann::json(const T&)> get;
  std::string allowed;  ///< for the help: "1..512", "inline|thread"; may be empty
};

enum class Arity : std::uint8_t {
  flag,     ///< true when it is there; in environment and file: true, false, yes, no, 1 or 0
  single,   ///< one value
  list,     ///< repeatable; one text may also hold several, parted by `separator`
  by_port,  ///< as list, but the i-th value is the i-th port's; in the file one value in a `[[port]]` table
};

/// Tables that `bench` makes, and "list", which names them.
inline constexpr std::string_view kBenchNames[] = {
    "list", "forward-size", "forward-burst", "adaptive", "copy-batch", "memcpy", "rate", "recycle", "stream-chunk"};

/// What `message key` does.
inline constexpr std::string_view kKeyTasks[] = {"new", "show"};

/// One option, declared once in options.cc. Flags, environment variables, file keys, help and JSON come from here.
struct Option {
  std::string_view name;     ///< long name, without dashes
  char short_name;           ///< 0: none
  std::string_view section;  ///< table of the file; "port" for the set-up of ports; empty: not in the file
  std::string_view key;      ///< key in that table
  std::vector<Command> commands;
  Arity arity;
  std::string_view argument;  ///< how the help names the value; empty for flags
  std::string_view help;
  std::variant<std::monostate, Access<Config>, Access<port::PortSettings>> access;  ///< monostate: `--config` alone
  char separator = ',';
  std::vector<Role> roles = {};  ///< of commands that have some, those that take it; none: all
  bool positional = false;       ///< a list whose values stand on the command line without a flag

  [[nodiscard]] bool taken_by(Command command) const;
  /// False if the command is asked for in a role that does not take it.
  [[nodiscard]] bool is_for(std::optional<Role> asked) const;
  /// Returns true if a run that reads its configuration again takes the new value over.
  [[nodiscard]] bool reloads() const;
  [[nodiscard]] bool is_port_setup() const { return std::holds_alternative<Access<port::PortSettings>>(access); }
  /// "--burst"; of what stands without a flag its name in the help, "FILES"
  [[nodiscard]] std::string flag() const { return positional ? std::string(argument) : "--" + std::string(name); }
  /// "WARPLINE_FORWARD_BURST", "WARPLINE_MESSAGE_KEY_NAME"
  [[nodiscard]] std::string variable(Command command) const;
  /// "forward.burst"
  [[nodiscard]] std::string path() const { return std::string(section) + "." + std::string(key); }
};

/// Those of `message` alone.
void add_message_options(std::vector<Option>& table);

/// Those of `message key` alone.
void add_key_options(std::vector<Option>& table);

/// Those of `stream` alone.
void add_stream_options(std::vector<Option>& table);

/// Where a run says what it counts.
void add_operation_options(std::vector<Option>& table);

/// Which process `ctl`, `top`, `capture` and `trace` are about.
void add_attach_options(std::vector<Option>& table);

/// Those of `setup` alone.
void add_setup_options(std::vector<Option>& table);

/// Those of `selftest` alone.
void add_selftest_options(std::vector<Option>& table);

/// Every option of the program, in the order of the help.
[[nodiscard]] const std::vector<Option>& options();
/// Null when the command has no option of that long name.
[[nodiscard]] const Option* find_option(Command command, std::string_view name);

}  // namespace warpline::config
