// SPDX-License-Identifier: Apache-2.0
#include "warpline/route/neighbours.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <thread>
#include <vector>

#include "warpline/base/property_testing.h"

namespace warpline::route {
namespace {

constexpr MacAddress kMac{{2, 0, 0, 0, 0, 9}};
constexpr MacAddress kOther{{2, 0, 0, 0, 0, 10}};
constexpr NeighbourEvidence kAnswer{.mac = kMac, .answers = true};

constexpr Nanos seconds(double s) { return {static_cast<std::int64_t>(s * 1e9)}; }

NeighbourKey host(std::uint32_t number, std::uint16_t port = 0) {
  return NeighbourKey::of(
      port, Ipv4Address{{10, static_cast<std::uint8_t>(number >> 16), static_cast<std::uint8_t>(number >> 8),
                         static_cast<std::uint8_t>(number)}});
}

std::uint64_t bits(const MacAddress& mac) {
  std::uint64_t value = 0;
  std::memcpy(&value, mac.bytes.data(), 6);
  return value;
}

TEST(Neighbours, KeysTellFamiliesAndPortsApart) {
  const Ipv4Address v4{{10, 0, 0, 1}};
  EXPECT_EQ(NeighbourKey::of(3, v4).ip(), IpAddress{v4});
  const Ipv6Address v6{{0xfd, 1}};
  EXPECT_EQ(NeighbourKey::of(3, v6).ip(), IpAddress{v6});
  EXPECT_NE(NeighbourKey::of(3, v4), NeighbourKey::of(2, v4));
}

TEST(Neighbours, ThatDifferInPortAndAddressBothFindRoom) {
  NeighbourTable table(4096);
  for (std::uint32_t i = 0; i < 16; ++i) {
    for (std::uint16_t port = 0; port < 16; ++port) {
      EXPECT_NE(table.find_or_add(host(i * 256 + 9, port), seconds(0)), NeighbourTable::kNobody) << i << " " << port;
    }
  }
}

/// RFC 6583: a scan of a large link does not keep neighbours out that say where they are, or that routes name.
TEST(Neighbours, WithoutAMacAddressHaveAShareOfTheTable) {
  NeighbourTable table(4096);
  std::uint32_t found = 0;
  for (std::uint32_t i = 0; i < 100'000; ++i) found += table.find_or_add(host(i), seconds(0)) != 0 ? 1 : 0;
  EXPECT_EQ(found, 4096U / NeighbourTable::kUnresolvedShare);
  std::uint32_t introduced = 0;
  for (std::uint32_t i = 0; i < 500; ++i) {
    introduced += table.learn(host(200'000 + i), {.mac = kMac, .introduces = true}, seconds(0)) ? 1 : 0;
  }
  EXPECT_GT(introduced, 400U) << "but for buckets that are full";
  EXPECT_EQ(table.find_or_add(host(300'000), seconds(0)), NeighbourTable::kNobody);
  // Of those that were asked for, one that answers makes room for another, and so does one that is forgotten.
  ASSERT_TRUE(table.learn(host(0), kAnswer, seconds(1)));
  std::uint32_t more = 0;
  for (std::uint32_t i = 0; i < 500; ++i) more += table.find_or_add(host(400'000 + i), seconds(1)) != 0 ? 1 : 0;
  EXPECT_EQ(more, 1U);
  table.age(seconds(0));
  table.age(seconds(200));
  table.age(seconds(400));
  EXPECT_EQ(table.count(NeighbourState::incomplete), 0U);
  EXPECT_NE(table.find_or_add(host(500'000), seconds(401)), NeighbourTable::kNobody);
}

/// 100,000 forged addresses a second, each of which is asked for: those that are on the link are found nevertheless.
TEST(Neighbours, ThatDoNotAnswerAreReplacedWhereTheyMayBe) {
  constexpr std::uint32_t kHosts = 200;
  constexpr std::uint32_t kForgedAHost = 100;
  constexpr double kGap = 1e-5;
  NeighbourTable table(4096, {.replaced = seconds(0.01)});
  double now = 0;
  const auto forge = [&](std::uint32_t number) {
    (void)table.find_or_add(host(1'000'000 + number), seconds(now));
    now += kGap;
  };
  for (std::uint32_t i = 0; i < kHosts; ++i) {
    (void)table.find_or_add(host(i), seconds(now));
    for (std::uint32_t k = 0; k < kForgedAHost / 2; ++k) forge(2 * i * kForgedAHost + k);
    (void)table.learn(host(i), kAnswer, seconds(now));
    for (std::uint32_t k = 0; k < kForgedAHost / 2; ++k) forge((2 * i + 1) * kForgedAHost + k);
  }
  EXPECT_GE(table.count(NeighbourState::reachable), kHosts * 95 / 100) << "but for buckets that are full";
  EXPECT_LE(table.count(NeighbourState::incomplete), 4096U / NeighbourTable::kUnresolvedShare + 1);
  std::uint32_t introduced = 0;
  for (std::uint32_t i = 0; i < 100; ++i)
    introduced += table.learn(host(2'000'000 + i), {.mac = kMac, .introduces = true}, seconds(now)) ? 1 : 0;
  EXPECT_GE(introduced, 95U);
}

TEST(Neighbours, WithoutAMacAddressThatNobodyNeedsAreForgottenWhenTheirRequestsWouldBeOver) {
  NeighbourTable table(64);
  EXPECT_TRUE(table.use(table.find_or_add(host(1), seconds(0)), seconds(0)).send);
  table.age(seconds(1));
  table.age(seconds(6.9));
  EXPECT_NE(table.find(host(1)), NeighbourTable::kNobody);
  table.age(seconds(7));  // three requests, a second between them, and three seconds as one that failed
  EXPECT_EQ(table.find(host(1)), NeighbourTable::kNobody);
}

TEST(Neighbours, AreNotAskedForWhereTheCallerMayNot) {
  NeighbourTable table(64);
  const std::uint32_t slot = table.find_or_add(host(1), seconds(0));
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(table.use(slot, seconds(i), false).send);
  EXPECT_EQ(table.word(slot).state(), NeighbourState::incomplete) << "it has not been asked in vain";
  EXPECT_TRUE(table.use(slot, seconds(10), true).send);
}

TEST(Neighbours, IsAskedForThenReachableThenStaleThenForgotten) {
  NeighbourTable table(64);
  const std::uint32_t slot = table.find_or_add(host(1), seconds(0));
  ASSERT_NE(slot, NeighbourTable::kNobody);
  EXPECT_EQ(table.find_or_add(host(1), seconds(0)), slot);
  EXPECT_EQ(table.key(slot), host(1));
  const NeighbourQuestion question = table.use(slot, seconds(0));
  EXPECT_TRUE(question.send);
  EXPECT_EQ(question.to, std::nullopt);
  EXPECT_FALSE(table.use(slot, seconds(0.5)).send);

  const std::uint32_t events = table.events();
  EXPECT_TRUE(table.learn(host(1), kAnswer, seconds(0.6)));
  EXPECT_NE(table.events(), events);
  EXPECT_TRUE(table.word(slot).good());
  EXPECT_EQ(table.word(slot).mac(), bits(kMac));
  EXPECT_FALSE(table.use(slot, seconds(1)).send);

  table.age(seconds(10));
  EXPECT_EQ(table.word(slot).state(), NeighbourState::reachable);
  EXPECT_FALSE(table.word(slot).good()) << "nobody has used it since";
  (void)table.use(slot, seconds(10));
  EXPECT_TRUE(table.word(slot).good());

  table.age(seconds(31));
  EXPECT_EQ(table.word(slot).state(), NeighbourState::stale);
  EXPECT_TRUE(table.word(slot).has_mac());
  table.age(seconds(90));
  EXPECT_EQ(table.find(host(1)), slot);
  table.age(seconds(92));
  EXPECT_EQ(table.find(host(1)), NeighbourTable::kNobody);
  EXPECT_EQ(table.key(slot), std::nullopt);
}

TEST(Neighbours, AStaleOneInUseIsAskedAloneAndGoesOn) {
  NeighbourTable table(64);
  const std::uint32_t slot = table.find_or_add(host(1), seconds(0));
  table.learn(host(1), kAnswer, seconds(0));
  table.age(seconds(40));
  const NeighbourQuestion question = table.use(slot, seconds(41));
  EXPECT_TRUE(question.send);
  EXPECT_EQ(question.to, kMac);
  EXPECT_FALSE(table.learn(host(1), kAnswer, seconds(41.1))) << "it had a MAC address before";
  EXPECT_TRUE(table.word(slot).good());
}

TEST(Neighbours, AStaleOneThatIsGoneIsAskedForAnew) {
  NeighbourTable table(64);
  const std::uint32_t slot = table.find_or_add(host(1), seconds(0));
  table.learn(host(1), kAnswer, seconds(0));
  table.age(seconds(40));
  for (int second = 41; second < 44; ++second) EXPECT_EQ(table.use(slot, seconds(second)).to, kMac);
  EXPECT_FALSE(table.use(slot, seconds(44)).send);
  EXPECT_FALSE(table.word(slot).has_mac());
  const NeighbourQuestion question = table.use(slot, seconds(44));
  EXPECT_TRUE(question.send);
  EXPECT_EQ(question.to, std::nullopt);
}

TEST(Neighbours, OneThatDoesNotAnswerFailsAndMayBeAskedLater) {
  for (const bool by_age : {false, true}) {
    NeighbourTable table(64);
    const std::uint32_t slot = by_age ? table.pin(host(1), seconds(0)) : table.find_or_add(host(1), seconds(0));
    for (int second = 0; second < 3; ++second) EXPECT_TRUE(table.use(slot, seconds(second)).send);
    if (by_age) {
      table.age(seconds(2.5));
      EXPECT_EQ(table.word(slot).state(), NeighbourState::incomplete);
      table.age(seconds(3));
    } else {
      EXPECT_FALSE(table.use(slot, seconds(3)).send);
    }
    EXPECT_EQ(table.word(slot).state(), NeighbourState::failed);
    EXPECT_FALSE(table.use(slot, seconds(5)).send);
    table.age(seconds(6));
    EXPECT_EQ(table.find(host(1)), by_age ? slot : NeighbourTable::kNobody);
    EXPECT_EQ(table.use(slot, seconds(6)).send, by_age);
  }
}

TEST(Neighbours, StrangersAreLearntOnlyIfTheyAskedForUs) {
  NeighbourTable table(64);
  table.learn(host(1), kAnswer, seconds(0));
  EXPECT_EQ(table.find(host(1)), NeighbourTable::kNobody);
  EXPECT_TRUE(table.learn(host(1), {.mac = kMac, .introduces = true}, seconds(0)));
  EXPECT_EQ(table.word(table.find(host(1))).state(), NeighbourState::stale);
}

TEST(Neighbours, AnotherMacAddressIsBelievedOnlyWithOverride) {
  NeighbourTable table(64);
  const std::uint32_t slot = table.find_or_add(host(1), seconds(0));
  table.learn(host(1), kAnswer, seconds(0));
  table.learn(host(1), {.mac = kOther, .answers = true, .overrides = false}, seconds(1));
  EXPECT_EQ(table.word(slot).mac(), bits(kMac));
  EXPECT_EQ(table.word(slot).state(), NeighbourState::stale);
  table.learn(host(1), {.mac = kOther}, seconds(2));
  EXPECT_EQ(table.word(slot).mac(), bits(kOther));
  EXPECT_EQ(table.word(slot).state(), NeighbourState::stale);
  table.learn(host(1), {.mac = kOther, .answers = true, .overrides = false}, seconds(3));
  EXPECT_EQ(table.word(slot).state(), NeighbourState::reachable);
}

TEST(Neighbours, PinnedOnesStay) {
  NeighbourTable table(64);
  const std::uint32_t slot = table.pin(host(1), seconds(0));
  EXPECT_EQ(table.pin(host(1), seconds(0)), slot);
  table.learn(host(1), kAnswer, seconds(0));
  table.unpin(slot);
  table.age(seconds(40));
  table.age(seconds(1000));
  EXPECT_EQ(table.find(host(1)), slot);
  table.unpin(slot);
  table.age(seconds(2000));
  EXPECT_EQ(table.find(host(1)), NeighbourTable::kNobody);
}

TEST(Neighbours, AFullBucketTakesNoMore) {
  NeighbourTable table(8);
  for (std::uint32_t i = 0; i < 8; ++i) {
    const std::uint32_t slot = table.pin(host(i), seconds(0));
    EXPECT_NE(slot, NeighbourTable::kNobody);
    table.unpin(slot);
  }
  EXPECT_EQ(table.pin(host(8), seconds(0)), NeighbourTable::kNobody);
  EXPECT_FALSE(table.learn(host(8), {.mac = kMac, .introduces = true}, seconds(0)));
  EXPECT_EQ(table.count(NeighbourState::incomplete), 8U);
  table.age(seconds(100));
  EXPECT_EQ(table.count(NeighbourState::incomplete), 8U) << "age() has only now seen them in use";
  table.age(seconds(200));
  EXPECT_EQ(table.count(NeighbourState::incomplete), 0U);
  EXPECT_NE(table.find_or_add(host(8), seconds(200)), NeighbourTable::kNobody);
}

TEST(Neighbours, NobodyIsNeverResolved) {
  NeighbourTable table(8);
  EXPECT_FALSE(table.word(NeighbourTable::kNobody).good());
  EXPECT_FALSE(table.use(NeighbourTable::kNobody, seconds(0)).send);
  EXPECT_EQ(table.key(NeighbourTable::kNobody), std::nullopt);
}

/// Whatever happens, and in whatever order: a MAC address is that of the last believable message about that neighbour,
/// and of two that would ask at the same time one may.
WARPLINE_PROPERTY(Neighbours, KeepToWhatWasSaid, ()) {
  NeighbourTable table(16);
  std::map<std::uint32_t, std::uint64_t> said;
  Nanos now{0};
  for (int step = 0; step < 300; ++step) {
    now.value += *rc::gen::inRange<std::int64_t>(0, 2'000'000'000);
    const std::uint32_t number = *rc::gen::inRange<std::uint32_t>(0, 4);
    const MacAddress mac{{2, 0, 0, 0, 1, *rc::gen::inRange<std::uint8_t>(0, 4)}};
    switch (*rc::gen::inRange(0, 4)) {
      case 0: {
        const std::uint32_t slot = table.find_or_add(host(number), now);
        RC_ASSERT(slot != NeighbourTable::kNobody);
        // Whoever was allowed to ask, nobody else is at the same time.
        if (table.use(slot, now).send) RC_ASSERT(!table.use(slot, now).send);
        break;
      }
      case 1:
        if (table.find(host(number)) != NeighbourTable::kNobody) said[number] = bits(mac);
        table.learn(host(number), {.mac = mac, .answers = *rc::gen::arbitrary<bool>()}, now);
        break;
      case 2:
        said[number] = bits(mac);
        table.learn(host(number), {.mac = mac, .introduces = true}, now);
        break;
      default:
        table.age(now);
    }
    for (std::uint32_t i = 0; i < 4; ++i) {
      const NeighbourWord word = table.word(table.find(host(i)));
      if (word.has_mac()) RC_ASSERT(word.mac() == said[i]);
      if (word.good()) RC_ASSERT(word.has_mac());
    }
  }
}

/// Lcores that add, use and learn while one thread ages. A neighbour's MAC address says which neighbour it is, so one
/// that is found under another's key shows.
TEST(Neighbours, ThreadsNeverMixThemUp) {
  constexpr std::uint32_t kHosts = 40;
  NeighbourTable table(32, {.retransmit = {10}, .requests = 2, .reachable = {200}, .failed = {50}, .unused = {300}});
  std::atomic<std::int64_t> clock{0};
  std::atomic<bool> stop{false};
  std::atomic<std::uint64_t> wrong{0};
  std::atomic<std::uint64_t> used{0};
  const auto mac_of = [](std::uint32_t number) {
    return MacAddress{{2, 0, 0, 0, static_cast<std::uint8_t>(number >> 8), static_cast<std::uint8_t>(number)}};
  };
  std::vector<std::thread> lcores;
  for (std::uint32_t lcore = 0; lcore < 3; ++lcore) {
    lcores.emplace_back([&, lcore] {
      for (std::uint32_t i = 0; i < 60'000; ++i) {
        const Nanos now{clock.load(std::memory_order_relaxed)};
        const std::uint32_t number = (i * 7 + lcore) % kHosts;
        const std::uint32_t slot = table.find_or_add(host(number), now);
        const NeighbourWord word = table.word(slot);
        if (word.has_mac() && table.key(slot) == host(number) && table.word(slot).generation() == word.generation()) {
          used.fetch_add(1, std::memory_order_relaxed);
          if (word.mac() != bits(mac_of(number))) wrong.fetch_add(1, std::memory_order_relaxed);
        }
        (void)table.use(slot, now);
        if (i % 3 == 0) table.learn(host(number), {.mac = mac_of(number), .answers = true}, now);
        clock.fetch_add(1, std::memory_order_relaxed);
      }
    });
  }
  std::thread control([&] {
    while (!stop.load(std::memory_order_relaxed)) table.age({clock.load(std::memory_order_relaxed)});
  });
  for (std::thread& lcore : lcores) lcore.join();
  stop = true;
  control.join();
  EXPECT_EQ(wrong.load(), 0U);
  EXPECT_GT(used.load(), 0U);
}

}  // namespace
}  // namespace warpline::route
