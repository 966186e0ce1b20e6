// SPDX-License-Identifier: Apache-2.0
#include "config/check/check_message.h"

#include <fmt/format.h>

#include <algorithm>
#include <variant>

#include "config/check/checker.h"

namespace warpline::config {
namespace {

constexpr std::uint32_t kLongestLinkHeader = 18;  ///< Ethernet's with a tag
constexpr std::uint32_t kLeastDatagram = 256;     ///< EndpointConfig::datagram_bytes

class MessageChecker : Checker {
 public:
  MessageChecker(const Config& config, const GivenOptions& given) : Checker(config, given) {}

  std::vector<Error> run() && {
    const MessageConfig& message = config_.message;
    check_role();
    if (config_.ports.size() > 1) {
      refuse(fmt::format("cannot use {} ports", config_.ports.size()), "message drives one", "leave all but one out");
    } else if (on_socket()) {
      for (const auto option : {"address", "gateway", "vlan", "udp-checksum", "mtu"}) {
        refuse_idle(option, "the kernel sees to it for sockets", "add --port SPEC, or leave it out");
      }
      refuse_idle("telemetry", "DPDK does not run for sockets", "use --metrics, or add --port SPEC");
    } else {
      check_link(config_.ports.front());
    }
    check_key();
    check_memory();
    if (config_.role == Role::daemon) check_daemon();
    if (!message.go_back_n && config_.role == Role::client) {
      for (const auto option : {"rto", "credits"}) {
        refuse_idle(option, "selective repeat finds its own", "add --reliability go-back-n");
      }
    }
    if (message.bidir && message.test != MessageTest::bandwidth) {
      refuse(fmt::format("cannot use {}", place("bidir")), "only the bandwidth test has one direction",
             "add --test bandwidth");
    }
    if (message.rate != 0 && message.test == MessageTest::incast) {
      refuse(fmt::format("cannot combine {} with {} incast", place("rate"), place("test")),
             "a round begins when the one before has ended", "leave one out");
    }
    if (message.datagram != 0 && message.datagram < kLeastDatagram) {
      refuse(fmt::format("cannot use {} {}", place("datagram"), message.datagram), "headers need room",
             fmt::format("use {} or more, or 0", kLeastDatagram));
    }
    return std::move(problems_);
  }

 private:
  [[nodiscard]] bool on_socket() const { return config_.ports.empty() || config_.ports.front().spec == "socket"; }

  /// What is encrypted is one piece of memory.
  void check_key() {
    if (!config_.message.key.empty()) need_one_buffer(place("key"), "a packet that is encrypted lies in one buffer");
  }

  void check_memory() {
    const memory::MemoryKind memory = config_.pool.memory;
    if (memory == memory::MemoryKind::host) {
      refuse_idle("gpu", "messages are in ordinary host memory", "add -m pinned or -m device");
    }
    if (memory != memory::MemoryKind::device) return;
    const std::string device = fmt::format("{} device", place("memory"));
    need_one_buffer(device, "the GPU copies payload behind its headers");
    if (config_.message.key.empty()) return;
    refuse(fmt::format("cannot combine {} with {}", place("key"), device),
           "the CPU encrypts, and cannot read GPU memory", "use -m pinned");
  }

  void need_one_buffer(const std::string& what, std::string why) {
    const std::uint32_t room = config_.pool.data_room;
    if (on_socket() || room == 0) return;
    const std::uint32_t frame = config_.ports.front().mtu + kLongestLinkHeader;
    if (room >= frame) return;
    refuse(fmt::format("cannot combine {} with {} {}", what, place("data-room"), room), std::move(why),
           fmt::format("use --data-room {} or 0", frame));
  }

  void check_daemon() {
    const MessageConfig& message = config_.message;
    if (message.daemon.path.empty()) {
      refuse("message daemon has no socket", "--attach is not given",
             "add --attach PATH, such as --attach /run/warpline.sock");
    }
    if (message.workers != 1) {
      refuse(fmt::format("cannot use {} {}", place("workers"), message.workers), "a daemon has one endpoint",
             "start a daemon for each, with ports of their own");
    }
    if (config_.pool.memory != memory::MemoryKind::host) {
      refuse(fmt::format("cannot use {} with a daemon", place("memory")), "its clients' messages are in host memory",
             "leave it out");
    }
    auto sized = daemon::with_room_for_clients({}, message.daemon);
    if (!sized) problems_.push_back(std::move(sized).error());
  }

