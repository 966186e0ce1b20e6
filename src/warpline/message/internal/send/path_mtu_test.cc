// SPDX-License-Identifier: Apache-2.0
// Paths that carry less than the ends could take: from the start, later, and more again (RFC 8899).
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "warpline/message/traffic_testing.h"
#include "warpline/message/two_testing.h"
#include "warpline/packet/headers/message_header.h"

namespace warpline::message {
namespace {

bool is_path_probe(const std::vector<std::uint8_t>& bytes) {
  packet::MessageHeader header;
  return packet::MessagePrefix::type(bytes.data()) == packet::MessagePacketType::session &&
         packet::parse(bytes.data(), static_cast<std::uint32_t>(bytes.size()), header) == packet::MessageParse::ok &&
         header.has(packet::kMessagePing) && header.payload_length != 0;
}

EndpointConfig patient() {
  EndpointConfig config = small();
  config.mtu_raise_time = Nanos{10 * kSecond};
  config.keepalive = Nanos{kSecond};
  return config;
}

/// Two ends of a path that carries `mtu` bytes of UDP payload, and says nothing of what it does not.
struct Narrow : Two {
  explicit Narrow(std::size_t carried, const EndpointConfig& config = patient(), SessionOptions options = {})
      : Two(config, config, options), mtu(carried) {
    net.tap = [this](const Loopback::Host&, std::vector<std::uint8_t>& bytes) {
      probes += is_path_probe(bytes) ? 1 : 0;
      dropped += bytes.size() > mtu ? 1 : 0;
      return bytes.size() > mtu;
    };
  }
  std::uint32_t datagram(Loopback::Host& host, SessionId id) { return host.endpoint.facts(id).datagram_bytes; }
  bool echo(std::uint32_t length) {
    client.events.clear();
    response.assign(length, 0);
    server.handle = [this](const MessageEvent& event) {
      if (event.kind != EventKind::request) return false;
      ++handled;
      answer.assign(event.data, event.data + event.length);
      EXPECT_EQ(server.endpoint.respond(event.id, {answer.data(), event.length, false}, {}, net.now), CallStatus::ok);
      return true;
    };
    EXPECT_EQ(request(length).status, CallStatus::ok);
    if (!until(client, EventKind::response)) return false;
    const MessageEvent& event = first(client, EventKind::response);
    return event.status == MessageStatus::ok && event.length == length &&
           std::equal(response.begin(), response.end(), payload.begin());
  }

