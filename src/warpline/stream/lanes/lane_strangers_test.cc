// SPDX-License-Identifier: Apache-2.0
// A receiver beside a lane, and a million segments of strangers: who is there loses nothing, who is new comes in, and
// no memory is taken.
#include <gtest/gtest.h>
#include <malloc.h>

#include <vector>

#include "warpline/base/random.h"
#include "warpline/stream/lanes/lane_peer_testing.h"

namespace warpline::stream::testing {
namespace {

constexpr std::uint32_t kStrangers = 1'000'000;
constexpr std::uint32_t kAtOnce = 16;
constexpr std::uint32_t kPiece = 10;  ///< bytes that a peer sends at a time

class LaneStrangers : public StepLanes {
 protected:
  void SetUp() override {
    ReceiverSettings settings = lane_settings();
    settings.half_open = 2;
    settings.lane_acknowledges = true;
    create(settings, 2 * kAtOnce, 2);
  }

  /// A connection, and how far it is.
  struct Client {
    explicit Client(std::uint16_t from) : frames(from), port(from) {}
    LanePeerFrames frames;
    std::uint16_t port;
    std::uint32_t sent = 0;
    std::uint32_t acknowledgement = 0;
    ConnectionId id;
  };

  /// Has the lane take all there is, and sends what it and the receiver have to say. Returns the latter's to clients.
  std::vector<Reply> exchange() {
    std::vector<Reply> replies;
    work();
    for (std::uint8_t bytes[StreamReceiver::kReplyBytes];;) {
      const std::uint32_t length = receiver_->next_reply(bytes, now_);
      if (length == 0) return replies;
      if (const auto reply = read_reply({bytes, length}); reply && reply->tcp().destination_port >= kClients) {
        replies.push_back(*reply);
      }
    }
  }
  void open(Client& client) {
    lender_->give(client.frames.make(0, 0, packet::kTcpSyn, 0));
    const std::vector<Reply> replies = exchange();
    ASSERT_EQ(replies.size(), 1U);
    client.acknowledgement = replies[0].tcp().sequence + 1;
    lender_->give(client.frames.make(1, client.acknowledgement, packet::kTcpAck, 0));
    (void)exchange();
    bool known = false;
    while (const auto event = receiver_->poll()) {
      if (receiver_->view(event->connection)->peer.port != client.port) continue;
      client.id = event->connection;
      known = true;
    }
    ASSERT_TRUE(known);
  }
  void send(Client& client, std::uint8_t more_flags = 0) {
    const auto flags = static_cast<std::uint8_t>(packet::kTcpAck | more_flags);
    lender_->give(client.frames.make(1 + client.sent, client.acknowledgement, flags, kPiece));
    (void)exchange();
    const auto view = receiver_->view(client.id);
    ASSERT_TRUE(view);
    ASSERT_EQ(view->bytes.size(), kPiece);
    for (std::uint32_t i = 0; i < kPiece; ++i) {
      ASSERT_EQ(view->bytes[i], LanePeerFrames::byte_of(client.port, client.sent + i));
    }
    ASSERT_TRUE(receiver_->release(client.id, kPiece));
    client.sent += kPiece;
  }
  void end(Client& client) {
    send(client, packet::kTcpFin);
    receiver_->close(client.id, now_);
    (void)exchange();
    lender_->give(client.frames.make(2 + client.sent, client.acknowledgement + 1, packet::kTcpAck, 0));
    (void)exchange();
  }

  static constexpr std::uint16_t kClients = 40'000;  ///< the first port of who is no stranger
};

TEST_P(LaneStrangers, AFloodOfSynsKeepsNobodyOut) {
  Client settled(kClients);
  ASSERT_NO_FATAL_FAILURE(open(settled));
  const std::size_t memory = ::mallinfo2().uordblks;
  std::uint16_t newcomers = 0;
  for (std::uint32_t i = 0; i < kStrangers; ++i) {
    const Ipv4Address address{{10, 9, static_cast<std::uint8_t>(i >> 13), static_cast<std::uint8_t>(i >> 21)}};
    lender_->give(
        LanePeerFrames(static_cast<std::uint16_t>(1 + i % (1 << 13)), address).make(i, 0, packet::kTcpSyn, 0));
    if (i % kAtOnce == 0) (void)exchange();
    if (i % 1000 == 0) {
      ASSERT_NO_FATAL_FAILURE(send(settled)) << i;
    }
    if (i % 100'000 == 50'000) {
      Client newcomer(++newcomers + kClients);
      ASSERT_NO_FATAL_FAILURE(open(newcomer)) << i;
      ASSERT_NO_FATAL_FAILURE(end(newcomer)) << i;
    }
  }
  (void)exchange();
  EXPECT_LT(::mallinfo2().uordblks, memory + 65'536) << "none is taken for them";
  EXPECT_EQ(receiver_->connections(), 3U);
  EXPECT_EQ(receiver_->counters().opened.get(), 1U + newcomers);
  EXPECT_EQ(receiver_->counters().cookies.get(), kStrangers + newcomers - 2);
  EXPECT_EQ(receiver_->counters().finished.get(), newcomers);
  EXPECT_EQ(receiver_->counters().bytes.get(), settled.sent + std::uint64_t{newcomers} * kPiece);
}

TEST_P(LaneStrangers, BlindSegmentsChangeNothing) {
  Client client(kClients);
  ASSERT_NO_FATAL_FAILURE(open(client));
  Random random(5);
  for (std::uint32_t i = 0; i < kStrangers; ++i) {
    constexpr std::uint8_t kKinds[] = {packet::kTcpRst, packet::kTcpSyn, packet::kTcpAck};
    const std::uint8_t kind = kKinds[random.below(3)];
    // All numbers but those that fit, which a stranger would meet once in 2^32.
    auto sequence = static_cast<std::uint32_t>(random.next());
    if (sequence == 1) ++sequence;
    auto acknowledgement = static_cast<std::uint32_t>(random.next());
    if (acknowledgement == client.acknowledgement) ++acknowledgement;
    lender_->give(client.frames.make(sequence, acknowledgement, kind, kind == packet::kTcpAck ? 1 : 0));
    if (i % kAtOnce == 0) (void)exchange();
  }
  (void)exchange();
  ASSERT_TRUE(receiver_->view(client.id));
  EXPECT_EQ(receiver_->view(client.id)->state, ConnectionState::open);
  EXPECT_EQ(receiver_->counters().bytes.get(), 0U);
  ASSERT_NO_FATAL_FAILURE(send(client));
}

INSTANTIATE_TEST_SUITE_P(Slots, LaneStrangers, ::testing::Values(0, 64));

}  // namespace
}  // namespace warpline::stream::testing