  void refuse_idle_of_others(Role own, const std::string& why, const std::string& fix) {
    for (const Option& option : options()) {
      if (option.taken_by(Command::message) && !option.is_for(own)) refuse_idle(option.name, why, fix);
    }
  }

  void check_role() {
    const MessageConfig& message = config_.message;
    if (config_.role == Role::daemon) {
      refuse_idle_of_others(Role::daemon, "programs that attach say what is done",
                            "leave it out, or use message client");
      return;
    }
    if (config_.role == Role::client) {
      refuse_idle_of_others(Role::client, "a client listens nowhere", "leave it out, or use message server");
      if (message.connect.empty()) {
        refuse("message client has no server", "--connect is not given",
               "add --connect ADDR:PORT, such as --connect 127.0.0.1:24240");
      }
      const auto family = [](const SocketAddress& server) { return server.address.index(); };
      if (std::ranges::adjacent_find(message.connect, std::ranges::not_equal_to{}, family) != message.connect.end()) {
        refuse(fmt::format("cannot combine the servers of {}", place("connect")), "some are IPv4, some IPv6",
               "use a client for each");
      }
      if (message.parallel > std::uint64_t{message.sessions} * message.workers) {
        refuse(fmt::format("cannot use {} {}", place("parallel"), message.parallel),
               fmt::format("{} workers have {} sessions each", message.workers, message.sessions), "add --sessions N");
      }
      if (message.workers > message.parallel) {
        refuse(fmt::format("cannot use {} {}", place("workers"), message.workers),
               fmt::format("there are {} sessions to share", message.parallel), "add --parallel N");
      } else if (message.requests != 0 && message.requests < message.workers) {
        refuse(fmt::format("cannot use {} {}", place("requests"), message.requests),
               fmt::format("each of {} workers makes one at least", message.workers), "make it more, or use fewer");
      }
      return;
    }
    for (const Option& option : options()) {
      if (!option.taken_by(Command::message) || option.is_for(Role::server)) continue;
      if (option.is_for(Role::daemon)) {
        refuse_idle(option.name, "nobody attaches to a server", "leave it out, or use message daemon");
      } else {
        refuse_idle(option.name, "the client says what is done", "leave it out, or use message client");
      }
    }
  }

  void check_link(const port::PortSettings& port) {
    const MessageConfig& message = config_.message;
    bool families[2] = {false, false};
    for (const InterfaceAddress& address : port.addresses) {
      bool& has = families[address.address.index()];
      if (has) {
        refuse(fmt::format("cannot use {} with several of one IP version", place("address")),
               "it is not said which one to talk from", "leave one of each");
        break;
      }
      has = true;
    }
    if (port.addresses.empty()) {
      refuse(fmt::format("cannot talk by port {}", port.spec), "it has no address", "add --address ADDR/LEN");
      return;
    }
    if (message.gateway && !families[message.gateway->index()]) {
      refuse(fmt::format("cannot use {} {}", place("gateway"), to_string(*message.gateway)),
             "the port has no address of that IP version", "add one to --address: A/LEN+B/LEN");
    }
    if (config_.role == Role::client) {
      for (const SocketAddress& server : message.connect) {
        if (families[server.address.index()]) continue;
        refuse(fmt::format("cannot use {} {}", place("connect"), to_string(server)),
               "the port has no address of that IP version", "add one to --address: A/LEN+B/LEN");
      }
      return;
    }
    const bool any =
        message.listen.address == IpAddress{Ipv4Address{}} || message.listen.address == IpAddress{Ipv6Address{}};
    const bool own =
        std::ranges::find(port.addresses, message.listen.address, &InterfaceAddress::address) != port.addresses.end();
    if (!any && !own) {
      refuse(fmt::format("cannot use {} {}", place("listen"), to_string(message.listen)),
             "the port has another address", "use one of --address, or 0.0.0.0 for all");
    }
  }
};

}  // namespace

std::vector<Error> check_message(const Config& config, const GivenOptions& given) {
  return MessageChecker(config, given).run();
}

}  // namespace warpline::config
