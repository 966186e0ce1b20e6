// SPDX-License-Identifier: Apache-2.0
// vnic_soak [--minutes M] [--seed S] [--engine inline|thread] [--most-growth MIB]: two net_vnic ports under load, each
// driven by a thread of its own, while the main thread stops, starts and reconfigures them, pulls the link and changes
// faults, flow rules and filters, at random. Every frame received is one that was sent; every frame sent is accounted
// for whenever the traffic pauses; no mbuf is ever lost. Prints one summary line; exit code 0 when all of that held.

#include <chrono>
#include <cstdio>
#include <fstream>
#include <string>

#include <CLI/CLI.hpp>

#include "soak_traffic.h"

namespace warpline::vnic {
namespace {

using Clock = std::chrono::steady_clock;

// Rounds of a side's thread, at most, that its link is down, and that frames flow between two changes.
constexpr std::uint64_t kFlapRounds = 64;
constexpr std::uint64_t kRoundsBetween = 512;

/// Kilobytes of this process that are in memory.
long resident_kib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmRSS:")) return std::stol(line.substr(6));
  }
  return 0;
}

/// What changes while frames flow.
class Mischief {
 public:
  Mischief(Traffic& traffic, std::uint64_t seed) : traffic_(traffic), random_(seed) {}

  void step() {
    Side& side = traffic_.side(static_cast<unsigned>(random_.below(2)));
    ++steps_;
    switch (random_.below(12)) {
      case 0:
        return traffic_.restart(side, random_);
      case 1:
        return traffic_.reconfigure(side, random_);
      case 2:
        return traffic_.restart_queue(side, random_);
      case 3:
        return traffic_.close_and_reopen(side, random_);
      case 4:
        return flap(side);
      case 5:
      case 6:
        return traffic_.change_faults(side, random_);
      case 7:
        return traffic_.change_flows(side, random_);
      case 8:
        return traffic_.change_table(side, random_);
      case 9:
        return toggle_filters(side);
      case 10:
        return traffic_.ask(side);
      default:
        return traffic_.check();
    }
  }
  [[nodiscard]] std::uint64_t steps() const { return steps_; }

 private:
  void flap(const Side& side) {
    rte_eth_dev_set_link_down(side.id);
    Traffic::await_rounds(side, random_.below(kFlapRounds));
    rte_eth_dev_set_link_up(side.id);
  }
  void toggle_filters(const Side& side) {
    (void)rte_eth_promiscuous_disable(side.id);
    rte_eth_allmulticast_enable(side.id);
    rte_eth_allmulticast_disable(side.id);
    (void)rte_eth_promiscuous_enable(side.id);
    rte_eth_dev_set_mtu(side.id, static_cast<std::uint16_t>(random_.below(2) == 0 ? 1500 : 9000));
  }

  Traffic& traffic_;
  Random random_;
  std::uint64_t steps_ = 0;
};

int soak(double minutes, std::uint64_t seed, const std::string& engine, long most_growth_mib) {
  std::printf("soak: seed %llu\n", static_cast<unsigned long long>(seed));
  std::fflush(stdout);
  Random pause(seed + 1);
  Traffic traffic(seed, engine);
  Mischief mischief(traffic, seed + 2);
  const auto end = Clock::now() +
                   std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double, std::ratio<60>>(minutes));
  // What is allocated once has been after the first minute, or the first tenth of a shorter run.
  const auto settled = Clock::now() + std::min<Clock::duration>(std::chrono::minutes(1), (end - Clock::now()) / 10);
  long resident_at_first = 0;
  while (Clock::now() < end && traffic.problems() == 0) {
    mischief.step();
    if (resident_at_first == 0 && Clock::now() > settled) resident_at_first = resident_kib();
    Traffic::await_rounds(traffic.side(0), pause.below(kRoundsBetween));
  }
  const Totals totals = traffic.finish();
  const long grown = resident_kib() - resident_at_first;
  const bool good = totals.problems == 0 && totals.leaked == 0 && grown < most_growth_mib * 1024 && totals.received > 0;
  std::printf(
      "soak: %s: %.1f minutes, seed %llu, engine %s: %llu changes, %llu sent, %llu received, %llu lost by reason, %llu "
      "duplicated, %llu mbufs leaked, %ld KiB grown, %llu problems\n",
      good ? "good" : "BAD", minutes, static_cast<unsigned long long>(seed), engine.c_str(),
      static_cast<unsigned long long>(mischief.steps()), static_cast<unsigned long long>(totals.sent),
      static_cast<unsigned long long>(totals.received), static_cast<unsigned long long>(totals.lost),
      static_cast<unsigned long long>(totals.duplicated), static_cast<unsigned long long>(totals.leaked), grown,
      static_cast<unsigned long long>(totals.problems));
  return good ? 0 : 1;
}

}  // namespace
}  // namespace warpline::vnic

// NOLINTNEXTLINE(bugprone-exception-escape): what is thrown ends the program
int main(int argc, char** argv) {
  CLI::App app("Random changes to two net_vnic ports under load");
  double minutes = 30;
  std::uint64_t seed = static_cast<std::uint64_t>(std::chrono::system_clock::now().time_since_epoch().count());
  std::string engine = "inline";
  app.add_option("--minutes", minutes)->capture_default_str();
  app.add_option("--seed", seed, "default: of the time, and printed");
  app.add_option("--engine", engine)->check(CLI::IsMember({"inline", "thread"}))->capture_default_str();
  long most_growth = 64;
  app.add_option("--most-growth", most_growth,
                 "MiB that the process may grow once it has settled; sanitizers need more")
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  if (!warpline::vnic::start_eal()) {
    std::fprintf(stderr, "soak: DPDK does not start\n");
    return 3;
  }
  const int code = warpline::vnic::soak(minutes, seed, engine, most_growth);
  rte_eal_cleanup();
  return code;
}
