// SPDX-License-Identifier: Apache-2.0
#include "warpline/router/generation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

namespace warpline::router {
namespace {

std::atomic<int> alive{0};

/// Tables that know whether they are still there.
class FakeTables {
 public:
  using V4Key = std::uint32_t;
  using V6Key = std::uint64_t;

  FakeTables() { ++alive; }
  FakeTables(FakeTables&& other) noexcept : good_(other.good_) { ++alive; }
  FakeTables& operator=(FakeTables&&) = default;
  ~FakeTables() {
    good_ = false;
    --alive;
  }
  static Result<FakeTables> make(const route::RouteSet&, const TablesPlace&, FakeTables&&) { return FakeTables(); }
  static Bytes memory(const route::RouteSet&) { return {}; }
  static V4Key v4_key(const std::uint8_t*, std::uint32_t) { return 0; }
  static V6Key v6_key(const std::uint8_t*, std::uint32_t) { return 0; }
  void find(const V4Key*, std::uint32_t*, std::uint16_t) const {}
  void find(const V6Key*, std::uint32_t*, std::uint16_t) const {}
  [[nodiscard]] bool good() const { return good_; }

 private:
  bool good_ = true;
};

std::unique_ptr<Generation<FakeTables>> generation(std::uint64_t number) {
  std::vector<Hop> hops(1);
  hops[0].neighbour = static_cast<std::uint32_t>(number);
  return std::make_unique<Generation<FakeTables>>(Generation<FakeTables>{FakeTables(), std::move(hops), number});
}

TEST(GenerationSwitch, KeepsWhatAReaderMayStillUse) {
  {
    GenerationSwitch<FakeTables> generations;
    generations.publish(generation(1));
    GenerationSwitch<FakeTables>::Reader reader(generations);
    EXPECT_EQ(reader.number(), 0U);
    EXPECT_EQ(reader.take().number, 1U);
    generations.publish(generation(2));
    std::vector<std::uint64_t> freed;
    const auto forget = [&](const auto& old) { freed.push_back(old.number); };
    generations.free_before(reader.number(), forget);
    EXPECT_TRUE(generations.has_old());
    EXPECT_EQ(reader.take().number, 2U);
    generations.free_before(reader.number(), forget);
    EXPECT_FALSE(generations.has_old());
    EXPECT_EQ(freed, std::vector<std::uint64_t>{1});
    EXPECT_EQ(alive, 1);
  }
  EXPECT_EQ(alive, 0);
}

/// Lcores read all the time, the control thread publishes and frees: nobody sees what was freed, nor half of what is
/// new; numbers only grow.
TEST(GenerationSwitch, IsSafeUnderReaders) {
  constexpr std::uint64_t kGenerations = 3000;
  GenerationSwitch<FakeTables> generations;
  generations.publish(generation(1));
  std::vector<std::unique_ptr<GenerationSwitch<FakeTables>::Reader>> readers;
  std::vector<std::thread> lcores;
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> wrong{0};
  for (int i = 0; i < 2; ++i) {
    readers.push_back(std::make_unique<GenerationSwitch<FakeTables>::Reader>(generations));
    lcores.emplace_back([&, reader = readers.back().get()] {
      std::uint64_t last = 0;
      while (!stop.load(std::memory_order_relaxed)) {
        const Generation<FakeTables>& now = reader->take();
        if (!now.tables.good() || now.hops[0].neighbour != now.number || now.number < last) wrong.fetch_add(1);
        last = now.number;
      }
    });
  }
  for (std::uint64_t number = 2; number <= kGenerations; ++number) {
    generations.publish(generation(number));
    std::uint64_t oldest = number;
    for (const auto& reader : readers) oldest = std::min(oldest, reader->number());
    generations.free_before(oldest, [](const auto&) {});
  }
  stop = true;
  for (std::thread& lcore : lcores) lcore.join();
  EXPECT_EQ(wrong.load(), 0U);
}

}  // namespace
}  // namespace warpline::router
