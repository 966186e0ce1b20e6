// SPDX-License-Identifier: Apache-2.0
#include "config/check/check_stream.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "warpline/route/prefix.h"

namespace warpline::config {
namespace {

/// Whether a host may have that address on its link: it is none of a group, and not that of the link or its broadcast.
bool is_of_a_host(const InterfaceAddress& own) {
  if (const auto* v6 = std::get_if<Ipv6Address>(&own.address)) return route::is_host(*v6);
  const auto& v4 = std::get<Ipv4Address>(own.address);
  const unsigned length = own.prefix_length;
  if (!route::is_host(v4)) return false;
  return length >= 31 || (v4 != route::masked(v4, length) && v4 != route::broadcast(v4, length));
}

/// What contradicts itself in `stream send` alone.
std::vector<Error> check_send(const Config& config, const GivenOptions& given, bool needs_port) {
  std::vector<Error> problems;
  const config::StreamConfig& stream = config.stream;
  const auto refuse = [&](std::string what, std::string why, std::string fix) {
    problems.push_back(usage_error(std::move(what), std::move(why), std::move(fix)));
  };
  if (!stream.connect) {
    if (needs_port) {
      refuse("stream send has no receiver", "--connect is not given",
             "add --connect ADDR:PORT, such as --connect 10.0.0.2:5001");
    }
    return problems;
  }
  const std::string connect = fmt::format("{} {}", given("connect").place, to_string(*stream.connect));
  if (!std::visit([](const auto& address) { return route::is_host(address); }, stream.connect->address)) {
    refuse(fmt::format("cannot use {}", connect), "no host has that address", "name one host's");
    return problems;
  }
  for (const port::PortSettings& port : config.ports) {
    if (port.addresses.empty()) continue;
    const InterfaceAddress& own = port.addresses.front();
    if (own.address.index() != stream.connect->address.index()) {
      refuse(fmt::format("cannot use {}", connect),
             fmt::format("the port's {} is of the other IP version", to_string(own)),
             "give the port an address of that version");
    } else if (own.address == stream.connect->address) {
      refuse(fmt::format("cannot use {}", connect), "that is the port's own address", "name the receiver's");
    } else if (!route::is_neighbour(own, stream.gateway ? *stream.gateway : stream.connect->address)) {
      const std::string hop =
          stream.gateway ? fmt::format("{} {}", given("gateway").place, to_string(*stream.gateway)) : connect;
      refuse(fmt::format("cannot use {}", hop), fmt::format("it is no neighbour of {}", to_string(own)),
             "add --gateway IP, of a router on the port's link");
    }
  }
  if (stream.chunk != 0 && stream.bytes != 0 && stream.chunk > stream.bytes) {
    refuse(fmt::format("cannot use {} {}", given("chunk").place, stream.chunk),
           fmt::format("a connection has {} bytes", stream.bytes), "use as many or fewer");
  }
  return problems;
}

/// What takes segments, and where.
std::vector<Error> check_engine(const Config& config, const GivenOptions& given) {
  std::vector<Error> problems;
  const config::StreamConfig& stream = config.stream;
  const std::string engine = fmt::format("{} {}", given("engine").place, name(stream.engine));
  const auto refuse = [&](std::string what, std::string why, std::string fix) {
    problems.push_back(usage_error(std::move(what), std::move(why), std::move(fix)));
  };
  if (stream.engine == EngineKind::graph) {
    refuse(fmt::format("cannot use {}", engine), "each burst of a queue is a launch of its own",
           "use --engine launch or persistent");
  }
  const bool on_gpu = runs_on_gpu(stream.engine);
  if (stream.memory && (*stream.memory == memory::MemoryKind::host) == on_gpu) {
    refuse(fmt::format("cannot combine {} with {} {}", engine, given("memory").place, name(*stream.memory)),
           on_gpu ? "a GPU cannot write ordinary host memory" : "the CPU writes the rings, in ordinary host memory",
           on_gpu ? "use -m device or pinned" : "use -m host, or an engine on a GPU");
  }
  const GivenOption gpu = given("gpu");
  if (!on_gpu && (gpu.source == Source::flag || gpu.source == Source::environment)) {
    refuse(fmt::format("cannot use {}", gpu.place), "the engine does not run on a GPU",
           "leave it out, or add --engine persistent");
  }
  return problems;
}

}  // namespace

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
    std::vector<std::string_view> names;
    for (const Role role : option.roles) names.push_back(name(role));
    refuse(fmt::format("cannot use {}", place.place),
           fmt::format("it is for stream {}", fmt::join(names, " and stream ")), "leave it out");
  }
  const std::string address = given("address").place;
  if (config.ports.size() > 1) {
    refuse(fmt::format("cannot use {} ports", config.ports.size()), "stream drives one", "leave all but one out");
  }
  for (const port::PortSettings& port : config.ports) {
    if (port.addresses.empty()) {
      refuse(fmt::format("cannot {} port {}", config.role == Role::send ? "send from" : "listen on", port.spec),
             "it has no address", "add --address ADDR/LEN");
    } else if (port.addresses.size() > 1) {
      refuse(fmt::format("cannot use {} with {} addresses", address, port.addresses.size()),
             fmt::format("{} {} one", command, config.role == Role::send ? "sends from" : "listens on"),
             "leave the others out");
    }
  }
  for (const port::PortSettings& port : config.ports) {
    if (port.addresses.empty() || is_of_a_host(port.addresses.front())) continue;
    refuse(fmt::format("cannot use {} {}", address, to_string(port.addresses.front())), "no host has that address",
           "name one that a host may have, and its link's length");
  }
  for (const port::PortSettings& port : config.ports) {
    const bool v6 = !port.addresses.empty() && std::holds_alternative<Ipv6Address>(port.addresses.front().address);
    const int least = v6 ? 1280 : 576;
    if (port.mtu >= least) continue;
    refuse(fmt::format("cannot use {} {}", given("mtu").place, port.mtu),
           fmt::format("TCP over IPv{} needs {} bytes", v6 ? 6 : 4, least), fmt::format("use {} or more", least));
  }
  std::vector<std::uint16_t> listen = config.stream.listen;
  std::ranges::sort(listen);
  if (const auto twice = std::ranges::adjacent_find(listen); twice != listen.end()) {
    refuse(fmt::format("cannot use {} {}", given("listen").place, *twice), "it is there twice", "leave one out");
  }
  if (config.role != Role::send && needs_port && listen.empty()) {
    refuse(fmt::format("{} listens nowhere", command), "--listen is not given",
           "add --listen PORT, such as --listen 5001");
  }
  if (config.role == Role::proxy && needs_port && !config.stream.connect) {
    refuse("stream proxy has no server", "--connect is not given",
           "add --connect ADDR:PORT, such as --connect 10.0.0.9:24240");
  }
  if (config.run.verify && !config.stream.output.empty()) {
    refuse(fmt::format("cannot combine {} with {}", given("verify").place, given("output").place),
           "bytes are compared or written", "leave one out");
  }
  if (config.role == Role::receive) {
    std::ranges::move(check_engine(config, given), std::back_inserter(problems));
  }
  if (config.role == Role::send) std::ranges::move(check_send(config, given, needs_port), std::back_inserter(problems));
  return problems;
}

}  // namespace warpline::config
