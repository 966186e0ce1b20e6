// SPDX-License-Identifier: Apache-2.0
#include "warpline/runtime/lcore_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "warpline/base/property_testing.h"

namespace warpline::runtime {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

WorkerRequest on(int node, int near = kNoWorker) { return {.name = "w", .queues = "", .node = node, .near = near}; }

LcorePlan planned(const machine::Topology& topology, const std::vector<WorkerRequest>& workers,
                  const LcoreLimits& limits = {}) {
  auto plan = plan_lcores(topology, workers, limits);
  EXPECT_TRUE(plan.ok());
  return plan.ok() ? *plan : LcorePlan{};
}

std::vector<int> cpus_of(const LcorePlan& plan) {
  std::vector<int> cpus;
  for (const PlacedWorker& worker : plan.workers) cpus.push_back(worker.cpu.id);
  return cpus;
}

TEST(LcorePlan, LeavesTheFirstCoreToControl) {
  const LcorePlan plan = planned(machine::Topology::made_up(1, 4, 1), {on(0), on(0), on(0)});
  EXPECT_EQ(cpus_of(plan), (std::vector<int>{1, 2, 3}));
  EXPECT_EQ(plan.control_cpus, std::vector<int>{0});
  EXPECT_FALSE(plan.control_shares);
  EXPECT_THAT(plan.notes, IsEmpty());
  EXPECT_EQ(eal_lcores(plan), "0@(0),1@1,2@2,3@3");
}

TEST(LcorePlan, TakesCoresBeforeSiblings) {
  const LcorePlan plan = planned(machine::Topology::made_up(1, 2, 2), {on(0), on(0), on(0)});
  EXPECT_EQ(cpus_of(plan), (std::vector<int>{1, 0, 3}));
  EXPECT_EQ(plan.control_cpus, std::vector<int>{2});
  EXPECT_THAT(plan.notes, Contains(HasSubstr("SMT siblings")));
}

TEST(LcorePlan, PrefersThePortsNodeAndSaysWhenItIsFull) {
  const LcorePlan plan = planned(machine::Topology::made_up(2, 2, 1), {on(1), on(1), on(1), on(0)});
  EXPECT_EQ(cpus_of(plan), (std::vector<int>{2, 3, 0, 1}));
  EXPECT_THAT(plan.notes, Contains(HasSubstr("another NUMA node")));
}

TEST(LcorePlan, AnEngineFollowsItsReceiver) {
  const LcorePlan plan = planned(machine::Topology::made_up(4, 4, 1), {on(2), on(kAnyNode, 0), on(1), on(kAnyNode, 2)});
  EXPECT_EQ(plan.workers[1].cpu.node, 2);
  EXPECT_EQ(plan.workers[3].cpu.node, 1);
}

TEST(LcorePlan, WorkersOfNoNodeStayTogether) {
  const LcorePlan plan = planned(machine::Topology::made_up(2, 4, 1), {on(kAnyNode), on(kAnyNode), on(kAnyNode)});
  std::set<int> nodes;
  for (const PlacedWorker& worker : plan.workers) nodes.insert(worker.cpu.node);
  EXPECT_EQ(nodes.size(), 1U);
}

TEST(LcorePlan, SharesEvenlyWhereItMustAndSaysSo) {
  const LcorePlan plan = planned(machine::Topology::made_up(1, 2, 1), {on(0), on(0), on(0), on(0)});
  EXPECT_EQ(cpus_of(plan), (std::vector<int>{1, 0, 1, 0}));
  for (const PlacedWorker& worker : plan.workers) EXPECT_TRUE(worker.shares_cpu);
  EXPECT_THAT(plan.notes, Contains(HasSubstr("4 workers share 2 cores")));
  EXPECT_TRUE(plan.control_shares);
}

TEST(LcorePlan, InRealTimeWorkersGiveWayToTheControlThread) {
  const std::vector<WorkerRequest> two = {on(0), on(0)};
  const LcorePlan ordinary = planned(machine::Topology::made_up(1, 2, 1), two);
  ASSERT_TRUE(ordinary.control_shares);
  for (const PlacedWorker& worker : ordinary.workers) EXPECT_FALSE(worker.gives_way);
  const LcorePlan real_time = planned(machine::Topology::made_up(1, 2, 1), two, {.real_time = true});
  for (const PlacedWorker& worker : real_time.workers) EXPECT_TRUE(worker.gives_way);
  EXPECT_THAT(real_time.notes, Contains(HasSubstr("workers sleep 5 % of the time")));
  const LcorePlan roomy = planned(machine::Topology::made_up(1, 3, 1), two, {.real_time = true});
  for (const PlacedWorker& worker : roomy.workers) EXPECT_FALSE(worker.gives_way);
  const LcorePlan crowded = planned(machine::Topology::made_up(1, 3, 1), {on(0), on(0), on(0)}, {.lcores = 2});
  EXPECT_TRUE(crowded.workers[0].gives_way);
  EXPECT_FALSE(crowded.workers[1].gives_way);
}

TEST(LcorePlan, LcoresBoundsTheProcessors) {
  const LcorePlan plan = planned(machine::Topology::made_up(1, 8, 1), {on(0), on(0), on(0)}, {.lcores = 2});
  EXPECT_EQ(cpus_of(plan), (std::vector<int>{1, 2, 1}));
  EXPECT_FALSE(plan.workers[1].shares_cpu);
  EXPECT_THAT(plan.notes, Contains(HasSubstr("2 workers share 1 core:")));
}

TEST(LcorePlan, MoreLcoresThanProcessorsIsAUsageErrorThatSaysTheWayOut) {
  const auto refused = plan_lcores(machine::Topology::made_up(1, 2, 1), {on(0)}, {.lcores = 3});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, ErrorKind::usage);
  EXPECT_THAT(refused.error().message(), HasSubstr("--lcores 2"));
  EXPECT_THAT(refused.error().message(), HasSubstr("--share-cores"));
  EXPECT_TRUE(plan_lcores(machine::Topology::made_up(1, 2, 1), {on(0)}, {.lcores = 3, .share_cores = true}).ok());
}

