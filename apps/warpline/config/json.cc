// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "config/load.h"
#include "config/options.h"

namespace warpline::config {
namespace {

nlohmann::json setup_to_json(const port::PortSettings& port) {
  nlohmann::json object = nlohmann::json::object();
  for (const Option& option : options()) {
    const auto* access = std::get_if<Access<port::PortSettings>>(&option.access);
    if (access == nullptr || (port.spec.empty() && option.arity == Arity::by_port)) continue;
    object[std::string(option.key)] = access->get(port);
  }
  if (!port.spec.empty()) object["spec"] = port.spec;
  return object;
}

}  // namespace

nlohmann::json to_json(const Config& config) {
  nlohmann::json root = nlohmann::json::object();
  for (const Option& option : options()) {
    const auto* access = std::get_if<Access<Config>>(&option.access);
    if (access == nullptr || !option.taken_by(config.command) || option.section == "port") continue;
    root[std::string(option.section)][std::string(option.key)] = access->get(config);
  }
  if (find_option(config.command, "port") == nullptr) return root;
  root["port-defaults"] = setup_to_json(config.port_defaults);
  root["port"] = nlohmann::json::array();
  for (const port::PortSettings& port : config.ports) root["port"].push_back(setup_to_json(port));
  return root;
}

bool LoadedConfig::is_given(std::string_view setting) const {
  return std::ranges::any_of(
      settings, [&](const Setting& known) { return known.name == setting && known.origin.source != Source::built_in; });
}

nlohmann::json LoadedConfig::to_json() const { return config::to_json(config); }

}  // namespace warpline::config
