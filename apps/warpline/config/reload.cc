// SPDX-License-Identifier: Apache-2.0
#include "config/reload.h"

#include <algorithm>
#include <map>
#include <utility>

namespace warpline::config {
namespace {

void note(std::vector<std::string>& options, const Option& option) {
  if (std::ranges::find(options, option.flag()) == options.end()) options.push_back(option.flag());
}

/// The texts that Access::set() makes this value of.
std::vector<std::string> texts_of(const nlohmann::json& value) {
  if (value.is_array()) return value.get<std::vector<std::string>>();  // of a list whose elements are texts
  return {value.is_string() ? value.get<std::string>() : value.dump()};
}

}  // namespace

bool Option::reloads() const {
  constexpr std::string_view kReloaded[] = {"run.interval",
                                            "runtime.log-level",
                                            "l3forward.routes",
                                            "traffic.rate",
                                            "capture.file",
                                            "capture.what",
                                            "capture.filter",
                                            "capture.snaplen",
                                            "capture.limit",
                                            "metrics.allow",
                                            "message.sessions-per-address",
                                            "message.sessions-per-prefix",
                                            "message.half-open-per-address",
                                            "message.half-open-per-prefix",
                                            "message.bytes-per-address",
                                            "message.bytes-per-prefix",
                                            "message.strangers"};
  return std::ranges::find(kReloaded, path()) != std::end(kReloaded);
}

Result<Reloaded> reload(const LoadedConfig& now, const ReadFile& read_file) {
  WARPLINE_TRY(const LoadedConfig read, load(now.arguments, now.environment, read_file));
  std::map<std::string_view, const Setting*> before, after;
  for (const Setting& setting : now.settings) before[setting.name] = &setting;
  for (const Setting& setting : read.settings) after[setting.name] = &setting;

  Reloaded reloaded{.next = now, .changed = {}, .fixed = {}};
  for (Setting& setting : reloaded.next.settings) {
    const auto found = after.find(setting.name);
    const bool is_gone = found == after.end();  // of a port that is not named any more
    if (!is_gone && found->second->value == setting.value) continue;
    if (is_gone || !setting.option->reloads()) {
      note(reloaded.fixed, *setting.option);
      continue;
    }
    setting.value = found->second->value;
    setting.origin = found->second->origin;
    WARPLINE_CHECK(std::get<Access<Config>>(setting.option->access).set(reloaded.next.config, texts_of(setting.value)));
    note(reloaded.changed, *setting.option);
  }
  for (const auto& [name, setting] : after) {
    if (!before.contains(name)) note(reloaded.fixed, *setting->option);
  }
  return reloaded;
}

}  // namespace warpline::config
