// SPDX-License-Identifier: Apache-2.0
// An end that goes away: what it has taken is answered, what comes anew is refused, sessions end by themselves.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <vector>

#include "warpline/message/endpoint.h"
#include "warpline/message/two_testing.h"
#include "warpline/packet/headers/message_header.h"

namespace warpline::message {
namespace {

constexpr std::uint16_t kGoingAway = static_cast<std::uint16_t>(RefusalCode::going_away);

Nanos after(const Loopback& net, std::int64_t nanos) { return {net.now.value + nanos}; }

bool says_go_away(const std::vector<std::uint8_t>& bytes) {
  packet::MessageHeader header;
  packet::MessageFragment fragment;
  const auto length = static_cast<std::uint32_t>(bytes.size());
  return packet::MessagePrefix::check(bytes.data(), length) == packet::MessageParse::ok &&
         packet::MessagePrefix::type(bytes.data()) == packet::MessagePacketType::session &&
         packet::parse(bytes.data(), length, header) == packet::MessageParse::ok &&
         header.has(packet::kMessageHasFragment) &&
         packet::parse(bytes.data() + packet::MessageHeader::kLength + header.ack_length(), header.payload_length,
                       fragment) == packet::MessageParse::ok &&
         fragment.kind == packet::FragmentKind::go_away;
}

TEST(Drain, ends_sessions_with_nothing_to_do_at_once) {
  for (const bool lost : {false, true}) {  // the first that says so
    Two two;
    int said = 0;
    two.net.tap = [&](const Loopback::Host&, std::vector<std::uint8_t>& bytes) {
      return says_go_away(bytes) && said++ == 0 && lost;
    };
    EXPECT_FALSE(two.server.endpoint.drained());
    two.server.endpoint.drain(after(two.net, 500 * kMs), two.net.now);
    const Nanos begun = two.net.now;
    ASSERT_TRUE(two.net.run([&] { return two.server.endpoint.drained(); }));
    EXPECT_LT(two.net.now.value - begun.value, 50 * kMs);
    EXPECT_EQ(said, lost ? 2 : 1);
    EXPECT_EQ(Two::first(two.client, EventKind::lost).reason, LossReason::going_away);
    EXPECT_EQ(Two::first(two.server, EventKind::lost).reason, LossReason::closed);
    // Its id is still good for a server that is back.
    EXPECT_EQ(two.client.endpoint.reconnect(two.session, two.net.now), CallStatus::ok);
    two.net.run_for(Nanos{10 * kMs});
    EXPECT_EQ(two.client.events.back().reason, LossReason::not_accepted);
  }
}

/// The answer of a stream may overtake pieces: only the application knows when it has them all, and says so when it
/// gives the answer back.
TEST(Drain, leaves_a_session_to_streams_until_their_answers_are_given_back) {
  EndpointConfig config = small();
  config.streams = true;
  Two two(config, config);
  ASSERT_EQ(two.client.endpoint
                .request(two.session, {two.payload.data(), 20}, {}, {.response_in_endpoint = true, .stream = true},
                         two.net.now)
                .status,
            CallStatus::ok);
  ASSERT_TRUE(two.until(two.server, EventKind::stream_request));
  two.server.endpoint.drain(after(two.net, 20'000 * kMs), two.net.now);
  const MessageId asked = Two::first(two.server, EventKind::stream_request).id;
  ASSERT_EQ(two.server.endpoint.respond(asked, {two.payload.data(), 20}, {.stream = true}, two.net.now),
            CallStatus::ok);
  ASSERT_TRUE(two.until(two.client, EventKind::response));
  two.net.run_for(Nanos{500 * kMs});
  ASSERT_EQ(two.server.endpoint.send(two.there, {two.payload.data(), 100}, {.stream = true}, two.net.now).status,
            CallStatus::ok);
  ASSERT_TRUE(two.until(two.client, EventKind::stream_piece));
  EXPECT_EQ(two.client.endpoint.release(Two::first(two.client, EventKind::stream_piece).id, two.net.now),
            CallStatus::ok);
  two.net.run_for(Nanos{500 * kMs});
  EXPECT_TRUE(two.client.endpoint.facts(two.session).established);
  EXPECT_EQ(two.client.endpoint.release(Two::first(two.client, EventKind::response).id, two.net.now), CallStatus::ok);
  const Nanos begun = two.net.now;
  ASSERT_TRUE(two.net.run([&] { return two.server.endpoint.drained(); }));
  EXPECT_LT(two.net.now.value - begun.value, 50 * kMs);
  EXPECT_EQ(Two::first(two.client, EventKind::lost).reason, LossReason::going_away);
}

TEST(Drain, answers_what_was_taken_and_refuses_what_comes_anew) {
  for (const bool ordered : {false, true}) {
    Two two(small(), small(), {.ordered = ordered});
    ASSERT_EQ(two.request(3000, {.context = 1}).status, CallStatus::ok);
    ASSERT_TRUE(two.until(two.server, EventKind::request));
    two.server.endpoint.drain(after(two.net, 500 * kMs), two.net.now);
    ASSERT_EQ(two.request(32, {.context = 2}).status, CallStatus::ok);  // which does not know yet
    ASSERT_EQ(
        two.client.endpoint.send(two.session, {two.payload.data(), 20, false}, {.context = 3}, two.net.now).status,
        CallStatus::ok);
    ASSERT_TRUE(two.net.run([&] { return two.client.events.size() == 2; }));
    for (const MessageEvent& event : two.client.events) {
      EXPECT_EQ(event.status, MessageStatus::refused);
      EXPECT_EQ(event.code, kGoingAway);
      EXPECT_LE(event.reach, Reach::not_handled);
    }
    EXPECT_EQ(two.server.endpoint.counters().messages_turned_away.get(), 2U);
    EXPECT_TRUE(two.client.endpoint.facts(two.session).going_away);
    EXPECT_EQ(two.request(32).status, CallStatus::going_away);
    EXPECT_EQ(two.client.endpoint.send(two.session, {}, {}, two.net.now).status, CallStatus::going_away);
    two.net.run_for(Nanos{100 * kMs});  // as long as the answer takes
    EXPECT_FALSE(two.server.endpoint.drained());
    const MessageId id = Two::first(two.server, EventKind::request).id;
    ASSERT_EQ(two.server.endpoint.respond(id, {two.payload.data(), 900, false}, {}, two.net.now), CallStatus::ok);
    ASSERT_TRUE(two.net.run([&] { return two.server.endpoint.drained(); }, Nanos{50 * kMs}));
    const MessageEvent& answer = Two::first(two.client, EventKind::lost);
    EXPECT_EQ(answer.reason, LossReason::going_away);
    EXPECT_EQ((&answer - 1)->status, MessageStatus::ok);
    EXPECT_EQ(Two::first(two.server, EventKind::sent).status, MessageStatus::ok);
    EXPECT_EQ(two.client.endpoint.facts().free_messages, 256U);
    EXPECT_EQ(two.server.endpoint.facts().free_messages, 256U);
  }
}

TEST(Drain, gives_back_what_had_not_left) {
  Two two;
  two.server.handle = [&](const MessageEvent& event) {
    return event.kind == EventKind::request &&
           two.server.endpoint.respond(event.id, {}, {}, two.net.now) == CallStatus::ok;
  };
  for (std::uint16_t i = 0; i < 100; ++i) ASSERT_EQ(two.request(5000, {.context = i}).status, CallStatus::ok);
  two.net.run_for(Nanos{12'000});  // a window of packets is on its way
  two.server.endpoint.drain(after(two.net, 500 * kMs), two.net.now);
  ASSERT_TRUE(two.net.run([&] { return two.server.endpoint.drained(); }));
  std::map<Reach, int> ends;
  for (const MessageEvent& event : two.client.events) {
    if (event.kind != EventKind::response) continue;
    ++ends[event.reach];
    EXPECT_EQ(event.status, event.reach == Reach::handled ? MessageStatus::ok : MessageStatus::refused);
    EXPECT_EQ(event.code, event.reach == Reach::handled ? 0 : kGoingAway);
  }
  EXPECT_GE(ends[Reach::never_sent], 36);  // all that had no slot, at least
  EXPECT_EQ(ends[Reach::never_sent] + ends[Reach::not_handled] + ends[Reach::handled], 100);
}

TEST(Drain, closes_at_its_deadline_what_is_not_over) {
  Two two;
  ASSERT_EQ(two.request(32).status, CallStatus::ok);
  ASSERT_TRUE(two.until(two.server, EventKind::request));
  two.server.endpoint.drain(after(two.net, 30 * kMs), two.net.now);
  EXPECT_LE(two.server.endpoint.next_deadline(), after(two.net, 30 * kMs));
  two.net.run_for(Nanos{29 * kMs});
  EXPECT_FALSE(two.server.endpoint.drained());
  two.net.run_for(Nanos{2 * kMs});
  EXPECT_TRUE(two.server.endpoint.drained());
  EXPECT_EQ(Two::first(two.server, EventKind::lost).reason, LossReason::closed_here);
  EXPECT_EQ(Two::first(two.client, EventKind::response).reach, Reach::maybe_handled);
  EXPECT_EQ(Two::first(two.client, EventKind::lost).reason, LossReason::closed);
}

TEST(Drain, keeps_the_way_to_others_open) {
  Two two;
  two.client.endpoint.drain(after(two.net, 500 * kMs), two.net.now);  // it has only sessions of its own
  EXPECT_TRUE(two.client.endpoint.drained());
  ASSERT_EQ(two.request(32).status, CallStatus::ok);
  ASSERT_TRUE(two.until(two.server, EventKind::request));
  EXPECT_TRUE(two.server.endpoint.facts(two.there).going_away);
  EXPECT_EQ(two.server.endpoint.request(two.there, {}, {}, {}, two.net.now).status, CallStatus::going_away);
  const MessageId id = Two::first(two.server, EventKind::request).id;
  ASSERT_EQ(two.server.endpoint.respond(id, {}, {}, two.net.now), CallStatus::ok);
  EXPECT_TRUE(two.until(two.client, EventKind::response));
  EXPECT_TRUE(two.client.endpoint.facts(two.session).established);
}

TEST(Drain, of_both_ends_waits_for_the_answers_of_both) {
  Two two;
  ASSERT_EQ(two.request(32).status, CallStatus::ok);
  ASSERT_EQ(two.server.endpoint.request(two.there, {}, {}, {}, two.net.now).status, CallStatus::ok);
  ASSERT_TRUE(two.until(two.server, EventKind::request) && two.until(two.client, EventKind::request));
  two.server.endpoint.drain(after(two.net, 500 * kMs), two.net.now);
  two.client.endpoint.drain(after(two.net, 500 * kMs), two.net.now);
  ASSERT_EQ(two.server.endpoint.respond(Two::first(two.server, EventKind::request).id, {}, {}, two.net.now),
            CallStatus::ok);
  two.net.run_for(Nanos{20 * kMs});
  EXPECT_FALSE(two.server.endpoint.drained());
  ASSERT_EQ(two.client.endpoint.respond(Two::first(two.client, EventKind::request).id, {}, {}, two.net.now),
            CallStatus::ok);
  ASSERT_TRUE(two.net.run([&] { return two.server.endpoint.drained(); }, Nanos{50 * kMs}));
  EXPECT_EQ(Two::first(two.server, EventKind::response).status, MessageStatus::ok);
  EXPECT_EQ(Two::first(two.client, EventKind::response).status, MessageStatus::ok);
}

/// On an ordered session it may be the first of all that comes last.
TEST(Drain, takes_what_an_ordered_peer_sent_before_what_has_come) {
  Two two(small(), small(), {.ordered = true});
  int data = 0;
  two.net.tap = [&](const Loopback::Host& from, std::vector<std::uint8_t>& bytes) {
    return &from == &two.client && bytes.size() > 200 && data++ == 0;
  };
  ASSERT_EQ(two.request(300, {.code = 1}).status, CallStatus::ok);
  ASSERT_EQ(two.request(300, {.code = 2}).status, CallStatus::ok);
  two.net.run_for(Nanos{6'000});
  ASSERT_TRUE(two.server.events.empty());
  two.server.endpoint.drain(after(two.net, 500 * kMs), two.net.now);
  ASSERT_TRUE(two.net.run([&] { return two.server.events.size() == 2; }, Nanos{100 * kMs}));
  EXPECT_EQ(two.server.events[0].code, 1);
  EXPECT_EQ(two.server.events[1].code, 2);
  EXPECT_EQ(two.server.endpoint.counters().messages_turned_away.get(), 0U);
}

/// What never left had its place in the order, and pieces of a stream that the peer has taken come behind it.
TEST(Drain, leaves_no_gap_in_an_order) {
  EndpointConfig config = small();
  config.streams = true;
  Two two(config, config, {.ordered = true});
  two.server.handle = [&](const MessageEvent& event) {
    return event.kind == EventKind::request &&
           two.server.endpoint.respond(event.id, {}, {}, two.net.now) == CallStatus::ok;
  };
  constexpr int kAsked = 40;
  for (int i = 0; i < kAsked; ++i) ASSERT_EQ(two.request(5000).status, CallStatus::ok);
  const ConstBuffer piece{two.payload.data(), 500, false};
  ASSERT_EQ(two.client.endpoint.send(two.session, piece, {.stream = true}, two.net.now).status, CallStatus::ok);
  two.net.run_for(Nanos{12'000});  // a window of packets is on its way
  two.server.endpoint.drain(after(two.net, 500 * kMs), two.net.now);
  ASSERT_TRUE(two.until(two.server, EventKind::stream_piece));
  two.server.endpoint.release(Two::first(two.server, EventKind::stream_piece).id, two.net.now);
  ASSERT_TRUE(two.net.run([&] { return two.server.endpoint.drained(); }, Nanos{100 * kMs}));
  ASSERT_TRUE(two.net.run([&] { return Two::count(two.client, EventKind::lost) != 0; }, Nanos{100 * kMs}));
  EXPECT_EQ(Two::first(two.client, EventKind::lost).reason, LossReason::going_away);
  EXPECT_EQ(Two::first(two.client, EventKind::sent).status, MessageStatus::ok);
  std::map<Reach, int> ends;
  for (const MessageEvent& event : two.client.events)
    if (event.kind == EventKind::response) ++ends[event.reach];
  EXPECT_GT(ends[Reach::never_sent], 0);
  EXPECT_EQ(ends[Reach::never_sent] + ends[Reach::not_handled] + ends[Reach::handled], kAsked);
  EXPECT_EQ(two.client.endpoint.facts().free_messages, two.server.endpoint.facts().free_messages);
}

TEST(Drain, takes_no_sessions) {
  Two two;
  ASSERT_EQ(two.request(32).status, CallStatus::ok);
  ASSERT_TRUE(two.until(two.server, EventKind::request));
  two.server.endpoint.drain(after(two.net, 500 * kMs), two.net.now);
  Loopback::Host& late = two.net.add(small());
  ASSERT_EQ(late.endpoint.connect(two.server.address, {}, two.net.now).status, CallStatus::ok);
  ASSERT_TRUE(two.until(late, EventKind::lost));
  EXPECT_EQ(late.events[0].reason, LossReason::not_accepted);
}

/// Who hears nothing of it, or does not care, is refused each time, and closed in the end.
TEST(Drain, holds_out_against_a_peer_that_goes_on) {
  Two two;
  two.net.tap = [&](const Loopback::Host& from, std::vector<std::uint8_t>& bytes) {
    return &from == &two.server && says_go_away(bytes);
  };
  two.server.endpoint.drain(after(two.net, 50 * kMs), two.net.now);
  std::uint32_t refused = 0;
  two.client.handle = [&](const MessageEvent& event) {
    if (event.kind != EventKind::response || event.status != MessageStatus::refused) return false;
    EXPECT_EQ(event.reach, Reach::not_handled);
    ++refused;
    EXPECT_EQ(two.request(32).status, CallStatus::ok);
    return true;
  };
  for (int i = 0; i < 150; ++i) ASSERT_EQ(two.request(i % 2 == 0 ? 32 : 5000).status, CallStatus::ok);
  ASSERT_TRUE(two.net.run([&] { return two.server.endpoint.drained(); }, Nanos{51 * kMs}));
  EXPECT_GT(refused, 200U);
  EXPECT_EQ(Two::count(two.server, EventKind::request), 0);
  two.net.run_for(Nanos{10 * kMs});
  EXPECT_EQ(Two::first(two.client, EventKind::lost).reason, LossReason::closed);
}

/// A client that says so ends nothing but requests to itself.
TEST(Drain, that_a_client_tells_of_stops_nobody_else) {
  Two two;
  Loopback::Host& other = two.net.add(small());
  const auto [session, there] = two.net.connect(other, two.server);
  two.client.endpoint.drain(after(two.net, 10 * kMs), two.net.now);
  two.net.run_for(Nanos{100 * kMs});
  EXPECT_EQ(two.server.endpoint.request(two.there, {}, {}, {}, two.net.now).status, CallStatus::going_away);
  EXPECT_EQ(two.server.endpoint.request(there, {}, {}, {}, two.net.now).status, CallStatus::ok);
  ASSERT_EQ(other.endpoint.request(session, {}, {}, {}, two.net.now).status, CallStatus::ok);
  EXPECT_TRUE(two.until(two.server, EventKind::request) && two.until(other, EventKind::request));
}

/// endpoint.h: an endpoint that drains takes nothing new. A session that it has only begun to open is no exception.
TEST(Drain, takes_nothing_on_sessions_that_are_still_being_opened) {
  for (const bool ordered : {false, true}) {
    Loopback net(3);
    Loopback::Host& client = net.add(small());
    Loopback::Host& server = net.add(small());
    const Opened opened = client.endpoint.connect(server.address, {.ordered = ordered}, net.now);
    ASSERT_EQ(opened.status, CallStatus::ok);
    net.settle();
    client.endpoint.drain(after(net, 500 * kMs), net.now);
    net.tap = [](const Loopback::Host&, std::vector<std::uint8_t>& bytes) { return says_go_away(bytes); };
    const auto accepted = [&] { return Two::count(server, EventKind::accepted) != 0; };
    ASSERT_TRUE(net.run(accepted));
    const SessionId there = Two::first(server, EventKind::accepted).session;
    ASSERT_EQ(server.endpoint.request(there, {}, {}, {}, net.now).status, CallStatus::ok);
    ASSERT_TRUE(net.run([&] { return Two::count(server, EventKind::response) != 0; }));
    EXPECT_EQ(Two::first(server, EventKind::response).status, MessageStatus::refused);
    EXPECT_EQ(Two::first(server, EventKind::response).code, kGoingAway);
    EXPECT_EQ(Two::count(client, EventKind::request), 0);
    net.tap = nullptr;
    net.run_for(Nanos{100 * kMs});
    EXPECT_TRUE(server.endpoint.facts(there).going_away);
  }
}

struct Network {
  const char* name;
  Impairment impairment;
  bool pauses = false;
  Reliability reliability = Reliability::selective;
};

/// Clients that never stop asking, a server that goes away amidst, and another one for what was not handled.
TEST(Drain, loses_nothing_and_handles_nothing_twice) {
  const Network networks[] = {{"clean", {}},
                              {"loss", {.loss = 50'000}},
                              {"everything", {.loss = 30'000, .duplicate = 50'000, .reorder = 300'000}},
                              {"pauses", {.loss = 10'000, .reorder = 100'000}, true},
                              {"go-back-n", {.loss = 5'000}, false, Reliability::go_back_n}};
  for (const Network& network : networks) {
    for (std::uint64_t seed = 1; seed <= 2; ++seed) {
      SCOPED_TRACE(testing::Message() << network.name << " " << seed);
      Loopback net(seed, network.impairment);
      Random random(seed);
      EndpointConfig config = small();
      config.max_messages = 1024;
      config.reliability = network.reliability;
      Loopback::Host& server = net.add(config);
      const EndpointFacts fresh = server.endpoint.facts();
      std::set<std::uint64_t> handled;
      std::vector<MessageId> unanswered;
      const std::vector<std::uint8_t> payload = pattern(9000, 1);
      server.handle = [&](const MessageEvent& event) {
        if (event.kind != EventKind::request) return event.kind != EventKind::lost;
        std::uint64_t number = 0;
        std::memcpy(&number, event.data, sizeof(number));
        EXPECT_TRUE(handled.insert(number).second) << number;
        unanswered.push_back(event.id);
        return true;
      };
      struct Client {
        Loopback::Host* host;
        SessionId session;
        std::map<std::uint64_t, std::vector<std::uint8_t>> asked;
        bool told = false;
      };
      std::vector<Client> clients(3);
      std::uint64_t next = 0;
      std::uint32_t again = 0;
      std::array<std::uint8_t, 9000> room;
      const auto ask = [&](Client& client) {
        while (!client.told && client.asked.size() < 90) {
          std::vector<std::uint8_t> bytes = pattern(8 + random.below(random.below(8) == 0 ? 4000 : 100), next);
          std::memcpy(bytes.data(), &next, sizeof(next));
          const ConstBuffer out{bytes.data(), static_cast<std::uint32_t>(bytes.size()), false};
          const Submitted made = client.host->endpoint.request(client.session, out, {room.data(), 9000, false},
                                                               {.context = next}, net.now);
          if (made.status != CallStatus::ok) {
            EXPECT_TRUE(made.status == CallStatus::going_away || made.status == CallStatus::unknown_session);
            client.told = true;
            return;
          }
          client.asked.emplace(next++, std::move(bytes));
        }
      };
      for (Client& client : clients) {
        client.host = &net.add(config);
        const bool ordered = random.below(2) == 0;
        client.session = client.host->endpoint.connect(server.address, {.ordered = ordered}, net.now).session;
        client.host->handle = [&](const MessageEvent& event) {
          if (event.kind != EventKind::response) return event.kind != EventKind::lost;
          EXPECT_EQ(client.asked.erase(event.context), 1U);
          if (event.status == MessageStatus::ok) {
            EXPECT_TRUE(handled.contains(event.context));
          } else {
            EXPECT_EQ(event.status, MessageStatus::refused);
            EXPECT_EQ(event.code, kGoingAway);
            EXPECT_LE(event.reach, Reach::not_handled);
            EXPECT_FALSE(handled.contains(event.context)) << event.context;
            ++again;
          }
          ask(client);
          return true;
        };
      }
      const auto work = [&] {
        for (Client& client : clients) ask(client);
        while (!unanswered.empty() && random.below(4) != 0) {
          const std::size_t which = random.below(unanswered.size());
          const ConstBuffer answer{payload.data(),
                                   static_cast<std::uint32_t>(random.below(random.below(8) == 0 ? 9000 : 100)), false};
          EXPECT_EQ(server.endpoint.respond(unanswered[which], answer, {}, net.now), CallStatus::ok);
          unanswered[which] = unanswered.back();
          unanswered.pop_back();
        }
      };
      const auto connected = [&] {
        return std::ranges::all_of(
            clients, [](const Client& client) { return client.host->endpoint.facts(client.session).established; });
      };
      ASSERT_TRUE(net.run(connected));
      const Nanos begin{net.now.value + static_cast<std::int64_t>(random.below(5 * kMs))};
      const Nanos deadline{begin.value + 10'000 * kMs};
      bool drains = false;
      Nanos pause_until;
      Loopback::Host* paused = nullptr;
      const auto live = [&] {
        if (paused != nullptr && net.now >= pause_until) net.come_back(*std::exchange(paused, nullptr));
        if (network.pauses && paused == nullptr && random.below(300) == 0) {
          paused = net.hosts[random.below(net.hosts.size())].get();
          paused->away = true;
          pause_until = after(net, static_cast<std::int64_t>(random.below(20 * kMs)));
        }
        if (paused != &server) work();
        if (!drains && paused != &server && net.now >= begin) {
          server.endpoint.drain(deadline, net.now);
          drains = true;
        }
        return server.endpoint.drained();
      };
      while (!net.run(live, Nanos{kMs}) && net.now < deadline) {
      }
      EXPECT_TRUE(server.endpoint.drained());
      EXPECT_LT(net.now, deadline);
      if (paused != nullptr) net.come_back(*paused);
      net.impairment = {};
      net.run_for(Nanos{2'000 * kMs});
      for (const Client& client : clients) {
        EXPECT_TRUE(client.asked.empty()) << client.asked.size();
        EXPECT_EQ(Two::first(*client.host, EventKind::lost).reason, LossReason::going_away);
      }
      EXPECT_GT(again, 0U);
      EXPECT_EQ(server.endpoint.facts(), fresh);
    }
  }
}

}  // namespace
}  // namespace warpline::message
