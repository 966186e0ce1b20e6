// SPDX-License-Identifier: Apache-2.0
// Who has no processor for a while, or is thought to be gone, and what that does to the others.
#include <gtest/gtest.h>

#include "warpline/message/endpoint.h"
#include "warpline/message/loopback_testing.h"
#include "warpline/message/two_testing.h"

namespace warpline::message {
namespace {

class Absence : public testing::Test {
 protected:
  /// Client and server, with a session.
  void SetUp() override {
    EndpointConfig config;
    config.max_sessions = 4;
    config.receive_bytes = 16 << 20;
    config.receive_window = 8 << 20;
    config.peer_timeout = Nanos{1000 * kMs};
    config.max_rto = Nanos{50 * kMs};
    client_ = &net_.add(config);
    server_ = &net_.add(config);
    server_->handle = [this](const MessageEvent& event) {
      if (event.kind != EventKind::message) return false;
      bytes_arrived_ += event.length;
      EXPECT_EQ(server_->endpoint.release(event.id, net_.now), CallStatus::ok);
      return true;
    };
    std::tie(session_, std::ignore) = net_.connect(*client_, *server_);
  }

  void send(const std::vector<std::uint8_t>& bytes) {
    const ConstBuffer buffer{bytes.data(), static_cast<std::uint32_t>(bytes.size())};
    ASSERT_EQ(client_->endpoint.send(session_, buffer, {}, net_.now).status, CallStatus::ok);
  }
  [[nodiscard]] const EndpointCounters& counters() const { return client_->endpoint.counters(); }
  [[nodiscard]] SessionFacts facts() const { return client_->endpoint.facts(session_); }
  [[nodiscard]] bool lost() const {
    return std::ranges::any_of(client_->events, [](const auto& event) { return event.kind == EventKind::lost; });
  }

