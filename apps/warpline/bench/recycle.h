// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "bench/recycle_plan.h"
#include "config/config.h"
#include "warpline/base/result.h"
#include "warpline/base/statistics/bootstrap.h"

namespace warpline::bench {

/// How much is measured.
struct RecycleBenchSize {
  std::uint16_t rounds = 30;
  std::uint64_t packets = 256 << 10;  ///< of a setting in a round
  std::uint64_t seed = 1;             ///< of the order in a round
  bool keep_disturbed = false;        ///< also what was measured while the thread lost its processor

  /// What `bench` asks for, or what the table has for itself.
  [[nodiscard]] static RecycleBenchSize of(const config::BenchConfig& config);
};

/// What one setting came to, one element a round.
struct RecycleSamples {
  std::vector<double> cycles;      ///< TSC cycles a packet, without the engine's
  std::vector<double> engine;      ///< of the software NIC's engine, a packet
  std::vector<double> recycled;    ///< buffers a packet that went straight from a transmit ring to a receive ring
  std::vector<double> gets;        ///< mbufs a packet that drivers took from pools
  std::uint64_t dropped = 0;       ///< packets, in all rounds
  std::uint32_t repeated = 0;      ///< measurements taken again: the thread lost its processor meanwhile
  std::vector<std::string> notes;  ///< what was refused, and what is used instead
  bool refused = false;            ///< of RecycleProbe::two_lcores: nothing is ever linked
};

/// A plan with its samples, as plan.settings.
struct RecycleBenchTable {
  RecycleBenchPlan plan;
  RecycleBenchSize size;
  std::vector<RecycleSamples> samples;
  std::uint16_t rounds = 0;  ///< completed; fewer than asked for when interrupted
  bool hugepages = false;

  [[nodiscard]] nlohmann::ordered_json to_json() const;
  [[nodiscard]] std::string to_markdown() const;
  /// 0, or 1: what recycling is expected to save was not seen.
  [[nodiscard]] int exit_code() const;
};

/// What recycling is expected to do in the base case, and what came of it. Ratios are of the same rounds.
struct RecycleVerdict {
  std::string expected;
  std::string seen;
  bool met = false;
};
/// Empty without a complete round.
[[nodiscard]] std::vector<RecycleVerdict> judge(const RecycleBenchTable& table);

/// Measures each setting once a round, all of them in random order, on the calling lcore, which is pinned. Ends early,
/// after a whole measurement, once `stop` is set. An error of a setting ends it all: a buffer that is lost is one.
[[nodiscard]] Result<RecycleBenchTable> run_recycle_bench(RecycleBenchPlan plan, const RecycleBenchSize& size,
                                                          const std::atomic<bool>& stop,
                                                          const std::function<void(const std::string&)>& progress);

}  // namespace warpline::bench
