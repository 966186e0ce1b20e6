// SPDX-License-Identifier: Apache-2.0
// message_one_core ROUNDS SECONDS [NAME]: what a request or a frame of payload costs when both ends run in turns on one
// core, in nanoseconds of that thread's processor time, beside raw bursts. Contenders once a round, in a new order
// each; JSON on stdout. Unlike message_rounds it is not about scheduling, and not about lines that go from core to
// core.
#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "rotating_client.h"
#include "runs.h"
#include "warpline/base/random.h"
#include "warpline/base/statistics/bootstrap.h"
#include "warpline/packet/headers/ethernet.h"
#include "warpline/report/facts.h"
#include "warpline/runtime/eal.h"
#include "warpline/service/worker.h"

namespace warpline {
namespace {

constexpr std::uint16_t kBurst = 64;
constexpr std::uint32_t kRpcFrame = 42 + 28 + 20 + 32;  ///< of a short request without an acknowledgement

double cpu_seconds() {
  timespec at{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &at);
  return static_cast<double>(at.tv_sec) + static_cast<double>(at.tv_nsec) * 1e-9;
}

/// Nanoseconds for each of what `count` counts, while `step` is called for so long after a tenth of that.
template <typename Step, typename Count>
double cost(double seconds, Step&& step, Count&& count) {
  const auto run = [&](double until) {
    do {
      for (int i = 0; i < 64; ++i) step();
    } while (cpu_seconds() < until);
  };
  run(cpu_seconds() + seconds / 10);
  const std::uint64_t before = count();
  const double begin = cpu_seconds();
  run(begin + seconds);
  return (cpu_seconds() - begin) * 1e9 / static_cast<double>(count() - before);
}

using Burst = std::array<rte_mbuf*, kBurst>;

/// An echo of `frame` bytes: made at one end, sent back by the other, freed at the first.
double raw_echo(BenchWire& wire, std::uint32_t frame, std::uint32_t outstanding, double seconds) {
  const std::uint16_t there = wire.server->port().id();
  const std::uint16_t here = wire.client->port().id();
  std::vector<std::uint8_t> memory(8 << 20);
  std::size_t at = 0;
  std::uint64_t done = 0;
  std::uint32_t out = 0;
  Burst burst;
  return cost(
      seconds,
      [&] {
        const auto more = static_cast<std::uint16_t>(std::min<std::uint32_t>(kBurst, outstanding - out));
        if (rte_pktmbuf_alloc_bulk(wire.client->pool(), burst.data(), more) == 0) {
          for (std::uint16_t i = 0; i < more; ++i, at = (at + frame) % (memory.size() - frame)) {
            std::memcpy(rte_pktmbuf_append(burst[i], static_cast<std::uint16_t>(frame)), &memory[at], frame);
          }
          out += rte_eth_tx_burst(here, 0, burst.data(), more);
        }
        std::uint16_t count = rte_eth_rx_burst(there, 0, burst.data(), kBurst);
        for (std::uint16_t i = 0; i < count; ++i) packet::swap_macs(rte_pktmbuf_mtod(burst[i], std::uint8_t*));
        rte_eth_tx_burst(there, 0, burst.data(), count);
        count = rte_eth_rx_burst(here, 0, burst.data(), kBurst);
        rte_pktmbuf_free_bulk(burst.data(), count);
        out -= count;
        done += count;
      },
      [&] { return done; });
}

/// Frames one way, from memory of an application to memory of an application.
double raw_stream(BenchWire& wire, std::uint32_t frame, double seconds) {
  const std::uint16_t there = wire.server->port().id();
  const std::uint16_t here = wire.client->port().id();
  std::vector<std::uint8_t> from(kLongMessage);
  std::vector<std::uint8_t> to(kLongMessage);
  std::size_t at = 0;
  std::size_t arrived_at = 0;
  std::uint64_t done = 0;
  Burst burst;
  return cost(
      seconds,
      [&] {
        if (rte_pktmbuf_alloc_bulk(wire.client->pool(), burst.data(), kBurst) == 0) {
          for (rte_mbuf* const mbuf : burst) {
            std::memcpy(rte_pktmbuf_append(mbuf, static_cast<std::uint16_t>(frame)), &from[at], frame);
            at = (at + frame) % (from.size() - frame);
          }
          rte_eth_tx_burst(here, 0, burst.data(), kBurst);
        }
        const std::uint16_t count = rte_eth_rx_burst(there, 0, burst.data(), kBurst);
        for (std::uint16_t i = 0; i < count; ++i) {
          std::memcpy(&to[arrived_at], rte_pktmbuf_mtod(burst[i], void*), burst[i]->data_len);
          arrived_at = (arrived_at + frame) % (to.size() - frame);
        }
        rte_pktmbuf_free_bulk(burst.data(), count);
        done += count;
      },
      [&] { return done; });
}

message::EndpointConfig endpoint_config(const MessageRun& run, std::uint8_t number) {
  message::EndpointConfig config;
  config.secret.emplace()[0] = number;
  config.max_sessions = run.sessions;
  config.max_messages = std::max(1U << 14, 2 * run.sessions);
  config.max_sent_packets = std::max(1U << 16, 64 * run.sessions);
  config.datagram_bytes = run.datagram_bytes;
  config.cc.kind = run.cc;
  config.bundles = run.bundles;
  return config;
}

/// Two ends, run in turns.
class Pair {
 public:
  Pair(BenchWire& wire, const MessageRun& run, service::MessageApp& server, service::MessageApp& client)
      : server_(make(run, 2), wire.server->queue(0), server, clock_),
        client_(make(run, 1), wire.client->queue(0), client, clock_) {
    client_.begin(clock_.now());
    server_.begin(clock_.now());
  }
  bool step_server() { return server_.turn(clock_.now(), worked_); }
  bool step() {
    (void)step_server();
    return client_.turn(clock_.now(), worked_);
  }

