// SPDX-License-Identifier: Apache-2.0
// `warpline message key`: makes and shows the files of keys that `message` encrypts with. It needs neither DPDK nor
// privileges.
#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <span>
#include <string>

#include <nlohmann/json.hpp>

#include "commands.h"
#include "warpline/protection/key_file.h"

namespace warpline {
namespace {

void print(const config::LoadedConfig& loaded, std::span<const protection::Key> keys) {
  const config::KeyConfig& settings = loaded.config.key;
  if (!loaded.json) {
    for (const protection::Key& key : keys) {
      fmt::print("{:016x}{}{}\n", key.id, key.name.empty() ? "" : "  ", key.name);
    }
    return;
  }
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const protection::Key& key : keys) {
    nlohmann::ordered_json entry = {{"id", fmt::format("{:016x}", key.id)}};
    if (!key.name.empty()) entry["name"] = key.name;
    list.push_back(std::move(entry));
  }
  const nlohmann::ordered_json answer = {{"schema_version", 1},
                                         {"command", "message key " + settings.task},
                                         {"file", settings.files.front()},
                                         {"keys", list}};
  fmt::print("{}\n", answer.dump(2));
}

}  // namespace

Result<int> run_message_key(const config::LoadedConfig& loaded) {
  const config::KeyConfig& settings = loaded.config.key;
  const std::string& path = settings.files.front();
  if (settings.task == "new") {
    WARPLINE_CHECK(settings.append ? protection::append_new_key(path, settings.name)
                                   : protection::create_key_file(path, settings.name));
  }
  WARPLINE_TRY(const std::shared_ptr<const protection::KeySet> keys, protection::read_key_file(path));
  print(loaded, settings.task == "new" ? keys->keys().last(1) : keys->keys());
  return 0;
}

}  // namespace warpline
