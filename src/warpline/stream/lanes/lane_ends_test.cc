// SPDX-License-Identifier: Apache-2.0
// What is left of connections that have ended in a receiver with a lane, of bursts or of queues.
#include <gtest/gtest.h>

#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "warpline/stream/lanes/lane_peer_testing.h"
#include "warpline/stream/lanes/stream_reader.h"

namespace warpline::stream {
namespace {

using testing::LanePeerFrames;

constexpr Nanos kForever{std::numeric_limits<std::int64_t>::max()};

class LaneEnds : public testing::StepLanes {
 protected:
  void create(bool consumers) {
    ReceiverSettings settings = testing::lane_settings();
    settings.connections = 2;
    settings.consumers = consumers;
    StepLanes::create(settings, 16, 4);
  }
  /// What the lane says of what it took is carried out, too.
  void turn() {
    for (int i = 0; i < 4; ++i) work();
  }
  [[nodiscard]] bool has_name() const {
    const StreamBoard& board = receiver_->board();
    for (std::uint32_t place = 0; place < board.count; ++place) {
      if (StreamReader(board, place)) return true;
    }
    return false;
  }
};

TEST_P(LaneEnds, LeaveNoTimerBehindBytesAndAResetInOneBurst) {
  create(false);
  const LanePeerFrames peer;
  const auto acknowledgement = connect(peer);
  ASSERT_TRUE(acknowledgement);
  lender_->give(peer.make(1, *acknowledgement, packet::kTcpAck, 0));
  turn();
  lender_->give(peer.make(1, *acknowledgement, packet::kTcpAck, 100));
  lender_->give(peer.make(101, 0, packet::kTcpRst, 0));
  turn();
  std::optional<StreamEvent> last;
  while (const auto event = receiver_->poll()) last = event;
  ASSERT_TRUE(last);
  EXPECT_EQ(last->state, ConnectionState::reset);
  EXPECT_EQ(last->readable, 100U);
  receiver_->close(last->connection, now_);
  turn();
  EXPECT_EQ(receiver_->connections(), 0U);
  EXPECT_EQ(receiver_->next_deadline(), kForever);
}

TEST_P(LaneEnds, FreeThePlaceOfAConnectionThatTheLaneIsNotToldOf) {
  create(true);
  for (std::uint16_t i = 0; i < 10; ++i) {
    const LanePeerFrames peer(static_cast<std::uint16_t>(40'000 + i));
    const auto acknowledgement = connect(peer);
    ASSERT_TRUE(acknowledgement) << i << " connections were aborted, and their places are taken";
    lender_->give(peer.make(1, *acknowledgement, packet::kTcpAck, 0));
    receiver_->end_burst(now_);
    while (lane_->step()) {
    }
    ASSERT_TRUE(receiver_->collect(nullptr, now_));
    const auto event = receiver_->poll();
    ASSERT_TRUE(event);
    receiver_->abort(event->connection, now_);
    EXPECT_EQ(receiver_->connections(), 0U);
    turn();
    EXPECT_FALSE(has_name()) << "no consumer sees it";
    const std::vector<testing::Reply> replies = testing::replies_of(*receiver_, now_);
    EXPECT_FALSE(replies.empty());
    for (const testing::Reply& reply : replies) EXPECT_TRUE(reply.has(packet::kTcpRst));
  }
}

TEST_P(LaneEnds, KeepThePlaceOfAConnectionThatAConsumerMaySee) {
  create(true);
  const LanePeerFrames peer;
  const auto acknowledgement = connect(peer);
  ASSERT_TRUE(acknowledgement);
  lender_->give(peer.make(1, *acknowledgement, packet::kTcpAck, 0));
  turn();
  const auto event = receiver_->poll();
  ASSERT_TRUE(event);
  ASSERT_TRUE(has_name());
  receiver_->abort(event->connection, now_);
  turn();
  EXPECT_EQ(receiver_->connections(), 1U);
  StreamReader stream(receiver_->board(), event->connection.index);
  ASSERT_TRUE(stream);
  EXPECT_TRUE(stream.reach().ended());
  stream.finish();
  turn();
  EXPECT_EQ(receiver_->connections(), 0U);
}

INSTANTIATE_TEST_SUITE_P(Slots, LaneEnds, ::testing::Values(0, 64));

}  // namespace
}  // namespace warpline::stream
