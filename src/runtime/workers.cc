// SPDX-License-Identifier: Apache-2.0
#include "runtime/workers.h"

#include <fmt/format.h>

#include <utility>

#include <rte_launch.h>
#include <rte_lcore.h>

namespace warpline {

int Workers::enter(void* body) {
  auto* const self = static_cast<Body*>(body);
  // EAL has pinned the lcore already, except to processors that it does not know (id >= RTE_MAX_LCORE).
  if (self->cpu >= RTE_MAX_LCORE && self->cpu < CPU_SETSIZE) {
    rte_cpuset_t set;
    CPU_ZERO(&set);
    CPU_SET(static_cast<std::size_t>(self->cpu), &set);
    rte_thread_set_affinity(&set);
  }
  self->run();
  return 0;
}

Result<void> Workers::launch(std::size_t worker, std::function<void()> body) {
  const PlacedWorker& placed = plan_.workers[worker];
  bodies_[worker] = {std::move(body), placed.cpu.id};
  const int problem = rte_eal_remote_launch(enter, &bodies_[worker], placed.lcore);
  if (problem != 0) {
    return environment_error(fmt::format("worker \"{}\" does not start on lcore {}", placed.request.name, placed.lcore),
                             problem == -EBUSY ? "the lcore runs something already" : "EAL was started without it");
  }
  return {};
}

bool Workers::running() const {
  for (const PlacedWorker& worker : plan_.workers) {
    if (rte_eal_get_lcore_state(worker.lcore) == RUNNING) return true;
  }
  return false;
}

void Workers::wait() {
  for (const PlacedWorker& worker : plan_.workers) rte_eal_wait_lcore(worker.lcore);
}

}  // namespace warpline