TEST(LcorePlan, DpdkHasSoManyLcoresOnly) {
  EXPECT_TRUE(plan_lcores(machine::Topology::made_up(1, 256, 1), std::vector(RTE_MAX_LCORE - 1, on(0)), {}).ok());
  const auto refused = plan_lcores(machine::Topology::made_up(1, 256, 1), std::vector(RTE_MAX_LCORE, on(0)), {});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, ErrorKind::usage);
}

TEST(LcorePlan, NoProcessorIsAnEnvironmentError) {
  const auto refused = plan_lcores({}, {on(0)}, {});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, ErrorKind::environment);
}

TEST(LcorePlan, ProcessorsThatEalDoesNotKnowAreNotToldToIt) {
  machine::Topology topology;
  for (const int id : {0, 300, 301}) topology.cpus.push_back({id, id, 0});
  const LcorePlan plan = planned(topology, {on(0), on(0)});
  EXPECT_EQ(cpus_of(plan), (std::vector<int>{300, 301}));
  EXPECT_EQ(eal_lcores(plan), "0@(0),1@0,2@0");
}

TEST(LcorePlan, PrintsALineForEachWorker) {
  const LcorePlan plan =
      planned(machine::Topology::made_up(1, 4, 1), {{.name = "rx 0", .queues = "port 0 rx 0", .node = 0}});
  EXPECT_THAT(format(plan), HasSubstr("rx 0             1     1     1     0  port 0 rx 0\n"));
}

struct Case {
  machine::Topology topology;
  std::vector<WorkerRequest> workers;
  LcoreLimits limits;
};

Case any_case() {
  static constexpr int kSmt[] = {1, 2, 4};
  const int nodes = *rc::gen::inRange(1, 9);
  const int cores = *rc::gen::inRange(1, 256 / nodes + 1);
  Case made{machine::Topology::made_up(nodes, cores, kSmt[*rc::gen::inRange(0, 3)]), {}, {}};
  // Only some of the machine, as taskset or a container leaves it.
  const int keep_one_in = *rc::gen::inRange(1, 4);
  std::erase_if(made.topology.cpus, [&](const machine::Cpu& cpu) { return cpu.id % keep_one_in != 0; });
  const int workers = *rc::gen::inRange(0, 128);
  for (int w = 0; w < workers; ++w) {
    made.workers.push_back(on(*rc::gen::inRange(-1, nodes), w == 0 ? kNoWorker : *rc::gen::inRange(-1, w)));
  }
  made.limits.lcores = static_cast<std::uint32_t>(*rc::gen::inRange<std::size_t>(0, made.topology.cpus.size() + 1));
  return made;
}

