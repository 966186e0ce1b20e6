// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "warpline/message/config.h"
#include "warpline/rpc/call_queue.h"
#include "warpline/rpc/completion_queue.h"
#include "warpline/rpc/handler_threads.h"
#include "warpline/rpc/hosts_testing.h"
#include "warpline/rpc/loop_calls.h"
#include "warpline/rpc/message_host.h"
#include "warpline/rpc/request_queue.h"
#include "warpline/transport/udp_socket.h"

namespace warpline::rpc {
namespace {

// These are compiled with -Wextra, as a user's program may be: a field without a default would be a warning.
TEST(Settings, AreNamedOneByOneAndTheOthersKeepTheirDefaults) {
  const message::EndpointConfig endpoint{.max_sessions = 3};
  EXPECT_EQ(endpoint.max_sessions, 3U);
  EXPECT_TRUE(endpoint.accept);
  EXPECT_EQ(endpoint.cc.kind, message::CcConfig{}.kind);
  const MessageHost::Settings host{.answer_bytes = 100};
  EXPECT_EQ(host.answer_bytes, 100U);
  EXPECT_EQ(host.local.port, 0);
  const transport::UdpSocketConfig socket{.local = {.address = Ipv4Address{}}};
  EXPECT_EQ(socket.local.port, 0);
}

/// Twice the calls, and three times the requests, are counted in 32 bits.
TEST(Settings, CountsThatWouldWrapAreRefused) {
  const auto is_refused = [](const auto& made) {
    return !made.ok() && made.error().kind == ErrorKind::usage &&
           made.error().fix.find(std::to_string(kMaxCalls)) != std::string::npos;
  };
  MessageHost host = open_host();
  for (const std::uint32_t count : {0U, kMaxCalls + 1, 1U << 31, (1U << 31) + 5, ~0U}) {
    EXPECT_TRUE(is_refused(MessageHost::open({.local = kAnyPort, .calls = count})));
    EXPECT_TRUE(is_refused(LoopCalls::make(host, kAnyPort, count)));
    EXPECT_TRUE(is_refused(RequestQueue::make(host, count)));
    EXPECT_TRUE(is_refused(CompletionQueue::make(count)));
    EXPECT_TRUE(is_refused(HandlerThreads::start({.requests = count, .response_bytes = 0}, [](auto&, unsigned) {})));
  }
}

}  // namespace
}  // namespace warpline::rpc