  Loopback net_{1};
  Loopback::Host* client_ = nullptr;
  Loopback::Host* server_ = nullptr;
  SessionId session_;
  std::size_t bytes_arrived_ = 0;
};

TEST_F(Absence, OfThePeerLosesNothingAndSendsNothingMoreThanTwice) {
  const auto bytes = pattern(2'000'000, 1);
  send(bytes);
  ASSERT_TRUE(net_.run([&] { return facts().in_flight_packets >= 16; }));
  const std::uint32_t in_flight = facts().in_flight_packets;
  const double window = facts().window_bytes;
  server_->away = true;
  net_.run_for(Nanos{31 * kMs});
  EXPECT_GE(counters().probes.get(), 3U);
  EXPECT_EQ(counters().packets_lost.get(), 0U);
  EXPECT_LE(counters().fragments_repeated.get(), counters().probes.get());
  EXPECT_LE(counters().fragments_repeated.get(), in_flight);
  net_.come_back(*server_);
  const Nanos back = net_.now;
  ASSERT_TRUE(net_.run([&] { return bytes_arrived_ == bytes.size(); }));
  EXPECT_EQ(counters().packets_lost.get(), 0U);
  EXPECT_GE(facts().window_bytes, window / 2);
  EXPECT_LT(net_.now.value - back.value, 10 * kMs);
}

TEST_F(Absence, OfThePeerIsHeldAgainstItWhenItLasts) {
  const auto bytes = pattern(100, 1);
  send(bytes);
  server_->dead = true;
  net_.run_for(Nanos{900 * kMs});
  EXPECT_FALSE(lost());
  net_.run_for(Nanos{1000 * kMs});
  EXPECT_TRUE(lost());
  EXPECT_LE(counters().fragments_repeated.get(), 1U) << "then pings";
}

TEST_F(Absence, OfOneselfIsNotThePeersSilence) {
  const auto bytes = pattern(100, 1);
  net_.run_for(Nanos{10 * kMs});
  server_->dead = true;
  send(bytes);
  net_.run_for(Nanos{500 * kMs});
  net_.now.value += 5000 * kMs;
  net_.run_for(Nanos{300 * kMs});
  EXPECT_FALSE(lost());
  server_->dead = false;
  ASSERT_TRUE(net_.run([&] { return bytes_arrived_ == bytes.size(); }));
  EXPECT_FALSE(lost());
}

TEST_F(Absence, OfAnOwnerThatSeldomLooksIsItsHabit) {
  const auto bytes = pattern(100, 1);
  send(bytes);
  net_.settle();
  server_->dead = true;
  for (int i = 0; i < 30 && !lost(); ++i) {
    net_.now.value += 100 * kMs;
    net_.settle();
  }
  EXPECT_TRUE(lost());
}

TEST_F(Absence, OfOneselfIsNoRoundTrip) {
  const auto bytes = pattern(100, 1);
  for (int i = 0; i < 20; ++i) {
    send(bytes);
    net_.run_for(Nanos{1000});
    client_->away = true;
    net_.run_for(Nanos{10 * kMs});
    net_.come_back(*client_);
    net_.settle();
  }
  EXPECT_EQ(bytes_arrived_, 20 * bytes.size());
  EXPECT_LT(facts().smoothed_rtt.value, 100'000);
}

TEST_F(Absence, OfTrafficBeginsSlowlyAgain) {
  const auto bytes = pattern(4'000'000, 1);
  send(bytes);
  ASSERT_TRUE(net_.run([&] { return bytes_arrived_ == bytes.size(); }));
  const double initial = CcConfig{}.initial_window_bytes;
  ASSERT_GT(facts().window_bytes, initial);
  net_.run_for(Nanos{100 * kMs});
  send(pattern(100, 2));
  net_.run_for(Nanos{kMs / 100});
  EXPECT_LE(facts().window_bytes, initial + 200);
}

TEST(SilentPeer, IsLostAfter16TriesAtLeastHoweverShortTheTimeout) {
  for (const Reliability reliability : {Reliability::selective, Reliability::go_back_n}) {
    EndpointConfig config = small();
    config.peer_timeout = Nanos{400 * kMs};
    config.reliability = reliability;
    Two two(config);
    two.server.dead = true;
    const std::uint64_t before = two.client.packets;
    ASSERT_EQ(two.request(32).status, CallStatus::ok);
    ASSERT_TRUE(two.until(two.client, EventKind::lost));
    EXPECT_EQ(two.client.events.back().reason, LossReason::silent);
    EXPECT_GE(two.client.packets - before, 16U);
    EXPECT_LE(two.client.packets - before, 32U) << "backed off";
  }
}

TEST(SilentPeer, IsSent16HellosAtLeastHoweverShortTheTimeout) {
  EndpointConfig config = small();
  config.connect_timeout = Nanos{400 * kMs};
  Loopback net(1);
  Loopback::Host& client = net.add(config);
  const Opened opened = client.endpoint.connect(peer_address(Ipv4Address{{10, 0, 0, 99}}, 1), {}, net.now);
  EXPECT_EQ(opened.status, CallStatus::ok);
  ASSERT_TRUE(net.run([&] { return !client.events.empty(); }));
  EXPECT_EQ(client.events[0].reason, LossReason::no_answer);
  EXPECT_GE(client.packets, 16U);
  EXPECT_LE(client.packets, 32U) << "backed off";
}

/// RFC 9002, section 5.1: a round trip is the time from when the packet was sent to its acknowledgement. A jump is no
/// time; taken for some, it would put off what is sent again, and pace what is sent, for the length of max_rto.
TEST(Clock, jump_while_packets_are_in_flight_is_no_round_trip) {
  for (const std::int64_t jump : {-500'000'000'000, 4'000'000'000'000}) {
    Two two;
    two.server.handle = [&](const MessageEvent& event) {
      return event.kind != EventKind::request ||
             two.server.endpoint.respond(event.id, {}, {}, two.net.now) == CallStatus::ok;
    };
    for (int i = 0; i < 20; ++i) {
      two.client.events.clear();
      ASSERT_EQ(two.request(32).status, CallStatus::ok);
      ASSERT_TRUE(two.until(two.client, EventKind::response));
    }
    const SessionFacts before = two.client.endpoint.facts(two.session);
    two.client.events.clear();
    ASSERT_EQ(two.request(32).status, CallStatus::ok);
    two.net.settle();
    two.net.now.value += jump;
    ASSERT_TRUE(two.until(two.client, EventKind::response));
    const SessionFacts after = two.client.endpoint.facts(two.session);
    EXPECT_EQ(after.smoothed_rtt, before.smoothed_rtt);
    EXPECT_EQ(after.min_rtt, before.min_rtt);
    EXPECT_EQ(after.rto, before.rto);
    EXPECT_GE(after.window_bytes, before.window_bytes);
  }
}

}  // namespace
}  // namespace warpline::message
