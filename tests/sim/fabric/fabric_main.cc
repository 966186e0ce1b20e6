// SPDX-License-Identifier: Apache-2.0
// warpline_fabric WORD=VALUE...: message endpoints at all hosts of a fat tree, in virtual time; figures as one JSON
// object. Words: k, pattern (mixed, incast, all-to-all), sizes (websearch, hadoop, rpc), load, peers, fan, bytes, cc,
// grants, capacity, marks, hop, warm, measured, longest (microseconds), seed. bench/fabric/run has those that count.
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <string>
#include <string_view>

#include "sim/fabric/fabric_load.h"

namespace warpline::sim {
namespace {

constexpr int kUsage = 2;

double quantile_of(std::vector<float>& values, double fraction) {
  if (values.empty()) return 0;
  const auto at = values.begin() + static_cast<std::ptrdiff_t>(fraction * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), at, values.end());
  return static_cast<double>(*at);
}

struct Words {
  std::map<std::string, std::string, std::less<>> values;

  std::string text(const std::string& name, std::string otherwise) {
    const auto found = values.find(name);
    if (found == values.end()) return otherwise;
    std::string value = found->second;
    values.erase(found);
    return value;
  }
  double number(const std::string& name, double otherwise) {
    const std::string value = text(name, "");
    return value.empty() ? otherwise : std::stod(value);
  }
};

void print(const FabricPlan& plan, const FatTreeSettings& tree, const FabricHostSettings& host, std::string_view sizes,
           FabricFigures& f, double seconds, std::uint32_t hosts) {
  constexpr std::string_view kPatterns[] = {"mixed", "incast", "all-to-all"};
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const double cpu = static_cast<double>(usage.ru_utime.tv_sec) + static_cast<double>(usage.ru_utime.tv_usec) / 1e6;
  fmt::print(
      "{{\"pattern\": \"{}\", \"sizes\": \"{}\", \"hosts\": {}, \"load\": {}, \"peers\": {}, \"fan\": {}, \"bytes\": "
      "{}, \"cc\": \"{}\", \"grants\": {}, \"gbit_a_link\": {}, \"hop_ns\": {}, \"queue_bytes\": {}, "
      "\"mark_above_bytes\": {}, \"warm_up_us\": {}, \"measured_us\": {}, \"longest_us\": {}, \"seed\": {},\n",
      kPatterns[static_cast<std::size_t>(plan.pattern)], sizes, hosts, plan.load, plan.peers, plan.fan, plan.bytes,
      name(host.endpoint.cc.kind), host.endpoint.grants, 8000.0 / tree.picoseconds_a_byte, tree.hop,
      tree.capacity_bytes, tree.mark_above_bytes, plan.warm_up / 1000, plan.measured / 1000, plan.longest / 1000,
      plan.seed);
  fmt::print(
      " \"begun\": {}, \"arrived_in_all\": {}, \"failed\": {}, \"goodput_gbit\": {:.3f}, \"virtual_ms\": {:.3f}, "
      "\"cpu_s\": {:.1f}, \"wall_s\": {:.1f}, \"datagrams\": {}, \"datagrams_per_cpu_s\": {:.0f}, \"hops\": {}, "
      "\"dropped\": {}, \"marked\": {}, \"longest_queue_bytes\": {}, \"lost\": {}, \"spurious\": {}, \"probes\": {}, "
      "\"memory_mib\": {},\n",
      f.begun, f.arrived, f.failed, f.goodput_gbit, f.virtual_ms, cpu, seconds, f.datagrams,
      static_cast<double>(f.datagrams) / cpu, f.tree.hops, f.tree.dropped, f.tree.marked, f.tree.longest_queue, f.lost,
      f.spurious, f.timeouts, usage.ru_maxrss / 1024);
  if (!f.rounds.empty()) {
    fmt::print(" \"rounds\": {{\"count\": {}, \"p50\": {:.3f}, \"p99\": {:.3f}}},\n", f.rounds.size(),
               quantile_of(f.rounds, 0.5), quantile_of(f.rounds, 0.99));
  }
  fmt::print(" \"slowdown\": [");
  bool first = true;
  for (FabricSizes& range : f.sizes) {
    if (range.slowdowns.empty() && range.unfinished == 0) continue;
    fmt::print(
        "{}\n  {{\"up_to_bytes\": {}, \"count\": {}, \"unfinished\": {}, \"p50\": {:.3f}, \"p99\": {:.3f}, "
        "\"least\": {:.3f}}}",
        std::exchange(first, false) ? "" : ",", range.up_to, range.slowdowns.size(), range.unfinished,
        quantile_of(range.slowdowns, 0.5), quantile_of(range.slowdowns, 0.99), quantile_of(range.slowdowns, 0));
  }
  fmt::print("]}}\n");
}

int main(int count, char** texts) {
  Words words;
  for (int i = 1; i < count; ++i) {
    const std::string word = texts[i];
    const std::size_t at = word.find('=');
    if (at != std::string::npos) words.values[word.substr(0, at)] = word.substr(at + 1);
  }
  FatTreeSettings tree;
  FabricHostSettings host;
  FabricPlan plan;
  const auto nanos = [&](const std::string& name, std::int64_t otherwise) {
    return static_cast<std::int64_t>(words.number(name, static_cast<double>(otherwise) / 1000) * 1000);
  };
  tree.k = static_cast<std::uint32_t>(words.number("k", 4));
  tree.capacity_bytes = static_cast<std::uint64_t>(words.number("capacity", 500'000));
  tree.mark_above_bytes = static_cast<std::uint64_t>(words.number("marks", 0));
  tree.hop = static_cast<std::int64_t>(words.number("hop", 300));
  const std::string pattern = words.text("pattern", "mixed");
  plan.pattern = pattern == "incast"       ? FabricPlan::Pattern::incast
                 : pattern == "all-to-all" ? FabricPlan::Pattern::all_to_all
                                           : FabricPlan::Pattern::mixed;
  const std::string sizes = words.text("sizes", "hadoop");
  plan.sizes = MessageSizes::named(sizes);
  plan.load = words.number("load", 0.5);
  plan.peers = static_cast<std::uint32_t>(words.number("peers", 8));
  plan.fan = static_cast<std::uint32_t>(words.number("fan", 100));
  plan.bytes = static_cast<std::uint32_t>(words.number("bytes", 65'536));
  plan.warm_up = nanos("warm", plan.warm_up);
  plan.measured = nanos("measured", plan.measured);
  plan.longest = nanos("longest", plan.longest);
  plan.seed = static_cast<std::uint64_t>(words.number("seed", 1));
  const std::string cc = words.text("cc", "swift");
  host.endpoint.cc.kind = cc == "dctcp"  ? message::CcKind::dctcp
                          : cc == "none" ? message::CcKind::none
                                         : message::CcKind::swift;
  host.endpoint.cc.swift.base_target = Nanos{nanos("target", 50'000)};
  host.endpoint.cc.swift.scaling_range = Nanos{nanos("range", 50'000)};
  host.endpoint.cc.initial_window_bytes = words.number("window", 16 * 1472);
  host.endpoint.grants = static_cast<std::uint32_t>(words.number("grants", 0));
  host.endpoint.max_sessions = static_cast<std::uint32_t>(words.number("sessions", 32));
  host.endpoint.max_messages = static_cast<std::uint32_t>(words.number("messages", 256));
  host.endpoint.max_queued = host.endpoint.max_messages / 2;
  host.endpoint.max_sent_packets = static_cast<std::uint32_t>(words.number("in_flight", 512));
  if (!plan.sizes || !words.values.empty()) {
    fmt::print(stderr, "{}\n", plan.sizes ? "no such word: " + words.values.begin()->first : "no such sizes: " + sizes);
    return kUsage;
  }
  host.endpoint.quotas.half_open_per_address = host.endpoint.quotas.half_open_per_prefix = host.endpoint.max_sessions;
  host.endpoint.receive_bytes = 1 << 20;
  host.endpoint.max_message_bytes = 64 << 20;
  host.endpoint.base_bytes = host.endpoint.datagram_bytes;  // links are known
  host.endpoint.bundles = false;                            // payload has no memory
  const auto began = std::chrono::steady_clock::now();
  FabricLoad load(tree, host, plan);
  FabricFigures figures = load.run();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  print(plan, tree, host, sizes, figures, seconds, tree.k * tree.k * tree.k / 4);
  return 0;
}

}  // namespace
}  // namespace warpline::sim

int main(int count, char** texts) { return warpline::sim::main(count, texts); }