 private:
  message::Endpoint make(const MessageRun& run, std::uint8_t number) {
    auto endpoint = message::Endpoint::create(endpoint_config(run, number), clock_.now());
    if (!endpoint) std::abort();
    return std::move(endpoint).value();
  }
  transport::NanoClock clock_;
  service::MessageWorker server_;
  service::MessageWorker client_;
  bool worked_ = false;
};

message::PeerAddress server_of(const BenchWire& wire) {
  return message::peer_address(wire.server->addresses().front().address, 7000);
}

/// For a request, or for a full frame's worth of payload if they are long.
double messages(BenchWire& wire, const MessageRun& run, double seconds) {
  const service::MessagePattern pattern(wire.memory);
  std::atomic<bool> stop_client{false};
  std::atomic<bool> stop_server{false};
  service::MessageServer server(pattern, 0, endpoint_config(run, 2), stop_server);
  service::MessageClient::Plan plan;
  plan.service = run.echo ? service::MessageService::echo : service::MessageService::sink;
  plan.length = run.length;
  plan.outstanding = run.outstanding;
  plan.peers = {server_of(wire)};
  service::MessageClient client(plan, pattern, stop_client);
  Pair pair(wire, run, server, client);
  while (client.tally().ok() < 2) pair.step();
  const double ns = cost(seconds, [&] { pair.step(); }, [&] { return client.tally().ok(); });
  stop_client = true;
  while (pair.step()) {
  }
  stop_server = true;
  while (pair.step_server()) {
  }
  const double payload = FullFrame{static_cast<std::uint16_t>(run.datagram_bytes + 28)}.payload();
  return run.length > payload ? ns * payload / run.length : ns;
}

double rotating(BenchWire& wire, const MessageRun& run, double seconds) {
  const service::MessagePattern pattern(wire.memory);
  std::atomic<bool> stop_client{false};
  std::atomic<bool> stop_server{false};
  service::MessageServer server(pattern, 0, endpoint_config(run, 2), stop_server);
  RotatingClient client(run, server_of(wire), stop_client);
  Pair pair(wire, run, server, client);
  while (client.done() < std::uint64_t{run.sessions} * 2) pair.step();
  const double ns = cost(seconds, [&] { pair.step(); }, [&] { return client.done(); });
  stop_client = true;
  while (pair.step()) {
  }
  stop_server = true;
  while (pair.step_server()) {
  }
  return ns;
}

Result<int> run(std::uint32_t rounds, double seconds, const std::string& only) {
  WARPLINE_TRY(const runtime::Eal eal,
               runtime::Eal::start({.share_cores = true}, {{.name = "both"}}, {}, Bytes{1U << 30}));
  WARPLINE_TRY(BenchWire vnic, make_wire("vnic", 0, true));
  WARPLINE_TRY(BenchWire unchecked, make_wire("vnic", 1, false));
  WARPLINE_TRY(BenchWire raw, make_wire("vnic", 2, true, 32));
  WARPLINE_TRY(BenchWire jumbo, make_wire("vnic", 3, true, {}, kJumbo));
  WARPLINE_TRY(BenchWire jumbo_raw, make_wire("vnic", 4, true, 32, kJumbo));
  struct Contender {
    std::string name;
    std::string unit;
    std::function<double()> run;
    std::vector<double> values;
  };
  const auto over = [&](BenchWire& wire, MessageRun what) {
    return [&wire, what, seconds] { return messages(wire, what, seconds); };
  };
  const MessageRun rpc{.outstanding = 64};
  const MessageRun no_cc{.cc = message::CcKind::none, .outstanding = 64};
  const MessageRun alone{.outstanding = 64, .bundles = false};
  const MessageRun hundred{.outstanding = 64, .sessions = 100};
  const MessageRun many{.outstanding = 64, .sessions = 20'000};
  const MessageRun single{.outstanding = 1};
  const MessageRun lengthy{.length = kLongMessage, .outstanding = 2, .echo = false};
  MessageRun lengthy_jumbo = lengthy;
  lengthy_jumbo.datagram_bytes = kJumbo.datagram();
  std::vector<Contender> contenders = {
      {"requests", "request", over(vnic, rpc), {}},
      {"requests again", "request", over(vnic, rpc), {}},
      {"requests without congestion control", "request", over(vnic, no_cc), {}},
      {"requests, one a packet", "request", over(vnic, alone), {}},
      {"requests in 100 sessions", "request", [&] { return rotating(vnic, hundred, seconds); }, {}},
      {"requests in 20000 sessions", "request", [&] { return rotating(vnic, many, seconds); }, {}},
      {"one request at a time", "request", over(vnic, single), {}},
      {"one raw frame at a time", "request", [&] { return raw_echo(raw, kRpcFrame, 1, seconds); }, {}},
      {"raw echo", "request", [&] { return raw_echo(raw, kRpcFrame, 64, seconds); }, {}},
      {"stream", "frame", over(vnic, lengthy), {}},
      {"stream without UDP checksum", "frame", over(unchecked, lengthy), {}},
      {"raw stream", "frame", [&] { return raw_stream(raw, kOrdinary.bytes(), seconds); }, {}},
      {"jumbo stream", "frame", over(jumbo, lengthy_jumbo), {}},
      {"jumbo raw stream", "frame", [&] { return raw_stream(jumbo_raw, kJumbo.bytes(), seconds); }, {}},
  };
  std::erase_if(contenders, [&](const Contender& c) { return !only.empty() && !c.name.starts_with(only); });
  Random random(1);
  std::vector<std::size_t> order(contenders.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  for (std::uint32_t round = 0; round < rounds; ++round) {
    for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
    for (const std::size_t i : order) contenders[i].values.push_back(contenders[i].run());
  }
  nlohmann::ordered_json report = {{"schema_version", 1},
                                   {"build", report::build_facts()},
                                   {"host", report::host_facts()},
                                   {"hugepages", eal.hugepages()},
                                   {"rounds", rounds},
                                   {"seconds", seconds}};
  for (const Contender& contender : contenders) {
    const Estimate figure = estimate(contender.values);
    report["nanoseconds"][contender.name] = {{"for_each", contender.unit},
                                             {"median", figure.median},
                                             {"low", figure.low},
                                             {"high", figure.high},
                                             {"values", contender.values}};
    fmt::print(stderr, "{:40} {:8.1f} [{:.1f}, {:.1f}] ns a {}\n", contender.name, figure.median, figure.low,
               figure.high, contender.unit);
  }
  fmt::print("{}\n", report.dump(1));
  return 0;
}

}  // namespace
}  // namespace warpline

// NOLINTNEXTLINE(bugprone-exception-escape): what is thrown ends the program
int main(int argc, char** argv) {
  const auto rounds = static_cast<std::uint32_t>(argc > 1 ? std::atoi(argv[1]) : 15);
  const double seconds = argc > 2 ? std::atof(argv[2]) : 0.2;
  if (rounds == 0 || seconds <= 0) {
    fmt::print(stderr, "usage: message_one_core [ROUNDS [SECONDS [NAME]]]\n");
    return 2;
  }
  const auto result = warpline::run(rounds, seconds, argc > 3 ? argv[3] : "");
  if (result) return *result;
  fmt::print(stderr, "{}\n", result.error().message());
  return static_cast<int>(result.error().kind);
}
