// SPDX-License-Identifier: Apache-2.0
#include "warpline/runtime/workers.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include <rte_launch.h>
#include <rte_lcore.h>

#include "warpline/runtime/eal.h"

namespace warpline::runtime {
namespace {

constexpr std::chrono::microseconds kLook{50};

}  // namespace

int Workers::enter(void* body) {
  auto* const self = static_cast<Body*>(body);
  // EAL has pinned the lcore already, except to processors that it does not know (id >= RTE_MAX_LCORE), and but for one
  // that is kept.
  if ((self->cpu >= RTE_MAX_LCORE || Eal::is_kept()) && self->cpu < CPU_SETSIZE) {
    rte_cpuset_t set;
    CPU_ZERO(&set);
    CPU_SET(static_cast<std::size_t>(self->cpu), &set);
    rte_thread_set_affinity(&set);
  }
  self->run();
  self->ended.store(true, std::memory_order_release);
  return 0;
}

Result<void> Workers::launch(std::size_t worker, std::function<void()> body) {
  const PlacedWorker& placed = plan_.workers[worker];
  Body& own = bodies_[worker];
  if (!own.ended.load(std::memory_order_acquire)) {
    return environment_error(fmt::format("worker \"{}\" does not start", placed.request.name), "it runs already");
  }
  own.run = std::move(body);
  own.cpu = placed.cpu.id;
  own.ended.store(false, std::memory_order_relaxed);
  const int problem = rte_eal_remote_launch(enter, &own, placed.lcore);
  if (problem != 0) {
    own.run = nullptr;
    own.ended.store(true, std::memory_order_relaxed);
    return environment_error(fmt::format("worker \"{}\" does not start on lcore {}", placed.request.name, placed.lcore),
                             problem == -EBUSY ? "the lcore runs something already" : "EAL was started without it");
  }
  return {};
}

bool Workers::running() const {
  return std::any_of(bodies_.begin(), bodies_.end(),
                     [](const Body& body) { return !body.ended.load(std::memory_order_acquire); });
}

void Workers::wait() {
  for (std::size_t w = 0; w < bodies_.size(); ++w) {
    if (bodies_[w].run == nullptr) continue;
    const unsigned lcore = plan_.workers[w].lcore;
    // rte_eal_wait_lcore() spins: under real-time scheduling it would keep a worker on this core from ending.
    while (rte_eal_get_lcore_state(lcore) == RUNNING) std::this_thread::sleep_for(kLook);
    rte_eal_wait_lcore(lcore);
    static_cast<void>(bodies_[w].ended.load(std::memory_order_acquire));
  }
}

}  // namespace warpline::runtime
