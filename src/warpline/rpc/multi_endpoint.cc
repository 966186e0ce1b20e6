// SPDX-License-Identifier: Apache-2.0
#include "warpline/rpc/multi_endpoint.h"

#include <fmt/format.h>

#include <atomic>
#include <set>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "warpline/transport/udp_socket.h"

namespace warpline::rpc {

struct MultiEndpoint::Parts {
  std::uint16_t port = 0;
  std::vector<std::unique_ptr<transport::UdpSocket>> sockets;  ///< of open()
  std::vector<transport::Transport*> transports;
  std::vector<MessageHost> hosts;
};

MultiEndpoint::MultiEndpoint(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
MultiEndpoint::MultiEndpoint(MultiEndpoint&&) noexcept = default;

MultiEndpoint::~MultiEndpoint() {
  if (!parts_) return;
  std::vector<MessageHost*> hosts;
  for (MessageHost& host : parts_->hosts) hosts.push_back(&host);
  MessageHost::end_handlers(hosts, false);  // they may call all of these hosts
}

Result<MultiEndpoint> MultiEndpoint::open(const Settings& settings) {
  const transport::UdpSocketConfig config{.local = settings.host.local,
                                          .datagram_bytes = settings.host.endpoint.datagram_bytes};
  WARPLINE_TRY(auto sockets, transport::UdpSocket::open_group(config, settings.threads));
  std::vector<transport::Transport*> transports;
  for (const auto& socket : sockets) transports.push_back(socket.get());
  WARPLINE_TRY(MultiEndpoint made, over(transports, settings));
  made.parts_->port = sockets.front()->port();
  made.parts_->sockets = std::move(sockets);
  return made;
}

Result<MultiEndpoint> MultiEndpoint::over(std::span<transport::Transport* const> transports, const Settings& settings) {
  if (transports.empty() || transports.size() > 256) {
    return usage_error(fmt::format("{} endpoints at an address", transports.size()), "an endpoint's number is a byte",
                       "use 1 to 256");
  }
  auto parts = std::make_unique<Parts>();
  parts->transports.assign(transports.begin(), transports.end());
  std::set<const message::PacketProtection*> protections;
  for (std::uint32_t i = 0; i < transports.size(); ++i) {
    MessageHost::Settings host = settings.host;
    if (settings.adjust) settings.adjust(i, host.endpoint);
    host.endpoint.endpoint = static_cast<std::uint8_t>(i);
    host.endpoint.endpoints = static_cast<std::uint16_t>(transports.size());
    if (host.endpoint.protection != nullptr && !protections.insert(host.endpoint.protection).second) {
      return usage_error("endpoints with one PacketProtection", "it is no two threads'",
                         "give each its own by MultiEndpoint::Settings::adjust");
    }
    WARPLINE_TRY(MessageHost made, MessageHost::over(*transports[i], host));
    parts->hosts.push_back(std::move(made));
  }
  return MultiEndpoint(std::move(parts));
}

std::uint32_t MultiEndpoint::threads() const { return static_cast<std::uint32_t>(parts_->hosts.size()); }

MessageHost& MultiEndpoint::host(std::uint32_t thread) { return parts_->hosts[thread]; }

Result<void> MultiEndpoint::run() {
  std::vector<std::thread> threads;
  std::atomic<std::size_t> running{parts_->hosts.size()};
  const auto loop = [this, &running](std::size_t i) {
    MessageHost& host = parts_->hosts[i];
    transport::Transport& transport = *parts_->transports[i];
    host.run();
    if (transport.failed()) stop();
    running.fetch_sub(1, std::memory_order_relaxed);
    // What arrives at a port's queue may be another endpoint's, which goes on until it has drained, too.
    while (transport.descriptor() < 0 && running.load(std::memory_order_relaxed) != 0 && host.turn())
      transport.wait(host.now(), host.now());
  };
  Result<void> outcome;
  try {
    for (std::size_t i = 1; i < parts_->hosts.size(); ++i) threads.emplace_back(loop, i);
  } catch (const std::system_error& error) {
    stop();
    running.fetch_sub(parts_->hosts.size() - 1 - threads.size(), std::memory_order_relaxed);
    outcome = environment_error(fmt::format("thread {} of {}", threads.size() + 2, parts_->hosts.size()),
                                error.code().message(), "raise `ulimit -u`, or use fewer threads");
  }
  loop(0);
  for (std::thread& thread : threads) thread.join();
  return outcome;
}

Result<void> MultiEndpoint::serve(const MakeHandler& make) {
  for (std::uint32_t i = 0; i < parts_->hosts.size(); ++i) parts_->hosts[i].handle(make(i));
  return run();
}

void MultiEndpoint::stop() {
  for (MessageHost& host : parts_->hosts) host.stop();
}

void MultiEndpoint::drain(Nanos patience) {
  for (MessageHost& host : parts_->hosts) host.drain(patience);
}

std::uint16_t MultiEndpoint::port() const { return parts_->port; }

std::uint64_t MultiEndpoint::total(Counter message::EndpointCounters::* counter) const {
  std::uint64_t sum = 0;
  for (MessageHost& host : parts_->hosts) sum += (host.endpoint().counters().*counter).get();
  return sum;
}

std::uint64_t MultiEndpoint::total(Counter transport::TransportCounters::* counter) const {
  std::uint64_t sum = 0;
  for (const transport::Transport* transport : parts_->transports) sum += (transport->counters().*counter).get();
  return sum;
}

std::uint64_t MultiEndpoint::dropped(message::MessageDrop reason) const {
  std::uint64_t sum = 0;
  for (MessageHost& host : parts_->hosts) sum += host.endpoint().counters().dropped(reason);
  return sum;
}

}  // namespace warpline::rpc
