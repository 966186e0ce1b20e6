// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "config/config.h"
#include "config/options.h"
#include "warpline/base/result.h"

namespace warpline::config {

using Environment = std::map<std::string, std::string>;

enum class Source : std::uint8_t { built_in, file, environment, flag };

/// Where a value came from.
struct Origin {
  Source source = Source::built_in;
  std::string where;  ///< "PATH:LINE", the variable's name, or the flag's
};

/// "default", "file PATH:LINE", "environment NAME" or "flag".
[[nodiscard]] std::string to_string(const Origin& origin);

/// One effective value, for people.
struct Setting {
  std::string name;  ///< as in the file: "forward.burst", "port[0].mtu"
  nlohmann::json value;
  Origin origin;
  const Option* option;  ///< whose value it is
};

/// CTAs of the persistent engine, unless the user says how many.
inline constexpr std::uint16_t kPersistentCtas = 16;

/// What is to be done with the configuration.
enum class Task : std::uint8_t { run, show, check };

struct LoadedConfig {
  Command command = Command::forward;  ///< the first word of the command line
  Config config;                       ///< for show and check: of the command that is asked about
  Task task = Task::run;
  bool json = false;  ///< of `config show`, `config check` and `doctor`: answer as JSON
  std::vector<Setting> settings;
  std::vector<std::string> arguments;  ///< as load() was called with
  Environment environment;             ///< likewise
  std::string file;                    ///< of `--config`; empty: none was given
  std::vector<Error> problems;         ///< only for show and check; for run, the first one is load's error

  /// Returns true if the user set it: by a flag, the environment or a file. `setting` is named as in the file,
  /// "forward.ctas".
  [[nodiscard]] bool is_given(std::string_view setting) const;

  /// As `--config` reads it back.
  [[nodiscard]] nlohmann::json to_json() const;
};

/// The configuration with the file's sections as objects and every value resolved, for the command's options.
[[nodiscard]] nlohmann::json to_json(const Config& config);

/// The whole file, or a usage error.
using ReadFile = std::function<Result<std::string>(const std::string& path)>;

/// Works out the configuration of a command line: flag before environment before file before default.
///
/// `arguments` is the command line without the program's name: "forward ...", "l3forward ...", "generate ...",
/// "message server|client ...", "stream receive ...", "doctor ...", "config show [COMMAND] ..." or "config check
/// [COMMAND] ..."; COMMAND is forward when left out. Pure but for `read_file`, which is called at most once, for
/// `--config`.
///
/// Ports: the list is that of the highest source that names any (`--port`, WARPLINE_..._PORT, `[[port]]`). A port's
/// set-up is, value by value: the flag, the environment variable, the `[[port]]` table with this port's spec,
/// `[port-defaults]`, the default. `--address` is by position: the i-th is the i-th port's, "none" leaves one out.
///
/// Every message stands on one line.
///
/// A file that begins with '{' is JSON, any other TOML; a JSON report of an earlier run counts as its `config`.
[[nodiscard]] Result<LoadedConfig> load(const std::vector<std::string>& arguments, const Environment& environment,
                                        const ReadFile& read_file);

/// This process's environment and files, for load().
[[nodiscard]] Environment process_environment();
[[nodiscard]] Result<std::string> read_text_file(const std::string& path);

}  // namespace warpline::config