WARPLINE_PROPERTY(LcorePlanProperty, EveryWorkerIsPlacedOnceWithinTheBudget, ()) {
  const Case made = any_case();
  const auto plan = plan_lcores(made.topology, made.workers, made.limits);
  RC_ASSERT(plan.ok());
  RC_ASSERT(plan->workers.size() == made.workers.size());
  std::set<unsigned> lcores = {plan->control_lcore};
  std::map<int, int> load;
  for (const PlacedWorker& worker : plan->workers) {
    RC_ASSERT(worker.lcore < RTE_MAX_LCORE);
    RC_ASSERT(lcores.insert(worker.lcore).second);
    RC_ASSERT(std::count(made.topology.cpus.begin(), made.topology.cpus.end(), worker.cpu) == 1);
    ++load[worker.cpu.id];
  }
  for (const PlacedWorker& worker : plan->workers) RC_ASSERT(worker.shares_cpu == (load[worker.cpu.id] > 1));
  const std::size_t budget = made.limits.lcores == 0 ? made.topology.cpus.size() : made.limits.lcores;
  RC_ASSERT(load.size() == std::min({budget, made.workers.size(), made.topology.cpus.size()}));
  if (!load.empty()) {
    const auto [least, most] =
        std::minmax_element(load.begin(), load.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    RC_ASSERT(most->second - least->second <= 1);
  }
}

WARPLINE_PROPERTY(LcorePlanProperty, ControlFloatsOverFreeProcessorsWhereThereAreAny, ()) {
  const Case made = any_case();
  const auto plan = plan_lcores(made.topology, made.workers, made.limits);
  RC_ASSERT(plan.ok());
  std::set<int> used;
  for (const PlacedWorker& worker : plan->workers) used.insert(worker.cpu.id);
  RC_ASSERT(!plan->control_cpus.empty());
  const bool free_cpu = used.size() < made.topology.cpus.size();
  RC_ASSERT(plan->control_shares == !free_cpu);
  if (free_cpu) {
    for (const int cpu : plan->control_cpus) RC_ASSERT(!used.contains(cpu));
  }
}

WARPLINE_PROPERTY(LcorePlanProperty, WithoutSharingAsManyAsCanBeAreOnTheirPortsNode, ()) {
  Case made = any_case();
  made.limits = {};
  RC_PRE(made.workers.size() <= made.topology.cpus.size());
  const auto plan = plan_lcores(made.topology, made.workers, made.limits);
  RC_ASSERT(plan.ok());
  std::map<int, std::size_t> wanted;
  std::map<int, std::size_t> local;
  std::map<int, std::size_t> cpus;
  for (const machine::Cpu& cpu : made.topology.cpus) ++cpus[cpu.node];
  for (const PlacedWorker& worker : plan->workers) {
    RC_ASSERT(!worker.shares_cpu);
    if (worker.request.node == kAnyNode) continue;
    ++wanted[worker.request.node];
    if (worker.cpu.node == worker.request.node) ++local[worker.request.node];
  }
  for (const auto& [node, count] : wanted) RC_ASSERT(local[node] == std::min(count, cpus[node]));
}

WARPLINE_PROPERTY(LcorePlanProperty, OnANodeCoresFillBeforeSiblings, ()) {
  Case made = any_case();
  made.limits = {};
  RC_PRE(made.workers.size() <= made.topology.cpus.size());
  const auto plan = plan_lcores(made.topology, made.workers, made.limits);
  RC_ASSERT(plan.ok());
  std::map<int, std::map<int, int>> load;  // node -> core -> workers
  for (const machine::Cpu& cpu : made.topology.cpus) load[cpu.node].try_emplace(cpu.core, 0);
  for (const PlacedWorker& worker : plan->workers) ++load[worker.cpu.node][worker.cpu.core];
  for (const auto& [node, cores] : load) {
    const bool idle = std::any_of(cores.begin(), cores.end(), [](const auto& core) { return core.second == 0; });
    const bool doubled = std::any_of(cores.begin(), cores.end(), [](const auto& core) { return core.second > 1; });
    RC_ASSERT(!(idle && doubled));
  }
}

WARPLINE_PROPERTY(LcorePlanProperty, IsDeterministic, ()) {
  const Case made = any_case();
  const auto once = plan_lcores(made.topology, made.workers, made.limits);
  const auto again = plan_lcores(made.topology, made.workers, made.limits);
  RC_ASSERT(format(*once) == format(*again));
  RC_ASSERT(eal_lcores(*once) == eal_lcores(*again));
}

}  // namespace
}  // namespace warpline::runtime
