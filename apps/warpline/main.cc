// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

#include <exception>
#include <string>
#include <vector>

#include "commands.h"
#include "config/help.h"
#include "config/load.h"
#include "measure/facts.h"

namespace warpline {
namespace {

/// Stdout is for data. One line a message, so that scripts can take stderr apart.
void log_to_stderr() {
  spdlog::set_default_logger(spdlog::stderr_logger_mt("warpline"));
  spdlog::set_pattern("%n: %v");
}

int run(const std::vector<std::string>& arguments) {
  if (const auto text = requested_text(arguments, build_facts().at("version").get<std::string>())) {
    fmt::print("{}", *text);
    return 0;
  }
  const auto loaded = load(arguments, process_environment(), read_text_file);
  if (!loaded) {
    spdlog::error("{}", loaded.error().message());
    return static_cast<int>(loaded.error().kind);
  }
  // There is no default, so the compiler refuses a command without a case.
  switch (loaded->command) {
    case Command::forward:
      return run_forward(*loaded);
    case Command::l3forward:
      return run_l3forward(*loaded);
    case Command::generate:
      return run_generate(*loaded);
    case Command::message:
      return run_message(*loaded);
    case Command::bench:
      return run_bench(*loaded);
    case Command::config:
      return run_config(*loaded);
    case Command::doctor:
      return run_doctor(*loaded);
  }
  __builtin_unreachable();  // load() knows no other
}

}  // namespace
}  // namespace warpline

int main(int argc, char** argv) {
  try {
    warpline::log_to_stderr();
    return warpline::run({argv + 1, argv + argc});
  } catch (const std::exception& exception) {  // out of memory, mostly: nothing of ours throws
    fmt::print(stderr, "warpline: cannot go on: {}; free some memory and try again\n", exception.what());
    return static_cast<int>(warpline::ErrorKind::environment);
  }
}
