// SPDX-License-Identifier: Apache-2.0
#include "warpline/service/streams/compared_streams.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "warpline/stream/stream_receiver_testing.h"

namespace warpline::service {
namespace {

using stream::SeededPiece;
using stream::testing::Peer;

/// Compares with the pattern that a Peer sends, and only when it is told to.
class PatientComparer final : public stream_port::SeededComparer {
 public:
  void submit(std::span<const SeededPiece> pieces) override {
    EXPECT_TRUE(idle());
    batch_.assign(pieces.begin(), pieces.end());
    ++batches;
  }
  [[nodiscard]] bool idle() const override { return batch_.empty(); }
  [[nodiscard]] std::uint64_t wrong() const override { return wrong_; }
  [[nodiscard]] std::optional<Error> failure() const override { return broken; }

  void compare() {
    for (const SeededPiece& piece : batch_) {
      for (std::uint64_t i = 0; i < piece.length; ++i) {
        wrong_ += piece.bytes[i] != stream::testing::pattern_at(piece.offset + i);
      }
    }
    batch_.clear();
  }

  int batches = 0;
  std::optional<Error> broken;

 private:
  std::vector<SeededPiece> batch_;
  std::uint64_t wrong_ = 0;
};

class ComparedStreamsTest : public testing::Test {
 protected:
  static constexpr std::uint32_t kSegment = 1000;

  ComparedStreamsTest()
      : receiver_(std::move(stream::StreamReceiver::create(settings_, now_)).value()),
        comparer_(new PatientComparer),
        streams_(settings_.connections, std::unique_ptr<stream_port::SeededComparer>(comparer_)) {}

  void send(Peer& peer, std::uint64_t from, std::uint32_t segments) {
    for (std::uint32_t i = 0; i < segments; ++i) peer.send(from + i * kSegment, kSegment, now_);
    receiver_.end_burst(now_);
    (void)streams_.turn(receiver_, now_);
  }
  void compare() {
    comparer_->compare();
    (void)streams_.turn(receiver_, now_);
  }

  Nanos now_ = stream::testing::milliseconds(1);
  stream::ReceiverSettings settings_ = stream::testing::small_settings();
  stream::StreamReceiver receiver_;
  PatientComparer* comparer_;
  ComparedStreams streams_;
};

TEST_F(ComparedStreamsTest, GiveBytesBackWhenTheyWereCompared) {
  Peer peer(receiver_, 40'000, 7);
  ASSERT_TRUE(peer.open(now_));
  send(peer, 0, 3);
  EXPECT_EQ(comparer_->batches, 1);
  send(peer, 3 * kSegment, 2);  // beside the first batch: they wait for the next
  EXPECT_EQ(comparer_->batches, 1);
  EXPECT_EQ(streams_.checked(), 0U);
  EXPECT_FALSE(streams_.settled());
  compare();
  EXPECT_EQ(comparer_->batches, 2);
  EXPECT_EQ(streams_.checked(), 3U * kSegment);
  compare();
  EXPECT_EQ(streams_.checked(), 5U * kSegment);
  EXPECT_EQ(streams_.wrong(), 0U);
  EXPECT_TRUE(streams_.settled());
}

TEST_F(ComparedStreamsTest, CloseBehindTheLastByte) {
  Peer peer(receiver_, 40'000, 7);
  ASSERT_TRUE(peer.open(now_));
  send(peer, 0, 2);
  peer.send(2 * kSegment, 0, now_, packet::kTcpAck | packet::kTcpFin);
  receiver_.end_burst(now_);
  (void)streams_.turn(receiver_, now_);
  compare();
  EXPECT_EQ(streams_.checked(), 2U * kSegment);
  EXPECT_TRUE(streams_.settled());
  EXPECT_EQ(streams_.abort_some(receiver_, 8, now_), 0U) << "it is closed";
}

TEST_F(ComparedStreamsTest, MoreConnectionsThanOneAndAnAbortInBetween) {
  Peer first(receiver_, 40'000, 7), second(receiver_, 40'001, 9);
  ASSERT_TRUE(first.open(now_));
  ASSERT_TRUE(second.open(now_));
  send(first, 0, 1);
  send(second, 0, 4);
  first.send_raw(first.sequence(kSegment), packet::kTcpRst, {}, now_);
  receiver_.end_burst(now_);
  (void)streams_.turn(receiver_, now_);
  compare();
  compare();
  EXPECT_EQ(streams_.checked(), 5U * kSegment);
  EXPECT_EQ(streams_.abort_some(receiver_, 8, now_), 1U) << "the second one alone is left";
}

TEST_F(ComparedStreamsTest, SayWhatIsWrongAndWhyNothingGoesOn) {
  Peer peer(receiver_, 40'000, 7);
  ASSERT_TRUE(peer.open(now_));
  peer.send_raw(peer.sequence(0), packet::kTcpAck, std::vector<std::uint8_t>(100, 0), now_);
  receiver_.end_burst(now_);
  (void)streams_.turn(receiver_, now_);
  compare();
  EXPECT_GT(streams_.wrong(), 90U);
  send(peer, 100, 1);
  comparer_->broken = environment_error("the GPU", "is gone", "look");
  for (int i = 0; i < 2000; ++i) (void)streams_.turn(receiver_, now_);
  EXPECT_TRUE(streams_.failed());
  streams_.abandon();
}

}  // namespace
}  // namespace warpline::service
