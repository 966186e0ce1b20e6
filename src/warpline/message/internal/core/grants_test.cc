// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <vector>

#include "warpline/message/loopback_testing.h"
#include "warpline/packet/headers/message_header.h"

namespace warpline::message {
namespace {

constexpr std::uint32_t kGrants = 16 << 10;
constexpr std::uint32_t kGranted = 200'000;

/// What a session's packet carries; kind 0 if nothing.
packet::MessageFragment fragment_of(const std::vector<std::uint8_t>& bytes, std::uint32_t& payload) {
  packet::MessageHeader header;
  packet::MessageFragment fragment;
  fragment.kind = packet::FragmentKind{0};
  payload = 0;
  const auto length = static_cast<std::uint32_t>(bytes.size());
  const bool session = packet::MessagePrefix::check(bytes.data(), length) == packet::MessageParse::ok &&
                       packet::MessagePrefix::type(bytes.data()) == packet::MessagePacketType::session;
  if (!session || packet::parse(bytes.data(), length, header) != packet::MessageParse::ok ||
      !header.has(packet::kMessageHasFragment)) {
    return fragment;
  }
  payload = header.payload_length;
  EXPECT_EQ(packet::parse(bytes.data() + packet::MessageHeader::kLength + header.ack_length(), payload, fragment),
            packet::MessageParse::ok);
  return fragment;
}

/// One that grants, and many that each have something long for it.
class Incast {
 public:
  explicit Incast(std::uint32_t others, Reliability reliability = Reliability::selective) : net(3) {
    EndpointConfig config;
    config.cc.kind = CcKind::none;
    config.reliability = reliability;
    config.max_sessions = others + 1;
    config.grants = kGrants;
    one = &net.add(config);
    config.grants = 0;
    for (std::uint32_t i = 0; i < others; ++i) many.push_back(&net.add(config));
    bytes = pattern(kGranted, 1);
    one->handle = [this](const MessageEvent& event) {
      if (event.kind != EventKind::message && event.kind != EventKind::response) return false;
      if (event.status == MessageStatus::ok) {
        ++arrived;
        EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), event.data, event.data + event.length));
        EXPECT_EQ(event.length, kGranted);
      }
      if (event.kind == EventKind::message) {
        EXPECT_EQ(one->endpoint.release(event.id, net.now), CallStatus::ok);
      }
      return true;
    };
    net.tap = [this](const Loopback::Host& from, std::vector<std::uint8_t>& packet) { return see(from, packet); };
  }

  void send_all() {
    for (Loopback::Host* host : many) {
      sessions.push_back(net.connect(*host, *one).first);
      EXPECT_EQ(host->endpoint.send(sessions.back(), {bytes.data(), kGranted, false}, {}, net.now).status,
                CallStatus::ok);
    }
  }
  void ask_all() {
    for (Loopback::Host* host : many) {
      host->handle = [this, host](const MessageEvent& event) {
        if (event.kind != EventKind::request) return false;
        return host->endpoint.respond(event.id, {bytes.data(), kGranted, false}, {}, net.now) == CallStatus::ok;
      };
      sessions.push_back(net.connect(*one, *host).first);
      rooms.emplace_back(kGranted);
    }
    for (std::size_t i = 0; i < many.size(); ++i) {
      EXPECT_EQ(
          one->endpoint.request(sessions[i], {bytes.data(), 10, false}, {rooms[i].data(), kGranted, false}, {}, net.now)
              .status,
          CallStatus::ok);
    }
  }
  [[nodiscard]] bool all_arrive(Nanos limit = Nanos{5'000'000'000}) {
    return net.run([&] { return arrived == many.size(); }, limit);
  }

  Loopback net;
  Loopback::Host* one = nullptr;
  std::vector<Loopback::Host*> many;
  std::vector<SessionId> sessions;
  std::vector<std::vector<std::uint8_t>> rooms;
  std::vector<std::uint8_t> bytes;
  std::uint32_t arrived = 0;
  bool lose_grants = false;
  std::uint32_t grants_lost = 0;
  std::uint32_t most_on_way = 0;  ///< bytes of others, at any time

 private:
  bool see(const Loopback::Host& from, const std::vector<std::uint8_t>& packet) {
    std::uint32_t payload = 0;
    const packet::MessageFragment fragment = fragment_of(packet, payload);
    if (&from == one) {
      const bool grant =
          fragment.kind == packet::FragmentKind::grant || fragment.kind == packet::FragmentKind::grant_response;
      grants_lost += grant && lose_grants ? 1 : 0;
      return grant && lose_grants;
    }
    if (fragment.offset == 0) return false;
    while (!on_way_.empty() && on_way_.front().first <= net.now.value) {
      on_way_bytes_ -= on_way_.front().second;
      on_way_.pop_front();
    }
    on_way_.emplace_back(net.now.value + net.impairment.delay.value, payload);
    on_way_bytes_ += payload;
    most_on_way = std::max(most_on_way, on_way_bytes_);
    return false;
  }

  std::deque<std::pair<std::int64_t, std::uint32_t>> on_way_;
  std::uint32_t on_way_bytes_ = 0;
};

