// SPDX-License-Identifier: Apache-2.0
// l3forward_rounds ROUNDS ROUTES PACKETS CPU SEED PAGES: cycles a packet of forwarding, of DPDK's lookups alone, of
// routing without checks, and of l3forward, with ROUTES routes. Two net_vnic ports with wire=static and buffers of one
// pool, all on one core. What is routed is verified first. Each round has every contender once, in random order; JSON
// with all samples on stdout.
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
#include <string_view>
#include <unordered_map>
#include <vector>

#include <nlohmann/json.hpp>
#include <rte_ethdev.h>
#include <rte_fib.h>
#include <rte_lpm.h>
#include <rte_mempool.h>

#include "unchecked_stage.h"
#include "warpline/base/random.h"
#include "warpline/base/time/clock.h"
#include "warpline/datapath/run_to_completion.h"
#include "warpline/memory/packet_pool.h"
#include "warpline/packet/checksum.h"
#include "warpline/packet/headers/ipv4.h"
#include "warpline/packet/udp_frame.h"
#include "warpline/port/port.h"
#include "warpline/route/route_file.h"
#include "warpline/router/fib_tables.h"
#include "warpline/router/lpm_tables.h"
#include "warpline/router/route_stage.h"
#include "warpline/runtime/eal.h"
#include "warpline/workload/frame_limits.h"
#include "warpline/workload/mac_swap.h"
#include "warpline/workload/none.h"

