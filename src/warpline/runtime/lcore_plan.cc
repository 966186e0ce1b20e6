// SPDX-License-Identifier: Apache-2.0
#include "warpline/runtime/lcore_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <tuple>

#include <rte_config.h>

#include "warpline/base/give_way.h"

namespace warpline::runtime {
namespace {

constexpr std::size_t kUnplaced = std::numeric_limits<std::size_t>::max();

/// The state of one planning: who is where, and how full each processor and core is.
class Planner {
 public:
  Planner(const machine::Topology& topology, const std::vector<WorkerRequest>& workers, std::size_t budget)
      : topology_(topology),
        workers_(workers),
        budget_(budget),
        cpu_of_(workers.size(), kUnplaced),
        load_(topology.cpus.size(), 0) {}

  /// Index into topology.cpus for each worker.
  std::vector<std::size_t> place_all() {
    // Who can have a processor of its port's node gets it before any stranger settles there.
    for (std::size_t w = 0; w < workers_.size(); ++w) {
      if (workers_[w].node != kAnyNode) place(w, workers_[w].node, /*only_there=*/true);
    }
    for (std::size_t w = 0; w < workers_.size(); ++w) {
      if (workers_[w].node != kAnyNode) place(w, workers_[w].node, /*only_there=*/false);
    }
    const int home = home_node();
    // Those with a neighbour follow it; neighbours of neighbours have their turn when it has been placed.
    for (const bool follow : {false, true}) {
      for (std::size_t w = 0; w < workers_.size(); ++w) {
        const int near = workers_[w].near;
        const bool follows = near >= 0 && static_cast<std::size_t>(near) < workers_.size();
        if (follows != follow) continue;
        const std::size_t beside = follows ? cpu_of_[static_cast<std::size_t>(near)] : kUnplaced;
        place(w, beside == kUnplaced ? home : topology_.cpus[beside].node, /*only_there=*/false);
      }
    }
    return cpu_of_;
  }

 private:
  /// The node for workers that do not care: where most others are, then where there is most room.
  [[nodiscard]] int home_node() const {
    std::map<int, std::pair<int, int>> score;  // node -> workers, free processors
    for (std::size_t c = 0; c < load_.size(); ++c) {
      auto& [busy, free] = score[topology_.cpus[c].node];
      busy += load_[c];
      free += load_[c] == 0 ? 1 : 0;
    }
    return std::max_element(score.begin(), score.end(),
                            [](const auto& a, const auto& b) { return a.second < b.second; })
        ->first;
  }

  void place(std::size_t worker, int node, bool only_there) {
    if (cpu_of_[worker] != kUnplaced) return;
    const bool fresh = used_ < budget_;
    std::optional<std::size_t> best;
    for (std::size_t c = 0; c < load_.size(); ++c) {
      // A processor of its own while the budget lasts, one of those in use after that.
      if (fresh != (load_[c] == 0)) continue;
      if (only_there && (!fresh || topology_.cpus[c].node != node)) continue;
      if (!best || rank(c, node) < rank(*best, node)) best = c;
    }
    if (!best) return;
    cpu_of_[worker] = *best;
    used_ += load_[*best]++ == 0 ? 1 : 0;
    ++core_load_[topology_.cpus[*best].core];
  }

  /// Lower is better. Once processors are shared, even load comes before locality.
  [[nodiscard]] std::tuple<int, bool, int, bool, std::size_t> rank(std::size_t c, int node) const {
    const machine::Cpu& cpu = topology_.cpus[c];
    const auto core = core_load_.find(cpu.core);
    return {load_[c], cpu.node != node, core == core_load_.end() ? 0 : core->second,
            cpu.core == topology_.cpus.front().core, c};
  }

