// SPDX-License-Identifier: Apache-2.0
// When the receiver acknowledges what was read.
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "warpline/stream/stream_receiver_testing.h"

namespace warpline::stream {
namespace {

TEST(ReceiverReplies, AcknowledgeAtOnceWhatWasPushedAndRead) {
  const Nanos now = testing::milliseconds(1);
  StreamReceiver receiver = std::move(StreamReceiver::create(testing::small_settings(), now)).value();
  testing::Peer peer(receiver, 40000, 7);
  ASSERT_TRUE(peer.open(now));
  const ConnectionId id = receiver.poll()->connection;
  peer.send(0, 1000, now, packet::kTcpAck | packet::kTcpPsh);
  receiver.end_burst(now);
  EXPECT_TRUE(testing::replies_of(receiver, now).empty());
  ASSERT_TRUE(receiver.release(id, 999));
  EXPECT_TRUE(testing::replies_of(receiver, now).empty());
  ASSERT_TRUE(receiver.release(id, 1));
  const std::vector<testing::Reply> replies = testing::replies_of(receiver, now);
  ASSERT_EQ(replies.size(), 1U);
  EXPECT_EQ(replies[0].tcp().acknowledgement, peer.sequence(1000));
  peer.send(1000, 1000, now);
  receiver.end_burst(now);
  ASSERT_TRUE(receiver.release(id, 1000));
  EXPECT_TRUE(testing::replies_of(receiver, now).empty());  // more follows
}

}  // namespace
}  // namespace warpline::stream
