// SPDX-License-Identifier: Apache-2.0
#include "config/check/check_stream.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "config/check/checker.h"
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

class StreamChecker : Checker {
 public:
  StreamChecker(const Config& config, const GivenOptions& given, bool needs_port)
      : Checker(config, given), needs_port_(needs_port), command_(fmt::format("stream {}", name(config.role))) {}

  std::vector<Error> run() && {
    check_role();
    check_addresses();
    check_mtu();
    check_listen();
    if (config_.role == Role::proxy && needs_port_ && !config_.stream.connect) {
      refuse("stream proxy has no server", "--connect is not given",
             "add --connect ADDR:PORT, such as --connect 10.0.0.9:24240");
    }
    if (config_.run.verify && !config_.stream.output.empty()) {
      refuse(fmt::format("cannot combine {} with {}", place("verify"), place("output")),
             "bytes are compared or written", "leave one out");
    }
    if (config_.role != Role::proxy) check_engine();
    if (config_.role == Role::receive) {
      check_io();
      check_processing();
      check_chunk();
    }
    if (config_.role == Role::send) check_send();
    return std::move(problems_);
  }

 private:
  void check_role() {
    for (const Option& option : options()) {
      if (!option.taken_by(Command::stream) || option.is_for(config_.role)) continue;
      std::vector<std::string_view> names;
      for (const Role role : option.roles) names.push_back(name(role));
      refuse_idle(option.name, fmt::format("it is for stream {}", fmt::join(names, " and stream ")), "leave it out");
    }
  }

  void check_addresses() {
    if (config_.ports.size() > 1) {
      refuse(fmt::format("cannot use {} ports", config_.ports.size()), "stream drives one", "leave all but one out");
    }
    const bool sends = config_.role == Role::send;
    for (const port::PortSettings& port : config_.ports) {
      if (port.addresses.empty()) {
        refuse(fmt::format("cannot {} port {}", sends ? "send from" : "listen on", port.spec), "it has no address",
               "add --address ADDR/LEN");
      } else if (port.addresses.size() > 1) {
        refuse(fmt::format("cannot use {} with {} addresses", place("address"), port.addresses.size()),
               fmt::format("{} {} one", command_, sends ? "sends from" : "listens on"), "leave the others out");
      }
    }
    for (const port::PortSettings& port : config_.ports) {
      if (port.addresses.empty() || is_of_a_host(port.addresses.front())) continue;
      refuse(fmt::format("cannot use {} {}", place("address"), to_string(port.addresses.front())),
             "no host has that address", "name one that a host may have, and its link's length");
    }
  }

  void check_mtu() {
    for (const port::PortSettings& port : config_.ports) {
      const bool v6 = !port.addresses.empty() && std::holds_alternative<Ipv6Address>(port.addresses.front().address);
      const int least = v6 ? 1280 : 576;
      if (port.mtu >= least) continue;
      refuse(fmt::format("cannot use {} {}", place("mtu"), port.mtu),
             fmt::format("TCP over IPv{} needs {} bytes", v6 ? 6 : 4, least), fmt::format("use {} or more", least));
    }
  }

  void check_listen() {
    std::vector<std::uint16_t> listen = config_.stream.listen;
    std::ranges::sort(listen);
    if (const auto twice = std::ranges::adjacent_find(listen); twice != listen.end()) {
      refuse(fmt::format("cannot use {} {}", place("listen"), *twice), "it is there twice", "leave one out");
    }
    if (config_.role != Role::send && needs_port_ && listen.empty()) {
      refuse(fmt::format("{} listens nowhere", command_), "--listen is not given",
             "add --listen PORT, such as --listen 5001");
    }
  }

  /// What takes segments, and where.
  void check_engine() {
    const StreamConfig& stream = config_.stream;
    const std::string engine = fmt::format("{} {}", place("engine"), name(stream.engine));
    if (stream.engine == EngineKind::graph) {
      refuse(fmt::format("cannot use {}", engine), "each burst of a queue is a launch of its own",
             "use --engine launch or persistent");
    }
    if (config_.role == Role::send && stream.engine == EngineKind::persistent) {
      refuse(fmt::format("cannot use {}", engine), "each burst of frames that are filled is a launch of its own",
             "use --engine launch");
    }
    const bool on_gpu = runs_on_gpu(stream.engine);
    if (stream.memory && (*stream.memory == memory::MemoryKind::host) == on_gpu) {
      refuse(fmt::format("cannot combine {} with {} {}", engine, place("memory"), name(*stream.memory)),
             on_gpu ? "a GPU cannot write ordinary host memory" : "the CPU writes the rings, in ordinary host memory",
             on_gpu ? "use -m device or pinned" : "use -m host, or an engine on a GPU");
    }
    if (!on_gpu) {
      refuse_idle("gpu", "the engine does not run on a GPU", "leave it out, or add --engine persistent");
    }
    if (stream.engine == EngineKind::inline_) {
      refuse_idle("watchdog", "the queue's own thread is the engine", "leave it out, or add --engine persistent");
    }
    if (stream.ack == ProcessorKind::gpu && stream.engine == EngineKind::inline_) {
      refuse(fmt::format("cannot use {} gpu", place("ack")), "the queue's own thread is the engine",
             "use --ack cpu, or add --engine persistent, launch or thread");
    }
  }

