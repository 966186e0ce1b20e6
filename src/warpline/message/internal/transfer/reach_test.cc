// SPDX-License-Identifier: Apache-2.0
// How far requests came that did not end well: what a policy of trying again goes by.
#include <gtest/gtest.h>

#include "warpline/message/endpoint.h"
#include "warpline/message/two_testing.h"

namespace warpline::message {
namespace {

/// The one end of a request or message of the client.
const MessageEvent& end_of(Two& two) {
  const auto ends = [](const MessageEvent& event) {
    return event.kind == EventKind::response || event.kind == EventKind::sent;
  };
  const auto& events = two.client.events;
  EXPECT_EQ(std::count_if(events.begin(), events.end(), ends), 1);
  return *std::find_if(events.begin(), events.end(), ends);
}

EndpointConfig impatient() {
  EndpointConfig config = small();
  config.peer_timeout = Nanos{50 * kMs};
  return config;
}

TEST(Reach, of_a_request_to_nobody_is_that_it_was_never_sent) {
  Loopback net(1);
  Loopback::Host& client = net.add(small());
  const Opened opened = client.endpoint.connect(peer_address(Ipv4Address{{10, 0, 0, 9}}, 1), {}, net.now);
  const std::uint8_t byte = 1;
  ASSERT_EQ(client.endpoint.request(opened.session, {&byte, 1, false}, {}, {}, net.now).status, CallStatus::ok);
  ASSERT_TRUE(net.run([&] { return client.events.size() == 2; }));
  EXPECT_EQ(client.events[0].status, MessageStatus::peer_lost);
  EXPECT_EQ(client.events[0].reach, Reach::never_sent);
}

TEST(Reach, of_a_request_cancelled_at_once_is_that_it_was_never_sent) {
  for (const bool ordered : {false, true}) {  // an ordered session's peer is told, and the request still never left
    Two two(small(), small(), {.ordered = ordered});
    const Submitted made = two.request(32);
    ASSERT_EQ(two.client.endpoint.cancel(made.id, two.net.now), CallStatus::ok);
    two.net.run_for(Nanos{10 * kMs});
    EXPECT_EQ(end_of(two).status, MessageStatus::cancelled);
    EXPECT_EQ(end_of(two).reach, Reach::never_sent);
    EXPECT_TRUE(two.server.events.empty());
  }
}

TEST(Reach, of_a_request_half_sent_is_that_it_was_not_handled) {
  Two two;
  const Submitted made = two.request(1 << 20);
  two.net.run_for(Nanos{20'000});
  ASSERT_EQ(two.client.endpoint.cancel(made.id, two.net.now), CallStatus::ok);
  two.net.run_for(Nanos{50 * kMs});
  EXPECT_EQ(end_of(two).status, MessageStatus::cancelled);
  EXPECT_EQ(end_of(two).reach, Reach::not_handled);
  EXPECT_EQ(Two::count(two.server, EventKind::request), 0);
}

TEST(Reach, of_a_request_that_left_to_a_peer_that_died_is_not_known) {
  Two two(impatient());
  two.server.dead = true;
  ASSERT_EQ(two.request(32).status, CallStatus::ok);
  ASSERT_TRUE(two.until(two.client, EventKind::lost));
  EXPECT_EQ(end_of(two).status, MessageStatus::peer_lost);
  EXPECT_EQ(end_of(two).reach, Reach::maybe_handled);
}

TEST(Reach, of_a_request_whose_deadline_came_is_not_known) {
  Two two;
  RequestOptions options;
  options.deadline = Nanos{two.net.now.value + kMs};
  ASSERT_EQ(two.request(32, options).status, CallStatus::ok);
  ASSERT_TRUE(two.until(two.client, EventKind::response));
  EXPECT_EQ(end_of(two).status, MessageStatus::deadline);
  EXPECT_EQ(end_of(two).reach, Reach::maybe_handled);
}

TEST(Reach, of_a_request_whose_answer_had_begun_to_come_is_that_it_was_handled) {
  Two two(impatient());
  two.response.resize(1 << 20);
  ASSERT_EQ(two.request(32).status, CallStatus::ok);
  ASSERT_TRUE(two.until(two.server, EventKind::request));
  ASSERT_EQ(two.server.endpoint.respond(two.server.events[0].id, {two.payload.data(), 1 << 20, false}, {}, two.net.now),
            CallStatus::ok);
  two.net.run_for(Nanos{20'000});
  two.server.dead = true;
  ASSERT_TRUE(two.until(two.client, EventKind::lost));
  EXPECT_EQ(end_of(two).status, MessageStatus::peer_lost);
  EXPECT_EQ(end_of(two).reach, Reach::handled);
}

TEST(Reach, of_a_request_that_was_answered_or_declined_is_that_it_was_handled) {
  for (const bool declined : {false, true}) {
    Two two;
    ASSERT_EQ(two.request(32).status, CallStatus::ok);
    ASSERT_TRUE(two.until(two.server, EventKind::request));
    const MessageId id = two.server.events[0].id;
    ASSERT_EQ(
        declined ? two.server.endpoint.release(id, two.net.now) : two.server.endpoint.respond(id, {}, {}, two.net.now),
        CallStatus::ok);
    ASSERT_TRUE(two.until(two.client, EventKind::response));
    EXPECT_EQ(end_of(two).status, declined ? MessageStatus::refused : MessageStatus::ok);
    EXPECT_EQ(end_of(two).reach, Reach::handled);
  }
}

TEST(Reach, of_a_request_that_is_too_long_for_the_peer_is_that_it_was_not_handled) {
  Two two;
  ASSERT_EQ(two.request((1 << 20) + 1).status, CallStatus::ok);
  ASSERT_TRUE(two.until(two.client, EventKind::response));
  EXPECT_EQ(end_of(two).status, MessageStatus::refused);
  EXPECT_EQ(end_of(two).reach, Reach::not_handled);
}

TEST(Reach, of_a_one_way_message_that_arrived_is_not_known) {
  Two two;
  ASSERT_EQ(two.client.endpoint.send(two.session, {two.payload.data(), 32, false}, {}, two.net.now).status,
            CallStatus::ok);
  ASSERT_TRUE(two.until(two.client, EventKind::sent));
  EXPECT_EQ(end_of(two).status, MessageStatus::ok);
  EXPECT_EQ(end_of(two).reach, Reach::maybe_handled);
}

}  // namespace
}  // namespace warpline::message
