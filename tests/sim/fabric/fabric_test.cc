// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "sim/fabric/fabric_load.h"

namespace warpline::sim {
namespace {

TEST(EventWheel, HandsOutWhatHappensByTimeAndOrder) {
  constexpr int kEvents = 5000;
  EventWheel wheel;
  Random random(5);
  std::vector<WheelEvent> events(2 * kEvents);
  std::vector<std::pair<std::int64_t, std::size_t>> wanted;
  for (std::size_t i = 0; i < kEvents; ++i) {
    const auto time = static_cast<std::int64_t>(random.below(i % 3 == 0 ? 1'000'000 : 1'000));
    wheel.at(time, events[i]);
    wanted.emplace_back(time, i);
  }
  std::vector<std::pair<std::int64_t, std::size_t>> seen;
  std::size_t next = kEvents;
  const auto happen = [&](WheelEvent& event) {
    const auto which = static_cast<std::size_t>(&event - events.data());
    seen.emplace_back(event.time, which);
    EXPECT_EQ(event.time, wheel.now());
    // Each has another one follow: at once, soon, or late.
    if (which >= kEvents) return;
    const std::int64_t time = event.time + (which % 4 == 0 ? 0 : static_cast<std::int64_t>(which * 20));
    wanted.emplace_back(time, next);
    wheel.at(time, events[next++]);
  };
  for (std::int64_t end = 0; seen.size() < 2 * kEvents && end < 2'000'000; end += 7'777) wheel.run_until(end, happen);
  ASSERT_EQ(seen.size(), 2 * kEvents);
  EXPECT_TRUE(std::ranges::is_sorted(seen, {}, [](const auto& each) { return each.first; }));
  std::ranges::sort(wanted);
  std::ranges::sort(seen);
  EXPECT_EQ(seen, wanted);
}

struct TreeRun {
  explicit TreeRun(const FatTreeSettings& settings) : tree(wheel, settings) {}
  void send(std::uint32_t from, std::uint32_t to, std::uint16_t payload) {
    FabricPacket& packet = tree.take();
    packet.kind = WheelKind::packet;
    packet.from = from;
    packet.to = to;
    packet.path = 1;
    packet.head_length = 34;
    packet.payload_length = payload;
    packet.ecn = 2;
    tree.send(packet);
  }
  void run() {
    wheel.run_until(1'000'000'000, [&](WheelEvent& event) {
      auto& packet = static_cast<FabricPacket&>(event);
      if (!tree.arrive(packet)) return;
      EXPECT_EQ(packet.place, FabricPacket::Place::host);
      arrivals.emplace_back(wheel.now(), packet.to);
      marked += packet.ecn == 3 ? 1 : 0;
      tree.give(packet);
    });
  }
  EventWheel wheel;
  FatTree tree;
  std::vector<std::pair<std::int64_t, std::uint32_t>> arrivals;
  int marked = 0;
};

TEST(FatTree, EveryHostReachesEveryOtherInTheTimeOfItsLinks) {
  const FatTreeSettings settings{.k = 4, .hop = 1000};
  for (std::uint32_t from = 0; from < 16; ++from) {
    for (std::uint32_t to = 0; to < 16; ++to) {
      if (from == to) continue;
      TreeRun run(settings);
      run.send(from, to, 900);  // 1000 bytes, 80 ns
      run.run();
      const std::uint32_t links = run.tree.links(from, to);
      EXPECT_EQ(links, from / 2 == to / 2 ? 2U : from / 4 == to / 4 ? 4U : 6U);
      ASSERT_EQ(run.arrivals.size(), 1U);
      EXPECT_EQ(run.arrivals[0], std::pair(std::int64_t{links} * 1080, to));
      EXPECT_EQ(run.tree.counters().hops, links);
    }
  }
  EXPECT_EQ(TreeRun({.k = 36}).tree.hosts(), 11'664U);
}

TEST(FatTree, QueuesMarkAndDropAsTheyFill) {
  TreeRun run({.k = 4, .hop = 100, .capacity_bytes = 10'000, .mark_above_bytes = 5'000});
  // Two links feed one, twenty packets of 1000 bytes each: half of what comes waits.
  for (int i = 0; i < 20; ++i) {
    run.send(4, 0, 900);
    run.send(8, 0, 900);
  }
  run.run();
  const FatTreeCounters& counters = run.tree.counters();
  EXPECT_GT(counters.dropped, 5U);
  EXPECT_GT(counters.marked, 5U);
  EXPECT_EQ(run.marked, static_cast<int>(counters.marked));
  EXPECT_EQ(run.arrivals.size() + counters.dropped, 40U);
  EXPECT_LE(counters.longest_queue, 10'000U);
}

TEST(MessageSizes, AreDrawnAsPublished) {
  for (const char* name : {"websearch", "hadoop", "rpc"}) {
    const MessageSizes sizes = *MessageSizes::named(name);
    Random random(3);
    double sum = 0;
    constexpr int kDraws = 2'000'000;
    for (int i = 0; i < kDraws; ++i) sum += sizes.draw(random);
    EXPECT_NEAR(sum / kDraws / sizes.mean(), 1, 0.05) << name;
  }
  EXPECT_NEAR(MessageSizes::named("websearch")->mean(), 1.7e6, 0.1e6);
  EXPECT_FALSE(MessageSizes::named("none"));
}

FabricHostSettings small_hosts() {
  FabricHostSettings host;
  host.endpoint.max_sessions = 32;
  host.endpoint.max_messages = 256;
  host.endpoint.max_queued = 128;
  host.endpoint.max_sent_packets = 512;
  host.endpoint.receive_bytes = 1 << 20;
  host.endpoint.max_message_bytes = 64 << 20;
  host.endpoint.base_bytes = host.endpoint.datagram_bytes;
  host.endpoint.bundles = false;
  return host;
}

TEST(Fabric, EveryMessageArrivesAndNoneBeforeItCan) {
  const FabricPlan plan{
      .peers = 3, .load = 0.2, .sizes = MessageSizes::named("hadoop"), .measured = 300'000, .longest = 50'000'000};
  std::vector<float> before;
  for (int i = 0; i < 2; ++i) {
    const FabricFigures figures = FabricLoad({}, small_hosts(), plan).run();
    EXPECT_EQ(figures.failed, 0U);
    EXPECT_GT(figures.begun, 20U);
    std::vector<float> all;
    for (const FabricSizes& range : figures.sizes) {
      EXPECT_EQ(range.unfinished, 0U);
      all.insert(all.end(), range.slowdowns.begin(), range.slowdowns.end());
    }
    EXPECT_EQ(all.size(), figures.begun);
    EXPECT_GE(std::ranges::min(all), 0.999F);
    EXPECT_LE(std::ranges::min(all), 1.05F) << "who meets nobody takes the least time";
    if (i == 1) {
      EXPECT_EQ(all, before) << "a seed is a run";
    }
    before = all;
  }
}

TEST(Fabric, IncastFillsOneLinkAndNoMore) {
  const FabricPlan plan{.pattern = FabricPlan::Pattern::incast,
                        .fan = 7,
                        .bytes = 50'000,
                        .warm_up = 100'000,
                        .measured = 2'000'000,
                        .longest = 10'000'000};
  FabricFigures figures = FabricLoad({}, small_hosts(), plan).run();
  EXPECT_EQ(figures.failed, 0U);
  ASSERT_GT(figures.rounds.size(), 10U);
  EXPECT_GE(std::ranges::min(figures.rounds), 0.999F);
  EXPECT_GT(figures.goodput_gbit, 50);
  EXPECT_LE(figures.goodput_gbit, 100);
}

TEST(Fabric, AllToAllKeepsEveryLinkBusy) {
  const FabricPlan plan{.pattern = FabricPlan::Pattern::all_to_all, .peers = 4, .measured = 500'000};
  const FabricFigures figures = FabricLoad({}, small_hosts(), plan).run();
  EXPECT_EQ(figures.failed, 0U);
  EXPECT_GT(figures.goodput_gbit, 30);
  EXPECT_LE(figures.goodput_gbit, 100);
}

}  // namespace
}  // namespace warpline::sim
