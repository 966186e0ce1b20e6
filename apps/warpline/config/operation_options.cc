// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <variant>
#include <vector>

#include "config/options.h"
#include "config/values.h"

namespace warpline::config {
namespace {

/// An address with its port, the path of a Unix socket, or "none".
Access<Config> metrics_listen() {
  using Value = decltype(exporter::ExporterSettings::listen);
  return scalar<Config>(
      field_of(&Config::metrics, &exporter::ExporterSettings::listen),
      [](std::string_view text) -> Result<Value> {
        if (text == "none") return Value{};
        if (text.starts_with('/')) return Value{std::string(text)};
        WARPLINE_TRY(const SocketAddress address, parse_socket_address(text));
        return Value{address};
      },
      [](const Value& value) {
        if (const auto* const address = std::get_if<SocketAddress>(&value)) return to_string(*address);
        const auto* const path = std::get_if<std::string>(&value);
        return path != nullptr ? *path : std::string("none");
      },
      "ADDR:PORT, /PATH or none");
}

Access<Config> metrics_allowed() {
  return {[](Config& config, std::span<const std::string> texts) -> Result<void> {
            std::vector<InterfaceAddress> networks;
            for (const std::string& text : texts) {
              WARPLINE_TRY(const InterfaceAddress network, parse_interface_address(text));
              networks.push_back(network);
            }
            config.metrics.allowed = std::move(networks);
            return {};
          },
          [](const Config& config) {
            nlohmann::json networks = nlohmann::json::array();
            for (const InterfaceAddress& network : config.metrics.allowed) networks.push_back(to_string(network));
            return networks;
          },
          {}};
}

/// Empty, or what may be the name of a folder.
Access<Config> telemetry_name() {
  return scalar<Config>(
      field_of(&Config::runtime, &runtime::RuntimeSettings::telemetry),
      [](std::string_view text) -> Result<std::string> {
        const auto fits = [](char c) {
          return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_';
        };
        if (text.size() <= 64 && std::ranges::all_of(text, fits)) return std::string(text);
        return usage_error("cannot use '" + std::string(text) + "'", "it is no name",
                           "use up to 64 of A-Z a-z 0-9 - _");
      },
      [](const std::string& value) { return value; });
}

}  // namespace

void add_operation_options(std::vector<Option>& table) {
  const std::vector<Command> runs = {Command::forward,  Command::l3forward, Command::ingest,
                                     Command::generate, Command::message,   Command::stream};
  table.insert(table.end(), {{"metrics", 0, "metrics", "listen", runs, Arity::single, "WHERE",
                              "answer Prometheus at an address or a Unix socket", metrics_listen()},
                             {"metrics-allow", 0, "metrics", "allow", runs, Arity::list, "ADDR/LEN",
                              "network that may ask for metrics, beside this machine; repeatable", metrics_allowed()},
                             {"telemetry", 0, "runtime", "telemetry", runs, Arity::single, "NAME",
                              "answer dpdk-telemetry.py --file-prefix NAME", telemetry_name()},
                             {"keep-privileges", 0, "runtime", "keep-privileges", runs, Arity::flag, "",
                              "give up no capabilities, system calls and files after set-up, for debugging",
                              boolean<Config>([](auto& config) -> auto& { return config.keep_privileges; })}});
}

}  // namespace warpline::config
