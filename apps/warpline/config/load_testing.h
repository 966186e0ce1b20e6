// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sstream>
#include <string>
#include <vector>

#include "config/load.h"

namespace warpline::config {

/// The words of a command line, parted by spaces.
inline std::vector<std::string> words(const std::string& line) {
  std::istringstream stream(line);
  std::vector<std::string> result;
  for (std::string word; stream >> word;) result.push_back(word);
  return result;
}

/// load() with a file system of one file, "a.toml".
inline Result<LoadedConfig> load_line(const std::string& line, const std::string& file = {},
                                      const Environment& environment = {}) {
  return load(words(line), environment, [&](const std::string& path) -> Result<std::string> {
    if (path == "a.toml") return file;
    return usage_error("cannot read the configuration file '" + path + "'", "No such file", "check --config");
  });
}

/// "ok", or the message.
inline std::string outcome(const Result<LoadedConfig>& result) { return result.ok() ? "ok" : result.error().message(); }

/// The setting of that name as "VALUE ORIGIN".
inline std::string shown(const Result<LoadedConfig>& result, const std::string& name) {
  if (!result.ok()) return result.error().message();
  for (const Setting& setting : result->settings) {
    if (setting.name == name) return setting.value.dump() + " " + to_string(setting.origin);
  }
  return "no setting";
}

}  // namespace warpline::config