namespace warpline {
namespace {

constexpr std::uint16_t kBurst = 32;
constexpr std::uint16_t kRing = 512;
constexpr std::uint32_t kBuffers = 8191;
constexpr std::size_t kFrame = 60;
/// MAC address of both ports and all neighbours, because a buffer that was sent is received again as it is.
constexpr MacAddress kMac{{2, 0, 0, 0, 0, 1}};
constexpr std::uint8_t kLife = 255;
constexpr Nanos kDeadline{20'000};      ///< longest wait of a packet for others of its port, as in the program
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
template <router::RouteLookup Lookup>
class Shared {
 public:
  using V4Key = typename Lookup::V4Key;
  using V6Key = typename Lookup::V6Key;

  explicit Shared(const Lookup& tables) : tables_(&tables) {}
  static Result<Shared> make(const route::RouteSet&, const router::TablesPlace&, Shared);  // never called
  static Bytes memory(const route::RouteSet& set) { return Lookup::memory(set); }
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
    set_ = value_or_exit(route::parse_routes(text, "routes", own_, false));
    seconds_["parse"] = seconds_since(begin);
    pool_.emplace(value_or_exit(memory::PacketPool::make("lab", kBuffers, 256, 2048, runtime::kAnyNode)));
    for (int i = 0; i < 2; ++i) {
      ports_.push_back(value_or_exit(port::Port::open(fmt::format("net_vnic{},wire=static,size={}", i, kFrame))));
      port::PortSettings config;
      config.rx_ring = config.tx_ring = kRing;
      check(ports_.back().configure(config, {.rx = 1, .tx = 1, .one_pool = true}));
      check(ports_.back().attach(pool_->get()));
    }
    for (port::Port& port : ports_) check(port.start());
    draw_destinations();
    note_where_to();
    begin = ticks_now();
    lpm_.emplace(value_or_exit(router::LpmTables::make(set_, {.number = 100}, {})));
    seconds_["lpm"] = seconds_since(begin);
    begin = ticks_now();
    fib_.emplace(value_or_exit(router::FibTables::make(set_, {.number = 101}, {})));
    seconds_["fib"] = seconds_since(begin);
    make_hops();
  }

  [[nodiscard]] const nlohmann::json& seconds() const { return seconds_; }

  template <typename Work>
  double forward(const Work& work) {
    datapath::PacketBudget budget(0);
    datapath::QueuePath there, back;
    set_up(there, 0, 1);
    set_up(back, 1, 0);
    datapath::RunToCompletion<Work> first(there, budget, work), second(back, budget, work);
    const double cycles = measure([&] { return first.poll() + second.poll(); });
    if (there.sent.drops.total() + back.sent.drops.total() != 0) give_up("forward dropped packets");
    return cycles;
  }

  /// What DPDK's own call for a burst costs: find(destinations, hops) looks kBurst of them up.
  template <typename Found, typename Find>
  double lookup(Find&& find) {
    Found hops[kBurst];
    std::size_t at = 0;
    std::uint64_t sum = 0;
    const double cycles = measure([&] {
      find(&destinations_[at], hops);
      for (const Found hop : hops) sum += hop;
      at = at + 2 * kBurst <= destinations_.size() ? at + kBurst : 0;
      return kBurst;
    });
    if (sum == 0) give_up("no route was found");
    return cycles;
  }
  double lookup_lpm() {
    const rte_lpm* lpm = rte_lpm_find_existing("routes4_100");
    return lookup<std::uint32_t>([lpm](const std::uint32_t* destinations, std::uint32_t* hops) {
      rte_lpm_lookup_bulk(lpm, destinations, hops, kBurst);
    });
  }
  double lookup_fib() {
    rte_fib* fib = rte_fib_find_existing("routes4_101");
    return lookup<std::uint64_t>([fib](std::uint32_t* destinations, std::uint64_t* hops) {
      rte_fib_lookup_bulk(fib, destinations, hops, kBurst);
    });
  }

  /// Every packet that `way` sends is looked at: station, time to live, checksum, and by which port it leaves.
  void verify(const char* name, const std::function<double()>& way) {
    wrong_ = seen_ = 0;
    verifying_ = true;
    const rte_eth_rxtx_callback* looks[2];
    for (std::uint16_t i = 0; i < 2; ++i) looks[i] = rte_eth_add_tx_callback(ports_[i].id(), 0, look_at_sent, this);
    way();
    for (std::uint16_t i = 0; i < 2; ++i) rte_eth_remove_tx_callback(ports_[i].id(), 0, looks[i]);
    verifying_ = false;
    if (seen_ >= 4 * kBuffers && wrong_ == 0) return;
    std::fprintf(stderr, "%s: %llu of %llu packets wrong\n", name, static_cast<unsigned long long>(wrong_),
                 static_cast<unsigned long long>(seen_));
    give_up("not measured");
  }

  template <typename Lookup>
  double l3forward(const Lookup& tables) {
    using Tables = Shared<Lookup>;
    datapath::PacketBudget budget(0);
    datapath::QueuePath paths[2] = {{}, {}};
    std::vector<datapath::QueuePath*> both;
    std::vector<router::RoutePort> route_ports;
    for (std::uint16_t i = 0; i < 2; ++i) {
      set_up(paths[i], i, i);
      paths[i].deadline_ticks = nanos_to_ticks(kDeadline);
      both.push_back(&paths[i]);
      route_ports.push_back({ports_[i].id(), own_[i], pool_->get()});
    }
    router::RouteLcore lcore(route_ports, both, neighbours_);
    router::GenerationSwitch<Tables> generations;
    generations.publish(
        std::make_unique<router::Generation<Tables>>(router::Generation<Tables>{Tables(tables), hops_, 1}));
    router::RouteStage<Tables> stage(generations, lcore, budget, kBurst);
    const double cycles = measure([&] { return stage.poll(); });
    stage.drain();
    if (paths[0].sent.drops.total() + paths[1].sent.drops.total() != 0) give_up("l3forward dropped packets");
    return cycles;
  }
  template <Unchecked kDoes, typename Lookup>
  double unchecked(const Lookup& tables) {
    using Tables = Shared<Lookup>;
    using Checked = UncheckedStage<Tables, kDoes>;
    datapath::QueuePath paths[2] = {{}, {}};
    for (std::uint16_t i = 0; i < 2; ++i) {
      set_up(paths[i], i, i);
      paths[i].deadline_ticks = nanos_to_ticks(kDeadline);
    }
    std::array<typename Checked::Port, 2> both{
        typename Checked::Port{&paths[0], route::HopRewrite(kMac), router::Egress(paths[0])},
        typename Checked::Port{&paths[1], route::HopRewrite(kMac), router::Egress(paths[1])}};
    const router::Generation<Tables> generation{Tables(tables), hops_, 1};
    Checked stage(generation, neighbours_, both, kBurst);
    const double cycles = measure([&] { return stage.poll(); });
    stage.drain();
    if (paths[0].sent.drops.total() + paths[1].sent.drops.total() != 0) give_up("a packet was dropped");
    return cycles;
  }
  template <Unchecked kDoes>
  double unchecked_lpm() {
    return unchecked<kDoes>(*lpm_);
  }
  double l3_lpm() { return l3forward(*lpm_); }
  double l3_fib() { return l3forward(*fib_); }

 private:
  [[noreturn]] static void give_up(const char* why) {
    std::fprintf(stderr, "l3forward_rounds: %s\n", why);
    std::exit(4);
  }
  /// Returns the CPU time of this thread; other threads on its processor do not count.
  static double processor_seconds() {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
  }
  static double seconds_since(std::uint64_t begin) { return ticks_to_nanos(ticks_now() - begin) / 1e9; }

  void set_up(datapath::QueuePath& path, std::uint16_t rx, std::uint16_t tx) const {
    path.rx = {ports_[rx].id(), 0};
    path.tx = path.reply = {ports_[tx].id(), 0};
    path.burst = kBurst;
    path.deadline_ticks = 0;
    path.tx_retries = 64;
  }

  /// Cycles a packet (time on the processor x TSC rate) of `step`, which returns how many it did, after a warm-up of a
  /// tenth, or until every buffer has come round.
  template <typename Step>
  double measure(Step&& step) {
    refill();
    std::uint64_t done = 0;
    if (verifying_) {
      while (done < 5 * kBuffers) done += step();
      return 0;
    }
    while (done < std::max<std::uint64_t>(packets_ / 10, 4 * kBuffers)) done += step();
    done = 0;
    const double begin = processor_seconds();
    while (done < packets_) done += step();
    return (processor_seconds() - begin) * ticks_per_second() / static_cast<double>(done);
  }

  static std::uint16_t look_at_sent(std::uint16_t port, std::uint16_t /*queue*/, rte_mbuf** mbufs, std::uint16_t count,
                                    void* lab) {
    Lab& self = *static_cast<Lab*>(lab);
    for (std::uint16_t i = 0; i < count; ++i) {
      const auto* frame = rte_pktmbuf_mtod(mbufs[i], const std::uint8_t*);
      const packet::Ipv4View ip(frame + packet::EthernetView::kHeaderLength);
      const auto expected = self.leaves_by_.find(packet::load_be32(ip.destination()));
      const bool right = expected != self.leaves_by_.end() && self.ports_[expected->second].id() == port &&
                         packet::load_address<MacAddress>(frame) == kMac &&
                         packet::load_address<MacAddress>(frame + 6) == kMac && ip.time_to_live() < kLife &&
                         packet::checksum(frame + packet::EthernetView::kHeaderLength, 20) == 0;
      self.wrong_ += right ? 0 : 1;
    }
    self.seen_ += count;
    return count;
  }

  /// By the text of the routes, longest first, as no table does it.
  void note_where_to() {
    std::unordered_map<std::uint64_t, std::uint16_t> port_of;
    for (const route::Ipv4Route& route : set_.v4) {
      port_of[std::uint64_t{route.length} << 32 | packet::load_be32(route.prefix.bytes.data())] =
          set_.hops[route.hop].port;
    }
    for (const std::uint32_t destination : destinations_) {
      for (std::uint32_t length = 32; length > 0 && !leaves_by_.contains(destination); --length) {
        const auto found = port_of.find(std::uint64_t{length} << 32 | (destination >> (32 - length) << (32 - length)));
        if (found != port_of.end()) leaves_by_[destination] = found->second;
      }
    }
  }

  void draw_destinations() {
    std::vector<const route::Ipv4Route*> from_file;
    for (const route::Ipv4Route& route : set_.v4) {
      if (route.line != 0) from_file.push_back(&route);
    }
    for (std::uint32_t i = 0; i < kBuffers; ++i) {
      const route::Ipv4Route& route = *from_file[random_.below(from_file.size())];
      const auto host = static_cast<std::uint32_t>(random_.next() & 0xffffffffU >> route.length);
      destinations_.push_back(packet::load_be32(route.prefix.bytes.data()) | (route.length == 32 ? 0 : host));
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
          packet::store_be32(to.bytes.data(), self.destinations_[index % self.destinations_.size()]);
          const packet::UdpFrame header{.destination_mac = kMac,
                                        .source_mac = self.verifying_ ? MacAddress{{2, 0, 0, 0, 0, 9}} : kMac,
                                        .source = Ipv4Address{{10, 0, 0, 77}},
                                        .destination = to,
                                        .source_port = 1000,
                                        .destination_port = 9,
                                        .time_to_live = kLife};
          auto* bytes = static_cast<std::uint8_t*>(mbuf->buf_addr) + RTE_PKTMBUF_HEADROOM;
          (void)packet::emit(header, {bytes, kFrame});
        },
        this);
  }

