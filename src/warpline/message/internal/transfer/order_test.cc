// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "warpline/message/two_testing.h"

namespace warpline::message {
namespace {

TEST(Order, a_request_that_waits_for_its_answer_holds_up_nothing_behind_it) {
  for (const std::uint32_t length : {100U, 100'000U}) {
    Two two(small(), small(), {.ordered = true});
    two.net.impairment = {.loss = 50'000, .reorder = 100'000};
    ASSERT_EQ(two.request(length).status, CallStatus::ok);
    constexpr std::uint8_t kMessages = 250;  // several times as far as an end may be ahead
    std::uint8_t sent = 0;
    std::uint8_t came = 0;
    two.server.handle = [&](const MessageEvent& event) {
      if (event.kind != EventKind::message) return false;
      EXPECT_EQ(event.data[0], came++);
      EXPECT_EQ(two.server.endpoint.release(event.id, two.net.now), CallStatus::ok);
      return true;
    };
    const auto send = [&] {
      while (sent < kMessages &&
             two.client.endpoint.send(two.session, {&sent, 1}, {}, two.net.now).status == CallStatus::ok)
        ++sent;
      return came == kMessages;
    };
    EXPECT_TRUE(two.net.run(send)) << int{came};
    const MessageEvent request = Two::first(two.server, EventKind::request);
    EXPECT_EQ(two.server.endpoint.respond(request.id, {}, {}, two.net.now), CallStatus::ok);
    EXPECT_TRUE(two.until(two.client, EventKind::response));
    EXPECT_EQ(Two::first(two.client, EventKind::response).status, MessageStatus::ok);
  }
}

}  // namespace
}  // namespace warpline::message
