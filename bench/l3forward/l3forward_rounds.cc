// SPDX-License-Identifier: Apache-2.0
// l3forward_rounds ROUNDS ROUTES PACKETS CPU SEED: cycles a packet of forwarding, of DPDK's lookups alone, and of
// l3forward, with ROUTES routes. Two net_vnic ports with wire=static, all on one core. Each round has every contender
// once, in random order; JSON with all samples on stdout.
#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <vector>

#include <nlohmann/json.hpp>
#include <rte_mempool.h>

#include "base/clock.h"
#include "base/random.h"
#include "memory/packet_pool.h"
#include "packet/udp_frame.h"
#include "pipeline/routing/fib_tables.h"
#include "pipeline/routing/lpm_tables.h"
#include "pipeline/routing/route_stage.h"
#include "pipeline/run_to_completion.h"
#include "route/route_file.h"
#include "runtime/eal.h"
#include "runtime/port.h"
#include "workload/frame_limits.h"
#include "workload/mac_swap.h"
#include "workload/none.h"

namespace warpline {
namespace {

constexpr std::uint16_t kBurst = 32;
constexpr std::uint16_t kRing = 512;
constexpr std::uint32_t kBuffers = 8191;
constexpr std::size_t kFrame = 60;
/// Of both ports and of all neighbours: a buffer that was sent is received again as it is.
constexpr MacAddress kMac{{2, 0, 0, 0, 0, 1}};
constexpr std::uint32_t kGateways = 8;  ///< on the link of each port

template <typename T>
T value_or_exit(Result<T> result) {
  if (result) return *std::move(result);
  std::fprintf(stderr, "%s\n", result.error().message().c_str());
  std::exit(static_cast<int>(result.error().kind));
}
void check(const Result<void>& result) {
  if (result) return;
  std::fprintf(stderr, "%s\n", result.error().message().c_str());
  std::exit(static_cast<int>(result.error().kind));
}

/// Lengths as in the Internet's table: mostly /24, /16 to /23 for the rest, a few longer ones.
std::uint8_t draw_length(Random& random) {
  const std::uint64_t lot = random.below(1000);
  if (lot < 5) return static_cast<std::uint8_t>(25 + random.below(8));
  if (lot < 620) return 24;
  return static_cast<std::uint8_t>(16 + random.below(8));
}

std::string draw_routes(std::size_t count, Random& random) {
  std::string text;
  std::vector<std::uint64_t> seen;
  while (seen.size() < count) {
    for (std::size_t i = seen.size(); i < count + count / 8; ++i) {
      const std::uint8_t length = draw_length(random);
      const auto address = static_cast<std::uint32_t>((11 + random.below(115)) << 24 | (random.next() & 0xffffff));
      seen.push_back(std::uint64_t{length} << 32 | (address >> (32 - length) << (32 - length)));
    }
    std::ranges::sort(seen);
    seen.erase(std::unique(seen.begin(), seen.end()), seen.end());
  }
  std::shuffle(seen.begin(), seen.end(), std::mt19937_64(random.next()));
  for (std::size_t i = 0; i < count; ++i) {
    const auto address = static_cast<std::uint32_t>(seen[i]);
    fmt::format_to(std::back_inserter(text), "{}.{}.{}.{}/{} via 10.0.{}.{}\n", address >> 24, address >> 16 & 255,
                   address >> 8 & 255, address & 255, seen[i] >> 32, random.below(2), 10 + random.below(kGateways));
  }
  return text;
}

/// Tables that several contenders share.
template <RouteLookup Lookup>
class Shared {
 public:
  using V4Key = typename Lookup::V4Key;
  using V6Key = typename Lookup::V6Key;

  explicit Shared(const Lookup& tables) : tables_(&tables) {}
  static Result<Shared> make(const RouteSet&, const TablesPlace&);  // never called
  static Bytes memory(const RouteSet& set) { return Lookup::memory(set); }
  static V4Key v4_key(const std::uint8_t* ip, std::uint32_t have) { return Lookup::v4_key(ip, have); }
  static V6Key v6_key(const std::uint8_t* ip, std::uint32_t have) { return Lookup::v6_key(ip, have); }
  void find(const V4Key* keys, std::uint32_t* hops, std::uint16_t n) const { tables_->find(keys, hops, n); }
  void find(const V6Key* keys, std::uint32_t* hops, std::uint16_t n) const { tables_->find(keys, hops, n); }

