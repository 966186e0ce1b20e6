// SPDX-License-Identifier: Apache-2.0
// recycle_soak [--packets N] [--seed S]: packets circle between three software NICs through the lcore that forwards
// them, in epochs of random rings, thresholds and ways of recycling, with random routes, clones, mbufs that somebody
// else holds and mbufs of another pool, while the main thread stops and starts queues and ports. After each epoch
// every buffer is back in its pool, and no frame was ever other than it was sent. Prints one line; exit code 0 when all
// of that held. Debug builds also watch that no mbuf is posted twice.

#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <thread>

#include <CLI/CLI.hpp>

#include "soak_network.h"
#include "warpline/runtime/eal.h"
#include "warpline/runtime/workers.h"

namespace warpline::soak {
namespace {

constexpr std::uint64_t kPacketsAnEpoch = 60'000;
constexpr std::uint64_t kPacketsAStep = 2'000;

/// Stops and starts queues and ports while packets flow.
class Mischief {
 public:
  Mischief(Network& network, Driver& driver, Random& random) : network_(network), driver_(driver), random_(random) {}

  /// False: a queue or port does not stop or start.
  [[nodiscard]] bool step() {
    const auto port = static_cast<std::uint16_t>(random_.below(kPorts));
    const auto queue = static_cast<std::uint16_t>(random_.below(kQueues));
    const std::uint16_t id = network_.port(port);
    std::uint32_t queues = 0;
    for (std::uint16_t i = 0; i < kQueues; ++i) queues |= bit(port, i);
    switch (random_.below(3)) {
      case 0:
        return restart(
            0, bit(port, queue), [=] { return rte_eth_dev_tx_queue_stop(id, queue); },
            [=] { return rte_eth_dev_tx_queue_start(id, queue); });
      case 1:
        return restart(
            bit(port, queue), 0, [=] { return rte_eth_dev_rx_queue_stop(id, queue); },
            [=] { return rte_eth_dev_rx_queue_start(id, queue); });
      default:
        return restart(queues, queues, [=] { return rte_eth_dev_stop(id); }, [=] { return rte_eth_dev_start(id); });
    }
  }

 private:
  template <typename Stop, typename Start>
  bool restart(std::uint32_t rx, std::uint32_t tx, Stop stop, Start start) {
    memory::Recycler* const recycler = network_.recycler();
    if (recycler != nullptr) {
      for_each(rx, [&](port::PortQueue queue) { recycler->unlink_rx(queue); });
      for_each(tx, [&](port::PortQueue queue) { recycler->unlink_tx(queue); });
      while (!recycler->unlinked()) std::this_thread::yield();
    }
    driver_.use(kAll & ~rx, kAll & ~tx);
    bool ok = stop() == 0;
    // The traffic has a while for what is left of it.
    for (std::uint64_t rounds = random_.below(8); rounds > 0; --rounds) driver_.use(kAll & ~rx, kAll & ~tx);
    ok = ok && start() == 0;
    if (recycler != nullptr) {
      for_each(rx, [&](port::PortQueue queue) { recycler->relink_rx(queue); });
      for_each(tx, [&](port::PortQueue queue) { recycler->relink_tx(queue); });
    }
    driver_.use(kAll, kAll);
    return ok;
  }

  template <typename Each>
  void for_each(std::uint32_t queues, const Each& each) {
    for (std::uint16_t i = 0; i < kPairs; ++i) {
      if ((queues >> i & 1) == 0) continue;
      each(port::PortQueue{network_.port(i / kQueues), static_cast<std::uint16_t>(i % kQueues)});
    }
  }

  Network& network_;
  Driver& driver_;
  Random& random_;
};

struct Sums {
  std::uint64_t packets = 0;
  std::uint64_t recycled = 0;
  std::uint64_t wrong = 0;
  unsigned epochs = 0;
  unsigned steps = 0;
};

/// One epoch, added to `sums`. False: buffers are missing, or a queue would not stop or start.
bool run_epoch(const runtime::LcorePlan& plan, Random& random, std::uint64_t most, Sums& sums) {
  Network network(draw_epoch(random));
  Driver driver(network, random.next());
  Mischief mischief(network, driver, random);
  bool ok = true;
  {
    runtime::Workers workers(plan);
    const Result<void> launched = workers.launch(0, [&driver] { driver.run(); });
    if (!launched.ok()) throw std::runtime_error(launched.error().message());
    const std::uint64_t packets = std::min(most, kPacketsAnEpoch);
    for (std::uint64_t next = kPacketsAStep; ok && driver.packets() < packets;) {
      if (driver.packets() < next) {
        std::this_thread::yield();
        continue;
      }
      next = driver.packets() + random.below(2 * kPacketsAStep);
      ok = mischief.step();
      ++sums.steps;
    }
    driver.stop();
  }
  sums.packets += driver.packets();
  sums.wrong += driver.wrong();
  if (network.recycler() != nullptr) sums.recycled += network.recycler()->recycled();
  ++sums.epochs;
  return network.close() && ok;
}

int run(std::uint64_t packets, std::uint64_t seed) {
  const auto eal =
      runtime::Eal::start({.share_cores = true, .hugepages = false}, {{.name = "driver"}}, {}, Bytes{256U << 20});
  if (!eal.ok()) throw std::runtime_error(eal.error().message());
  Random random(seed);
  Sums sums;
  bool ok = true;
  while (ok && sums.packets < packets) ok = run_epoch(eal->plan(), random, packets - sums.packets, sums);
  ok = ok && sums.wrong == 0 && sums.recycled != 0;
  fmt::print("{}: seed {}, {} packets in {} epochs, {} stops and starts, {} buffers recycled, {} frames wrong{}\n",
             ok ? "passed" : "FAILED", seed, sums.packets, sums.epochs, sums.steps, sums.recycled, sums.wrong,
             ok || sums.wrong != 0 ? "" : "; buffers are missing, or a queue did not stop or start");
  return ok ? 0 : 1;
}

}  // namespace
}  // namespace warpline::soak

// NOLINTNEXTLINE(bugprone-exception-escape): what is thrown ends the program
int main(int argc, char** argv) {
  std::uint64_t packets = 10'000'000;
  std::uint64_t seed = 1;
  CLI::App app("Recycling of buffers under everything that may happen to it");
  app.add_option("--packets", packets);
  app.add_option("--seed", seed);
  CLI11_PARSE(app, argc, argv);
  try {
    return warpline::soak::run(packets, seed);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
