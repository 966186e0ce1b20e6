// SPDX-License-Identifier: Apache-2.0
#include "warpline/message/internal/core/stray_replies.h"

#include <gtest/gtest.h>

namespace warpline::message {
namespace {

TEST(StrayReplies, leave_in_their_order_and_are_bounded) {
  StrayReplies strays(StrayReplies::kUnknownPeers);
  std::array<std::uint8_t, kMinHeadCapacity> bytes;
  Outgoing out;
  out.head = bytes.data();
  for (int round = 0; round < 3; ++round) {
    std::uint16_t added = 0;
    for (; !strays.full(); ++added) {
      PeerAddress to;
      to.port = added;
      StrayReply& reply = strays.add(to);
      reply.bytes[0] = static_cast<std::uint8_t>(added);
      reply.length = 1;
    }
    for (std::uint16_t i = 0; i != added; ++i) {
      strays.take(out);
      EXPECT_EQ(out.head_length, 1U);
      EXPECT_EQ(out.to.port, i);
      EXPECT_EQ(bytes[0], static_cast<std::uint8_t>(i));
    }
  }
  EXPECT_TRUE(strays.empty());
}

}  // namespace
}  // namespace warpline::message
