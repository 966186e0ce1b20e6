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
  const std::string address = given("address").place;
  if (config.ports.size() > 1) {
    refuse(fmt::format("cannot use {} ports", config.ports.size()), "stream drives one", "leave all but one out");
  }
  for (const port::PortSettings& port : config.ports) {
    if (port.addresses.empty()) {
      refuse(fmt::format("cannot listen on port {}", port.spec), "it has no address", "add --address ADDR/LEN");
    } else if (port.addresses.size() > 1) {
      refuse(fmt::format("cannot use {} with {} addresses", address, port.addresses.size()),
             "stream receive listens on one", "leave the others out");
    }
  }
  std::vector<std::uint16_t> listen = config.stream.listen;
  std::ranges::sort(listen);
  if (const auto twice = std::ranges::adjacent_find(listen); twice != listen.end()) {
    refuse(fmt::format("cannot use {} {}", given("listen").place, *twice), "it is there twice", "leave one out");
  }
  if (needs_port && listen.empty()) {
    refuse("stream receive listens nowhere", "--listen is not given", "add --listen PORT, such as --listen 5001");
  }
  return problems;
}

}  // namespace warpline::config