  std::size_t mtu;
  std::uint32_t probes = 0;
  std::uint32_t dropped = 0;
  std::uint32_t handled = 0;
  std::vector<std::uint8_t> answer;
};

/// The handshake and the first probe are before a Narrow's tap: so it begins on a path that carries all.
void narrow_from_the_start(Loopback& net, std::size_t mtu) {
  net.tap = [mtu](const Loopback::Host&, std::vector<std::uint8_t>& bytes) { return bytes.size() > mtu; };
}

TEST(PathMtu, ALongerOneIsFoundInARoundTrip) {
  Narrow two(1500);
  two.net.run_for(Nanos{kMs});
  EXPECT_EQ(two.datagram(two.client, two.session), 1472U);
  EXPECT_EQ(two.datagram(two.server, two.there), 1472U);
  EXPECT_EQ(two.client.endpoint.counters().path_probes.get(), 1U);
  EXPECT_EQ(two.server.endpoint.counters().path_probes.get(), 1U);
  EXPECT_EQ(two.client.endpoint.counters().packets_lost.get(), 0U);
}

TEST(PathMtu, ANarrowPathCarriesEverythingFromTheStart) {
  Loopback net(3);
  narrow_from_the_start(net, 1272);
  Loopback::Host& client = net.add(patient());
  Loopback::Host& server = net.add(patient());
  const auto [session, there] = net.connect(client, server);
  Traffic traffic(net, 1, {});
  traffic.add(client, session);
  traffic.add(server, there);
  EXPECT_TRUE(traffic.run(Nanos{20 * kSecond}));
  traffic.check();
  net.run_for(Nanos{kSecond});
  for (const auto& [host, id] : {std::pair{&client, session}, {&server, there}}) {
    const SessionFacts facts = host->endpoint.facts(id);
    EXPECT_LE(facts.datagram_bytes, 1272U);
    EXPECT_GE(facts.datagram_bytes, 1256U);
    EXPECT_EQ(host->endpoint.counters().black_holes.get(), 0U);
    EXPECT_EQ(host->endpoint.counters().packets_lost.get(), 0U);
  }
}

TEST(PathMtu, AProbeThatIsLostIsNoSignOfCongestion) {
  Loopback net(3);
  narrow_from_the_start(net, 1272);
  Loopback::Host& client = net.add(patient());
  Loopback::Host& server = net.add(patient());
  const auto [session, there] = net.connect(client, server);
  const double window = client.endpoint.facts(session).window_bytes;
  net.run_for(Nanos{kSecond});
  EXPECT_GE(client.endpoint.facts(session).window_bytes, window);
  EXPECT_GT(client.endpoint.counters().path_probes.get(), 3U);
  EXPECT_EQ(client.endpoint.counters().packets_lost.get(), 0U);
  EXPECT_EQ(client.endpoint.counters().losses_spurious.get(), 0U);
}

TEST(PathMtu, ABlackHoleIsFoundThoughTheFirstShortPacketsAreLost) {
  Narrow two(1500);
  two.net.run_for(Nanos{kMs});
  ASSERT_EQ(two.datagram(two.client, two.session), 1472U);
  two.mtu = 1250;
  const auto tap = two.net.tap;
  int lost = 0;
  two.net.tap = [&](const Loopback::Host& from, std::vector<std::uint8_t>& bytes) {
    return tap(from, bytes) || (&from == &two.client && lost++ < 3);
  };
  EXPECT_TRUE(two.echo(1400));
  EXPECT_GT(lost, 3);
  EXPECT_EQ(two.client.endpoint.counters().black_holes.get(), 1U);
  EXPECT_EQ(two.client.endpoint.counters().sessions_lost.get(), 0U);
}

TEST(PathMtu, AKnownLinkIsNotProbed) {
  EndpointConfig config = patient();
  config.base_bytes = config.datagram_bytes;
  Narrow two(1500, config);
  two.net.run_for(Nanos{30 * kSecond});
  EXPECT_EQ(two.datagram(two.client, two.session), 1472U);
  EXPECT_EQ(two.client.endpoint.counters().path_probes.get(), 0U);
}

class Shrinks : public testing::TestWithParam<bool> {
 protected:
  static SessionOptions options() {
    SessionOptions options;
    options.ordered = GetParam();
    return options;
  }
};

TEST_P(Shrinks, AMessageUnderWayBeginsAnewAndArrivesOnce) {
  Narrow two(1500, patient(), options());
  two.net.run_for(Nanos{kMs});
  bool half = false;
  std::uint32_t packets = 0;
  const auto tap = two.net.tap;
  two.net.tap = [&](const Loopback::Host& from, std::vector<std::uint8_t>& bytes) {
    packets += &from == &two.client ? 1 : 0;
    if (packets == 300) half = true;
    if (half) two.mtu = 1300;
    return tap(from, bytes);
  };
  EXPECT_TRUE(two.echo(900'000));
  EXPECT_TRUE(half);
  EXPECT_EQ(two.handled, 1U);
  EXPECT_EQ(two.client.endpoint.counters().black_holes.get(), 1U);
  two.net.run_for(Nanos{kSecond});
  EXPECT_LE(two.datagram(two.client, two.session), 1300U);
  EXPECT_GE(two.datagram(two.client, two.session), 1284U);
  EXPECT_TRUE(two.echo(100'000));
  EXPECT_EQ(two.handled, 2U);
}

TEST_P(Shrinks, AnAnswerToo) {
  Narrow two(1500, patient(), options());
  two.net.run_for(Nanos{kMs});
  std::uint32_t packets = 0;
  const auto tap = two.net.tap;
  two.net.tap = [&](const Loopback::Host& from, std::vector<std::uint8_t>& bytes) {
    packets += &from == &two.server && bytes.size() > 1000 ? 1 : 0;
    if (packets == 100) two.mtu = 1250;
    return tap(from, bytes);
  };
  EXPECT_TRUE(two.echo(500'000));
  EXPECT_EQ(two.handled, 1U);
  EXPECT_EQ(two.server.endpoint.counters().black_holes.get(), 1U);
}

TEST_P(Shrinks, AMessageOfOnePacketNeedsTwoNow) {
  Narrow two(1500, patient(), options());
  two.net.run_for(Nanos{kMs});
  two.mtu = 1250;
  EXPECT_TRUE(two.echo(1390));
  EXPECT_EQ(two.handled, 1U);
}

TEST_P(Shrinks, WithGrantsToo) {
  EndpointConfig config = patient();
  config.grants = 64 << 10;
  Narrow two(1500, config, options());
  two.net.run_for(Nanos{kMs});
  std::uint32_t packets = 0;
  const auto tap = two.net.tap;
  two.net.tap = [&](const Loopback::Host& from, std::vector<std::uint8_t>& bytes) {
    if (++packets == 400) two.mtu = 1250;
    return tap(from, bytes);
  };
  EXPECT_TRUE(two.echo(600'000));
  EXPECT_EQ(two.handled, 1U);
}

TEST_P(Shrinks, MetadataOfAMessageUnderWayArrivesWithIt) {
  Narrow two(1500, patient(), options());
  two.net.run_for(Nanos{kMs});
  const std::vector<std::uint8_t> told = pattern(kMaxMetadataBytes, 5);
  std::uint32_t packets = 0;
  const auto tap = two.net.tap;
  two.net.tap = [&](const Loopback::Host& from, std::vector<std::uint8_t>& bytes) {
    packets += &from == &two.client ? 1 : 0;
    if (packets == 100) two.mtu = 1300;
    return tap(from, bytes);
  };
  ASSERT_EQ(two.request(500'000, {.metadata = told}).status, CallStatus::ok);
  ASSERT_TRUE(two.until(two.server, EventKind::request));
  const MessageEvent& event = Two::first(two.server, EventKind::request);
  EXPECT_EQ(std::vector(event.metadata().begin(), event.metadata().end()), told);
  ASSERT_EQ(event.length, 500'000U);
  EXPECT_TRUE(std::equal(event.data, event.data + event.length, two.payload.begin()));
  EXPECT_EQ(two.client.endpoint.counters().black_holes.get(), 1U);
}

/// Its acknowledgement is on the way when another session finds the black hole.
TEST_P(Shrinks, AMessageThatIsThereWaitsForNoGrant) {
  EndpointConfig config = patient();
  config.grants = 64 << 10;
  Narrow two(1500, config, options());
  two.net.run_for(Nanos{kMs});
  const auto other = two.net.connect(two.client, two.server, options());  // its ids at both
  const auto tap = two.net.tap;
  bool arrived = false;
  two.net.tap = [&](const Loopback::Host& from, std::vector<std::uint8_t>& bytes) {
    packet::MessageHeader header;
    static_cast<void>(packet::parse(bytes.data(), static_cast<std::uint32_t>(bytes.size()), header));
    const bool its_own = header.session == (&from == &two.client ? other.second : other.first).index;
    if (its_own && &from == &two.client && !std::exchange(arrived, true)) return false;
    if (its_own && &from == &two.server && two.client.endpoint.counters().black_holes.get() == 0) return true;
    return tap(from, bytes);
  };
  two.mtu = 1250;
  const Submitted sent = two.client.endpoint.send(other.first, {two.payload.data(), 1390, false}, {}, two.net.now);
  ASSERT_EQ(sent.status, CallStatus::ok);
  EXPECT_TRUE(two.echo(100'000));
  EXPECT_TRUE(two.until(two.client, EventKind::sent));
  EXPECT_EQ(two.count(two.server, EventKind::message), 1);
}

TEST_P(Shrinks, RandomTrafficThatShrinksAndGrowsAgain) {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    Loopback net(seed, {.loss = 5'000, .duplicate = 5'000, .reorder = 50'000, .reorder_by = Nanos{400'000}});
    std::size_t mtu = 1500;
    net.tap = [&](const Loopback::Host&, std::vector<std::uint8_t>& bytes) { return bytes.size() > mtu; };
    Loopback::Host& client = net.add(patient());
    Loopback::Host& server = net.add(patient());
    const auto [session, there] = net.connect(client, server, options());
    Traffic traffic(net, seed, {.messages = 200, .ordered = GetParam()});
    traffic.add(client, session);
    traffic.add(server, there);
    for (const std::size_t carried : {1472U, 1280U, 1500U, 1210U, 1472U}) {
      mtu = carried;
      if (traffic.run(Nanos{3 * kMs})) break;
    }
    EXPECT_TRUE(traffic.run(Nanos{60 * kSecond})) << "seed " << seed;
    traffic.check();
  }
}

INSTANTIATE_TEST_SUITE_P(Order, Shrinks, testing::Bool(),
                         [](const auto& each) { return each.param ? "Ordered" : "Unordered"; });

TEST(PathMtu, APathThatGrewIsFoundLater) {
  Narrow two(1500);
  two.net.run_for(Nanos{kMs});
  two.mtu = 1250;
  EXPECT_TRUE(two.echo(20'000));
  two.net.run_for(Nanos{kSecond});
  EXPECT_LE(two.datagram(two.client, two.session), 1250U);
  two.mtu = 1500;
  two.net.run_for(Nanos{12 * kSecond});
  EXPECT_EQ(two.datagram(two.client, two.session), 1472U);
  EXPECT_TRUE(two.echo(20'000));
}

TEST(PathMtu, ThePathIsKnownToTheNextSession) {
  Narrow two(1500);
  two.net.run_for(Nanos{kMs});
  const auto [second, there] = two.net.connect(two.client, two.server);
  EXPECT_EQ(two.datagram(two.client, second), 1472U);
  EXPECT_EQ(two.datagram(two.server, there), 1472U);
  EXPECT_EQ(two.probes, 0U);
  two.client.endpoint.forget(second, two.net.now);
  two.client.endpoint.forget(two.session, two.net.now);
  two.net.run_for(Nanos{kSecond});
  const auto [third, there_too] = two.net.connect(two.client, two.server);
  EXPECT_EQ(two.datagram(two.client, third), 1472U) << "remembered without a session";
}

TEST(PathMtu, AllSessionsOfThePathFallBackTogether) {
  Narrow two(1500);
  two.net.run_for(Nanos{kMs});
  const auto [second, there] = two.net.connect(two.client, two.server);
  two.mtu = 1250;
  EXPECT_TRUE(two.echo(5000));
  EXPECT_LE(two.datagram(two.client, second), 1250U);
  EXPECT_EQ(two.client.endpoint.counters().black_holes.get(), 1U);
}

/// RFC 8899, section 4.3: "excessive loss" alone shows a black hole.
TEST(PathMtu, HeavyLossIsSeldomTakenForABlackHole) {
  for (const std::uint32_t loss : {100'000U, 200'000U, 300'000U}) {
    Narrow two(1500);
    two.net.run_for(Nanos{kMs});
    two.net.impairment.loss = loss;
    for (int i = 0; i < 40; ++i) EXPECT_TRUE(two.echo(50'000));
    EXPECT_EQ(two.client.endpoint.counters().black_holes.get(), 0U) << loss;
    EXPECT_EQ(two.server.endpoint.counters().black_holes.get(), 0U) << loss;
    EXPECT_EQ(two.datagram(two.client, two.session), 1472U) << loss;
  }
}

TEST(PathMtu, ABlackHoleIsFoundBesideOtherLoss) {
  for (const std::uint32_t loss : {0U, 10'000U, 100'000U, 300'000U}) {
    Narrow two(1500);
    two.net.run_for(Nanos{kMs});
    two.net.impairment.loss = loss;
    for (int i = 0; i < 20; ++i) EXPECT_TRUE(two.echo(50'000));
    two.mtu = 1250;
    const Nanos before = two.net.now;
    EXPECT_TRUE(two.echo(1400));
    EXPECT_EQ(two.client.endpoint.counters().black_holes.get(), 1U) << loss;
    EXPECT_LE(two.datagram(two.client, two.session), 1250U) << loss;
    EXPECT_LT(two.net.now.value - before.value, kSecond) << loss;
    RecordProperty("found_after_us_at_" + std::to_string(loss),
                   static_cast<int>((two.net.now.value - before.value) / 1000));
  }
}

TEST(PathMtu, GoBackNIsAsLongAsItWasTold) {
  EndpointConfig config = patient();
  config.reliability = Reliability::go_back_n;
  Narrow two(1500, config);
  EXPECT_EQ(two.datagram(two.client, two.session), 1472U);
  EXPECT_TRUE(two.echo(50'000));
  EXPECT_EQ(two.client.endpoint.counters().path_probes.get(), 0U);
}

}  // namespace
}  // namespace warpline::message
