// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "rotating_client.h"
#include "runs.h"
#include "warpline/port/ring_pair.h"
#include "warpline/protection/packet_protection.h"
#include "warpline/runtime/workers.h"
#include "warpline/service/worker.h"
#include "warpline/transport/udp_socket.h"

namespace warpline {
namespace {

constexpr std::uint16_t kPort = 7000;
constexpr std::uint16_t kClientPort = 50'000;

message::EndpointConfig endpoint_config(const MessageRun& run, bool client) {
  message::EndpointConfig config;
  config.secret.emplace()[0] = client ? 1 : 2;
  config.accept = !client;
  config.max_sessions = run.sessions;
  config.max_messages = std::max(1U << 14, 2 * run.sessions);
  config.datagram_bytes = run.datagram_bytes;
  config.cc.kind = run.cc;
  config.reliability = run.reliability;
  config.bundles = run.bundles;
  return config;
}

/// nullptr if the run is not encrypted, or cannot be here.
std::unique_ptr<message::PacketProtection> protection_of(const MessageRun& run) {
  if (!run.encrypted) return nullptr;
  auto made = protection::make_protection(protection::AesKey{1}, run.sessions);
  return made ? std::move(made).value() : nullptr;
}

RunFigures run_over(const BenchLcores& lcores, transport::Transport& server_side, transport::Transport& client_side,
                    const message::PeerAddress& to, std::span<std::uint8_t> memory, const MessageRun& run) {
  const transport::NanoClock clock;
  const service::MessagePattern pattern(memory);
  std::atomic<bool> stop_client{false};
  std::atomic<bool> stop_server{false};
  service::MessageServer server(pattern, 0, endpoint_config(run, false), stop_server);
  service::MessageClient::Plan plan;
  plan.service = run.echo ? service::MessageService::echo : service::MessageService::sink;
  plan.length = run.length;
  plan.outstanding = run.outstanding;
  plan.peers.assign(run.sessions, to);
  auto client = std::make_unique<service::MessageClient>(plan, pattern, stop_client);
  const auto server_protection = protection_of(run);
  const auto client_protection = protection_of(run);
  if (run.encrypted && (!server_protection || !client_protection)) return {};
  message::EndpointConfig server_config = endpoint_config(run, false);
  message::EndpointConfig client_config = endpoint_config(run, true);
  server_config.protection = server_protection.get();
  client_config.protection = client_protection.get();
  auto server_endpoint = message::Endpoint::create(server_config, clock.now());
  auto client_endpoint = message::Endpoint::create(client_config, clock.now());
  if (!server_endpoint || !client_endpoint) return {};
  auto server_worker =
      std::make_unique<service::MessageWorker>(std::move(server_endpoint).value(), server_side, server, clock);
  auto client_worker =
      std::make_unique<service::MessageWorker>(std::move(client_endpoint).value(), client_side, *client, clock);
  std::uint64_t requests[2] = {};
  std::uint64_t bytes[2] = {};
  Nanos at[2];
  run_both(
      lcores, [&] { server_worker->run(); },
      [&] {
        client_worker->run();
        stop_server = true;
      },
      [&](bool end) {
        requests[end] = client->tally().ok();
        bytes[end] = client->tally().bytes_out.get();
        at[end] = clock.now();
      },
      [&] { stop_client = true; });
  const double seconds = static_cast<double>(at[1].value - at[0].value) / 1e9;
  return {.per_second = static_cast<double>(requests[1] - requests[0]) / seconds,
          .gbps = static_cast<double>(bytes[1] - bytes[0]) * 8e-9 / seconds,
          .p50_ns = static_cast<double>(client->tally().latency.quantile(0.5)),
          .p99_ns = static_cast<double>(client->tally().latency.quantile(0.99))};
}

}  // namespace

void run_both(const BenchLcores& lcores, const std::function<void()>& server, const std::function<void()>& client,
              const std::function<void(bool end)>& sample, const std::function<void()>& stop) {
  runtime::Workers workers(lcores.plan);
  if (!workers.launch(0, server) || !workers.launch(1, client)) std::abort();
  std::this_thread::sleep_for(std::chrono::duration<double>(lcores.warmup_s));
  sample(false);
  std::this_thread::sleep_for(std::chrono::duration<double>(lcores.measured_s));
  sample(true);
  stop();
  workers.wait();
}

Result<BenchWire> make_wire(const std::string& spec, unsigned number, bool udp_checksum,
                            std::optional<std::uint16_t> tx_rs_thresh, FullFrame frame) {
  // Fewer descriptors for jumbo frames, so that the frames stay in the cache.
  const std::uint16_t ring_size = frame.mtu > kOrdinary.mtu ? 256 : 1024;
  constexpr std::uint16_t kTxRing = 256;  // what has left comes back while it is in the cache
  std::optional<std::uint16_t> ids[2];
  if (spec == "ring") {
    WARPLINE_TRY(const auto pair, port::make_ring_pair(1, ring_size, runtime::kAnyNode));
    ids[0] = pair.first;
    ids[1] = pair.second;
  }
  std::unique_ptr<transport::MessagePort> ports[2];
  for (unsigned side = 0; side < 2; ++side) {
    port::PortSettings port;
    port.spec = fmt::format("net_vnic{},wire=net_vnic{}", 2 * number + side, 2 * number + 1 - side);
    port.mtu = frame.mtu;
    port.rx_ring = ring_size;
    port.tx_ring = kTxRing;
    port.tx_rs_thresh = tx_rs_thresh;
    port.addresses = {
        {Ipv4Address{{10, 0, static_cast<std::uint8_t>(number), static_cast<std::uint8_t>(1 + side)}}, 24}};
    transport::MessagePortConfig config;
    config.udp_port = side == 0 ? kPort : kClientPort;
    config.datagram_bytes = frame.datagram();
    config.udp_checksum = udp_checksum;
    config.max_sessions = 20'000;
    WARPLINE_TRY(ports[side], transport::MessagePort::open(port, config, ids[side]));
  }
  WARPLINE_TRY(const std::span<std::uint8_t> memory,
               ports[1]->allocate(service::MessagePattern::bytes_for(kLongMessage)));
  return BenchWire{std::move(ports[0]), std::move(ports[1]), memory, frame.datagram()};
}

RunFigures run_messages(const BenchLcores& lcores, BenchWire& wire, const MessageRun& run) {
  const IpAddress server = wire.server->addresses().front().address;
  return run_over(lcores, wire.server->queue(0), wire.client->queue(0), message::peer_address(server, kPort),
                  wire.memory, run);
}

RunFigures run_rotating(const BenchLcores& lcores, BenchWire& wire, const MessageRun& run) {
  const transport::NanoClock clock;
  const service::MessagePattern pattern(wire.memory);
  std::atomic<bool> stop_client{false};
  std::atomic<bool> stop_server{false};
  service::MessageServer server(pattern, 0, endpoint_config(run, false), stop_server);
  RotatingClient client(run, message::peer_address(wire.server->addresses().front().address, kPort), stop_client);
  auto server_endpoint = message::Endpoint::create(endpoint_config(run, false), clock.now());
  auto client_endpoint = message::Endpoint::create(endpoint_config(run, true), clock.now());
  if (!server_endpoint || !client_endpoint) return {};
  service::MessageWorker server_worker(std::move(server_endpoint).value(), wire.server->queue(0), server, clock);
  service::MessageWorker client_worker(std::move(client_endpoint).value(), wire.client->queue(0), client, clock);
  std::uint64_t done[2] = {};
  Nanos at[2];
  run_both(
      lcores, [&] { server_worker.run(); },
      [&] {
        client_worker.run();
        stop_server = true;
      },
      [&](bool end) {
        // Opening the sessions is not what is measured.
        while (!end && client.done() < run.sessions) std::this_thread::yield();
        done[end] = client.done();
        at[end] = clock.now();
      },
      [&] { stop_client = true; });
  return {.per_second = static_cast<double>(done[1] - done[0]) * 1e9 / static_cast<double>(at[1].value - at[0].value)};
}

RunFigures run_messages_on_sockets(const BenchLcores& lcores, const MessageRun& run) {
  const IpAddress here = Ipv4Address{{127, 0, 0, 1}};
  auto server = transport::UdpSocket::open({.local = {here, 0}});
  auto client = transport::UdpSocket::open({.local = {here, 0}});
  if (!server || !client) return {};
  std::vector<std::uint8_t> memory(service::MessagePattern::bytes_for(kLongMessage));
  return run_over(lcores, **server, **client, message::peer_address(here, (*server)->port()), memory, run);
}

RunFigures run_sealing(const BenchLcores& lcores, std::uint32_t payload) {
  const transport::NanoClock clock;
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> sealed{0};
  const auto seal = [&](std::atomic<std::uint64_t>* count) {
    const auto own = *protection::make_protection(protection::AesKey{1}, 1);
    const auto peer = *protection::make_protection(protection::AesKey{1}, 1);
    constexpr message::HandshakeTranscript kSession{1, 2, 3, 4};
    if (!own->offer(0) || !peer->answer(0, own->key(0)) || !own->start(0, peer->share(0), kSession, true)) return;
    const std::array<std::uint8_t, 48> header{};
    std::vector<std::uint8_t> text(payload);
    std::array<std::uint8_t, message::PacketProtection::kTagBytes> tag{};
    for (std::uint64_t number = 0; !stop.load(std::memory_order_relaxed); ++number) {
      own->seal(0, number, header, text, tag);
      if (count != nullptr) count->store(number + 1, std::memory_order_relaxed);
    }
  };
  std::uint64_t packets[2] = {};
  Nanos at[2];
  run_both(
      lcores, [&] { seal(nullptr); }, [&] { seal(&sealed); },
      [&](bool end) {
        packets[end] = sealed.load(std::memory_order_relaxed);
        at[end] = clock.now();
      },
      [&] { stop = true; });
  const double per_second =
      static_cast<double>(packets[1] - packets[0]) * 1e9 / static_cast<double>(at[1].value - at[0].value);
  return {.per_second = per_second, .gbps = per_second * payload * 8e-9};
}

}  // namespace warpline