  const machine::Topology& topology_;
  const std::vector<WorkerRequest>& workers_;
  const std::size_t budget_;
  std::vector<std::size_t> cpu_of_;
  std::vector<int> load_;
  std::map<int, int> core_load_;
  std::size_t used_ = 0;
};

/// Processors of idle cores, else idle processors, else all.
void place_control(const machine::Topology& topology, LcorePlan& plan) {
  std::map<int, int> cpu_load;
  std::map<int, int> core_load;
  for (const PlacedWorker& worker : plan.workers) {
    ++cpu_load[worker.cpu.id];
    ++core_load[worker.cpu.core];
  }
  std::vector<int> idle_core;
  std::vector<int> idle_cpu;
  std::vector<int> all;
  for (const machine::Cpu& cpu : topology.cpus) {
    if (!core_load.contains(cpu.core)) idle_core.push_back(cpu.id);
    if (!cpu_load.contains(cpu.id)) idle_cpu.push_back(cpu.id);
    all.push_back(cpu.id);
  }
  plan.control_shares = idle_cpu.empty();
  plan.control_cpus = !idle_core.empty() ? idle_core : !idle_cpu.empty() ? idle_cpu : all;
}

std::string plural(std::size_t n, const char* one) { return fmt::format("{} {}{}", n, one, n == 1 ? "" : "s"); }

void add_notes(LcorePlan& plan) {
  std::map<int, std::vector<std::string>> on_cpu;
  std::map<int, std::map<int, std::size_t>> on_core;
  std::vector<std::string> far;
  std::size_t sharing = 0;
  for (const PlacedWorker& worker : plan.workers) {
    on_cpu[worker.cpu.id].push_back(worker.request.name);
    ++on_core[worker.cpu.core][worker.cpu.id];
    sharing += worker.shares_cpu ? 1 : 0;
    if (worker.request.node != kAnyNode && worker.request.node != worker.cpu.node) far.push_back(worker.request.name);
  }
  if (sharing > 0) {
    const auto shared = static_cast<std::size_t>(
        std::count_if(on_cpu.begin(), on_cpu.end(), [](const auto& entry) { return entry.second.size() > 1; }));
    plan.notes.push_back(fmt::format("{} share {}: they yield when idle, latency and rate suffer",
                                     plural(sharing, "worker"), plural(shared, "core")));
  }
  const auto siblings = static_cast<std::size_t>(
      std::count_if(on_core.begin(), on_core.end(), [](const auto& entry) { return entry.second.size() > 1; }));
  if (siblings > 0) {
    plan.notes.push_back(
        fmt::format("{} with workers on SMT siblings: they slow each other down", plural(siblings, "physical core")));
  }
  if (!far.empty()) {
    plan.notes.push_back(fmt::format("on another NUMA node than the port: {}", fmt::join(far, ", ")));
  }
  if (plan.control_shares) plan.notes.push_back("no core is left for the control thread: it shares with workers");
}

}  // namespace

Result<LcorePlan> plan_lcores(const machine::Topology& topology, const std::vector<WorkerRequest>& workers,
                              const LcoreLimits& limits) {
  const std::size_t cpus = topology.cpus.size();
  if (cpus == 0) return environment_error("no processor to run on", "the affinity mask is empty", "see taskset(1)");
  if (workers.size() + 1 > RTE_MAX_LCORE) {
    return usage_error(
        fmt::format("{} workers and the control thread need {} lcores", workers.size(), workers.size() + 1),
        fmt::format("this DPDK was built for at most {}", RTE_MAX_LCORE), "ask for fewer pipelines or queues");
  }
  if (limits.lcores > cpus && !limits.share_cores) {
    return usage_error(fmt::format("--lcores {}", limits.lcores),
                       fmt::format("this process may use only {}", plural(cpus, "core")),
                       fmt::format("use `--lcores {}`, or `--share-cores` to run several workers on a core", cpus));
  }
  const std::size_t wanted = limits.lcores == 0 ? workers.size() : limits.lcores;
  const std::size_t budget = std::min({wanted, workers.size(), cpus});

  LcorePlan plan;
  const std::vector<std::size_t> placed = Planner(topology, workers, budget).place_all();
  std::map<std::size_t, int> load;
  for (const std::size_t c : placed) ++load[c];
  for (std::size_t w = 0; w < workers.size(); ++w) {
    plan.workers.push_back(
        {workers[w], static_cast<unsigned>(w + 1), topology.cpus[placed[w]], load[placed[w]] > 1, false});
  }
  place_control(topology, plan);
  for (PlacedWorker& worker : plan.workers) {
    worker.gives_way = worker.shares_cpu || (limits.real_time && plan.control_shares);
  }
  add_notes(plan);
  if (limits.real_time && plan.control_shares) {
    plan.notes.emplace_back(
        "real-time scheduling without a core for the control thread: workers sleep 5 % of the time");
  }
  return plan;
}

Result<LcorePlan> place_workers(const RuntimeSettings& settings, const std::vector<WorkerRequest>& workers) {
  WARPLINE_TRY(const machine::Topology topology, machine::Topology::of_machine());
  return plan_lcores(topology, workers,
                     {.lcores = settings.lcores, .share_cores = settings.share_cores, .real_time = is_real_time()});
}

std::string format(const LcorePlan& plan) {
  std::string text =
      fmt::format("{:<12} {:>5} {:>5} {:>5} {:>5}  {}\n", "worker", "lcore", "cpu", "core", "node", "serves");
  text += fmt::format("{:<12} {:>5} {:>5} {:>5} {:>5}  {}\n", "control", plan.control_lcore,
                      machine::format_cpu_list(plan.control_cpus), "-", "-", "set-up, statistics, signals");
  for (const PlacedWorker& worker : plan.workers) {
    text += fmt::format("{:<12} {:>5} {:>5} {:>5} {:>5}  {}{}\n", worker.request.name, worker.lcore, worker.cpu.id,
                        worker.cpu.core, worker.cpu.node, worker.request.queues,
                        worker.shares_cpu ? " (shares its cpu)" : "");
  }
  for (const std::string& note : plan.notes) text += "note: " + note + "\n";
  return text;
}

std::string eal_lcores(const LcorePlan& plan) {
  // EAL knows processors below RTE_MAX_LCORE only. An lcore elsewhere is told to EAL on one of those; Workers pins it.
  std::vector<int> known;
  const auto keep = [](int cpu) { return cpu < RTE_MAX_LCORE; };
  std::copy_if(plan.control_cpus.begin(), plan.control_cpus.end(), std::back_inserter(known), keep);
  for (const PlacedWorker& worker : plan.workers) {
    if (known.empty() && keep(worker.cpu.id)) known.push_back(worker.cpu.id);
  }
  std::string text = fmt::format("{}@({})", plan.control_lcore, machine::format_cpu_list(known));
  for (const PlacedWorker& worker : plan.workers) {
    const int cpu = keep(worker.cpu.id) || known.empty() ? worker.cpu.id : known.front();
    text += fmt::format(",{}@{}", worker.lcore, cpu);
  }
  return text;
}

}  // namespace warpline::runtime
