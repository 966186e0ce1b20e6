// SPDX-License-Identifier: Apache-2.0
// A session whose peer has another port than before, and who would like to have it. Without protection; for other
// addresses protection/address_change_test.cc.
#include "warpline/message/internal/session/path_validation.h"

#include <gtest/gtest.h>

#include <optional>
#include <utility>
#include <vector>

#include "warpline/message/two_testing.h"
#include "warpline/packet/headers/message_header.h"

namespace warpline::message {
namespace {

using Bytes = std::vector<std::uint8_t>;
using Check = packet::MessagePathCheck;

std::optional<Check> check_in(const Bytes& bytes) {
  packet::MessageHeader header;
  const auto length = static_cast<std::uint32_t>(bytes.size());
  Check check;
  const bool is_check = packet::MessagePrefix::type(bytes.data()) == packet::MessagePacketType::session &&
                        packet::parse(bytes.data(), length, header) == packet::MessageParse::ok &&
                        header.checks_path() &&
                        packet::parse(bytes.data() + packet::MessageHeader::kLength, check) == packet::MessageParse::ok;
  return is_check ? std::optional(check) : std::nullopt;
}

PeerAddress with_port(PeerAddress address, std::uint16_t port) {
  address.port = port;
  return address;
}

/// What an endpoint sends now, and where.
std::vector<std::pair<PeerAddress, Bytes>> sent_by(Loopback& net, Loopback::Host& host) {
  std::vector<std::pair<PeerAddress, Bytes>> sent;
  std::vector<std::uint8_t> head(2048);
  for (;;) {
    Outgoing out;
    out.head = head.data();
    out.head_capacity = 2048;
    out.copy_up_to = 2048;
    if (host.endpoint.transmit({&out, 1}, net.now) == 0) return sent;
    sent.emplace_back(out.to, Bytes(head.begin(), head.begin() + out.head_length));
  }
}

/// Answers requests with as many bytes, and has a client that asks.
struct Asking : Two {
  explicit Asking(EndpointConfig client_config = small(), EndpointConfig server_config = small())
      : Two(client_config, server_config) {
    server.handle = [this](const MessageEvent& event) {
      if (event.kind != EventKind::request) return false;
      ++handled;
      SendOptions options;
      options.copy = true;
      return server.endpoint.respond(event.id, {event.data, event.length}, options, net.now) == CallStatus::ok;
    };
    server.events.clear();
  }
  bool works(std::uint32_t length = 32) {
    client.events.clear();
    response.resize(length);
    EXPECT_EQ(request(length).status, CallStatus::ok);
    return until(client, EventKind::response) && first(client, EventKind::response).status == MessageStatus::ok;
  }
  /// What the client sends next, which goes nowhere else.
  Bytes held_packet() {
    Bytes held;
    net.tap = [&](const Loopback::Host& from, Bytes& bytes) {
      if (&from == &client && held.empty()) held = bytes;
      return true;
    };
    EXPECT_EQ(request(32).status, CallStatus::ok);
    net.settle();
    net.tap = nullptr;
    EXPECT_FALSE(held.empty());
    return held;
  }
  std::uint64_t counted(Counter EndpointCounters::* counter) { return (server.endpoint.counters().*counter).get(); }
  std::uint64_t dropped(MessageDrop reason) { return server.endpoint.counters().dropped(reason); }
  PeerAddress peer() { return server.endpoint.facts(there).peer; }