 private:
  const Lookup* tables_;
};

/// The two ports, their buffers, and what is done with them.
class Lab {
 public:
  Lab(std::size_t routes, std::uint64_t packets, std::uint64_t seed) : packets_(packets), random_(seed) {
    for (int i = 0; i < 2; ++i) {
      own_.push_back(
          {.mac = kMac, .mtu = 1500, .addresses = {*parse_interface_address(fmt::format("10.0.{}.1/24", i))}});
    }
    const std::string text = draw_routes(routes, random_);
    std::uint64_t begin = ticks_now();
    set_ = value_or_exit(parse_routes(text, "routes", own_, false));
    seconds_["parse"] = seconds_since(begin);
    pool_.emplace(value_or_exit(PacketPool::make("lab", kBuffers, 256, 2048, kAnyNode)));
    for (int i = 0; i < 2; ++i) {
      ports_.push_back(value_or_exit(Port::open(fmt::format("net_vnic{},wire=static,size={}", i, kFrame))));
      PortConfig config;
      config.rx_ring = config.tx_ring = kRing;
      check(ports_.back().configure(config, {}));
      check(ports_.back().attach(pool_->get()));
    }
    for (Port& port : ports_) check(port.start());
    draw_destinations();
    begin = ticks_now();
    lpm_.emplace(value_or_exit(LpmTables::make(set_, {.number = 100})));
    seconds_["lpm"] = seconds_since(begin);
    begin = ticks_now();
    fib_.emplace(value_or_exit(FibTables::make(set_, {.number = 101})));
    seconds_["fib"] = seconds_since(begin);
    make_hops();
  }

  [[nodiscard]] const nlohmann::json& seconds() const { return seconds_; }

  template <typename Work>
  double forward(const Work& work) {
    PacketBudget budget(0);
    Stream there, back;
    set_up(there, 0, 1);
    set_up(back, 1, 0);
    RunToCompletion<Work> first(there, budget, work), second(back, budget, work);
    const double cycles = measure([&] { return first.poll() + second.poll(); });
    if (there.sent.drops.total() + back.sent.drops.total() != 0) give_up("forward dropped packets");
    return cycles;
  }

  template <typename Lookup>
  double lookup(const Lookup& tables) {
    std::uint32_t hops[kBurst];
    std::size_t at = 0;
    std::uint64_t sum = 0;
    const double cycles = measure([&] {
      tables.find(&destinations_[at], hops, kBurst);
      for (const std::uint32_t hop : hops) sum += hop;
      at = at + 2 * kBurst <= destinations_.size() ? at + kBurst : 0;
      return kBurst;
    });
    if (sum == 0) give_up("no route was found");
    return cycles;
  }
  double lookup_lpm() { return lookup(*lpm_); }
  double lookup_fib() { return lookup(*fib_); }

