// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <linux/perf_event.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "warpline/base/time/clock.h"

namespace warpline {

/// What a processor's performance monitoring unit counts, in user mode. LLC: the kernel's generic cache events, on most
/// processors those of the last level.
enum class PerfEvent : std::uint8_t { cycles, instructions, llc_references, llc_misses };
inline constexpr std::size_t kPerfEvents = 4;

/// A count so far, with how long it was wanted and how long the unit had room for it, ns.
struct PerfReading {
  std::uint64_t value = 0;
  std::uint64_t enabled = 0;
  std::uint64_t running = 0;
};

/// The kernel's side of the counters of one thread (perf_event_open(2)); tests put another in its place.
class PerfSystem {
 public:
  virtual ~PerfSystem() = default;
  /// A file descriptor, or errno below zero.
  virtual int open(PerfEvent event) = 0;
  /// The event's page, for reading without a system call, or nullptr.
  virtual const volatile perf_event_mmap_page* map(int file) = 0;
  virtual void close(int file, const volatile perf_event_mmap_page* page) = 0;
  virtual bool read(int file, PerfReading& reading) = 0;
  /// The counter register of the calling processor.
  virtual std::uint64_t rdpmc(std::uint32_t index) = 0;

  [[nodiscard]] static PerfSystem& kernel();
};

/// How counts were had, from best to none.
enum class PerfSource : std::uint8_t {
  rdpmc,         ///< read in user mode: tens of cycles
  system_calls,  ///< a read(2) each: a microsecond, so for long regions
  clock_only,    ///< no counter: time-stamp counter and nanoseconds alone
};

/// The counters of the thread that made it, which alone may use it. Where the machine has none, or does not give them
/// away, time is still told, and source() says so: such counts are absent, never guessed.
class PerfCounters {
 public:
  explicit PerfCounters(PerfSystem& system = PerfSystem::kernel());
  ~PerfCounters();
  PerfCounters(const PerfCounters&) = delete;
  PerfCounters& operator=(const PerfCounters&) = delete;

  [[nodiscard]] PerfSource source() const;
  /// One line for people: "cycles, instructions by rdpmc; no llc_references, llc_misses: No such file or directory".
  [[nodiscard]] std::string describe() const;

  struct Snapshot {
    std::uint64_t ticks = 0;
    std::array<PerfReading, kPerfEvents> readings{};
    std::array<bool, kPerfEvents> known{};
  };

 private:
  friend class PerfScope;

  struct Counter {
    int file = -1;  ///< or errno below zero
    const volatile perf_event_mmap_page* page = nullptr;
  };

  /// The time-stamp counter is read innermost: before the region last, behind it first.
  void begin(Snapshot& snapshot);
  void end(Snapshot& snapshot);
  void read_all(Snapshot& snapshot);
  [[nodiscard]] bool read_by_user(const volatile perf_event_mmap_page& page, PerfReading& reading);

  PerfSystem& system_;
  std::array<Counter, kPerfEvents> counters_;
};

/// Sums over regions.
class PerfTotals {
 public:
  [[nodiscard]] std::uint64_t regions() const { return regions_; }
  [[nodiscard]] std::uint64_t ticks() const { return ticks_; }
  [[nodiscard]] double nanos() const { return ticks_to_nanos(ticks_); }
  /// Absent where it was not counted in each of the regions. An estimate if the unit had to take turns.
  [[nodiscard]] std::optional<double> count(PerfEvent event) const;
  /// Some counts are scaled up from a part of the time.
  [[nodiscard]] bool estimated() const { return estimated_; }

  /// ("ns", …), ("tsc", …) and what was counted ("cycles", …), each divided by `items`: for the counters of a
  /// benchmark.
  [[nodiscard]] std::vector<std::pair<std::string, double>> each(std::uint64_t items) const;

  void add(const PerfCounters::Snapshot& before, const PerfCounters::Snapshot& after);

 private:
  std::uint64_t regions_ = 0;
  std::uint64_t ticks_ = 0;
  std::array<double, kPerfEvents> counts_{};
  std::array<std::uint64_t, kPerfEvents> counted_regions_{};
  bool estimated_ = false;
};

/// Counts what runs while it lives:
///
///   PerfCounters counters;
///   PerfTotals totals;
///   { const PerfScope scope(counters, totals); work(); }
class PerfScope {
 public:
  PerfScope(PerfCounters& counters, PerfTotals& totals) : counters_(counters), totals_(totals) {
    counters_.begin(before_);
  }
  ~PerfScope() {
    PerfCounters::Snapshot after;
    counters_.end(after);
    totals_.add(before_, after);
  }
  PerfScope(const PerfScope&) = delete;
  PerfScope& operator=(const PerfScope&) = delete;

 private:
  PerfCounters& counters_;
  PerfTotals& totals_;
  PerfCounters::Snapshot before_;
};

[[nodiscard]] const char* name(PerfEvent event);
[[nodiscard]] const char* name(PerfSource source);

}  // namespace warpline
