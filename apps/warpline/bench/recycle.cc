// SPDX-License-Identifier: Apache-2.0
#include "bench/recycle.h"

#include <fmt/format.h>
#include <sched.h>
#include <sys/resource.h>

#include <algorithm>
#include <fstream>
#include <numeric>
#include <random>

#include "bench/recycle_rig.h"
#include "warpline/base/time/clock.h"
#include "warpline/base/time/progress_lines.h"

namespace warpline::bench {
namespace {

constexpr std::uint64_t kSlicePackets = 16 << 10;
constexpr std::uint64_t kLeastWarmup = 32 << 10;  ///< packets
constexpr int kMostAttempts = 8;                  ///< at a measurement that is disturbed

/// What has taken the processor away from this thread so far: other threads, or the host below a virtual machine.
struct Disturbances {
  long switches = 0;         ///< involuntary ones
  std::uint64_t stolen = 0;  ///< ticks, of this processor

  [[nodiscard]] static long count_switches() {
    rusage usage{};
    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_nivcsw;
  }
  [[nodiscard]] static Disturbances now() { return {count_switches(), count_stolen(sched_getcpu())}; }

 private:
  [[nodiscard]] static std::uint64_t count_stolen(int cpu) {
    std::ifstream stat("/proc/stat");
    const std::string wanted = fmt::format("cpu{}", cpu);
    for (std::string word; stat >> word;) {
      if (word != wanted) continue;
      std::uint64_t value = 0;
      for (int field = 0; field < 8; ++field) stat >> value;  // user nice system idle iowait irq softirq steal
      return value;
    }
    return 0;
  }
};

/// Ticks between two reads of the clock with nothing between them: part of each engine call that was timed.
double clock_cost() {
  constexpr int kReads = 1001;
  std::vector<double> costs;
  for (int i = 0; i < kReads; ++i) {
    const std::uint64_t begin = ticks_now();
    costs.push_back(static_cast<double>(ticks_now() - begin));
  }
  return median_of(std::move(costs));
}

/// Cycles a packet.
struct Cost {
  double own = 0;
  double engine = 0;
};

/// One setting, once.
class Measurement {
 public:
  Measurement(RecycleRig& rig, const RecycleSetting& setting, const RecycleBenchSize& size, double clock_cost)
      : rig_(rig), setting_(setting), clock_cost_(clock_cost), keep_disturbed_(size.keep_disturbed) {
    warmup_ = std::max<std::uint64_t>(kLeastWarmup, 8ULL * setting.ring);
    std::uint64_t most = size.packets;
    if (const std::uint64_t bound = rig.most_packets(); bound != 0) {
      warmup_ = std::min(warmup_, bound / 4);
      most = std::min(most, bound - warmup_ - kSlicePackets);
    }
    slices_ = std::max<std::uint64_t>(1, most / kSlicePackets);
  }

  /// None if the thread lost its processor in too much of it.
  std::optional<Cost> run() {
    poll(warmup_);
    const Disturbances before = Disturbances::now();
    long switches = Disturbances::count_switches();
    std::vector<double> own, engine;
    for (std::uint64_t slice = 0; slice < slices_; ++slice) {
      const Cost cost = setting_.probe == RecycleProbe::floor ? floor_slice() : slice_cost();
      const long now = Disturbances::count_switches();
      if (now == switches || keep_disturbed_) {
        own.push_back(cost.own);
        engine.push_back(cost.engine);
      }
      switches = now;
    }
    const bool stolen = Disturbances::now().stolen != before.stolen;
    if (!keep_disturbed_ && (stolen || own.size() * 2 < slices_)) return std::nullopt;
    return Cost{median_of(std::move(own)), median_of(std::move(engine))};
  }

 private:
  void poll(std::uint64_t packets) {
    static_cast<void>(rig_.poll(static_cast<std::uint32_t>(packets / rig_.packets_a_round())));
  }

  /// Returns the engines' ticks per packet since `before`, in which `packets` passed.
  [[nodiscard]] double engine_cost(const EngineTime& before, std::uint64_t packets) const {
    const EngineTime now = rig_.engine();
    const double ticks =
        static_cast<double>(now.ticks - before.ticks) - clock_cost_ * static_cast<double>(now.calls - before.calls);
    return packets == 0 ? 0 : std::max(0.0, ticks) / static_cast<double>(packets);
  }