  /// What takes packets by itself.
  void check_io() {
    const StreamConfig& stream = config_.stream;
    if (stream.io == ProcessorKind::cpu) return;
    const std::string io = fmt::format("{} gpu", place("io"));
    if (stream.engine != EngineKind::thread && stream.engine != EngineKind::persistent) {
      refuse(fmt::format("cannot combine {} with {} {}", io, place("engine"), name(stream.engine)),
             "packets are taken by what runs all the time beside the CPU that receives",
             "add --engine persistent, or --engine thread to try it without a GPU");
    }
    if (stream.vlan != 0) {
      refuse(fmt::format("cannot combine {} with {} {}", io, place("vlan"), stream.vlan),
             "the CPU takes tags off and looks at no packet", "leave one out");
    }
  }

  /// Without processing there are no bytes that anything could be done with.
  void check_processing() {
    if (config_.stream.processing) return;
    const char* const needs = config_.run.verify ? "verify" : !config_.stream.output.empty() ? "output" : nullptr;
    if (needs != nullptr) {
      refuse(fmt::format("cannot combine {} off with {}", place("processing"), place(needs)),
             "bytes are acknowledged and kept nowhere", "leave one out");
    }
    for (const char* const of_rings : {"populate", "memory"}) {
      refuse_idle(of_rings, "without processing nothing is written to the rings", "leave it out");
    }
  }

  /// A chunk waits in its ring, beside what comes behind it.
  void check_chunk() {
    constexpr std::uint64_t kLeast = 4096;
    const StreamConfig& stream = config_.stream;
    if (stream.chunk == 0) return;
    const std::string chunk = fmt::format("{} {}", place("chunk"), stream.chunk);
    if (stream.chunk < kLeast) {
      refuse(fmt::format("cannot use {}", chunk), "a segment may bring more", fmt::format("use {} or more", kLeast));
    } else if (stream.chunk > stream.ring / 2) {
      refuse(fmt::format("cannot combine {} with {} {}", chunk, place("ring"), stream.ring),
             "what comes behind a chunk needs place, too", "use a ring of twice the chunk or more");
    }
  }

  void check_send() {
    const StreamConfig& stream = config_.stream;
    if (!stream.connect) {
      if (!needs_port_) return;
      refuse("stream send has no receiver", "--connect is not given",
             "add --connect ADDR:PORT, such as --connect 10.0.0.2:5001");
      return;
    }
    if (stream.pipelines > stream.parallel) {
      refuse(fmt::format("cannot combine {} {} with {} {}", place("pipelines"), stream.pipelines, place("parallel"),
                         stream.parallel),
             "each queue has connections of its own", "use as many connections or more");
    }
    const std::string connect = fmt::format("{} {}", place("connect"), to_string(*stream.connect));
    if (!std::visit([](const auto& address) { return route::is_host(address); }, stream.connect->address)) {
      refuse(fmt::format("cannot use {}", connect), "no host has that address", "name one host's");
      return;
    }
    for (const port::PortSettings& port : config_.ports) {
      if (!port.addresses.empty()) check_way(port.addresses.front(), connect);
    }
    if (stream.chunk != 0 && stream.bytes != 0 && stream.chunk > stream.bytes) {
      refuse(fmt::format("cannot use {} {}", place("chunk"), stream.chunk),
             fmt::format("a connection has {} bytes", stream.bytes), "use as many or fewer");
    }
  }

  /// From a port with the address `own` to the receiver, which `connect` names as it was given.
  void check_way(const InterfaceAddress& own, const std::string& connect) {
    const StreamConfig& stream = config_.stream;
    if (own.address.index() != stream.connect->address.index()) {
      refuse(fmt::format("cannot use {}", connect),
             fmt::format("the port's {} is of the other IP version", to_string(own)),
             "give the port an address of that version");
    } else if (own.address == stream.connect->address) {
      refuse(fmt::format("cannot use {}", connect), "that is the port's own address", "name the receiver's");
    } else if (!route::is_neighbour(own, stream.gateway ? *stream.gateway : stream.connect->address)) {
      const std::string hop =
          stream.gateway ? fmt::format("{} {}", place("gateway"), to_string(*stream.gateway)) : connect;
      refuse(fmt::format("cannot use {}", hop), fmt::format("it is no neighbour of {}", to_string(own)),
             "add --gateway IP, of a router on the port's link");
    }
  }

  bool needs_port_;
  std::string command_;  ///< "stream receive"
};

}  // namespace

std::vector<Error> check_stream(const Config& config, const GivenOptions& given, bool needs_port) {
  return StreamChecker(config, given, needs_port).run();
}

}  // namespace warpline::config
