// SPDX-License-Identifier: Apache-2.0
#include "warpline/base/statistics/perf_counters.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <functional>

namespace warpline {
namespace {

using testing::HasSubstr;

/// A unit of four registers that the test turns.
class FakeSystem final : public PerfSystem {
 public:
  struct Event {
    perf_event_mmap_page page{};
    PerfReading reading;
    std::uint64_t register_value = 0;
    int error = 0;
    bool mapped = true;
    bool readable = true;
  };

  FakeSystem() {
    for (std::uint32_t i = 0; i < kPerfEvents; ++i) {
      events[i].page.cap_user_rdpmc = 1;
      events[i].page.index = i + 1;
      events[i].page.pmc_width = 48;
    }
  }

  int open(PerfEvent event) override {
    const auto i = static_cast<int>(event);
    if (events[i].error != 0) return -events[i].error;
    ++open_files;
    return i;
  }
  const volatile perf_event_mmap_page* map(int file) override {
    return events[file].mapped ? &events[file].page : nullptr;
  }
  void close(int, const volatile perf_event_mmap_page*) override { --open_files; }
  bool read(int file, PerfReading& reading) override {
    ++reads;
    reading = events[file].reading;
    return events[file].readable;
  }
  std::uint64_t rdpmc(std::uint32_t index) override {
    ++register_reads;
    if (during_rdpmc) during_rdpmc();
    return events[index].register_value & ((std::uint64_t{1} << 48) - 1);
  }

  FakeSystem& all(const std::function<void(Event&)>& change) {
    for (Event& event : events) change(event);
    return *this;
  }