  Cost slice_cost() {
    const auto rounds = static_cast<std::uint32_t>(kSlicePackets / rig_.packets_a_round());
    const EngineTime before = rig_.engine();
    const std::uint64_t begin = ticks_now();
    const std::uint64_t packets = rig_.poll(rounds);
    const std::uint64_t ticks = ticks_now() - begin;
    const double engine = engine_cost(before, packets);
    return {static_cast<double>(ticks) / static_cast<double>(std::max<std::uint64_t>(packets, 1)) - engine, engine};
  }

  /// Only what lies between refills is timed.
  Cost floor_slice() {
    const EngineTime before = rig_.engine();
    std::uint64_t ticks = 0, timed = 0, all = 0;
    while (timed < kSlicePackets) {
      const std::uint32_t rounds = rig_.make_room();
      const std::uint64_t begin = ticks_now();
      const std::uint64_t packets = rig_.poll(rounds);
      ticks += ticks_now() - begin;
      timed += packets;
      all += packets + rig_.packets_a_round();
    }
    const double engine = engine_cost(before, all);
    return {static_cast<double>(ticks) / static_cast<double>(timed) - engine, engine};
  }

  RecycleRig& rig_;
  const RecycleSetting& setting_;
  double clock_cost_;
  bool keep_disturbed_;
  std::uint64_t warmup_;
  std::uint64_t slices_;
};

Result<void> measure_once(const RecycleSetting& setting, const RecycleBenchSize& size, double clock_cost,
                          RecycleSamples& samples) {
  for (int attempt = 1;; ++attempt) {
    WARPLINE_TRY(const auto rig, RecycleRig::make(setting));
    samples.notes = rig->notes();
    if (setting.probe == RecycleProbe::two_lcores) {
      samples.refused = !rig->may_recycle();
      return {};
    }
    const std::optional<Cost> cost = Measurement(*rig, setting, size, clock_cost).run();
    WARPLINE_TRY(const RecycleRig::Totals totals, rig->finish());
    samples.dropped += totals.dropped;
    if (!cost) {
      ++samples.repeated;
      if (attempt < kMostAttempts) continue;
      return environment_error(describe(setting),
                               fmt::format("the thread lost its processor in each of {} attempts", kMostAttempts),
                               "leave a processor free for it, or use --keep-disturbed");
    }
    const auto received = static_cast<double>(std::max<std::uint64_t>(totals.received, 1));
    samples.cycles.push_back(cost->own);
    samples.engine.push_back(cost->engine);
    samples.recycled.push_back(static_cast<double>(totals.recycled) / received);
    samples.gets.push_back(static_cast<double>(totals.gets) / received);
    return {};
  }
}

}  // namespace

RecycleBenchSize RecycleBenchSize::of(const config::BenchConfig& config) {
  RecycleBenchSize size;
  if (config.rounds != 0) size.rounds = config.rounds;
  if (config.packets != 0) size.packets = config.packets;
  size.seed = config.seed;
  size.keep_disturbed = config.keep_disturbed;
  return size;
}

Result<RecycleBenchTable> run_recycle_bench(RecycleBenchPlan plan, const RecycleBenchSize& size,
                                            const std::atomic<bool>& stop,
                                            const std::function<void(const std::string&)>& progress) {
  RecycleBenchTable table;
  table.plan = std::move(plan);
  table.size = size;
  table.samples.resize(table.plan.settings.size());
  std::vector<std::size_t> order(table.plan.settings.size());
  std::iota(order.begin(), order.end(), 0);
  std::mt19937_64 random(size.seed);
  const double clock = clock_cost();
  progress(fmt::format("recycle: {} settings, {} rounds", order.size(), size.rounds));
  ProgressLines parts("recycle", std::uint64_t{size.rounds} * order.size());
  while (table.rounds < size.rounds) {
    std::ranges::shuffle(order, random);
    for (const std::size_t index : order) {
      if (stop.load(std::memory_order_relaxed)) return table;
      WARPLINE_CHECK(measure_once(table.plan.settings[index], size, clock, table.samples[index]));
      parts.step();
    }
    ++table.rounds;
  }
  return table;
}

}  // namespace warpline::bench
