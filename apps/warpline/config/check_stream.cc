// SPDX-License-Identifier: Apache-2.0
#include "config/check_stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

namespace warpline::config {

std::vector<Error> check_stream(const Config& config, const GivenOptions& given, bool needs_port) {
  std::vector<Error> problems;
  const auto refuse = [&](std::string what, std::string why, std::string fix) {
    problems.push_back(usage_error(std::move(what), std::move(why), std::move(fix)));
  };
  const std::string command = fmt::format("stream {}", name(config.role));
  for (const Option& option : options()) {
    if (!option.taken_by(Command::stream) || option.is_for(config.role)) continue;
    const GivenOption place = given(option.name);
    if (place.source != Source::flag && place.source != Source::environment) continue;
    refuse(fmt::format("cannot use {}", place.place), fmt::format("it is for stream {}", name(option.roles.front())),
           "leave it out");
  }
  const std::string address = given("address").place;
  if (config.ports.size() > 1) {
    refuse(fmt::format("cannot use {} ports", config.ports.size()), "stream drives one", "leave all but one out");
  }
  for (const port::PortSettings& port : config.ports) {
    if (port.addresses.empty()) {
      refuse(fmt::format("cannot listen on port {}", port.spec), "it has no address", "add --address ADDR/LEN");
    } else if (port.addresses.size() > 1) {
      refuse(fmt::format("cannot use {} with {} addresses", address, port.addresses.size()),
             fmt::format("{} listens on one", command), "leave the others out");
    }
  }
  std::vector<std::uint16_t> listen = config.stream.listen;
  std::ranges::sort(listen);
  if (const auto twice = std::ranges::adjacent_find(listen); twice != listen.end()) {
    refuse(fmt::format("cannot use {} {}", given("listen").place, *twice), "it is there twice", "leave one out");
  }
  if (needs_port && listen.empty()) {
    refuse(fmt::format("{} listens nowhere", command), "--listen is not given",
           "add --listen PORT, such as --listen 5001");
  }
  if (config.role == Role::proxy && needs_port && !config.stream.connect) {
    refuse("stream proxy has no server", "--connect is not given",
           "add --connect ADDR:PORT, such as --connect 10.0.0.9:24240");
  }
  return problems;
}

}  // namespace warpline::config