  int handled = 0;
};

TEST(PathValidation, a_session_follows_its_peer_to_another_port) {
  Asking two;
  ASSERT_TRUE(two.works());
  const SessionFacts before = two.server.endpoint.facts(two.there);
  for (std::uint16_t port = 5000; port < 5005; ++port) {
    two.client.address.port = port;
    EXPECT_TRUE(two.works());
    EXPECT_EQ(two.peer(), two.client.address);
  }
  EXPECT_EQ(two.counted(&EndpointCounters::path_changes), 5U);
  EXPECT_EQ(two.dropped(MessageDrop::wrong_peer), 0U);
  EXPECT_EQ(two.server.endpoint.facts(two.there).min_rtt, before.min_rtt) << "the way is the same";
  EXPECT_TRUE(two.server.events.empty());
  EXPECT_EQ(two.handled, 6);
}

TEST(PathValidation, the_way_from_another_port_is_the_same_for_who_has_it) {
  Asking two;
  ASSERT_TRUE(two.works(1'000'000));
  const double window = two.client.endpoint.facts(two.session).window_bytes;
  ASSERT_GT(window, CcConfig{}.initial_window_bytes);
  two.client.address.port = 5000;
  EXPECT_TRUE(two.works());
  EXPECT_EQ(two.peer(), two.client.address);
  EXPECT_GE(two.client.endpoint.facts(two.session).window_bytes, window);
}

TEST(PathValidation, either_end_may_move) {
  Asking two;
  ASSERT_TRUE(two.works());
  two.server.address.port = 6000;
  // It hears nothing where it was, and says something of itself.
  EXPECT_EQ(two.server.endpoint.send(two.there, {two.payload.data(), 32}, {}, two.net.now).status, CallStatus::ok);
  ASSERT_TRUE(two.until(two.client, EventKind::message));
  two.net.run_for(Nanos{kMs});
  EXPECT_EQ(two.client.endpoint.facts(two.session).peer, two.server.address);
  EXPECT_TRUE(two.works());
}

TEST(PathValidation, a_silent_peer_that_has_moved_is_found_by_its_sign_of_life) {
  Asking two;
  ASSERT_TRUE(two.works());
  two.client.address.port = 5000;
  two.net.run_for(Nanos{11'000 * kMs});
  EXPECT_EQ(two.peer(), two.client.address);
  EXPECT_EQ(two.server.endpoint.send(two.there, {two.payload.data(), 32}, {}, two.net.now).status, CallStatus::ok);
  EXPECT_TRUE(two.until(two.client, EventKind::message));
}

TEST(PathValidation, messages_under_way_arrive_once) {
  for (const std::uint32_t length : {100'000U, 1'000'000U}) {
    Asking big;
    big.response.resize(length);
    ASSERT_EQ(big.request(length).status, CallStatus::ok);
    for (std::uint16_t port = 5000; port < 5008; ++port) {
      big.net.run_for(Nanos{60'000});
      big.client.address.port = port;
    }
    ASSERT_TRUE(big.until(big.client, EventKind::response));
    EXPECT_EQ(Two::first(big.client, EventKind::response).status, MessageStatus::ok);
    EXPECT_TRUE(std::equal(big.response.begin(), big.response.end(), big.payload.begin()));
    EXPECT_EQ(big.handled, 1);
    EXPECT_TRUE(big.server.events.empty());
  }
}

TEST(PathValidation, until_it_has_answered_all_goes_where_the_peer_was) {
  Asking two;
  ASSERT_TRUE(two.works());
  two.net.run_for(Nanos{kMs});
  const Bytes held = two.held_packet();
  const PeerAddress elsewhere = with_port(two.client.address, 9);
  two.net.inject(two.server, elsewhere, held);
  MessageEvent event;
  ASSERT_EQ(two.server.endpoint.poll({&event, 1}), 1U) << "it is the peer's, wherever it came from";
  ASSERT_TRUE(two.server.handle(event));
  std::size_t there = 0;
  std::size_t unproven = 0;
  for (const auto& [to, bytes] : sent_by(two.net, two.server)) {
    if (to != elsewhere) {
      ++there;
      continue;
    }
    unproven += bytes.size();
    ASSERT_TRUE(check_in(bytes).has_value());
    EXPECT_EQ(check_in(bytes)->kind, Check::Kind::challenge);
  }
  EXPECT_GT(there, 0U) << "the response";
  EXPECT_GT(unproven, 0U);
  EXPECT_LE(unproven, 2 * held.size());
  // The same again is a packet that was there.
  two.net.run_for(Nanos{10 * kMs});
  two.net.inject(two.server, elsewhere, held);
  EXPECT_EQ(two.dropped(MessageDrop::duplicate) + two.dropped(MessageDrop::stale), 1U);
  EXPECT_TRUE(sent_by(two.net, two.server).empty());
  EXPECT_EQ(two.peer(), two.client.address);
}

TEST(PathValidation, an_answer_counts_only_from_where_was_asked_and_in_time) {
  Asking two;
  ASSERT_TRUE(two.works());
  // The answer of the peer from its new port is caught on its way.
  two.client.address.port = 5000;
  Bytes answer;
  two.net.tap = [&](const Loopback::Host&, Bytes& bytes) {
    const bool is_answer = check_in(bytes) && check_in(bytes)->kind == Check::Kind::response;
    if (is_answer) answer = bytes;
    return is_answer;
  };
  ASSERT_EQ(two.request(32).status, CallStatus::ok);
  ASSERT_TRUE(two.net.run([&] { return !answer.empty(); }));
  two.net.inject(two.server, with_port(two.client.address, 5001), answer);
  EXPECT_EQ(two.dropped(MessageDrop::bad_path_response), 1U);
  Bytes guessed = answer;
  guessed.back() ^= 1;
  two.net.inject(two.server, two.client.address, guessed);
  EXPECT_EQ(two.dropped(MessageDrop::bad_path_response), 2U);
  EXPECT_EQ(two.counted(&EndpointCounters::path_changes), 0U);
  two.net.inject(two.server, two.client.address, answer);
  EXPECT_EQ(two.counted(&EndpointCounters::path_changes), 1U);
  EXPECT_EQ(two.peer().port, 5000);
}

TEST(PathValidation, an_answer_that_is_late_is_none) {
  Asking two;
  ASSERT_TRUE(two.works());
  two.client.address.port = 5000;
  Bytes answer;
  two.net.tap = [&](const Loopback::Host&, Bytes& bytes) {
    const bool is_answer = check_in(bytes) && check_in(bytes)->kind == Check::Kind::response;
    if (is_answer && answer.empty()) answer = bytes;
    return is_answer;
  };
  ASSERT_EQ(two.request(32).status, CallStatus::ok);
  ASSERT_TRUE(two.net.run([&] { return !answer.empty(); }));
  two.client.dead = true;
  two.net.run_for(Nanos{10'500 * kMs});
  two.net.inject(two.server, two.client.address, answer);
  EXPECT_EQ(two.dropped(MessageDrop::bad_path_response) + two.dropped(MessageDrop::stale), 1U);
  EXPECT_EQ(two.counted(&EndpointCounters::path_changes), 0U);
}

TEST(PathValidation, an_older_packet_moves_nothing_back) {
  Asking two;
  ASSERT_TRUE(two.works());
  two.net.run_for(Nanos{kMs});
  const Bytes old = two.held_packet();
  const PeerAddress before = two.client.address;
  two.client.address.port = 5000;
  two.net.run_for(Nanos{50 * kMs});
  ASSERT_EQ(two.counted(&EndpointCounters::path_changes), 1U);
  const std::uint64_t asked = two.counted(&EndpointCounters::path_challenges);
  two.net.inject(two.server, before, old);
  two.net.run_for(Nanos{50 * kMs});
  EXPECT_EQ(two.counted(&EndpointCounters::path_challenges), asked);
  EXPECT_EQ(two.peer(), two.client.address);
}

TEST(PathValidation, a_storm_of_ports_is_asked_about_now_and_then) {
  Asking two;
  ASSERT_TRUE(two.works());
  std::ptrdiff_t arrived = 0;
  two.server.handle = [&](const MessageEvent& event) {
    if (event.kind != EventKind::message) return false;
    ++arrived;
    return two.server.endpoint.release(event.id, two.net.now) == CallStatus::ok;
  };
  two.net.tap = [&](const Loopback::Host& from, Bytes&) {
    if (&from == &two.client) ++two.client.address.port;
    return false;
  };
  const Nanos begin = two.net.now;
  std::ptrdiff_t sent = 0;
  for (int i = 0; i < 3000; ++i) {
    const Submitted made = two.client.endpoint.send(two.session, {two.payload.data(), 16}, {}, two.net.now);
    if (made.status == CallStatus::ok) ++sent;
    two.net.run_for(Nanos{10'000});
  }
  const std::int64_t took = two.net.now.value - begin.value;
  const auto asked = static_cast<std::int64_t>(two.counted(&EndpointCounters::path_challenges));
  EXPECT_GT(asked, 0);
  EXPECT_LE(asked, took / kMs + 1) << "no more often than min_rto";
  EXPECT_GT(two.counted(&EndpointCounters::path_challenges_spared), 10U);
  two.net.tap = nullptr;
  EXPECT_TRUE(two.net.run([&] { return Two::count(two.client, EventKind::sent) == sent; })) << "once it is over";
  EXPECT_EQ(arrived, sent);
  EXPECT_EQ(two.peer(), two.client.address);
}

TEST(PathValidation, at_another_address_a_session_without_protection_is_told_that_it_is_over) {
  Asking two;
  ASSERT_TRUE(two.works());
  two.client.address = peer_address(Ipv4Address{{10, 0, 9, 9}}, two.client.address.port);
  EXPECT_FALSE(two.works());
  EXPECT_EQ(Two::first(two.client, EventKind::lost).reason, LossReason::restarted);
  EXPECT_EQ(two.counted(&EndpointCounters::path_challenges), 0U);
  EXPECT_GT(two.dropped(MessageDrop::wrong_peer), 0U);
}

TEST(PathValidation, whoever_does_not_know_the_cookie_is_not_asked) {
  Asking two;
  ASSERT_TRUE(two.works());
  two.net.run_for(Nanos{kMs});
  Bytes held = two.held_packet();
  held[15] ^= 1;
  const PeerAddress elsewhere = with_port(two.client.address, 9);
  two.net.inject(two.server, elsewhere, held);
  EXPECT_EQ(two.dropped(MessageDrop::wrong_peer), 1U);
  EXPECT_EQ(two.counted(&EndpointCounters::path_challenges), 0U);
}

TEST(PathValidation, peers_may_take_each_others_ports) {
  Asking two;
  Loopback::Host& other = two.net.add(small());
  const auto [theirs, there] = two.net.connect(other, two.server);
  other.address = with_port(two.client.address, 7000);  // behind one address, with the same name for its session
  ASSERT_EQ(theirs.index, two.session.index);
  // The second one is where it is by a reset, and a new session.
  two.net.run_for(Nanos{6'000 * kMs});
  ASSERT_EQ(other.endpoint.reconnect(theirs, two.net.now), CallStatus::ok);
  ASSERT_TRUE(two.net.run([&] { return other.endpoint.facts(theirs).established; }));
  two.net.run_for(Nanos{kMs});
  two.server.events.clear();
  for (int turn = 0; turn < 4; ++turn) {
    std::swap(two.client.address, other.address);
    std::vector<std::uint8_t> answer(32);
    other.events.clear();
    ASSERT_EQ(other.endpoint.request(theirs, {two.payload.data(), 32}, {answer.data(), 32}, {}, two.net.now).status,
              CallStatus::ok);
    EXPECT_TRUE(two.works());
    EXPECT_TRUE(two.until(other, EventKind::response));
    EXPECT_EQ(Two::first(other, EventKind::response).status, MessageStatus::ok);
  }
  EXPECT_TRUE(two.server.events.empty());
  EXPECT_EQ(two.server.endpoint.facts().free_sessions, 1U) << "two, and that of before";
}

TEST(PathValidation, with_go_back_n_too) {
  EndpointConfig config = small();
  config.reliability = Reliability::go_back_n;
  Asking two(config, config);
  for (std::uint16_t port = 5000; port < 5005; ++port) {
    two.client.address.port = port;
    EXPECT_TRUE(two.works(20'000));
    EXPECT_EQ(two.peer(), two.client.address);
  }
}

/// Nothing of a challenge's or an answer's bytes does harm.
TEST(PathValidation, what_is_changed_is_dropped_or_does_nothing) {
  Asking two;
  ASSERT_TRUE(two.works());
  two.client.address.port = 5000;
  Bytes answer;
  two.net.tap = [&](const Loopback::Host&, Bytes& bytes) {
    const bool is_answer = check_in(bytes) && check_in(bytes)->kind == Check::Kind::response;
    if (is_answer) answer = bytes;
    return is_answer;
  };
  ASSERT_EQ(two.request(32).status, CallStatus::ok);
  ASSERT_TRUE(two.net.run([&] { return !answer.empty(); }));
  for (std::size_t at = packet::MessageHeader::kLength; at < answer.size(); ++at) {
    for (const std::uint8_t bit : {1, 16, 128}) {
      Bytes changed = answer;
      changed[at] ^= bit;
      two.net.inject(two.server, two.client.address, changed);
    }
  }
  EXPECT_EQ(two.counted(&EndpointCounters::path_changes), 0U);
  EXPECT_GT(two.dropped(MessageDrop::malformed), 0U);
  EXPECT_GT(two.dropped(MessageDrop::bad_path_response), 0U);
}

}  // namespace
}  // namespace warpline::message
