// SPDX-License-Identifier: Apache-2.0
#include "warpline/rpc/pool/pooled_calls.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "warpline/rpc/pool/pool_simulation_testing.h"

namespace warpline::rpc {
namespace {

using message::kMs;
using message::MessageStatus;
using message::Reach;

ServerPoolSettings pool_settings() {
  ServerPoolSettings settings;
  settings.seed = 1;
  settings.health.back_off = {.first = Nanos{50 * kMs}, .longest = Nanos{1000 * kMs}};
  return settings;
}

/// As many calls as that, one at a time.
void ask_each(PoolSimulation& simulation, int calls, bool idempotent, Nanos patience = message::kNever) {
  for (int i = 0; i < calls; ++i) {
    const PoolSimulation::Asked& asked = simulation.ask(idempotent, patience);
    ASSERT_TRUE(simulation.run([&] { return asked.ends != 0; }));
  }
}

std::size_t count_status(const PoolSimulation& simulation, MessageStatus status) {
  return static_cast<std::size_t>(
      std::ranges::count(simulation.calls, status, [](const auto& asked) { return asked.result.status; }));
}

TEST(PooledCalls, GoToAllServersAlike) {
  PoolSimulation simulation(1, 3, pool_settings());
  for (int i = 0; i < 300; ++i) simulation.ask(false);
  ASSERT_TRUE(simulation.run([&] { return simulation.all_ended(); }));
  simulation.check();
  EXPECT_EQ(count_status(simulation, MessageStatus::ok), 300U);
  for (const PoolSimulation::Server& server : simulation.servers) EXPECT_NEAR(server.handled, 100, 40);
  EXPECT_TRUE(simulation.are(ServerState::up, 3));
  simulation.leave();
}

TEST(PooledCalls, GoWhereFewerAreUnderWay) {
  PoolSimulation simulation(2, 2, pool_settings());
  simulation.servers[0].service = Nanos{10 * kMs};
  simulation.servers[1].service = Nanos{1 * kMs};
  for (int round = 0; round < 200; ++round) {
    for (int i = 0; i < 2; ++i) simulation.ask(false);
    simulation.run_for({1 * kMs});
  }
  ASSERT_TRUE(simulation.run([&] { return simulation.all_ended(); }));
  simulation.check();
  EXPECT_GT(simulation.servers[1].handled, 3 * simulation.servers[0].handled);
}

TEST(PooledCalls, WaitInThePoolForTheFirstServerThatHasRoom) {
  ServerPoolSettings settings = pool_settings();
  settings.calls_per_session = 2;
  PoolSimulation simulation(3, 2, settings);
  simulation.servers[0].service = Nanos{1'000'000 * kMs};
  for (int i = 0; i < 20; ++i) simulation.ask(false);
  // Two are stuck with the first server; all others are answered by the second one.
  EXPECT_TRUE(simulation.run(
      [&] {
        return count_status(simulation, MessageStatus::ok) >= 18 &&
               std::ranges::count(simulation.calls, 1, &PoolSimulation::Asked::ends) >= 18;
      },
      {1000 * kMs}));
}

TEST(PooledCalls, GoToAServerInTheOrderOfTheirPriority) {
  PoolSimulation simulation(3, 1, pool_settings());
  ASSERT_TRUE(simulation.run([&] { return simulation.are(ServerState::up, 1); }));
  for (int i = 0; i < 20; ++i) simulation.ask(false, message::kNever, 30'000);
  const PoolSimulation::Asked& urgent = simulation.ask(false, message::kNever, 100, message::Priority::high);
  ASSERT_TRUE(simulation.run([&] { return simulation.servers[0].handled != 0; }));
  EXPECT_EQ(urgent.handled, 1);
  EXPECT_EQ(simulation.servers[0].handled, 1U);
  ASSERT_TRUE(simulation.run([&] { return simulation.all_ended(); }));
  simulation.check();
  EXPECT_EQ(count_status(simulation, MessageStatus::ok), 21U);
}

TEST(PooledCalls, UseSeveralSessionsToAServer) {
  ServerPoolSettings settings = pool_settings();
  settings.calls_per_session = 2;
  settings.sessions = 3;
  PoolSimulation simulation(3, 1, settings);
  simulation.servers[0].service = Nanos{5 * kMs};
  simulation.run_for({5 * kMs});
  for (int i = 0; i < 6; ++i) simulation.ask(false);
  simulation.run_for({4 * kMs});
  EXPECT_EQ(simulation.servers[0].handled, 6U);
  ASSERT_TRUE(simulation.run([&] { return simulation.all_ended(); }));
  simulation.check();
  simulation.leave();
}

TEST(PooledCalls, OpenASessionAgainThatAFullServerRefused) {
  ServerPoolSettings settings = pool_settings();
  settings.calls_per_session = 2;
  settings.sessions = 2;
  PoolSimulation simulation(3, 1, settings);
  message::EndpointConfig config = PoolSimulation::config();
  config.max_sessions = 2;
  message::Loopback::Host& server = *simulation.servers[0].host;
  simulation.network.restart(server, config);
  message::Loopback::Host& other = simulation.network.add(PoolSimulation::config());
  const message::SessionId taken = simulation.network.connect(other, server).first;
  simulation.run_for({1000 * kMs});
  EXPECT_TRUE(simulation.are(ServerState::up, 1));
  EXPECT_EQ(server.endpoint.facts().free_sessions, 0U);  // one of the pool's, and the other's
  EXPECT_EQ(simulation.client->endpoint.counters().sessions_opened.get(), 1U);
  ASSERT_EQ(other.endpoint.close(taken, simulation.network.now), message::CallStatus::ok);
  ASSERT_TRUE(simulation.run([&] { return simulation.client->endpoint.counters().sessions_opened.get() == 2; }));
  EXPECT_TRUE(simulation.are(ServerState::up, 1));
  // They are used: four calls are under way at once.
  simulation.servers[0].service = Nanos{20 * kMs};
  for (int i = 0; i < 4; ++i) simulation.ask(false);
  simulation.run_for({10 * kMs});
  EXPECT_EQ(simulation.servers[0].handled, 4U);
}

/// A session whose slots all belong to calls that were cancelled has room when its peer has heard so.
TEST(PooledCalls, GoToASessionThatWasFullOfCancelledOnes) {
  message::EndpointConfig config = PoolSimulation::config();
  config.max_queued = 0;
  PoolSimulation simulation(3, 1, pool_settings(), {}, config);
  ASSERT_TRUE(simulation.run([&] { return simulation.are(ServerState::up, 1); }));
  simulation.pause(0);
  for (int i = 0; i < 64; ++i) simulation.ask(false);
  simulation.run_for({1 * kMs});
  for (const auto& asked : simulation.calls) EXPECT_TRUE(simulation.queue->cancel(asked.id));
  ASSERT_TRUE(simulation.run([&] { return simulation.all_ended(); }));
  const PoolSimulation::Asked& last = simulation.ask(false);
  simulation.run_for({1 * kMs});
  simulation.resume(0);
  // Acknowledgements are no events: the simulation looks only so often.
  for (int i = 0; i < 100 && last.ends == 0; ++i) simulation.run_for({10 * kMs});
  ASSERT_EQ(last.ends, 1);
  EXPECT_EQ(last.result.status, MessageStatus::ok);
  EXPECT_EQ(count_status(simulation, MessageStatus::cancelled), 64U);
}

TEST(PooledCalls, EndAtOnceWhenThereHasBeenNoServerForTooLong) {
  ServerPoolSettings settings = pool_settings();
  settings.server_wait = Nanos{500 * kMs};
  PoolSimulation simulation(4, 2, settings);
  simulation.kill(0);
  simulation.kill(1);
  const PoolSimulation::Asked& first = simulation.ask(false);
  ASSERT_TRUE(simulation.run([&] { return first.ends != 0; }));
  EXPECT_EQ(first.result.status, MessageStatus::peer_lost);
  EXPECT_EQ(first.result.reach, Reach::never_sent);
  EXPECT_GE(first.ended.value - first.began.value, 500 * kMs);
  EXPECT_LE(first.ended.value - first.began.value, 1000 * kMs);
  const PoolSimulation::Asked& second = simulation.ask(false);
  simulation.run_for({1});
  EXPECT_EQ(second.ends, 1);
  simulation.restart(1);
  ASSERT_TRUE(simulation.run([&] { return simulation.are(ServerState::trial, 1); }));
  const PoolSimulation::Asked& third = simulation.ask(false);
  ASSERT_TRUE(simulation.run([&] { return third.ends != 0; }));
  EXPECT_EQ(third.result.status, MessageStatus::ok);
  simulation.check();
}

TEST(PooledCalls, EndByTheirDeadlineWhileTheyWait) {
  PoolSimulation simulation(5, 1, pool_settings());
  simulation.kill(0);
  const PoolSimulation::Asked& asked = simulation.ask(true, {50 * kMs});
  ASSERT_TRUE(simulation.run([&] { return asked.ends != 0; }));
  EXPECT_EQ(asked.result.status, MessageStatus::deadline);
  EXPECT_EQ(asked.result.reach, Reach::never_sent);
  simulation.check();
}

TEST(PooledCalls, GoOnElsewhereWhenNoServerHadThem) {
  ServerPoolSettings settings = pool_settings();
  settings.budget = {.per_call = 0, .per_second = 0, .most = 0};  // what no server had costs none
  PoolSimulation simulation(6, 2, settings);
  ASSERT_TRUE(simulation.run([&] { return simulation.are(ServerState::up, 2); }));
  simulation.network.tap = [&](const auto& from, auto&) { return &from == simulation.client; };  // nothing leaves
  for (int i = 0; i < 10; ++i) simulation.ask(false);
  simulation.run_for({1 * kMs});
  simulation.network.tap = nullptr;
  simulation.restart(0);
  ASSERT_TRUE(simulation.run([&] { return simulation.all_ended(); }));
  simulation.check();
  // The packets left; whether the server had them nobody knows. Those that waited behind them go on.
  for (const PoolSimulation::Asked& asked : simulation.calls) {
    EXPECT_TRUE(asked.result.status == MessageStatus::ok || asked.result.reach == Reach::maybe_handled);
  }
}

TEST(PooledCalls, GoOnAtOnceWhereAServerGoesAwayAndComeBackWithIt) {
  ServerPoolSettings settings = pool_settings();
  settings.budget = {.per_call = 0, .per_second = 0, .most = 0};
  PoolSimulation simulation(20, 2, settings);
  simulation.servers[0].service = simulation.servers[1].service = Nanos{5 * kMs};
  ASSERT_TRUE(simulation.run([&] { return simulation.are(ServerState::up, 2); }));
  for (int i = 0; i < 20; ++i) simulation.ask(false);
  simulation.run_for({2 * kMs});  // both have some of them
  simulation.drain(0);
  for (int i = 0; i < 200; ++i) {
    simulation.ask(false);
    simulation.run_for({50'000});
  }
  ASSERT_TRUE(simulation.run([&] { return simulation.all_ended(); }));
  simulation.check();
  // Each is answered once, those that had gone there before by the server that went.
  EXPECT_EQ(count_status(simulation, MessageStatus::ok), 220U);
  EXPECT_EQ(simulation.servers[0].handled + simulation.servers[1].handled, 220U);
  EXPECT_EQ(simulation.pool->servers().facts(0).failed, 0U);
  const ServerChange& first = *std::ranges::find(simulation.changes, ServerState::leaving, &ServerChange::to);
  EXPECT_EQ(first.server, 0U);
  simulation.run_for({500 * kMs});
  EXPECT_TRUE(simulation.are(ServerState::up, 1));
  simulation.restart(0);
  simulation.servers[0].service = Nanos{50'000};
  for (int i = 0; i < 1000 && !simulation.are(ServerState::up, 2); ++i) {
    simulation.ask(false);
    simulation.run_for({5 * kMs});
  }
  EXPECT_TRUE(simulation.are(ServerState::up, 2));
  simulation.leave();
}

TEST(PooledCalls, AreTriedAgainIfTheyMayBeHandledTwice) {
  PoolSimulation simulation(7, 2, pool_settings());
  simulation.servers[0].service = simulation.servers[1].service = Nanos{20 * kMs};
  ASSERT_TRUE(simulation.run([&] { return simulation.are(ServerState::up, 2); }));
  for (int i = 0; i < 20; ++i) simulation.ask(i % 2 == 0);
  simulation.run_for({10 * kMs});
  const std::uint64_t stuck = simulation.servers[0].handled;
  ASSERT_GT(stuck, 4U);
  simulation.restart(0);
  ASSERT_TRUE(simulation.run([&] { return simulation.all_ended(); }));
  simulation.check();
  for (const PoolSimulation::Asked& asked : simulation.calls) {
    if (asked.call.idempotent) {
      EXPECT_EQ(asked.result.status, MessageStatus::ok);
    } else if (asked.result.status != MessageStatus::ok) {
      EXPECT_EQ(asked.result.status, MessageStatus::peer_lost);
      EXPECT_EQ(asked.result.reach, Reach::maybe_handled);
    }
  }
  EXPECT_EQ(simulation.pool->counters().retries.get() + count_status(simulation, MessageStatus::peer_lost), stuck);
  ASSERT_TRUE(simulation.run([&] { return simulation.are(ServerState::trial, 1); }));
  simulation.leave();
}

TEST(PooledCalls, AreTriedAgainAsFarAsTheBudgetGoes) {
  ServerPoolSettings settings = pool_settings();
  settings.budget = {.per_call = 0, .per_second = 0, .most = 5};
  PoolSimulation simulation(8, 2, settings);
  for (PoolSimulation::Server& server : simulation.servers) server.declines = true;
  ask_each(simulation, 20, true);
  simulation.check();
  EXPECT_EQ(simulation.pool->counters().retries.get(), 5U);
  EXPECT_EQ(simulation.servers[0].handled + simulation.servers[1].handled, 25U);
  EXPECT_EQ(count_status(simulation, MessageStatus::refused), 20U);
  EXPECT_GT(simulation.pool->counters().over_budget.get(), 0U);
}

TEST(PooledCalls, AreTriedNoOftenerThanSaidAndNeverBeyondTheirDeadline) {
  ServerPoolSettings settings = pool_settings();
  settings.retry = {.attempts = 4, .back_off = {.first = Nanos{10 * kMs}, .longest = Nanos{1000 * kMs}}};
  PoolSimulation simulation(9, 3, settings);
  for (PoolSimulation::Server& server : simulation.servers) server.declines = true;
  ask_each(simulation, 5, true);
  for (const PoolSimulation::Asked& asked : simulation.calls) {
    EXPECT_EQ(asked.handled, 4);
    EXPECT_GE(asked.ended.value - asked.began.value, (5 + 10 + 20) * kMs);
  }
  ask_each(simulation, 5, true, {12 * kMs});
  simulation.check();
  for (std::size_t i = 5; i < 10; ++i) {  // one retry fits, a second one would not
    EXPECT_EQ(simulation.calls[i].handled, 2);
    EXPECT_EQ(simulation.calls[i].result.status, MessageStatus::refused);
  }
}

TEST(PooledCalls, LeaveOutAServerThatStoppedAndFindItAgain) {
  PoolSimulation simulation(10, 2, pool_settings());
  ask_each(simulation, 10, false);
  simulation.pause(0);
  const std::size_t before = simulation.calls.size();
  ask_each(simulation, 100, false, {20 * kMs});
  std::size_t late = 0;
  for (std::size_t i = before; i < simulation.calls.size(); ++i)
    late += simulation.calls[i].result.status == MessageStatus::deadline ? 1 : 0;
  EXPECT_EQ(late, 5U);  // then it gets no more
  EXPECT_EQ(simulation.pool->servers().facts(0).failed, 5U);
  EXPECT_TRUE(simulation.are(ServerState::up, 1));
  simulation.run_for({3000 * kMs});
  EXPECT_TRUE(simulation.are(ServerState::up, 1));
  simulation.resume(0);
  ASSERT_TRUE(simulation.run([&] { return simulation.pool->servers().facts(0).state == ServerState::trial; }));
  const std::uint64_t handled = simulation.servers[0].handled;
  ask_each(simulation, 50, false, {20 * kMs});
  EXPECT_TRUE(simulation.are(ServerState::up, 2));
  EXPECT_GT(simulation.servers[0].handled, handled + 10);
  for (const PoolSimulation::Asked& asked : simulation.calls) ASSERT_EQ(asked.ends, 1);
  simulation.leave();
}

TEST(PooledCalls, GoOneAtATimeToAServerOnTrial) {
  PoolSimulation simulation(11, 2, pool_settings());
  ask_each(simulation, 4, false);
  simulation.restart(0);
  simulation.servers[0].service = Nanos{100 * kMs};
  ASSERT_TRUE(simulation.run([&] {
    if (simulation.pool->servers().facts(0).state == ServerState::up && simulation.all_ended()) simulation.ask(true);
    return simulation.pool->servers().facts(0).state == ServerState::trial;
  }));
  const std::uint64_t handled = simulation.servers[0].handled;
  for (int i = 0; i < 20; ++i) simulation.ask(false);
  simulation.run_for({50 * kMs});
  EXPECT_EQ(simulation.servers[0].handled, handled + 1);
  ASSERT_TRUE(simulation.run([&] { return simulation.all_ended(); }));
  EXPECT_TRUE(simulation.are(ServerState::up, 2));
  simulation.check();
}

TEST(PooledCalls, AreHedgedWhenAnAnswerTakesLongAndTheFirstAnswerWins) {
  ServerPoolSettings settings = pool_settings();
  settings.hedge = {.on = true, .delay = Nanos{5 * kMs}};
  for (const std::size_t bytes : {8U, 5000U}) {
    PoolSimulation simulation(12, 2, settings);
    ASSERT_TRUE(simulation.run([&] { return simulation.are(ServerState::up, 2); }));
    simulation.servers[0].service = Nanos{500 * kMs};
    for (int i = 0; i < 3; ++i) {
      const PoolSimulation::Asked& asked = simulation.ask(true, message::kNever, bytes);
      ASSERT_TRUE(simulation.run([&] { return asked.ends != 0; }));
      EXPECT_LE(asked.ended.value - asked.began.value, 10 * kMs);
      EXPECT_EQ(asked.result.data[bytes], 1);
      EXPECT_EQ(asked.result.data, asked.response.data());
    }
    const PoolSimulation::Asked& once = simulation.ask(false);  // never twice
    ASSERT_TRUE(simulation.run([&] { return once.ends != 0; }));
    simulation.check();
    const PoolCounters& counters = simulation.pool->counters();
    EXPECT_EQ(counters.hedges.get(), counters.hedges_won.get());
    EXPECT_GE(counters.hedges.get(), 1U);
    simulation.leave();
  }
}

TEST(PooledCalls, AreHedgedAfterWhatMostAnswersTake) {
  ServerPoolSettings settings = pool_settings();
  settings.hedge.on = true;
  PoolSimulation simulation(13, 2, settings);
  simulation.servers[0].service = simulation.servers[1].service = Nanos{3 * kMs};
  ask_each(simulation, 100, true);
  EXPECT_EQ(simulation.pool->counters().hedges.get(), 0U);
  simulation.pause(0);
  ask_each(simulation, 100, true);
  simulation.check();
  // Whoever it held up was answered by the other one, and then it is left out.
  EXPECT_EQ(count_status(simulation, MessageStatus::ok), 200U);
  EXPECT_EQ(simulation.pool->counters().hedges_won.get(), 5U);
  EXPECT_EQ(simulation.pool->servers().facts(0).state, ServerState::left_out);
  for (const PoolSimulation::Asked& asked : simulation.calls) EXPECT_LE(asked.ended.value - asked.began.value, 8 * kMs);
  simulation.leave();
}

TEST(PooledCalls, AreHedgedAsFarAsTheBudgetGoes) {
  ServerPoolSettings settings = pool_settings();
  settings.hedge = {.on = true, .delay = Nanos{1 * kMs}};
  settings.budget = {.per_call = 0.1, .per_second = 0, .most = 3};
  PoolSimulation simulation(14, 3, settings);
  for (PoolSimulation::Server& server : simulation.servers) server.service = Nanos{10 * kMs};  // all are slow
  ask_each(simulation, 100, true);
  simulation.check();
  EXPECT_LE(simulation.pool->counters().hedges.get(), 3U + 10U);
  EXPECT_GE(simulation.pool->counters().hedges.get(), 10U);
  EXPECT_EQ(simulation.servers[0].handled + simulation.servers[1].handled + simulation.servers[2].handled,
            100 + simulation.pool->counters().hedges.get());
}

TEST(PooledCalls, SayNothingAboutAServerThatHadNoTime) {
  ServerPoolSettings settings = pool_settings();
  settings.hedge = {.on = true, .delay = Nanos{0}};  // two copies of each, and one of them always loses
  settings.budget.per_call = 1;
  PoolSimulation simulation(18, 2, settings);
  simulation.servers[1].service = Nanos{1 * kMs};
  ask_each(simulation, 100, true);
  simulation.check();
  EXPECT_EQ(count_status(simulation, MessageStatus::ok), 100U);
  EXPECT_GE(simulation.pool->counters().hedges.get(), 90U);
  ask_each(simulation, 50, true, Nanos{1000});  // over before they can arrive
  EXPECT_EQ(count_status(simulation, MessageStatus::deadline), 50U);
  EXPECT_TRUE(simulation.are(ServerState::up, 2));
  simulation.leave();
}

TEST(PooledCalls, SayHowLongAnAnswerIsThatDoesNotFit) {
  ServerPoolSettings settings = pool_settings();
  settings.hedge = {.on = true, .delay = Nanos{1 * kMs}};
  PoolSimulation simulation(15, 2, settings);
  simulation.servers[0].service = Nanos{10 * kMs};
  for (int i = 0; i < 8; ++i) {
    PoolSimulation::Asked& asked = simulation.ask(true, message::kNever, 3000);
    // It is on its way to the pool, which reads the call when it is given a turn.
    simulation.queue->at(asked.id.index).call.response.length = 100;
    ASSERT_TRUE(simulation.run([&] { return asked.ends != 0; }));
    EXPECT_EQ(asked.result.status, MessageStatus::too_long);
    EXPECT_EQ(asked.result.length, 3001U);
  }
  EXPECT_GE(simulation.pool->counters().hedges_won.get(), 1U);
  simulation.leave();
}

TEST(PooledCalls, EndByCancellingWhereverTheyAre) {
  ServerPoolSettings settings = pool_settings();
  settings.calls_per_session = 1;
  settings.hedge = {.on = true, .delay = Nanos{1 * kMs}};
  settings.retry.back_off = {.first = Nanos{1000 * kMs}, .longest = Nanos{1000 * kMs}};
  PoolSimulation simulation(16, 2, settings);
  for (PoolSimulation::Server& server : simulation.servers) server.service = Nanos{1'000'000 * kMs};
  for (int i = 0; i < 6; ++i) simulation.ask(true);
  simulation.run_for({20 * kMs});  // one is with both servers or two with one each, the others wait
  EXPECT_TRUE(simulation.queue->cancel(simulation.calls[5].id));
  EXPECT_TRUE(simulation.queue->cancel(simulation.calls[0].id));
  simulation.run_for({1 * kMs});
  EXPECT_EQ(simulation.calls[5].result.status, MessageStatus::cancelled);
  EXPECT_EQ(simulation.calls[5].result.reach, Reach::never_sent);
  EXPECT_EQ(simulation.calls[0].ends, 1);
  EXPECT_EQ(simulation.calls[0].result.status, MessageStatus::cancelled);
  simulation.restart(0);
  simulation.restart(1);
  simulation.run([&] { return simulation.pool->counters().retries.get() != 0; });
  ASSERT_GE(simulation.pool->counters().retries.get(), 1U);
  for (int i = 1; i < 5; ++i) EXPECT_TRUE(simulation.queue->cancel(simulation.calls[static_cast<std::size_t>(i)].id));
  ASSERT_TRUE(simulation.run([&] { return simulation.all_ended(); }, {10 * kMs}));
  EXPECT_EQ(count_status(simulation, MessageStatus::cancelled), 6U);
  simulation.leave();
}

TEST(PooledCalls, AllEndWithThePool) {
  ServerPoolSettings settings = pool_settings();
  settings.calls_per_session = 2;
  PoolSimulation simulation(17, 2, settings);
  for (PoolSimulation::Server& server : simulation.servers) server.service = Nanos{1'000'000 * kMs};
  for (int i = 0; i < 20; ++i) simulation.ask(i % 2 == 0);
  simulation.run_for({5 * kMs});
  for (int i = 0; i < 5; ++i) simulation.ask(true);  // these the pool has not seen yet
  simulation.leave();
  EXPECT_TRUE(simulation.all_ended());
  simulation.check();
  EXPECT_EQ(count_status(simulation, MessageStatus::cancelled), 25U);
  EXPECT_EQ(simulation.queue->submit({}, {}, simulation.network.now).status, message::CallStatus::no_memory);
}

/// Servers die, come back, stop and go on at random, over a network that loses packets; calls of all kinds come, and
/// some are cancelled. PoolSimulation::check() has what must hold of each.
TEST(PooledCalls, EndOnceWhateverServersDo) {
  for (std::uint64_t seed = 1; seed <= 25; ++seed) {
    SCOPED_TRACE(seed);
    Random random(seed);
    ServerPoolSettings settings = pool_settings();
    settings.sessions = 1 + static_cast<std::uint32_t>(random.below(3));
    settings.calls_per_session = 1 + static_cast<std::uint32_t>(random.below(64));
    settings.server_wait = random.below(3) == 0 ? Nanos{} : Nanos{static_cast<std::int64_t>(random.below(3000)) * kMs};
    settings.hedge.on = random.below(3) != 0;
    if (random.below(2) == 0) settings.hedge.delay = Nanos{static_cast<std::int64_t>(random.below(20)) * kMs};
    settings.budget = {.per_call = 0.2, .per_second = 1, .most = static_cast<double>(random.below(20))};
    const std::size_t servers = 1 + random.below(4);
    message::Impairment faults;
    faults.loss = static_cast<std::uint32_t>(random.below(20'000));
    faults.duplicate = 5000;
    faults.reorder = 20'000;
    PoolSimulation simulation(seed, servers, settings, faults);
    for (int step = 0; step < 150; ++step) {
      const std::size_t victim = random.below(servers);
      const std::uint64_t what = random.below(20);
      if (what == 0) simulation.kill(victim);
      if (what == 1) simulation.restart(victim);
      if (what == 2) simulation.pause(victim);
      if (what <= 4) simulation.resume(victim);
      if (what == 5) simulation.servers[victim].service = Nanos{static_cast<std::int64_t>(random.below(100)) * kMs};
      if (what == 7 && !simulation.servers[victim].host->dead) simulation.drain(victim);
      if (what == 6) simulation.servers[victim].declines = !simulation.servers[victim].declines;
      for (std::uint64_t i = random.below(4); i != 0; --i) {
        const Nanos patience =
            random.below(2) == 0 ? message::kNever : Nanos{static_cast<std::int64_t>(random.below(200)) * kMs};
        simulation.ask(random.below(2) == 0, patience, random.below(8) == 0 ? 4000 : 8 + random.below(100));
      }
      if (random.below(5) == 0 && !simulation.calls.empty())
        (void)simulation.queue->cancel(simulation.calls[random.below(simulation.calls.size())].id);
      simulation.run_for({static_cast<std::int64_t>(random.below(50)) * kMs});
    }
    for (std::size_t i = 0; i < servers; ++i) {
      simulation.resume(i);
      simulation.restart(i);
      simulation.servers[i].service = Nanos{50'000};
      simulation.servers[i].declines = false;
    }
    ASSERT_TRUE(simulation.run([&] { return simulation.all_ended(); }));
    for (int i = 0; i < 5000 && !simulation.are(ServerState::up, servers); ++i) {
      simulation.ask(false);
      simulation.run_for({5 * kMs});
    }
    ASSERT_TRUE(simulation.are(ServerState::up, servers));
    ASSERT_TRUE(simulation.run([&] { return simulation.all_ended(); }));
    simulation.check();
    const PoolCounters& counters = simulation.pool->counters();
    EXPECT_EQ(counters.calls.get(), simulation.calls.size());
    EXPECT_EQ(counters.ended.get(), simulation.calls.size());
    const double paid = settings.budget.most + 0.2 * static_cast<double>(simulation.calls.size()) +
                        static_cast<double>(simulation.network.now.value) / 1e9;
    EXPECT_LE(static_cast<double>(counters.retries.get() + counters.hedges.get()), paid);
    for (std::size_t i = 0; i < servers; ++i) EXPECT_EQ(simulation.pool->servers().facts(i).calls, 0U);
    simulation.leave();
    if (::testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace warpline::rpc
