// SPDX-License-Identifier: Apache-2.0
#include "bench/recycle_plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "config/table_rows.h"
#include "warpline/memory/recycle_setup.h"

namespace warpline::bench {
namespace {

/// Adds rows whose cells are settings that are there once, however many rows show them.
class Planner {
 public:
  Planner(const std::vector<std::string>& only, const std::vector<std::string>& ways) : only_(only), ways_(ways) {}

  /// One row with a cell for each way.
  void row(const std::string& factor, const std::string& value, const RecycleSetting& setting) {
    std::vector<RecycleSetting> cells;
    for (const memory::RecycleWay way : kRecycleWays) {
      cells.push_back(setting);
      cells.back().way = way;
    }
    row(factor, value, cells, false);
  }
  /// One row with these cells.
  void row(const std::string& factor, const std::string& value, const std::vector<RecycleSetting>& settings,
           bool context) {
    if (std::ranges::find(factors_, factor) == factors_.end()) factors_.push_back(factor);
    if (!only_.empty() && std::ranges::find(only_, factor) == only_.end()) return;
    RecycleRow made{factor, value, context, {}};
    for (const RecycleSetting& setting : settings) {
      const bool wanted = ways_.empty() || std::ranges::find(ways_, name(setting.way)) != ways_.end();
      if (wanted) made.cells.push_back(index_of(setting));
    }
    if (!made.cells.empty()) plan_.rows.push_back(std::move(made));
  }

  Result<RecycleBenchPlan> finish() && {
    WARPLINE_CHECK(config::refuse_unknown("only", factors_, only_, "recycle has no such factor"));
    std::vector<std::string_view> ways;
    for (const memory::RecycleWay way : kRecycleWays) ways.push_back(name(way));
    WARPLINE_CHECK(config::refuse_unknown("ways", ways, ways_, "there is no such way"));
    return std::move(plan_);
  }

 private:
  std::size_t index_of(const RecycleSetting& setting) {
    const auto found = std::ranges::find(plan_.settings, setting);
    if (found != plan_.settings.end()) return static_cast<std::size_t>(found - plan_.settings.begin());
    plan_.settings.push_back(setting);
    return plan_.settings.size() - 1;
  }

  const std::vector<std::string>& only_;
  const std::vector<std::string>& ways_;
  std::vector<std::string> factors_;
  RecycleBenchPlan plan_;
};

template <typename Value>
RecycleSetting with(RecycleSetting setting, Value RecycleSetting::* field, Value value) {
  setting.*field = std::move(value);
  return setting;
}

}  // namespace

Result<RecycleBenchPlan> plan_recycle_bench(const std::vector<std::string>& only,
                                            const std::vector<std::string>& ways) {
  using S = RecycleSetting;
  const S base;
  S mix;
  mix.loop = RecycleLoop::mix;
  Planner plan(only, ways);
  plan.row("base", "forward", base);
  // Twins of the base's cells, as if they were other settings.
  const S again = with(base, &S::repeat, 1U);
  plan.row("control", "again", {again, with(again, &S::way, memory::RecycleWay::direct)}, false);
  plan.row("floor", "buffers stay in the rings", {with(base, &S::probe, RecycleProbe::floor)}, false);
  for (const char* const refill : {"mbuf", "computed", "ring"}) {
    plan.row("refill", refill, with(base, &S::refill, std::string(refill)));
  }
  for (const std::uint16_t burst : {8, 16, 32, 64}) {
    plan.row("burst", fmt::format("{}", burst), with(base, &S::burst, burst));
  }
  for (const std::uint16_t ring : {256, 512, 1024, 2048, 4096}) {
    plan.row("ring", fmt::format("{}", ring), with(base, &S::ring, ring));
  }
  for (const std::uint32_t cache : {0U, 256U, 512U}) {
    plan.row("cache", fmt::format("{}", cache), with(base, &S::cache, cache));
  }
  plan.row("buffers", "direct", base);
  plan.row("buffers", "pinned external", with(base, &S::external, true));
  plan.row("payload", "untouched", base);
  plan.row("payload", "touched", with(base, &S::touched, true));
  for (const std::uint32_t percent : {0U, 10U, 25U, 50U, 75U, 100U}) {
    plan.row("elsewhere", fmt::format("{} %", percent), with(mix, &S::elsewhere_percent, percent));
  }
  for (const std::uint32_t percent : {0U, 1U, 5U, 10U}) {
    plan.row("cloned", fmt::format("{} %", percent), with(mix, &S::cloned_percent, percent));
  }
  plan.row("queues", "1", mix);
  plan.row("queues", "2", with(mix, &S::queues, std::uint16_t{2}));
  plan.row("loop", "forward", base);
  plan.row("loop", "l3forward", with(base, &S::loop, RecycleLoop::l3forward));
  const S parted = with(base, &S::probe, RecycleProbe::two_lcores);
  plan.row("lcores", "2",
           {with(parted, &S::way, memory::RecycleWay::direct), with(parted, &S::way, memory::RecycleWay::automatic)},
           false);
  plan.row("context", "net_null", {with(base, &S::driver, std::string("net_null"))}, true);
  plan.row("context", "net_ring", {with(base, &S::driver, std::string("net_ring"))}, true);
  return std::move(plan).finish();
}

std::string describe(const RecycleSetting& setting) {
  std::string text = fmt::format("{}, {}, burst {}, ring {}, cache {}, refill {}", setting.driver, name(setting.loop),
                                 setting.burst, setting.ring, setting.cache, setting.refill);
  if (setting.external) text += ", pinned external buffers";
  if (setting.touched) text += ", payload touched";
  if (setting.queues != 1) text += fmt::format(", {} transmit queues", setting.queues);
  if (setting.elsewhere_percent != 0) text += fmt::format(", {} % elsewhere", setting.elsewhere_percent);
  if (setting.cloned_percent != 0) text += fmt::format(", {} % cloned", setting.cloned_percent);
  if (setting.probe == RecycleProbe::floor) text += ", floor";
  if (setting.probe == RecycleProbe::two_lcores) text += ", two lcores";
  return fmt::format("{}: {}", text, name(setting.way));
}

}  // namespace warpline::bench
