// SPDX-License-Identifier: Apache-2.0
#include "warpline/daemon/broker.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <limits>
#include <map>
#include <string>

#include "warpline/daemon/raw_client_testing.h"
#include "warpline/message/loopback_testing.h"
#include "warpline/message/protection.h"
#include "warpline/message/two_testing.h"

namespace warpline::daemon {
namespace {

using client::AreaCompletion;
using client::CompletionKind;
using client::Operation;
using message::EventKind;
using message::Loopback;
using message::MessageEvent;
using message::MessageStatus;
using message::Reach;

constexpr ClientLimits kLimits{.calls = 8, .requests = 4, .sessions = 3, .message_bytes = 4096};

DaemonSettings settings_of(const ClientLimits& limits = kLimits) {
  DaemonSettings settings;
  settings.clients = 4;
  settings.client = limits;
  return settings;
}

/// A daemon in virtual time: an endpoint, a broker, clients whose library is the test.
struct Side {
  Side(Loopback& loopback, const DaemonSettings& settings = settings_of())
      : net(loopback),
        config(with_room_for_clients(message::small(), settings).value()),
        host(net.add(config)),
        broker(host.endpoint, config, settings) {
    host.handle = [this](const MessageEvent& event) {
      broker.handle(event, net.now);
      return true;
    };
    host.work = [this] {
      const bool worked = broker.turn(net.now);
      broker.notify();
      return worked;
    };
  }

  RawClient& add() {
    RawClient& client = clients.emplace_back(settings_of().client);
    broker.attach(*client.daemon);
    return client;
  }

  Loopback& net;
  message::EndpointConfig config;
  Loopback::Host& host;
  Broker broker;
  std::deque<RawClient> clients;
};

/// Two daemons, a client of the first and a service of the second.
struct Daemons {
  Daemons() : near(net), far(net), asker(near.add()), server(far.add()) {
    asker.connect(0, far.host.address, 11);
    server.listen(100, 10, 12);
    EXPECT_EQ(next(asker, CompletionKind::connected).tag, 11U);
    EXPECT_EQ(next(server, CompletionKind::listening).status, 0);
  }

