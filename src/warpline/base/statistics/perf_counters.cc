// SPDX-License-Identifier: Apache-2.0
#include "warpline/base/statistics/perf_counters.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>

namespace warpline {
namespace {

constexpr PerfEvent kEvents[] = {PerfEvent::cycles, PerfEvent::instructions, PerfEvent::llc_references,
                                 PerfEvent::llc_misses};

std::size_t place(PerfEvent event) { return static_cast<std::size_t>(event); }

/// The register holds the low `width` bits of a signed number.
std::int64_t sign_extend(std::uint64_t value, unsigned width) {
  const unsigned unused = 64 - std::clamp(width, 1U, 64U);
  return static_cast<std::int64_t>(value << unused) >> unused;
}

}  // namespace

const char* name(PerfEvent event) {
  constexpr const char* kNames[] = {"cycles", "instructions", "llc_references", "llc_misses"};
  return kNames[place(event)];
}

const char* name(PerfSource source) {
  constexpr const char* kNames[] = {"rdpmc", "system calls", "time-stamp counter only"};
  return kNames[static_cast<std::size_t>(source)];
}

PerfCounters::PerfCounters(PerfSystem& system) : system_(system) {
  for (const PerfEvent event : kEvents) {
    Counter& counter = counters_[place(event)];
    counter.file = system_.open(event);
    if (counter.file >= 0) counter.page = system_.map(counter.file);
  }
  static_cast<void>(ticks_per_second());  // measured now, not in a region
}

PerfCounters::~PerfCounters() {
  for (const Counter& counter : counters_) {
    if (counter.file >= 0) system_.close(counter.file, counter.page);
  }
}

PerfSource PerfCounters::source() const {
  bool any = false;
  bool by_user = true;
  for (const Counter& counter : counters_) {
    if (counter.file < 0) continue;
    any = true;
    by_user = by_user && counter.page != nullptr && counter.page->cap_user_rdpmc != 0;
  }
  if (!any) return PerfSource::clock_only;
  return by_user ? PerfSource::rdpmc : PerfSource::system_calls;
}

std::string PerfCounters::describe() const {
  std::vector<const char*> counted;
  std::map<int, std::vector<const char*>> missing;  // by errno
  for (const PerfEvent event : kEvents) {
    const int file = counters_[place(event)].file;
    (file >= 0 ? counted : missing[-file]).push_back(name(event));
  }
  const PerfSource from = source();
  std::string text =
      from == PerfSource::clock_only ? name(from) : fmt::format("{} by {}", fmt::join(counted, ", "), name(from));
  for (const auto& [error, events] : missing) {
    text += fmt::format("; no {}: {}", fmt::join(events, ", "), std::strerror(error));
  }
  return text;
}

void PerfCounters::begin(Snapshot& snapshot) {
  read_all(snapshot);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  snapshot.ticks = ticks_now();
}

void PerfCounters::end(Snapshot& snapshot) {
  snapshot.ticks = ticks_now();
  std::atomic_signal_fence(std::memory_order_seq_cst);
  read_all(snapshot);
}

void PerfCounters::read_all(Snapshot& snapshot) {
  for (std::size_t i = 0; i < kPerfEvents; ++i) {
    const Counter& counter = counters_[i];
    PerfReading& reading = snapshot.readings[i];
    if (counter.file < 0) continue;
    snapshot.known[i] =
        (counter.page != nullptr && read_by_user(*counter.page, reading)) || system_.read(counter.file, reading);
  }
}

/// As <linux/perf_event.h> tells to: a sequence lock around the kernel's part of the count and the register's. False
/// where only the kernel knows: the event is not on the unit now, or takes turns with others.
bool PerfCounters::read_by_user(const volatile perf_event_mmap_page& page, PerfReading& reading) {
  std::uint32_t sequence;
  bool known;
  do {
    sequence = page.lock;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    const std::uint32_t index = page.index;
    reading.enabled = page.time_enabled;
    reading.running = page.time_running;
    known = page.cap_user_rdpmc != 0 && index != 0 && reading.enabled == reading.running;
    if (known) {
      const std::int64_t count = page.offset + sign_extend(system_.rdpmc(index - 1), page.pmc_width);
      reading.value = static_cast<std::uint64_t>(count);
    }
    std::atomic_signal_fence(std::memory_order_seq_cst);
  } while (page.lock != sequence);
  return known;
}

void PerfTotals::add(const PerfCounters::Snapshot& before, const PerfCounters::Snapshot& after) {
  ++regions_;
  ticks_ += after.ticks - before.ticks;
  for (std::size_t i = 0; i < kPerfEvents; ++i) {
    if (!before.known[i] || !after.known[i]) continue;
    const PerfReading& from = before.readings[i];
    const PerfReading& to = after.readings[i];
    const std::uint64_t enabled = to.enabled - std::min(from.enabled, to.enabled);
    const std::uint64_t running = to.running - std::min(from.running, to.running);
    double count = static_cast<double>(to.value - from.value);
    if (running < enabled) {
      if (running == 0) continue;  // never on the unit
      count *= static_cast<double>(enabled) / static_cast<double>(running);
      estimated_ = true;
    }
    counts_[i] += count;
    ++counted_regions_[i];
  }
}

std::optional<double> PerfTotals::count(PerfEvent event) const {
  if (regions_ == 0 || counted_regions_[place(event)] != regions_) return std::nullopt;
  return counts_[place(event)];
}

std::vector<std::pair<std::string, double>> PerfTotals::each(std::uint64_t items) const {
  if (items == 0) return {};
  const auto by = static_cast<double>(items);
  std::vector<std::pair<std::string, double>> values = {{"ns", nanos() / by},
                                                        {"tsc", static_cast<double>(ticks_) / by}};
  for (const PerfEvent event : kEvents) {
    if (const std::optional<double> sum = count(event)) values.emplace_back(name(event), *sum / by);
  }
  return values;
}

}  // namespace warpline
