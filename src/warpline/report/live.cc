// SPDX-License-Identifier: Apache-2.0
#include "warpline/report/live.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <ctime>

#include "warpline/base/output.h"
#include "warpline/base/units.h"
#include "warpline/port/removal.h"

namespace warpline::report {
namespace {

constexpr double kFirstLineSeconds = 0.25;
constexpr int kRowsAHeader = 20;

/// `now - before`, field by field.
Tally minus(const Tally& now, const Tally& before) { return {now.packets - before.packets, now.bytes - before.bytes}; }

std::optional<Tally> minus(const std::optional<Tally>& now, const std::optional<Tally>& before) {
  if (!now || !before) return now;
  return minus(*now, *before);
}

StageTotals minus(StageTotals now, const StageTotals& before) {
  now.calls -= before.calls;
  now.packets -= before.packets;
  now.sampled_ticks -= before.sampled_ticks;
  now.sampled_packets -= before.sampled_packets;
  return now;
}

/// Ends early when a signal comes.
void sleep_for(double seconds) {
  timespec time{};
  time.tv_sec = static_cast<time_t>(seconds);
  time.tv_nsec = static_cast<long>((seconds - std::floor(seconds)) * 1e9);
  nanosleep(&time, nullptr);
}

/// Prints an interval at a time.
class LivePrinter {
 public:
  LivePrinter(const RunSettings& settings, std::FILE* out, std::FILE* err)
      : interval_(settings.interval),
        next_s_(std::min(interval_s(), kFirstLineSeconds)),
        json_(settings.json_stream),
        file_(settings.json_stream ? out : err) {}

  [[nodiscard]] bool due(double elapsed_s) const {
    return elapsed_s >= std::min(next_s_, last_.elapsed_s + interval_s());
  }
  /// Nobody reads the data any more. A table that nobody reads ends no run.
  [[nodiscard]] bool unread() const { return json_ && std::ferror(file_) != 0; }
  [[nodiscard]] bool behind(const Tally& through) const { return through != last_.through; }

  void print(LiveSample now) {
    const LiveInterval interval(last_, now);
    if (json_) {
      put_line(file_, interval.json());
    } else {
      if (rows_++ % kRowsAHeader == 0) put_line(file_, LiveInterval::header());
      put_line(file_, interval.row());
    }
    next_s_ = interval_s() * (std::floor(now.elapsed_s / interval_s()) + 1);
    last_ = std::move(now);
  }

 private:
  [[nodiscard]] double interval_s() const { return static_cast<double>(interval_.value) / 1e9; }

  const Nanos& interval_;  ///< as it is now
  double next_s_;
  bool json_;
  std::FILE* file_;
  int rows_ = 0;
  LiveSample last_;
};

/// Finds when packets first went through, or the warm-up ended, and when something last went through.
class RateClock {
 public:
  explicit RateClock(std::uint64_t warmup) : warmup_(warmup) {}

  void observe(const Tally& through, double elapsed_s) {
    // Who counts the bytes may be ahead of who counts the packets.
    const Moment now{elapsed_s, through.packets == 0 ? Tally{} : through};
    if (through.packets == 0 || through.packets < warmup_) {
      begin_ = end_ = now;
      return;
    }
    // Without a warm-up all packets count, from the last look that saw none.
    if (!begun_ && warmup_ != 0) begin_ = end_ = now;
    begun_ = true;
    if (through != end_.through) end_ = now;
  }

  /// Since the rate's time began, or 0.
  [[nodiscard]] double measured_s(double elapsed_s) const { return begun_ ? elapsed_s - begin_.elapsed_s : 0; }

  /// One packet has no rate, for no time passes from the first to the last.
  [[nodiscard]] Throughput rate() const {
    const Tally tally = minus(end_.through, begin_.through);
    return {tally, tally.packets > 1 ? end_.elapsed_s - begin_.elapsed_s : 0};
  }

