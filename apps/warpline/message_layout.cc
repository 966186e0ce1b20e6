// SPDX-License-Identifier: Apache-2.0
#include "message_layout.h"

#include <algorithm>
#include <bit>

namespace warpline {
namespace {

constexpr std::uint32_t kLongestSource = 16U << 20;
constexpr std::uint32_t kIpv4Headers = 28;  ///< IP and UDP
constexpr std::uint32_t kIpv6Headers = 48;

}  // namespace

MessagePlan::MessagePlan(const config::Config& config) : config_(config) {}

bool MessagePlan::any_v6() const {
  const auto is_v6 = [](const IpAddress& address) { return std::holds_alternative<Ipv6Address>(address); };
  const config::MessageConfig& message = config_.message;
  if (client() && !message.connect.empty()) return is_v6(message.connect.front().address);
  if (on_socket()) return is_v6(message.listen.address);
  return std::ranges::any_of(config_.ports.front().addresses, is_v6, &InterfaceAddress::address);
}

std::uint32_t MessagePlan::datagram_bytes() const {
  if (config_.message.datagram != 0) return config_.message.datagram;
  const std::uint16_t mtu = on_socket() ? config_.port_defaults.mtu : config_.ports.front().mtu;
  return mtu - (any_v6() ? kIpv6Headers : kIpv4Headers);
}

std::uint32_t MessagePlan::length() const {
  if (config_.message.length) return *config_.message.length;
  switch (config_.message.test) {
    case config::MessageTest::rate:
    case config::MessageTest::latency:
      return 32;
    case config::MessageTest::bandwidth:
      return 1U << 20;
    case config::MessageTest::incast:
      return 64U << 10;
    case config::MessageTest::echo:
      break;
  }
  return 64;
}

std::uint32_t MessagePlan::outstanding() const {
  if (config_.message.outstanding) return *config_.message.outstanding;
  if (config_.message.test == config::MessageTest::rate) return 64;
  return config_.message.test == config::MessageTest::bandwidth ? 2 : 1;
}

std::uint32_t MessagePlan::longest() const {
  return client() && config_.message.test != config::MessageTest::incast ? length() : kLongestSource;
}

std::uint32_t MessagePlan::sessions_of(std::uint16_t worker) const {
  const config::MessageConfig& message = config_.message;
  return message.parallel / message.workers + (worker < message.parallel % message.workers ? 1 : 0);
}

service::MessageClient::Plan MessagePlan::client_plan(std::uint16_t worker) const {
  const config::MessageConfig& message = config_.message;
  service::MessageClient::Plan plan;
  switch (message.test) {
    case config::MessageTest::bandwidth:
      plan.service = config_.run.verify ? service::MessageService::sink_hash : service::MessageService::sink;
      if (message.bidir) plan.service = service::MessageService::echo;
      break;
    case config::MessageTest::incast:
      plan.service = service::MessageService::source;
      plan.rounds = true;
      break;
    default:
      break;
  }
  plan.length = length();
  plan.outstanding = outstanding();
  for (std::uint16_t before = 0; before < worker; ++before) plan.first_session += sessions_of(before);
  for (std::uint32_t i = 0; i < sessions_of(worker); ++i) {
    const SocketAddress& server = message.connect[(plan.first_session + i) % message.connect.size()];
    plan.peers.push_back(message::peer_address(server));
  }
  plan.requests = message.requests / message.workers + (worker < message.requests % message.workers ? 1 : 0);
  plan.rate = static_cast<double>(message.rate) * sessions_of(worker) / message.parallel;
  plan.verify = config_.run.verify;
  plan.priority = message.priority;
  plan.reconnect = message.reconnect;
  return plan;
}

message::EndpointConfig MessagePlan::endpoint(std::uint16_t worker) const {
  const config::MessageConfig& message = config_.message;
  message::EndpointConfig config;
  config.endpoint = static_cast<std::uint8_t>(worker);
  if (!client()) config.endpoints = message.workers;
  config.accept = !client();
  config.max_sessions = client() ? sessions_of(worker) : message.sessions;
  const std::uint64_t own = client() ? std::uint64_t{sessions_of(worker)} * outstanding() : message.sessions * 16ULL;
  config.max_messages = static_cast<std::uint32_t>(std::bit_ceil(std::clamp<std::uint64_t>(own, 1 << 12, 1 << 20)));
  config.quotas = message.quotas;
  config.stranger_packets = message.strangers;
  config.receive_bytes = client() ? 16U << 20 : 128U << 20;
  config.datagram_bytes = datagram_bytes();
  config.reliability = message.go_back_n ? message::Reliability::go_back_n : message::Reliability::selective;
  config.credits = message.credits;
  config.fixed_rto = message.rto;
  config.grants = message.grants;
  config.cc.kind = message.cc;
  config.peer_timeout = message.peer_timeout;
  return config;
}

transport::MessagePortConfig MessagePlan::port(std::uint16_t own_port) const {
  const config::MessageConfig& message = config_.message;
  transport::MessagePortConfig config;
  config.workers = message.workers;
  config.udp_port = client() ? own_port : message.listen.port;
  config.own_ports = client();
  config.gateway = message.gateway;
  if (message.vlan != 0) config.vlan = message.vlan;
  config.max_sessions = client() ? sessions_of(0) : message.sessions;
  config.datagram_bytes = datagram_bytes();
  config.udp_checksum = message.udp_checksum;
  config.pool = config_.pool;
  // What the GPU copies to and from; pinned messages themselves are no packets.
  const bool copies = config_.pool.memory == memory::MemoryKind::device;
  config.pool.memory = copies ? memory::MemoryKind::pinned : memory::MemoryKind::host;
  config.gpu = message.gpu;
  return config;
}

service::MessageMemorySetup MessagePlan::memory() const {
  service::MessageMemorySetup setup{
      .kind = config_.pool.memory, .gpu = config_.message.gpu, .longest = longest(), .rooms = {}};
  setup.server = !client();
  setup.hashes = !client() || config_.run.verify;
  for (std::uint16_t worker = 0; worker < config_.message.workers; ++worker) {
    setup.rooms.push_back(client() ? service::MessageMemorySetup::client_room(client_plan(worker))
                                   : service::MessageMemorySetup::kServerRoom);
  }
  return setup;
}

}  // namespace warpline
