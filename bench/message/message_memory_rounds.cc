// SPDX-License-Identifier: Apache-2.0
// message_memory_rounds ROUNDS SECONDS: messages between two threads from host, pinned and device memory to the same,
// through pairs of software ports; JSON on stdout. First each way is run with every response verified by the hash that
// the GPU makes of it, then all of them once a round, in a new order each.
#include <fmt/format.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "runs.h"
#include "warpline/base/random.h"
#include "warpline/base/statistics/bootstrap.h"
#include "warpline/gpu/device.h"
#include "warpline/port/ring_pair.h"
#include "warpline/report/facts.h"
#include "warpline/runtime/eal.h"
#include "warpline/service/memory.h"
#include "warpline/service/worker.h"

namespace warpline {
namespace {

constexpr std::uint32_t kLong = 8 << 20;

constexpr std::uint16_t kServerPort = 7000;
constexpr std::uint16_t kMemoryClientPort = 50'000;

/// What both ends do, and where the messages of both are, on the first GPU.
struct MemoryRun {
  std::uint32_t length = 0;
  std::uint32_t outstanding = 1;
  bool echo = true;  ///< else the response is empty, or with `verify` a hash
  memory::MemoryKind memory = memory::MemoryKind::host;
  bool verify = false;  ///< by whom the memory is for
};

struct MemoryFigures {
  double per_second = 0;
  double gbps = 0;
  double p50_ns = 0;
  std::uint64_t checked = 0;
  std::uint64_t bad = 0;  ///< of these; more than those if a lane failed
};

/// One end: what it sends through and where its messages are.
struct End {
  transport::Transport* transport;
  std::unique_ptr<service::MessageMemory> memory;  ///< null: in ordinary memory
  service::MessageStore store;
};

message::EndpointConfig endpoint_config(bool client) {
  message::EndpointConfig config;
  config.secret.emplace()[0] = client ? 1 : 2;
  config.accept = !client;
  config.max_sessions = 1;
  return config;
}

/// `memory`: where packets are, host or pinned.
Result<BenchWire> make_ports(const std::string& spec, unsigned number, memory::MemoryKind memory) {
  constexpr std::uint16_t kRing = 1024;
  std::optional<std::uint16_t> ids[2];
  if (spec == "ring") {
    WARPLINE_TRY(const auto pair, port::make_ring_pair(1, kRing, runtime::kAnyNode));
    ids[0] = pair.first;
    ids[1] = pair.second;
  }
  std::unique_ptr<transport::MessagePort> ports[2];
  for (unsigned side = 0; side < 2; ++side) {
    port::PortSettings port;
    port.spec = fmt::format("net_vnic{},wire=net_vnic{}", 2 * number + side, 2 * number + 1 - side);
    port.rx_ring = port.tx_ring = kRing;
    port.addresses = {
        {Ipv4Address{{10, 0, static_cast<std::uint8_t>(number), static_cast<std::uint8_t>(1 + side)}}, 24}};
    transport::MessagePortConfig config;
    config.udp_port = side == 0 ? kServerPort : kMemoryClientPort;
    config.pool.memory = memory;
    WARPLINE_TRY(ports[side], transport::MessagePort::open(port, config, ids[side]));
  }
  BenchWire wire;
  wire.server = std::move(ports[0]);
  wire.client = std::move(ports[1]);
  return wire;
}

Result<void> take_memory(End& end, const MemoryRun& run, const service::MessageClient::Plan* client,
                         const service::MessagePattern& pattern) {
  if (run.memory == memory::MemoryKind::host) return {};
  service::MessageMemorySetup setup{.kind = run.memory, .longest = run.length, .rooms = {}};
  setup.server = client == nullptr;
  setup.hashes = run.verify;
  setup.rooms = {client == nullptr ? service::MessageMemorySetup::kServerRoom
                                   : service::MessageMemorySetup::client_room(*client)};
  WARPLINE_TRY(end.memory, service::MessageMemory::make(std::move(setup), pattern, nullptr));
  return {};
}

Result<void> use_memory(End& end, message::EndpointConfig& endpoint) {
  if (!end.memory) return {};
  WARPLINE_TRY(end.transport, end.memory->add_worker(0, *end.transport, nullptr));
  end.memory->apply(0, endpoint);
  end.store = end.memory->store(0);
  return {};
}

void stop(std::span<End> ends) {
  for (End& end : ends) {
    if (end.memory) end.memory->stop();
  }
}

MemoryFigures run_memory(const BenchLcores& lcores, BenchWire& wire, const MemoryRun& run) {
  const transport::NanoClock clock;
  std::vector<std::uint8_t> memory(service::MessagePattern::bytes_for(run.length));
  const service::MessagePattern pattern(memory);
  std::atomic<bool> stop_client{false};
  std::atomic<bool> stop_server{false};
  service::MessageClient::Plan plan;
  plan.service = run.echo     ? service::MessageService::echo
                 : run.verify ? service::MessageService::sink_hash
                              : service::MessageService::sink;
  plan.verify = run.verify;
  plan.length = run.length;
  plan.outstanding = run.outstanding;
  plan.peers = {message::peer_address(wire.server->addresses().front().address, kServerPort)};
  message::EndpointConfig server_config = endpoint_config(false);
  message::EndpointConfig client_config = endpoint_config(true);
  End ends[2];
  auto& [server_side, client_side] = ends;
  server_side.transport = &wire.server->queue(0);
  client_side.transport = &wire.client->queue(0);
  Result<void> ready = take_memory(server_side, run, nullptr, pattern);
  if (ready) ready = take_memory(client_side, run, &plan, pattern);
  if (ready) ready = use_memory(server_side, server_config);
  if (ready) ready = use_memory(client_side, client_config);
  for (const End& end : ends) {
    if (ready && end.memory) ready = end.memory->start();
  }
  if (!ready) {
    fmt::print(stderr, "{}\n", ready.error().message());
    stop(ends);
    return {.bad = 1};
  }
  service::MessageServer server(pattern, 0, server_config, stop_server, server_side.store);
  const auto client = std::make_unique<service::MessageClient>(plan, pattern, stop_client, client_side.store);
  auto server_endpoint = message::Endpoint::create(server_config, clock.now());
  auto client_endpoint = message::Endpoint::create(client_config, clock.now());
  if (!server_endpoint || !client_endpoint) std::abort();
  service::MessageWorker server_worker(std::move(server_endpoint).value(), *server_side.transport, server, clock);
  service::MessageWorker client_worker(std::move(client_endpoint).value(), *client_side.transport, *client, clock);
  std::uint64_t requests[2] = {};
  std::uint64_t bytes[2] = {};
  Nanos at[2];
  run_both(
      lcores, [&] { server_worker.run(); },
      [&] {
        client_worker.run();
        stop_server = true;
      },
      [&](bool end) {
        requests[end] = client->tally().ok();
        bytes[end] = client->tally().bytes_out.get();
        at[end] = clock.now();
      },
      [&] { stop_client = true; });
  stop(ends);
  MemoryFigures figures{.checked = client->tally().checked.get(), .bad = client->tally().bad.get()};
  for (const End& end : ends) {
    if (end.memory && end.memory->failure()) figures.bad = figures.checked + 1;
  }
  const double seconds = static_cast<double>(at[1].value - at[0].value) / 1e9;
  figures.per_second = static_cast<double>(requests[1] - requests[0]) / seconds;
  figures.gbps = static_cast<double>(bytes[1] - bytes[0]) * 8e-9 / seconds;
  figures.p50_ns = static_cast<double>(client->tally().latency.quantile(0.5));
  return figures;
}

struct Way {
  std::string question;
  std::string name;
  BenchWire* wire;
  MemoryRun run;
  double MemoryFigures::* figure;
  std::vector<double> values{};
};

struct Memory {
  const char* name;
  memory::MemoryKind kind;
};

/// Every kind of memory over both wires; `packets` are wires whose packets lie in host memory, and in pinned.
std::vector<Way> all_ways(BenchWire (&vnic)[2], BenchWire (&ring)[2]) {
  std::vector<Way> ways;
  for (const Memory& memory : {Memory{"host", memory::MemoryKind::host}, Memory{"pinned", memory::MemoryKind::pinned},
                               Memory{"device", memory::MemoryKind::device}}) {
    const int packets = memory.kind == memory::MemoryKind::device ? 1 : 0;
    const MemoryRun goodput{.length = kLong, .outstanding = 4, .echo = false, .memory = memory.kind};
    const MemoryRun both{.length = kLong, .outstanding = 4, .echo = true, .memory = memory.kind};
    const MemoryRun rate{.length = 2048, .outstanding = 64, .echo = true, .memory = memory.kind};
    const MemoryRun latency{.length = 2048, .outstanding = 1, .echo = true, .memory = memory.kind};
    for (const auto& [wire, ports] : {std::pair{"net_vnic", &vnic[packets]}, std::pair{"net_ring", &ring[packets]}}) {
      const std::string name = fmt::format("{}, {}", memory.name, wire);
      ways.push_back({"goodput of 8 MiB, one way, Gbit/s", name, ports, goodput, &MemoryFigures::gbps});
      ways.push_back({"goodput of 8 MiB, each way, Gbit/s", name, ports, both, &MemoryFigures::gbps});
      ways.push_back({"echoes of 2 KiB, 64 in flight, 1/s", name, ports, rate, &MemoryFigures::per_second});
      ways.push_back({"echo of 2 KiB, one in flight, p50 ns", name, ports, latency, &MemoryFigures::p50_ns});
    }
  }
  return ways;
}

Result<void> verify(const BenchLcores& lcores, std::vector<Way>& ways, nlohmann::ordered_json& verified) {
  for (Way& way : ways) {
    MemoryRun run = way.run;
    run.verify = true;
    const MemoryFigures figures = run_memory(lcores, *way.wire, run);
    verified[way.question][way.name] = {{"checked", figures.checked}, {"bad", figures.bad}};
    if (figures.checked != 0 && figures.bad == 0) continue;
    return Error{ErrorKind::verification, fmt::format("{}: {}", way.question, way.name),
                 fmt::format("of {} responses {} are not what was sent", figures.checked, figures.bad),
                 "run bench/gpu/run --tests, which tests the parts"};
  }
  return {};
}

Result<int> run(std::uint32_t rounds, double seconds) {
  WARPLINE_TRY(const gpu::GpuFacts gpu, gpu::find_gpu(0));
  WARPLINE_TRY(
      const runtime::Eal eal,
      runtime::Eal::start({.share_cores = true}, {{.name = "server"}, {.name = "client"}}, {}, Bytes{1U << 30}));
  WARPLINE_CHECK(gpu::use_gpu(gpu.ordinal));
  WARPLINE_TRY(BenchWire vnic_host, make_ports("vnic", 0, memory::MemoryKind::host));
  WARPLINE_TRY(BenchWire vnic_pinned, make_ports("vnic", 1, memory::MemoryKind::pinned));
  WARPLINE_TRY(BenchWire ring_host, make_ports("ring", 2, memory::MemoryKind::host));
  WARPLINE_TRY(BenchWire ring_pinned, make_ports("ring", 3, memory::MemoryKind::pinned));
  BenchWire vnic[2] = {std::move(vnic_host), std::move(vnic_pinned)};
  BenchWire ring[2] = {std::move(ring_host), std::move(ring_pinned)};
  const BenchLcores lcores{eal.plan(), 0.1, seconds};

  std::vector<Way> ways = all_ways(vnic, ring);
  nlohmann::ordered_json report = {{"schema_version", 1},
                                   {"command", fmt::format("message_memory_rounds {} {}", rounds, seconds)},
                                   {"build", report::build_facts()},
                                   {"host", report::host_facts()},
                                   {"gpu", gpu.name},
                                   {"hugepages", eal.hugepages()}};
  WARPLINE_CHECK(verify(lcores, ways, report["verified"]));
  Random random(1);
  for (std::uint32_t round = 0; round < rounds; ++round) {
    std::vector<Way*> order;
    for (Way& way : ways) order.push_back(&way);
    for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
    for (Way* const way : order) way->values.push_back(run_memory(lcores, *way->wire, way->run).*way->figure);
    fmt::print(stderr, "round {} of {}\n", round + 1, rounds);
  }
  for (const Way& way : ways) {
    const Estimate estimate = warpline::estimate(way.values);
    report["figures"][way.question][way.name] = {
        {"median", estimate.median}, {"low", estimate.low}, {"high", estimate.high}, {"values", way.values}};
  }
  fmt::print("{}\n", report.dump(1));
  return 0;
}

}  // namespace
}  // namespace warpline

// NOLINTNEXTLINE(bugprone-exception-escape): what is thrown ends the program
int main(int argc, char** argv) {
  const auto rounds = static_cast<std::uint32_t>(argc > 1 ? std::atoi(argv[1]) : 5);
  const double seconds = argc > 2 ? std::atof(argv[2]) : 0.3;
  if (rounds == 0 || seconds <= 0) {
    fmt::print(stderr, "usage: message_memory_rounds [ROUNDS [SECONDS]]\n");
    return 2;
  }
  const auto result = warpline::run(rounds, seconds);
  if (result) return *result;
  fmt::print(stderr, "{}\n", result.error().message());
  return static_cast<int>(result.error().kind);
}