  template <typename Lookup>
  double l3forward(const Lookup& tables) {
    using Tables = Shared<Lookup>;
    PacketBudget budget(0);
    Stream streams[2] = {{}, {}};
    std::vector<Stream*> both;
    std::vector<RoutePort> route_ports;
    for (std::uint16_t i = 0; i < 2; ++i) {
      set_up(streams[i], i, i);
      streams[i].deadline_ticks = nanos_to_ticks({20'000});
      both.push_back(&streams[i]);
      route_ports.push_back({ports_[i].id(), own_[i], pool_->get()});
    }
    RouteLcore lcore(route_ports, both, neighbours_);
    GenerationSwitch<Tables> generations;
    generations.publish(std::make_unique<const Generation<Tables>>(Generation<Tables>{Tables(tables), hops_, 1}));
    RouteStage<Tables> stage(generations, lcore, budget, kBurst);
    const double cycles = measure([&] { return stage.poll(); });
    stage.drain();
    if (streams[0].sent.drops.total() + streams[1].sent.drops.total() != 0) give_up("l3forward dropped packets");
    return cycles;
  }
  double l3_lpm() { return l3forward(*lpm_); }
  double l3_fib() { return l3forward(*fib_); }

 private:
  [[noreturn]] static void give_up(const char* why) {
    std::fprintf(stderr, "l3forward_rounds: %s\n", why);
    std::exit(4);
  }
  /// Of this thread: what others do on its processor is not in it.
  static double processor_seconds() {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
  }
  static double seconds_since(std::uint64_t begin) { return ticks_to_nanos(ticks_now() - begin) / 1e9; }

  void set_up(Stream& stream, std::uint16_t rx, std::uint16_t tx) const {
    stream.rx = {ports_[rx].id(), 0};
    stream.tx = stream.reply = {ports_[tx].id(), 0};
    stream.burst = kBurst;
    stream.deadline_ticks = 0;
    stream.tx_retries = 64;
  }

  /// Cycles a packet (time on the processor x TSC rate) of `step`, which returns how many it did, after a warm-up of a
  /// tenth.
  template <typename Step>
  double measure(Step&& step) {
    refill();
    std::uint64_t done = 0;
    while (done < packets_ / 10) done += step();
    done = 0;
    const double begin = processor_seconds();
    while (done < packets_) done += step();
    return (processor_seconds() - begin) * ticks_per_second() / static_cast<double>(done);
  }

  void draw_destinations() {
    std::vector<const Ipv4Route*> from_file;
    for (const Ipv4Route& route : set_.v4) {
      if (route.line != 0) from_file.push_back(&route);
    }
    for (std::uint32_t i = 0; i < kBuffers; ++i) {
      const Ipv4Route& route = *from_file[random_.below(from_file.size())];
      const auto host = static_cast<std::uint32_t>(random_.next() & 0xffffffffU >> route.length);
      destinations_.push_back(load_be32(route.prefix.bytes.data()) | (route.length == 32 ? 0 : host));
    }
  }

  /// Writes a frame into every buffer, wherever it is: nothing else runs.
  void refill() {
    rte_mempool_obj_iter(
        pool_->get(),
        [](rte_mempool*, void* lab, void* object, unsigned index) {
          auto* mbuf = static_cast<rte_mbuf*>(object);
          const auto& self = *static_cast<const Lab*>(lab);
          Ipv4Address to;
          store_be32(to.bytes.data(), self.destinations_[index % self.destinations_.size()]);
          const UdpFrame header{.destination_mac = kMac,
                                .source_mac = kMac,
                                .source = Ipv4Address{{10, 0, 0, 77}},
                                .destination = to,
                                .source_port = 1000,
                                .destination_port = 9,
                                .time_to_live = 255};
          auto* bytes = static_cast<std::uint8_t*>(mbuf->buf_addr) + RTE_PKTMBUF_HEADROOM;
          (void)emit(header, {bytes, kFrame});
        },
        this);
  }

  void make_hops() {
    for (const NextHop& next : set_.hops) {
      Hop& hop = hops_.emplace_back(Hop{NeighbourTable::kNobody, next.port, next.kind});
      if (next.kind != HopKind::gateway) continue;
      const NeighbourKey key = NeighbourKey::of(next.port, next.gateway);
      hop.neighbour = neighbours_.pin(key, {0});
      neighbours_.learn(key, {.mac = kMac, .answers = true}, {0});
    }
  }

  std::uint64_t packets_;
  Random random_;
  nlohmann::json seconds_;
  std::vector<RouterPort> own_;
  RouteSet set_;
  std::optional<PacketPool> pool_;
  std::vector<Port> ports_;
  std::vector<std::uint32_t> destinations_;
  std::optional<LpmTables> lpm_;
  std::optional<FibTables> fib_;
  NeighbourTable neighbours_{1024};
  std::vector<Hop> hops_;
};

int run(std::uint64_t rounds, std::size_t routes, std::uint64_t packets, int cpu, std::uint64_t seed) {
  LcorePlan plan;
  plan.control_cpus = {cpu};
  auto eal = value_or_exit(Eal::start({}, plan, {}, Bytes{std::uint64_t{1} << 30}));
  nlohmann::json result = {{"routes", routes}, {"packets", packets}, {"burst", kBurst}, {"hugepages", eal.hugepages()}};
  {
    Lab lab(routes, packets, seed);
    const std::vector<std::pair<const char*, std::function<double()>>> contenders = {
        {"forward", [&] { return lab.forward(FrameLimits<MacSwap>(MacSwap(), 1500)); }},
        {"forward_again", [&] { return lab.forward(FrameLimits<MacSwap>(MacSwap(), 1500)); }},
        {"io", [&] { return lab.forward(NoWork{}); }},
        {"lookup_lpm", [&] { return lab.lookup_lpm(); }},
        {"lookup_fib", [&] { return lab.lookup_fib(); }},
        {"l3_lpm", [&] { return lab.l3_lpm(); }},
        {"l3_fib", [&] { return lab.l3_fib(); }}};
    std::vector<std::size_t> order(contenders.size());
    std::iota(order.begin(), order.end(), 0);
    std::mt19937_64 shuffler(seed);
    for (std::uint64_t round = 0; round < rounds; ++round) {
      std::shuffle(order.begin(), order.end(), shuffler);
      for (const std::size_t i : order) result["samples"][contenders[i].first].push_back(contenders[i].second());
    }
    result["seconds"] = lab.seconds();
  }
  std::puts(result.dump().c_str());
  return 0;
}

}  // namespace
}  // namespace warpline

int main(int argc, char** argv) {
  if (argc != 6) {
    std::fputs("usage: l3forward_rounds ROUNDS ROUTES PACKETS CPU SEED\n", stderr);
    return 2;
  }
  return warpline::run(std::strtoull(argv[1], nullptr, 10), std::strtoull(argv[2], nullptr, 10),
                       std::strtoull(argv[3], nullptr, 10), std::atoi(argv[4]), std::strtoull(argv[5], nullptr, 10));
}