 private:
  struct Moment {
    double elapsed_s = 0;
    Tally through;
  };
  std::uint64_t warmup_;
  bool begun_ = false;
  Moment begin_;
  Moment end_;
};

}  // namespace

LiveInterval::LiveInterval(const LiveSample& before, const LiveSample& now)
    : time_s_(now.elapsed_s),
      rate_{minus(now.through, before.through), now.elapsed_s - before.elapsed_s},
      totals_(now.totals) {
  totals_.rx = minus(now.totals.rx, before.totals.rx);
  totals_.tx = minus(now.totals.tx, before.totals.tx);
  totals_.generated = minus(now.totals.generated, before.totals.generated);
  totals_.delivered = minus(now.totals.delivered, before.totals.delivered);
  if (totals_.recycled) *totals_.recycled -= before.totals.recycled.value_or(0);
  for (std::size_t i = 0; i < kVerdicts; ++i) totals_.drops[i] -= before.totals.drops[i];
  for (std::size_t i = 0; i < std::min(totals_.stages.size(), before.totals.stages.size()); ++i) {
    totals_.stages[i] = minus(totals_.stages[i], before.totals.stages[i]);
  }
}

std::string LiveInterval::header() {
  return fmt::format("{:>8} {:>12} {:>9} {:>9} {:>10} {:>7} {:>16} {:>9} {:>9}", "time s", "packets", "Mpps", "Gbit/s",
                     "dropped", "batch", "cycles/packet", "p50 us", "p99 us");
}

std::string LiveInterval::row() const {
  std::string cycles;
  double batch = 0;
  for (const StageTotals& stage : totals_.stages) {
    cycles += fmt::format("{}{:.0f}", cycles.empty() ? "" : "+", stage.cycles_per_packet());
    batch = std::max(batch, stage.batch_mean());
  }
  const LatencyTotals latency = totals_.latency.value_or(LatencyTotals{});
  const std::string gbps = rate_.tally.has_bytes() ? fmt::format("{:.3f}", rate_.gbps_l1()) : "-";
  std::string row =
      fmt::format("{:>8.2f} {:>12} {:>9.3f} {:>9} {:>10} {:>7.1f} {:>16} {:>9.1f} {:>9.1f}", time_s_,
                  rate_.tally.packets, rate_.mpps(), gbps, totals_.dropped(), batch, cycles.empty() ? "-" : cycles,
                  static_cast<double>(latency.p50) / 1e3, static_cast<double>(latency.p99) / 1e3);
  if (totals_.recycled) row += fmt::format("  recycled {}", *totals_.recycled);
  for (std::size_t i = 0; i < kVerdicts; ++i) {
    if (totals_.drops[i] != 0) row += fmt::format("  {} {}", name(static_cast<Verdict>(i)), totals_.drops[i]);
  }
  return row;
}

std::string LiveInterval::json() const {
  nlohmann::ordered_json line = {{"time_s", time_s_}, {"interval_s", rate_.seconds}};
  line["through"] = to_json(rate_.tally);
  line["rate"] = to_json(rate_);
  line["rx"] = to_json(totals_.rx);
  line["tx"] = to_json(totals_.tx);
  if (totals_.delivered) line["delivered"] = to_json(*totals_.delivered);
  if (totals_.generated) line["generated"] = to_json(*totals_.generated);
  line["drops"] = to_json(totals_.drops);
  if (totals_.latency && totals_.latency->count != 0) line["latency_ns"] = to_json(*totals_.latency);
  if (totals_.recycled) line["recycled"] = *totals_.recycled;
  for (const StageTotals& stage : totals_.stages) line["stages"].push_back(to_json(stage));
  return line.dump();
}

double monotonic_seconds() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

LiveResult run_live(const RunSettings& settings, const LiveHooks& hooks, const std::atomic<bool>& stop_requested,
                    std::FILE* out, std::FILE* err) {
  constexpr double kShortestSleepSeconds = 100e-6;
  constexpr double kLongestSleepSeconds = 10e-3;
  constexpr double kIdleSleepSeconds = 1e-3;  ///< while nothing has gone through
  const double bound_s = static_cast<double>(settings.seconds.value) / 1e9;
  LivePrinter printer(settings, out, err);
  RateClock clock(settings.warmup);
  LiveResult result;
  for (bool stopped = false;;) {
    const bool done = hooks.done();  // first, so that what is read below is then final
    const double elapsed_s = monotonic_seconds() - hooks.started_s;
    const Tally through = hooks.progress();
    clock.observe(through, elapsed_s);
    if (printer.due(elapsed_s) || (done && printer.behind(through))) {
      printer.print({elapsed_s, hooks.sample(), through});
    }
    const bool signalled = stop_requested.load(std::memory_order_relaxed);
    result.interrupted = result.interrupted || signalled;
    if (done) {
      result.duration_s = elapsed_s;
      result.rate = clock.rate();
      return result;
    }
    const bool over = signalled || printer.unread() || port::any_removed() || (bound_s > 0 && elapsed_s >= bound_s);
    if (!stopped && over) {
      stopped = true;
      hooks.stop();
    }
    // The last progress must not seem later than it was: once stopped, every look counts. Nor the first one earlier.
    const double measured_s = clock.measured_s(elapsed_s);
    const double look_s = measured_s > 0 ? measured_s / 100 : kIdleSleepSeconds;
    sleep_for(stopped ? kShortestSleepSeconds : std::clamp(look_s, kShortestSleepSeconds, kLongestSleepSeconds));
  }
}

}  // namespace warpline::report
