// SPDX-License-Identifier: Apache-2.0
// A receiver beside a lane that takes nothing: it says so, resets what is open, and every frame is accounted for.
#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "warpline/stream/lanes/lane_peer_testing.h"

namespace warpline::stream::testing {
namespace {

class HungLane : public StepLanes {
 protected:
  static constexpr std::int64_t kLook = 100;  ///< ms between looks

  void SetUp() override {
    create(lane_settings(), 16, 2);
    const auto acknowledgement = connect(peer_);
    ASSERT_TRUE(acknowledgement);
    acknowledgement_ = *acknowledgement;
    lender_->give(peer_.make(1, acknowledgement_, packet::kTcpAck, 0));
    work();
    const auto event = receiver_->poll();
    ASSERT_TRUE(event);
    id_ = event->connection;
  }

  /// Each test stops the lane, and what it did not take is still lent, or waits.
  void TearDown() override {}

  void give_bytes(std::uint32_t segments) {
    for (std::uint32_t i = 0; i < segments; ++i, sent_ += 100) {
      lender_->give(peer_.make(sent_ + 1, acknowledgement_, packet::kTcpAck, 100));
    }
  }
  /// Looks so long, while the lane does nothing. Returns after how many ms it was found to hang, if so.
  std::optional<std::int64_t> look(std::int64_t ms) {
    for (std::int64_t passed = 0; passed <= ms; passed += kLook) {
      (void)lender_->turn(now_);
      if (receiver_->lane_failure(now_)) return passed;
      now_ = milliseconds(now_.value / 1'000'000 + kLook);
    }
    return std::nullopt;
  }

  const LanePeerFrames peer_;
  std::uint32_t acknowledgement_ = 0;
  std::uint32_t sent_ = 0;
  ConnectionId id_;
};

TEST_P(HungLane, IsFoundAndGivenUp) {
  EXPECT_FALSE(look(20'000)) << "it has nothing to do";
  give_bytes(50);  // more than all bursts in flight take
  EXPECT_EQ(look(20'000), lane_settings().lane_patience.value / 1'000'000);
  const auto failure = receiver_->lane_failure(now_);
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->kind, ErrorKind::environment);
  EXPECT_NE(failure->why.find("none was done for 5000 ms"), std::string::npos) << failure->why;
  receiver_->abort(id_, now_);
  const std::vector<Reply> ends = replies_of(*receiver_, now_);
  ASSERT_EQ(ends.size(), 1U);
  EXPECT_TRUE(ends[0].has(packet::kTcpRst));
  EXPECT_EQ(ends[0].tcp().acknowledgement, 1U) << "no byte was acknowledged";
  lane_->hangs = true;
  const std::uint64_t lent = lender_->lent();
  EXPECT_GE(lent, 32U);
  receiver_->stop_lane();
  EXPECT_EQ(receiver_->in_flight(), 0U);
  EXPECT_EQ(receiver_->counters().get(Disposition::lane_ended), lent);
  EXPECT_TRUE(is_drop(Disposition::lane_ended));
}

TEST_P(HungLane, IsNoneWhereItIsSecondsLate) {
  for (int burst = 0; burst < 4; ++burst) {
    give_bytes(3);
    EXPECT_FALSE(look(4500)) << burst;
    work();
  }
  EXPECT_FALSE(look(20'000)) << "all is done";
  const auto view = receiver_->view(id_);
  ASSERT_TRUE(view);
  ASSERT_EQ(view->bytes.size(), 1200U);
  for (std::size_t i = 0; i < view->bytes.size(); ++i) ASSERT_EQ(view->bytes[i], pattern_at(i)) << i;
  receiver_->stop_lane();
  EXPECT_EQ(receiver_->counters().get(Disposition::lane_ended), 0U);
}

TEST_P(HungLane, IsNoneWhereTheProcessWasStopped) {
  give_bytes(1);
  EXPECT_FALSE(look(1000));
  now_ = milliseconds(100'000);
  EXPECT_FALSE(look(3000)) << "the lane was stopped, too";
  work();
  EXPECT_FALSE(look(20'000));
  receiver_->stop_lane();
}

INSTANTIATE_TEST_SUITE_P(Slots, HungLane, ::testing::Values(0, 32));

}  // namespace
}  // namespace warpline::stream::testing
