// SPDX-License-Identifier: Apache-2.0
// `warpline ctl`: tells a running process to do something.
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <chrono>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "attach/telemetry_client.h"
#include "commands.h"
#include "running/connect.h"
#include "warpline/base/output.h"

namespace warpline {

Result<int> run_ctl(const config::LoadedConfig& loaded) {
  constexpr std::chrono::seconds kPatience{65};  // more than the process itself has
  constexpr std::string_view kRefused = "refused: ";
  WARPLINE_TRY(attach::TelemetryClient process, connect_to_process(loaded.config.attach));
  WARPLINE_TRY(const nlohmann::json answer, process.ask("/warpline/reload", kPatience));
  if (!answer.is_string()) {
    return Error{ErrorKind::peer, fmt::format("cannot reload {}", process.name()),
                 "it is no run of warpline, or is about to end", "try again, or start it again"};
  }
  const auto said = answer.get<std::string>();
  const bool refused = said.starts_with(kRefused);
  const std::string text = refused ? said.substr(kRefused.size()) : said;
  if (loaded.config.run.json) {
    const nlohmann::ordered_json json = {{"schema_version", 1},
                                         {"command", "ctl reload"},
                                         {"pid", process.pid()},
                                         {"reloaded", !refused},
                                         {"answer", text}};
    put_line(stdout, json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
  } else if (refused) {
    spdlog::error("{}", text);
  } else {
    put_line(stdout, text);
  }
  return refused ? static_cast<int>(ErrorKind::usage) : 0;
}

}  // namespace warpline