TEST(Grants, bound_what_is_on_the_way_of_messages) {
  Incast incast(12);
  incast.send_all();
  EXPECT_TRUE(incast.all_arrive());
  EXPECT_LE(incast.most_on_way, kGrants);
  EXPECT_GE(incast.most_on_way, kGrants / 2);
}

TEST(Grants, bound_what_is_on_the_way_of_responses) {
  Incast incast(12);
  incast.ask_all();
  EXPECT_TRUE(incast.all_arrive());
  EXPECT_LE(incast.most_on_way, kGrants);
  EXPECT_GE(incast.most_on_way, kGrants / 2);
}

TEST(Grants, are_waited_for_after_the_first_fragment) {
  Incast incast(3);
  incast.lose_grants = true;
  incast.send_all();
  incast.net.run_for(Nanos{100'000'000});
  EXPECT_GT(incast.grants_lost, 3U) << "and each lost one comes again";
  EXPECT_EQ(incast.most_on_way, 0U);
  incast.lose_grants = false;
  EXPECT_TRUE(incast.all_arrive());
}

TEST(Grants, of_those_who_are_gone_do_not_hold_up_the_others) {
  Incast incast(16);
  incast.send_all();
  incast.net.run([&] { return incast.most_on_way > 0; });
  for (std::size_t i = 0; i < 14; ++i) incast.many[i]->dead = true;
  EXPECT_TRUE(incast.net.run([&] { return incast.arrived == 2; }, Nanos{200'000'000}))
      << "long before the others count as lost";
}

TEST(Grants, survive_bad_networks) {
  for (const Reliability reliability : {Reliability::selective, Reliability::go_back_n}) {
    Incast incast(4, reliability);
    incast.net.impairment = {.loss = 50'000, .duplicate = 100'000, .reorder = 100'000};
    incast.send_all();
    EXPECT_TRUE(incast.all_arrive(Nanos{60'000'000'000}));
  }
}

TEST(Grants, of_a_message_that_ends_early_come_back) {
  Incast incast(2);
  incast.send_all();
  Loopback::Host& host = *incast.many[0];
  const auto other = host.endpoint.send(incast.sessions[0], {incast.bytes.data(), kGranted, false}, {}, incast.net.now);
  EXPECT_EQ(other.status, CallStatus::ok);
  incast.net.run_for(Nanos{100'000});
  EXPECT_EQ(host.endpoint.cancel(other.id, incast.net.now), CallStatus::ok);
  EXPECT_TRUE(incast.all_arrive(Nanos{50'000'000}));
  incast.net.run_for(Nanos{1'000'000'000});
  EXPECT_EQ(incast.one->endpoint.facts().free_messages, EndpointConfig{}.max_messages);
}

TEST(Grants, less_than_a_datagram_make_no_sense) {
  EndpointConfig config;
  config.secret.emplace().fill(1);
  ASSERT_TRUE(Endpoint::create(config, Nanos{0}));
  config.grants = 100;
  EXPECT_FALSE(Endpoint::create(config, Nanos{0}));
}

}  // namespace
}  // namespace warpline::message