  Event events[kPerfEvents];
  std::function<void()> during_rdpmc;
  int open_files = 0;
  int reads = 0;
  int register_reads = 0;
};

constexpr PerfEvent kAll[] = {PerfEvent::cycles, PerfEvent::instructions, PerfEvent::llc_references,
                              PerfEvent::llc_misses};

TEST(PerfCounters, RegistersAndTheKernelsPartAddUp) {
  FakeSystem system;
  system.events[0].page.offset = 1000;
  PerfTotals totals;
  {
    PerfCounters counters(system);
    EXPECT_EQ(counters.source(), PerfSource::rdpmc);
    EXPECT_EQ(counters.describe(), "cycles, instructions, llc_references, llc_misses by rdpmc");
    for (int i = 0; i < 2; ++i) {
      const PerfScope scope(counters, totals);
      system.events[0].register_value += 100;
      system.events[0].page.offset += 7;
      system.events[1].register_value += 250;
      system.events[3].register_value += 3;
    }
    EXPECT_EQ(system.open_files, 4);
  }
  EXPECT_EQ(system.open_files, 0);
  EXPECT_EQ(system.reads, 0);
  EXPECT_EQ(totals.regions(), 2U);
  EXPECT_EQ(totals.count(PerfEvent::cycles), 214);
  EXPECT_EQ(totals.count(PerfEvent::instructions), 500);
  EXPECT_EQ(totals.count(PerfEvent::llc_references), 0);
  EXPECT_EQ(totals.count(PerfEvent::llc_misses), 6);
  EXPECT_FALSE(totals.estimated());
}

TEST(PerfCounters, RegistersAreSignedAndMayPassZero) {
  FakeSystem system;
  PerfCounters counters(system);
  PerfTotals totals;
  system.events[0].page.offset = 500;
  system.events[0].register_value = static_cast<std::uint64_t>(-50);
  {
    const PerfScope scope(counters, totals);
    system.events[0].register_value = 25;
  }
  EXPECT_EQ(totals.count(PerfEvent::cycles), 75);
}

TEST(PerfCounters, ReadsAgainWhenTheKernelChangedThePage) {
  FakeSystem system;
  PerfCounters counters(system);
  PerfTotals totals;
  int turns = 0;
  // The thread was moved in the middle of the first look: the register is another by then.
  system.during_rdpmc = [&] {
    if (++turns != 1) return;
    system.events[0].page.lock = system.events[0].page.lock + 2;
    system.events[0].page.offset = 4000;
  };
  {
    const PerfScope scope(counters, totals);
    system.events[0].register_value += 10;
  }
  EXPECT_EQ(totals.count(PerfEvent::cycles), 10);
  EXPECT_EQ(system.register_reads, 9);
}

TEST(PerfCounters, SystemCallsWhereRegistersMayNotBeRead) {
  FakeSystem system;
  system.all([](auto& event) { event.page.cap_user_rdpmc = 0; });
  system.events[2].mapped = false;
  PerfCounters counters(system);
  EXPECT_EQ(counters.source(), PerfSource::system_calls);
  EXPECT_THAT(counters.describe(), HasSubstr("by system calls"));
  PerfTotals totals;
  {
    const PerfScope scope(counters, totals);
    system.all([](auto& event) { event.reading = {.value = 42, .enabled = 10, .running = 10}; });
  }
  for (const PerfEvent event : kAll) EXPECT_EQ(totals.count(event), 42) << name(event);
  EXPECT_EQ(system.register_reads, 0);
  EXPECT_FALSE(totals.estimated());
}

TEST(PerfCounters, OneThatIsNotOnTheUnitIsAskedOfTheKernel) {
  FakeSystem system;
  system.events[1].page.index = 0;
  PerfCounters counters(system);
  EXPECT_EQ(counters.source(), PerfSource::rdpmc);
  PerfTotals totals;
  {
    const PerfScope scope(counters, totals);
    system.events[1].reading.value = 9;
  }
  EXPECT_EQ(system.reads, 2);
  EXPECT_EQ(totals.count(PerfEvent::instructions), 9);
}

TEST(PerfCounters, ScalesWhatTookTurnsAndSaysSo) {
  FakeSystem system;
  system.all([](auto& event) {
    event.page.time_enabled = 100;
    event.page.time_running = 50;
  });
  PerfCounters counters(system);
  PerfTotals totals;
  {
    const PerfScope scope(counters, totals);
    system.all([](auto& event) { event.reading = {.value = 100, .enabled = 400, .running = 100}; });
    system.events[3].reading.running = 0;
  }
  EXPECT_EQ(system.register_reads, 0);
  EXPECT_EQ(totals.count(PerfEvent::cycles), 400);
  EXPECT_FALSE(totals.count(PerfEvent::llc_misses).has_value()) << "it was never on the unit";
  EXPECT_TRUE(totals.estimated());
}

TEST(PerfCounters, NamesWhatIsMissingAndWhy) {
  FakeSystem system;
  system.events[2].error = ENOENT;
  system.events[3].error = EACCES;
  PerfCounters counters(system);
  EXPECT_EQ(
      counters.describe(),
      "cycles, instructions by rdpmc; no llc_references: No such file or directory; no llc_misses: Permission denied");
  PerfTotals totals;
  {
    const PerfScope scope(counters, totals);
  }
  EXPECT_TRUE(totals.count(PerfEvent::cycles).has_value());
  EXPECT_FALSE(totals.count(PerfEvent::llc_misses).has_value());
  EXPECT_EQ(totals.each(1).size(), 4U);
}

TEST(PerfCounters, WithoutAUnitOnlyTimeIsTold) {
  FakeSystem system;
  system.all([](auto& event) { event.error = ENOENT; });
  PerfCounters counters(system);
  EXPECT_EQ(counters.source(), PerfSource::clock_only);
  EXPECT_THAT(counters.describe(), HasSubstr("time-stamp counter only; no cycles, instructions, ll"));
  PerfTotals totals;
  {
    const PerfScope scope(counters, totals);
  }
  for (const PerfEvent event : kAll) EXPECT_FALSE(totals.count(event).has_value());
  EXPECT_GT(totals.ticks(), 0U);
  EXPECT_GT(totals.nanos(), 0);
  const auto values = totals.each(2);
  ASSERT_EQ(values.size(), 2U);
  EXPECT_EQ(values[0].first, "ns");
  EXPECT_EQ(values[1].second, static_cast<double>(totals.ticks()) / 2);
  EXPECT_TRUE(totals.each(0).empty());
}

TEST(PerfCounters, ACountThatCannotBeReadIsAbsent) {
  FakeSystem system;
  system.all([](auto& event) {
    event.mapped = false;
    event.reading.value = 5;
  });
  PerfCounters counters(system);
  PerfTotals totals;
  system.events[1].readable = false;
  {
    const PerfScope scope(counters, totals);
    system.events[0].readable = false;
    system.events[1].readable = true;
  }
  EXPECT_FALSE(totals.count(PerfEvent::cycles).has_value());
  EXPECT_FALSE(totals.count(PerfEvent::instructions).has_value());
  EXPECT_EQ(totals.count(PerfEvent::llc_misses), 0);
}

/// Whatever this machine has: what it says agrees with what it counts.
TEST(PerfCounters, OfThisMachine) {
  PerfCounters counters;
  PerfTotals totals;
  volatile std::uint64_t sum = 0;
  {
    const PerfScope scope(counters, totals);
    for (std::uint64_t i = 0; i < 100'000; ++i) sum = sum + i;
  }
  EXPECT_GT(totals.ticks(), 10'000U);
  const bool counts = totals.count(PerfEvent::cycles).has_value() || totals.count(PerfEvent::instructions).has_value();
  if (counters.source() == PerfSource::clock_only) {
    EXPECT_FALSE(counts);
  } else if (const auto instructions = totals.count(PerfEvent::instructions)) {
    EXPECT_GT(*instructions, 300'000) << counters.describe();
    EXPECT_LT(*instructions, 3'000'000) << counters.describe();
  }
  RecordProperty("source", counters.describe());
}

}  // namespace
}  // namespace warpline