  /// The next completion of that kind; others are dropped.
  AreaCompletion next(RawClient& client, CompletionKind kind) {
    AreaCompletion found;
    const auto look = [&] {
      for (const AreaCompletion& each : client.poll()) kept[&client].push_back(each);
      auto& all = kept[&client];
      while (!all.empty()) {
        found = all.front();
        all.pop_front();
        if (found.kind == kind) return true;
      }
      return false;
    };
    EXPECT_TRUE(net.run(look)) << "nothing of kind " << static_cast<int>(kind);
    return found;
  }
  void check_nothing_is_left() {
    net.run_for({40'000'000'000});
    for (Side* const side : {&near, &far}) {
      side->broker.leave_all(net.now);
      net.run_for({1'000'000'000});
      while (side->broker.done_with() != nullptr) {
      }
      EXPECT_TRUE(side->broker.empty());
    }
    net.run_for({40'000'000'000});
    for (Side* const side : {&near, &far}) {
      const message::EndpointFacts facts = side->host.endpoint.facts();
      EXPECT_EQ(facts.free_messages, side->config.max_messages);
      EXPECT_EQ(facts.free_sessions, side->config.max_sessions);
      EXPECT_EQ(facts.queued_messages, 0U);
      EXPECT_EQ(facts.free_receive_bytes, side->config.receive_bytes);
    }
  }

  Loopback net{7};
  Side near, far;
  RawClient& asker;
  RawClient& server;
  std::map<RawClient*, std::deque<AreaCompletion>> kept;
};

std::string text(std::size_t length, std::uint64_t seed) {
  const auto bytes = message::pattern(length, seed);
  return {bytes.begin(), bytes.end()};
}

TEST(Broker, WhatIsHighOfOneClientGoesBeforeWhatIsNormalOfAnother) {
  Daemons two;
  RawClient& other = two.near.add();
  other.connect(0, two.far.host.address, 1);
  EXPECT_EQ(two.next(other, CompletionKind::connected).tag, 1U);
  for (std::uint32_t slot = 0; slot < kLimits.calls; ++slot)
    two.asker.request(slot, text(kLimits.message_bytes, 1), 100);
  for (const Operation operation : {Operation::request, Operation::send}) {
    const auto slot = static_cast<std::uint32_t>(operation);
    other.submit({.operation = operation, .flags = client::kHighFlag, .code = 101, .slot = slot, .length = 7});
  }
  std::vector<std::uint16_t> codes;
  EXPECT_TRUE(two.net.run([&] {
    for (const AreaCompletion& each : two.server.poll()) codes.push_back(each.code);
    return codes.size() >= 4;
  }));
  EXPECT_EQ(codes, (std::vector<std::uint16_t>{101, 101, 100, 100}));
}

TEST(Broker, AsksAndAnswersMessagesOfEveryLength) {
  Daemons two;
  for (const std::uint32_t length : {0U, 1U, 128U, 129U, 2000U, kLimits.message_bytes}) {
    two.asker.request(3, text(length, 1), 105, length);
    const AreaCompletion request = two.next(two.server, CompletionKind::request);
    EXPECT_EQ(request.code, 105);
    ASSERT_EQ(request.length, length);
    EXPECT_EQ(two.server.received(request.slot, length), text(length, 1));
    EXPECT_EQ(request.port, two.near.host.address.port);
    EXPECT_EQ(std::memcmp(request.address, two.near.host.address.ip.data(), 16), 0);
    two.server.answer(request.slot, text(length, 2), 9);
    const AreaCompletion response = two.next(two.asker, CompletionKind::response);
    EXPECT_EQ(response.tag, length);
    EXPECT_EQ(response.status, 0);
    EXPECT_EQ(response.code, 9);
    ASSERT_EQ(response.length, length);
    EXPECT_EQ(two.asker.response(3, length), text(length, 2));
  }
  EXPECT_EQ(two.asker.daemon->counters.completed[0].get(), 6U);
  EXPECT_EQ(two.server.daemon->counters.answered.get(), 6U);
  two.check_nothing_is_left();
}

TEST(Broker, OneWayMessagesArriveAndAreGivenBack) {
  Daemons two;
  for (int i = 0; i < 20; ++i) {
    std::memcpy(two.asker.at(two.asker.layout.room(1, false)), "one way", 7);
    two.asker.submit({.operation = Operation::send, .code = 101, .slot = 1, .length = 7, .tag = 5});
    const AreaCompletion message = two.next(two.server, CompletionKind::message);
    EXPECT_EQ(two.server.received(message.slot, message.length), "one way");
    two.server.simple(Operation::release, message.slot);
    EXPECT_EQ(two.next(two.asker, CompletionKind::sent).tag, 5U);
  }
  two.check_nothing_is_left();
}

TEST(Broker, WhatNobodyListensForIsDeclined) {
  Daemons two;
  two.asker.request(0, "is anybody there", 99);
  const AreaCompletion response = two.next(two.asker, CompletionKind::response);
  EXPECT_EQ(response.status, static_cast<int>(MessageStatus::refused));
  EXPECT_EQ(response.code, static_cast<int>(message::RefusalCode::declined));
  EXPECT_EQ(two.far.broker.counters().no_service.get(), 1U);
  two.check_nothing_is_left();
}

TEST(Broker, ACodeHasOneListener) {
  Daemons two;
  RawClient& other = two.far.add();
  other.listen(109, 2);
  EXPECT_EQ(two.next(other, CompletionKind::listening).status, client::kInUse);
  other.listen(110, 0x10000 - 110);
  EXPECT_EQ(two.next(other, CompletionKind::listening).status, 0);
  two.server.listen(100, 5);
  EXPECT_EQ(two.next(two.server, CompletionKind::listening).status, 0) << "its own";
  // They are free again when the listener has gone.
  two.far.broker.leave(*two.server.daemon, two.net.now);
  other.listen(100, 10);
  EXPECT_EQ(two.next(other, CompletionKind::listening).status, 0);
  two.asker.request(0, "now you", 100);
  const AreaCompletion request = two.next(other, CompletionKind::request);
  other.answer(request.slot, "me");
  EXPECT_EQ(two.next(two.asker, CompletionKind::response).status, 0);
  two.check_nothing_is_left();
}

TEST(Broker, ManyRequestsWaitForSlotsAndTheRestIsDeclined) {
  Daemons two;
  for (std::uint32_t i = 0; i < kLimits.calls; ++i) two.asker.request(i, text(300, i), 100, i);
  two.net.run_for({100'000'000});
  EXPECT_EQ(two.server.daemon->counters.delivered.get(), kLimits.requests);
  EXPECT_EQ(two.server.daemon->waiting_count, kLimits.requests);
  RawClient& second = two.near.add();
  second.connect(0, two.far.host.address);
  second.request(0, "too much", 100);
  EXPECT_EQ(two.next(second, CompletionKind::response).status, static_cast<int>(MessageStatus::refused));
  EXPECT_EQ(two.server.daemon->counters.overflowed.get(), 1U);
  for (std::uint32_t i = 0; i < kLimits.calls; ++i) {
    const AreaCompletion request = two.next(two.server, CompletionKind::request);
    two.server.answer(request.slot, two.server.received(request.slot, request.length));
  }
  for (std::uint32_t i = 0; i < kLimits.calls; ++i) {
    const AreaCompletion response = two.next(two.asker, CompletionKind::response);
    EXPECT_EQ(two.asker.response(response.slot, response.length), text(300, response.tag));
  }
  two.check_nothing_is_left();
}

TEST(Broker, WithdrawnRequestsAreTold) {
  Daemons two;
  for (std::uint32_t i = 0; i < 6; ++i) two.asker.request(i, "slow", 100, i);
  const AreaCompletion first = two.next(two.server, CompletionKind::request);
  two.net.run_for({10'000'000});
  for (std::uint32_t i = 0; i < 6; ++i) two.asker.simple(Operation::cancel, i);
  for (std::uint32_t i = 0; i < 6; ++i) {
    EXPECT_EQ(two.next(two.asker, CompletionKind::response).status, static_cast<int>(MessageStatus::cancelled));
  }
  EXPECT_EQ(two.next(two.server, CompletionKind::withdrawn).slot, first.slot);
  EXPECT_EQ(two.server.daemon->waiting_count, 0U) << "those that had no slot yet are forgotten";
  for (std::uint32_t slot = 0; slot < kLimits.requests; ++slot) two.server.answer(slot, text(1000, 1));
  two.net.run_for({10'000'000});
  EXPECT_EQ(two.server.daemon->free_requests.size(), kLimits.requests);
  two.asker.simple(Operation::cancel, 0);  // which has ended: it is no lie, but late
  two.asker.request(0, "again", 100);
  two.server.answer(two.next(two.server, CompletionKind::request).slot, "yes");
  EXPECT_EQ(two.next(two.asker, CompletionKind::response).status, 0);
  two.check_nothing_is_left();
}

TEST(Broker, DeadlinesTravel) {
  Daemons two;
  std::memcpy(two.asker.at(two.asker.layout.room(0, false)), "soon", 4);
  two.asker.submit({.operation = Operation::request, .code = 100, .slot = 0, .length = 4, .patience = 50'000'000});
  const AreaCompletion request = two.next(two.server, CompletionKind::request);
  EXPECT_GT(request.time_left, 40'000'000);
  EXPECT_LE(request.time_left, 50'000'000);
  EXPECT_EQ(two.next(two.asker, CompletionKind::response).status, static_cast<int>(MessageStatus::deadline));
  EXPECT_EQ(two.next(two.server, CompletionKind::withdrawn).slot, request.slot);
  // The longest there is does not wrap.
  two.asker.submit(
      {.operation = Operation::request, .code = 101, .slot = 1, .patience = std::numeric_limits<std::int64_t>::max()});
  EXPECT_EQ(two.next(two.server, CompletionKind::request).time_left, 0);
  two.check_nothing_is_left();
}

TEST(Broker, AClientThatIsGoneLeavesNothing) {
  Daemons two;
  for (std::uint32_t i = 0; i < 7; ++i) two.asker.request(i, text(2000, i), 100, i);
  const AreaCompletion request = two.next(two.server, CompletionKind::request);
  two.server.answer(request.slot, text(3000, 1));
  // In the middle, wherever each of them is: the server.
  two.far.broker.leave(*two.server.daemon, two.net.now);
  int declined = 0;
  for (int i = 0; i < 7; ++i) {
    const AreaCompletion end = two.next(two.asker, CompletionKind::response);
    declined += end.status == static_cast<int>(MessageStatus::refused) ? 1 : 0;
    EXPECT_TRUE(end.status == 0 || end.reach == static_cast<int>(Reach::handled));
  }
  EXPECT_GE(declined, 6);
  EXPECT_EQ(two.far.broker.done_with(), two.server.daemon.get());
  // And the asker, whose session the other end then loses.
  RawClient& heir = two.far.add();
  heir.listen(100, 10);
  EXPECT_EQ(two.next(heir, CompletionKind::listening).status, 0);
  two.asker.request(0, text(4000, 1), 100);
  const AreaCompletion asked = two.next(heir, CompletionKind::request);
  two.near.broker.leave(*two.asker.daemon, two.net.now);
  EXPECT_EQ(two.next(heir, CompletionKind::withdrawn).slot, asked.slot);
  two.net.run_for({10'000'000});
  EXPECT_EQ(two.near.broker.done_with(), two.asker.daemon.get());
  two.check_nothing_is_left();
}

TEST(Broker, AStalledClientHoldsNobodyUp) {
  Daemons two;
  RawClient& stalled = two.near.add();
  stalled.connect(0, two.far.host.address);
  stalled.connect(1, two.far.host.address);
  two.net.run_for({10'000'000});
  const std::uint32_t size = stalled.daemon->facts().submissions;
  while (stalled.indices->submission_tail - stalled.indices->submission_head != size) stalled.listen(1, 1);
  RawClient& other = two.far.add();
  other.listen(1000, 1);
  (void)two.next(other, CompletionKind::listening);
  for (std::uint32_t i = 0; i < 50; ++i) {
    if (stalled.indices->submission_tail - stalled.indices->submission_head != size) stalled.listen(1, 1);
    two.asker.request(0, "goes on", 1000);
    const AreaCompletion request = two.next(other, CompletionKind::request);
    other.answer(request.slot, "yes");
    EXPECT_EQ(two.next(two.asker, CompletionKind::response).status, 0);
  }
  EXPECT_EQ(stalled.daemon->misdeed(), Misdeed::none);
  two.check_nothing_is_left();
}

TEST(Broker, ALiarIsExpelledAndHarmsNobody) {
  Daemons two;
  RawClient& liar = two.near.add();
  liar.connect(0, two.far.host.address);
  liar.request(0, "honest still", 100);
  const AreaCompletion asked = two.next(two.server, CompletionKind::request);
  liar.submit({.operation = Operation::request, .slot = 1, .length = kLimits.message_bytes + 1});
  two.net.run_for({10'000'000});
  EXPECT_EQ(liar.indices->ended, static_cast<std::uint32_t>(client::AreaEnd::expelled));
  EXPECT_EQ(liar.daemon->expelled_for.load(), static_cast<int>(Misdeed::bad_descriptor));
  EXPECT_EQ(two.near.broker.counters().expelled.get(), 1U);
  EXPECT_EQ(two.next(two.server, CompletionKind::withdrawn).slot, asked.slot);
  two.server.answer(asked.slot, "to nobody");
  EXPECT_EQ(two.near.broker.done_with(), liar.daemon.get());
  two.asker.request(0, "and I", 100);
  const AreaCompletion request = two.next(two.server, CompletionKind::request);
  two.server.answer(request.slot, "yes");
  EXPECT_EQ(two.next(two.asker, CompletionKind::response).status, 0);
  two.check_nothing_is_left();
}

TEST(Broker, ASessionThatIsClosedOrLostEndsItsCalls) {
  Daemons two;
  two.asker.request(0, "late", 100, 1);
  (void)two.next(two.server, CompletionKind::request);
  two.asker.simple(Operation::close, 0, 0);
  two.asker.request(1, "behind the close", 100, 2);
  two.asker.simple(Operation::close, 0, 0);  // once more
  two.asker.simple(Operation::close, 0, 2);  // never opened
  std::uint32_t lost = 0;
  for (int i = 0; i < 2; ++i) {
    const AreaCompletion end = two.next(two.asker, CompletionKind::response);
    EXPECT_EQ(end.status, static_cast<int>(MessageStatus::peer_lost));
    EXPECT_EQ(end.reach, static_cast<int>(end.tag == 1 ? Reach::maybe_handled : Reach::never_sent));
  }
  const AreaCompletion closed = two.next(two.asker, CompletionKind::lost);
  EXPECT_EQ(closed.reason, static_cast<int>(message::LossReason::closed_here));
  EXPECT_EQ(closed.session, 0U);
  lost += 1;
  // The number is free again.
  two.asker.connect(0, two.far.host.address, 77);
  EXPECT_EQ(two.next(two.asker, CompletionKind::connected).tag, 77U);
  two.asker.connect(1, message::peer_address(Ipv4Address{{10, 0, 0, 99}}, 1), 78);
  EXPECT_EQ(two.next(two.asker, CompletionKind::lost).tag, 78U);
  EXPECT_EQ(lost, 1U);
  two.check_nothing_is_left();
}

TEST(Broker, TheLongestResponseIsTheLongestMessage) {
  Daemons two;
  Loopback::Host& stranger = two.net.add(message::small());
  const auto bytes = message::pattern(8000, 1);
  stranger.handle = [&](const MessageEvent& event) {
    if (event.kind == EventKind::request)
      (void)stranger.endpoint.respond(event.id, {bytes.data(), 8000}, {}, two.net.now);
    return true;
  };
  two.asker.connect(1, stranger.address);
  two.asker.submit({.operation = Operation::request, .code = 1, .slot = 0, .session = 1});
  const AreaCompletion end = two.next(two.asker, CompletionKind::response);
  EXPECT_EQ(end.status, static_cast<int>(MessageStatus::too_long));
  EXPECT_EQ(end.length, 8000U);
  // And requests of a peer that are longer are refused by the endpoint.
  const auto there = stranger.endpoint.connect(two.far.host.address, {}, two.net.now).session;
  stranger.handle = nullptr;
  (void)stranger.endpoint.request(there, {bytes.data(), 8000}, {}, {.code = 100}, two.net.now);
  EXPECT_TRUE(two.net.run([&] {
    return std::ranges::any_of(stranger.events, [](const MessageEvent& event) {
      return event.kind == EventKind::response && event.status == MessageStatus::refused;
    });
  }));
  (void)stranger.endpoint.close(there, two.net.now);
  two.check_nothing_is_left();
}

TEST(Broker, MoreSettingsThanThereIsMemoryForAreRefused) {
  DaemonSettings settings = settings_of();
  settings.clients = 4096;
  settings.client.message_bytes = 16U << 20;
  const auto refused = with_room_for_clients({}, settings);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().kind, ErrorKind::usage);
}

/// Completions of that kind that one turn of the broker publishes.
std::size_t published_by_a_turn(Side& side, RawClient& client, CompletionKind kind) {
  (void)client.poll();
  (void)side.broker.turn(side.net.now);
  side.broker.notify();
  return static_cast<std::size_t>(std::ranges::count(client.poll(), kind, &AreaCompletion::kind));
}

TEST(Broker, ListeningCountsByItsCodesForTheShareOfATurn) {
  Loopback net(1, {});
  Side side(net);
  RawClient& greedy = side.add();
  // A turn is 256 KiB of each client, and one submission that goes beyond; a code counts as 4 bytes.
  constexpr std::uint32_t kCodes = 60'000;
  constexpr std::size_t kOfATurn = (256 * 1024) / (4 * kCodes) + 1;
  for (int i = 0; i < 8; ++i) greedy.listen(1000, kCodes);
  EXPECT_EQ(published_by_a_turn(side, greedy, CompletionKind::listening), kOfATurn);
  EXPECT_EQ(published_by_a_turn(side, greedy, CompletionKind::listening), kOfATurn) << "the others in later turns";
  RawClient& modest = side.add();
  for (int i = 0; i < 8; ++i) modest.listen(7, 1);
  EXPECT_EQ(published_by_a_turn(side, modest, CompletionKind::listening), 8U);
}

/// Begins handshakes, which nobody answers.
class OnlyOffers final : public message::PacketProtection {
 public:
  bool prove_hello(message::KeyId, std::span<const std::uint8_t>, message::HandshakeProof&) override { return true; }
  bool offer(std::uint32_t) override { return true; }
  bool answer(std::uint32_t, message::KeyId) override { return false; }
  [[nodiscard]] message::KeyId key(std::uint32_t) const override { return 1; }
  [[nodiscard]] message::KeyShare share(std::uint32_t) const override { return {}; }
  bool prove(std::uint32_t, std::span<const std::uint8_t>, message::HandshakeProof&) override { return true; }
  bool start(std::uint32_t, const message::KeyShare&, const message::HandshakeTranscript&, bool) override {
    return false;
  }
  void stop(std::uint32_t) override {}
  void seal(std::uint32_t, std::uint64_t, std::span<const std::uint8_t>, std::span<std::uint8_t>,
            std::span<std::uint8_t, kTagBytes>) override {}
  bool open(std::uint32_t, std::uint64_t, std::span<const std::uint8_t>, std::span<std::uint8_t>,
            std::span<const std::uint8_t, kTagBytes>) override {
    return false;
  }
};

TEST(Broker, OpensOneEncryptedSessionOfEachClientATurn) {
  Loopback net(1, {});
  OnlyOffers protection;
  message::EndpointConfig config = with_room_for_clients(message::small(), settings_of()).value();
  config.protection = &protection;
  Loopback::Host& host = net.add(config);
  Broker broker(host.endpoint, config, settings_of());
  RawClient client(settings_of().client);
  broker.attach(*client.daemon);
  for (std::uint32_t i = 0; i < 3; ++i) client.connect(i, host.address);
  for (std::uint64_t opened = 1; opened <= 3; ++opened) {
    EXPECT_TRUE(broker.turn(net.now));
    EXPECT_EQ(client.daemon->counters.sessions_opened.get(), opened);
  }
}

}  // namespace
}  // namespace warpline::daemon