  void make_hops() {
    for (const route::NextHop& next : set_.hops) {
      router::Hop& hop = hops_.emplace_back(router::Hop{route::NeighbourTable::kNobody, next.port, next.kind});
      if (next.kind != route::HopKind::gateway) continue;
      const route::NeighbourKey key = route::NeighbourKey::of(next.port, next.gateway);
      hop.neighbour = neighbours_.pin(key, {0});
      neighbours_.learn(key, {.mac = kMac, .answers = true}, {0});
    }
  }

  std::uint64_t packets_;
  bool verifying_ = false;
  std::uint64_t seen_ = 0;   ///< while verifying
  std::uint64_t wrong_ = 0;  ///< seen and wrong
  Random random_;
  nlohmann::json seconds_;
  std::vector<route::RouterPort> own_;
  route::RouteSet set_;
  std::optional<memory::PacketPool> pool_;
  std::vector<port::Port> ports_;
  std::vector<std::uint32_t> destinations_;
  std::unordered_map<std::uint32_t, std::uint16_t> leaves_by_;  ///< port of each destination
  std::optional<router::LpmTables> lpm_;
  std::optional<router::FibTables> fib_;
  route::NeighbourTable neighbours_{1024};
  std::vector<router::Hop> hops_;
};

int run(std::uint64_t rounds, std::size_t routes, std::uint64_t packets, int cpu, std::uint64_t seed, bool huge) {
  runtime::LcorePlan plan;
  plan.control_cpus = {cpu};
  runtime::RuntimeSettings runtime;
  runtime.hugepages = huge;
  auto eal = value_or_exit(runtime::Eal::start_planned(runtime, plan, {}, Bytes{std::uint64_t{1} << 30}));
  nlohmann::json result = {{"routes", routes}, {"packets", packets}, {"burst", kBurst}, {"hugepages", eal.hugepages()}};
  {
    Lab lab(routes, packets, seed);
    const std::vector<std::pair<const char*, std::function<double()>>> contenders = {
        {"forward", [&] { return lab.forward(workload::FrameLimits<workload::MacSwap>(workload::MacSwap(), 1500)); }},
        {"forward_again",
         [&] { return lab.forward(workload::FrameLimits<workload::MacSwap>(workload::MacSwap(), 1500)); }},
        {"io", [&] { return lab.forward(workload::NoWork{}); }},
        {"lookup_lpm", [&] { return lab.lookup_lpm(); }},
        {"lookup_fib", [&] { return lab.lookup_fib(); }},
        {"in_one_loop", [&] { return lab.unchecked_lpm<Unchecked::lookup>(); }},
        {"rewritten", [&] { return lab.unchecked_lpm<Unchecked::rewrite>(); }},
        {"unchecked", [&] { return lab.unchecked_lpm<Unchecked::route>(); }},
        {"l3_lpm", [&] { return lab.l3_lpm(); }},
        {"l3_fib", [&] { return lab.l3_fib(); }}};
    lab.verify("unchecked", [&] { return lab.unchecked_lpm<Unchecked::route>(); });
    lab.verify("l3_lpm", [&] { return lab.l3_lpm(); });
    lab.verify("l3_fib", [&] { return lab.l3_fib(); });
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

// NOLINTNEXTLINE(bugprone-exception-escape): what is thrown ends the program
int main(int argc, char** argv) {
  if (argc != 7) {
    std::fputs("usage: l3forward_rounds ROUNDS ROUTES PACKETS CPU SEED ordinary|huge\n", stderr);
    return 2;
  }
  return warpline::run(std::strtoull(argv[1], nullptr, 10), std::strtoull(argv[2], nullptr, 10),
                       std::strtoull(argv[3], nullptr, 10), std::atoi(argv[4]), std::strtoull(argv[5], nullptr, 10),
                       std::string_view(argv[6]) == "huge");
}
