// SPDX-License-Identifier: Apache-2.0
// Configuration files, environments and command lines of any bytes: a configuration or an error, and what is printed
// is read back the same.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "config/help.h"
#include "config/load.h"

namespace warpline {
namespace {

config::ReadFile file_of(std::string text) {
  return [text = std::move(text)](const std::string&) -> Result<std::string> { return text; };
}

[[noreturn]] void fail(const std::string& why) {
  std::fprintf(stderr, "%s\n", why.c_str());
  std::abort();
}

void check_error(const Error& error) {
  if (error.kind != ErrorKind::usage || error.what.empty() || error.why.empty() || error.fix.empty()) {
    fail("incomplete error: " + error.message());
  }
  if (error.message().find('\n') != std::string::npos) fail("an error of several lines");
}

void check(const Result<config::LoadedConfig>& loaded) {
  if (!loaded.ok()) return check_error(loaded.error());
  for (const Error& problem : loaded->problems) check_error(problem);
  if (!loaded->problems.empty() || loaded->config.command == config::Command::doctor) return;
  const std::string printed = loaded->to_json().dump();
  const auto again = config::load({"config", "show", std::string(name(loaded->config.command)), "--config", "x"}, {},
                                  file_of(printed));
  if (!again.ok()) fail(again.error().message());
  if (!again->problems.empty()) fail(again->problems.front().message() + "\n" + printed);
  if (!(again->config == loaded->config)) fail("changed on the way:\n" + printed + "\n" + again->to_json().dump());
}

/// Words parted by line ends.
std::vector<std::string> words(std::string_view text) {
  std::vector<std::string> result;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    result.emplace_back(text.substr(0, end));
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
  }
  return result;
}

void run(std::uint8_t form, std::string_view text) {
  const std::string command = (form & 4U) != 0 ? "generate" : "forward";
  switch (form & 3U) {
    case 0:  // a file
      return check(config::load({"config", "check", command, "--config", "x"}, {}, file_of(std::string(text))));
    case 1: {  // the options of a command
      std::vector<std::string> arguments = words(text);
      arguments.insert(arguments.begin(), command);
      if (!config::requested_text(arguments, "")) check(config::load(arguments, {}, file_of("")));
      return;
    }
    case 2: {  // variables, NAME=VALUE a line; a value cannot hold a NUL
      config::Environment environment;
      for (const std::string& line : words(text)) {
        const std::size_t equals = line.find('=');
        environment["WARPLINE_" + line.substr(0, equals)] = equals == std::string::npos ? "" : line.substr(equals + 1);
      }
      return check(config::load({command, "--loopback"}, environment, file_of("")));
    }
    default: {  // a whole command line
      const std::vector<std::string> arguments = words(text);
      if (!config::requested_text(arguments, "")) check(config::load(arguments, {}, file_of("")));
    }
  }
}

}  // namespace
}  // namespace warpline

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size != 0) warpline::run(data[0], {reinterpret_cast<const char*>(data) + 1, size - 1});
  return 0;
}
