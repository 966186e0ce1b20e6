// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "warpline/runtime/eal.h"

namespace warpline::runtime {

/// For tests: an EAL without hugepages and files, and `workers` lcores that share what processors there are. Each test
/// program that needs it has one line:
///   const auto* const kEal = testing::AddGlobalTestEnvironment(new warpline::runtime::EalEnvironment(3));
class EalEnvironment : public testing::Environment {
 public:
  explicit EalEnvironment(std::size_t workers, Bytes memory = {256 << 20}) : workers_(workers), memory_(memory) {}

  void SetUp() override {
    const Result<machine::Topology> topology = machine::Topology::of_machine();
    ASSERT_TRUE(topology.ok()) << topology.error().message();
    std::vector<WorkerRequest> requests;
    for (std::size_t i = 0; i < workers_; ++i)
      requests.push_back({.name = "worker " + std::to_string(i), .queues = ""});
    Result<LcorePlan> plan = plan_lcores(*topology, requests, {.share_cores = true});
    ASSERT_TRUE(plan.ok()) << plan.error().message();
    shared_plan() = *std::move(plan);
    RuntimeSettings settings;
    settings.hugepages = false;
    Result<Eal> eal = Eal::start_planned(settings, shared_plan(), {}, memory_);
    ASSERT_TRUE(eal.ok()) << eal.error().message();
    eal_.emplace(*std::move(eal));
  }
  void TearDown() override { eal_.reset(); }

  /// The plan that the EAL was started with.
  [[nodiscard]] static const LcorePlan& plan() { return shared_plan(); }

 private:
  static LcorePlan& shared_plan() {
    static LcorePlan plan;
    return plan;
  }

  std::size_t workers_;
  Bytes memory_;
  std::optional<Eal> eal_;
};

}  // namespace warpline::runtime
