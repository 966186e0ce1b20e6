// SPDX-License-Identifier: Apache-2.0
#include "sim/port.h"

#include <gtest/gtest.h>

#include <vector>

namespace warpline::sim {
namespace {

struct Arrival {
  std::int64_t at;
  std::uint32_t length;
  std::uint8_t ecn;
  bool damaged;
};

class Listener final : public PacketSink {
 public:
  Listener(EventQueue& events, PacketPool& pool) : events_(events), pool_(pool) {}
  void arrive(Packet* packet) override {
    arrivals.push_back({events_.now(), packet->length, packet->ecn, packet->damaged});
    pool_.give(packet);
  }
  std::vector<Arrival> arrivals;

 private:
  EventQueue& events_;
  PacketPool& pool_;
};

struct Link {
  EventQueue events;
  PacketPool pool;
  Listener listener{events, pool};
  Port port;

  explicit Link(const PortSettings& config, const Faults& faults = {}) : port(events, pool, config, faults, 1) {
    port.connect(listener);
  }
  void offer(std::uint32_t length) {
    Packet* packet = pool.take();
    *packet = {};
    packet->length = length;
    packet->ecn = 2;
    port.offer(packet);
  }
  void run() {
    events.run_until(1'000'000'000);
    EXPECT_EQ(pool.taken(), 0U);
  }
};

// 934 B and their 66 B of overhead take a microsecond at 8 Gbit/s.
constexpr std::uint32_t kLength = 934;
constexpr PortSettings kConfig{.bits_per_second = 8e9, .delay = 500, .capacity_bytes = 4000, .mark_above_bytes = 1500};

TEST(Port, SerializesAndDelays) {
  Link link(kConfig);
  link.offer(kLength);
  link.offer(kLength);
  link.run();
  ASSERT_EQ(link.listener.arrivals.size(), 2U);
  EXPECT_EQ(link.listener.arrivals[0].at, 1500);
  EXPECT_EQ(link.listener.arrivals[1].at, 2500);
  EXPECT_EQ(link.port.waits().max(), 1000U);
}

TEST(Port, KeepsItsRateToAPartOfANanosecond) {
  Link link({.bits_per_second = 24e9, .delay = 0, .capacity_bytes = 1 << 30});
  for (int i = 0; i < 3000; ++i) link.offer(kLength);  // 333.3 ns each
  link.run();
  EXPECT_EQ(link.listener.arrivals.back().at, 1'000'000);
}

TEST(Port, DropsWhatDoesNotFitAndMarksWhatWaitsLong) {
  Link link(kConfig);
  for (int i = 0; i < 6; ++i) link.offer(kLength);  // one on the wire, four in the queue
  EXPECT_EQ(link.port.counters().dropped, 1U);
  link.run();
  ASSERT_EQ(link.listener.arrivals.size(), 5U);
  EXPECT_EQ(link.listener.arrivals[2].ecn, 2);
  EXPECT_EQ(link.listener.arrivals[3].ecn, 3) << "2000 B were waiting";
  EXPECT_EQ(link.port.counters().marked, 2U);
}

TEST(Port, FaultsComeAsOftenAsAskedFor) {
  const Faults faults{.loss = 0.1, .duplicate = 0.05, .corrupt = 0.02, .reorder = 0.3, .reorder_by = 5'000};
  Link link({.bits_per_second = 100e9, .delay = 0, .capacity_bytes = 1 << 30}, faults);
  for (std::uint32_t i = 0; i < 10'000; ++i) link.offer(100 + i % 256);
  link.run();
  const PortCounters& counters = link.port.counters();
  EXPECT_NEAR(static_cast<double>(counters.lost), 1000, 100);
  EXPECT_NEAR(static_cast<double>(counters.duplicated), 450, 70);
  EXPECT_NEAR(static_cast<double>(counters.corrupted), 180, 45);
  EXPECT_NEAR(static_cast<double>(counters.reordered), 2700, 150);
  EXPECT_EQ(link.listener.arrivals.size(), 10'000 - counters.lost + counters.duplicated);
  std::uint64_t damaged = 0;
  for (const Arrival& arrival : link.listener.arrivals) damaged += arrival.damaged ? 1 : 0;
  EXPECT_EQ(damaged, counters.corrupted);
}

TEST(Port, LosesTheOneItIsToldTo) {
  Link link(kConfig);
  link.port.lose_next(500);
  for (const std::uint32_t length : {100U, 600U, 700U}) link.offer(length);
  link.run();
  ASSERT_EQ(link.listener.arrivals.size(), 2U);
  EXPECT_EQ(link.listener.arrivals[0].length, 100U);
  EXPECT_EQ(link.listener.arrivals[1].length, 700U);
}

TEST(Port, TheSameSeedGivesTheSameRun) {
  const Faults faults{.loss = 0.2, .duplicate = 0.2, .reorder = 0.5, .reorder_by = 3'000};
  Link first(kConfig, faults);
  Link second(kConfig, faults);
  for (Link* link : {&first, &second}) {
    for (int i = 0; i < 4; ++i) link->offer(kLength);
    link->run();
  }
  ASSERT_EQ(first.listener.arrivals.size(), second.listener.arrivals.size());
  for (std::size_t i = 0; i < first.listener.arrivals.size(); ++i) {
    EXPECT_EQ(first.listener.arrivals[i].at, second.listener.arrivals[i].at);
  }
}

}  // namespace
}  // namespace warpline::sim
