// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "warpline/message/two_testing.h"

namespace warpline::message {
namespace {

EndpointConfig with_streams() {
  EndpointConfig config = small();
  config.streams = true;
  return config;
}

TEST(StreamMessages, are_told_apart_from_others_however_long_they_are) {
  for (const std::uint32_t length : {20U, 1000U, 100'000U}) {
    Two two(small(), with_streams());
    EXPECT_EQ(two.request(length, {.stream = true}).status, CallStatus::ok);
    ASSERT_TRUE(two.until(two.server, EventKind::stream_request));
    const MessageEvent request = Two::first(two.server, EventKind::stream_request);
    EXPECT_EQ(request.length, length);
    EXPECT_EQ(two.client.endpoint.send(two.session, {two.payload.data(), length}, {.stream = true}, two.net.now).status,
              CallStatus::ok);
    ASSERT_TRUE(two.until(two.server, EventKind::stream_piece));
    EXPECT_EQ(Two::first(two.server, EventKind::stream_piece).length, length);
    EXPECT_EQ(two.server.endpoint.respond(request.id, {two.payload.data(), 20}, {.stream = true}, two.net.now),
              CallStatus::ok);
    ASSERT_TRUE(two.until(two.client, EventKind::response));
    EXPECT_EQ(Two::first(two.client, EventKind::response).status, MessageStatus::ok);
    EXPECT_EQ(Two::count(two.server, EventKind::request) + Two::count(two.server, EventKind::message), 0);
  }
}

TEST(StreamMessages, are_refused_where_no_streams_are_taken) {
  for (const std::uint32_t length : {20U, 100'000U}) {
    Two two;
    EXPECT_EQ(two.request(length, {.stream = true}).status, CallStatus::ok);
    ASSERT_TRUE(two.until(two.client, EventKind::response));
    const MessageEvent& ended = Two::first(two.client, EventKind::response);
    EXPECT_EQ(ended.status, MessageStatus::refused);
    EXPECT_EQ(ended.code, static_cast<std::uint16_t>(RefusalCode::no_streams));
    EXPECT_EQ(ended.reach, Reach::not_handled);
    EXPECT_EQ(two.client.endpoint.send(two.session, {two.payload.data(), length}, {.stream = true}, two.net.now).status,
              CallStatus::ok);
    ASSERT_TRUE(two.until(two.client, EventKind::sent));
    EXPECT_EQ(Two::first(two.client, EventKind::sent).status, MessageStatus::refused);
    EXPECT_TRUE(two.server.events.empty());
  }
}

}  // namespace
}  // namespace warpline::message
