// SPDX-License-Identifier: Apache-2.0
#include "warpline/service/streams/kept/kept_streams.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "warpline/stream/lanes/lane_peer_testing.h"
#include "warpline/stream/lanes/thread_lane.h"
#include "warpline/stream/stream_receiver_fixture_testing.h"

namespace warpline::service {
namespace {

using stream::ConnectionState;
using stream::testing::pattern_at;
using stream::testing::Peer;
using Bytes = std::shared_ptr<const KeptBytes>;

/// Whether bytes are those that a Peer sends from there on.
bool is_pattern(const KeptBytes& kept) {
  for (std::size_t i = 0; i < kept.bytes().size(); ++i) {
    if (kept.bytes()[i] != pattern_at(kept.begin() + i)) return false;
  }
  return true;
}

class KeptStreamsTest : public testing::Test {
 protected:
  static constexpr std::uint32_t kSegment = 1024;
  static constexpr std::uint32_t kRing = 64 << 10;

  void start(std::uint64_t chunk = 0) {
    receiver_.emplace(stream::testing::receiver_with(settings_));
    streams_ = std::make_unique<KeptStreams>(*receiver_, settings_, chunk, inbox_);
  }
  void turn() {
    receiver_->end_burst(now_);
    (void)streams_->turn(*receiver_, now_);
  }
  /// Sends segments of a connection, as many as fill [from, to).
  void send(Peer& peer, std::uint64_t from, std::uint64_t to, std::uint8_t flags = packet::kTcpAck) {
    for (std::uint64_t at = from; at < to; at += kSegment) {
      peer.send(at, static_cast<std::uint32_t>(std::min<std::uint64_t>(kSegment, to - at)), now_, flags);
      receiver_->end_burst(now_);
    }
    turn();
  }
  /// The one connection that is new.
  std::unique_ptr<KeptConnection> accept() {
    std::vector<ConnectionNews> news;
    inbox_->take(news);
    for (ConnectionNews& one : news) {
      if (one.connection) return std::move(one.connection);
    }
    return nullptr;
  }
  std::unique_ptr<KeptConnection> open(Peer& peer) {
    EXPECT_TRUE(peer.open(now_));
    turn();
    return accept();
  }
  [[nodiscard]] bool sends_fin() {
    const auto replies = stream::testing::replies_of(*receiver_, now_);
    return std::ranges::any_of(replies, [](const auto& reply) { return reply.has(packet::kTcpFin); });
  }
  [[nodiscard]] bool has_news() {
    std::vector<ConnectionNews> news;
    inbox_->take(news);
    return !news.empty();
  }

  Nanos now_ = stream::testing::milliseconds(1);
  stream::ReceiverSettings settings_ = stream::testing::small_settings();
  std::optional<stream::StreamReceiver> receiver_;
  std::shared_ptr<StreamInbox> inbox_ = *StreamInbox::make();
  std::unique_ptr<KeptStreams> streams_;
};

TEST_F(KeptStreamsTest, GiveConnectionsAndWhatTheyBring) {
  start();
  Peer peer(*receiver_, 40'000, 7);
  const auto connection = open(peer);
  ASSERT_TRUE(connection);
  EXPECT_EQ(to_string(connection->peer()), "10.0.0.2:40000");
  EXPECT_EQ(to_string(connection->local()), "10.0.0.1:5001");
  EXPECT_FALSE(connection->take());
  send(peer, 0, 3000);
  EXPECT_TRUE(has_news());
  const Bytes bytes = connection->take();
  ASSERT_TRUE(bytes);
  EXPECT_EQ(bytes->begin(), 0U);
  EXPECT_EQ(bytes->bytes().size(), 3000U);
  EXPECT_TRUE(is_pattern(*bytes));
  EXPECT_FALSE(connection->take());
  turn();
  EXPECT_FALSE(has_news()) << "nothing came";
}

TEST_F(KeptStreamsTest, KeepTheWindowShutUntilTheFirstBytesAreBack) {
  start();
  Peer peer(*receiver_, 40'000, 7);
  const auto connection = open(peer);
  send(peer, 0, kRing);
  std::vector<Bytes> kept;
  while (Bytes bytes = connection->take()) kept.push_back(std::move(bytes));
  ASSERT_EQ(kept.size(), 4U) << "quarters of the ring";
  EXPECT_TRUE(connection->is_full());
  send(peer, kRing, kRing + kSegment);
  EXPECT_FALSE(connection->take()) << "there is no place for it";
  kept[1].reset();
  kept[2].reset();
  turn();
  send(peer, kRing, kRing + kSegment);
  EXPECT_FALSE(connection->take()) << "what is kept lies before it";
  for (const Bytes& bytes : {kept[0], kept[3]}) EXPECT_TRUE(is_pattern(*bytes));
  kept[0].reset();
  turn();
  EXPECT_FALSE(connection->is_full());
  send(peer, kRing, kRing + 48 * kSegment);
  const Bytes next = connection->take();
  ASSERT_TRUE(next);
  EXPECT_EQ(next->begin(), kRing);
  EXPECT_TRUE(is_pattern(*next));
  EXPECT_TRUE(is_pattern(*kept[3])) << "it is kept still";
}

TEST_F(KeptStreamsTest, GiveWholeChunksAndTheRestAtTheEnd) {
  start(4096);
  Peer peer(*receiver_, 40'000, 7);
  const auto connection = open(peer);
  send(peer, 0, 4000);
  EXPECT_FALSE(has_news());
  EXPECT_FALSE(connection->take());
  send(peer, 4000, 9000);
  EXPECT_TRUE(has_news());
  EXPECT_EQ(connection->take()->bytes().size(), 4096U);
  EXPECT_EQ(connection->take()->bytes().size(), 4096U);
  EXPECT_FALSE(connection->take());
  peer.send(9000, 0, now_, packet::kTcpAck | packet::kTcpFin);
  turn();
  EXPECT_TRUE(has_news());
  EXPECT_EQ(connection->take()->bytes().size(), 9000U - 8192U);
  EXPECT_FALSE(connection->take());
  EXPECT_EQ(connection->state(), ConnectionState::finished);
}

TEST_F(KeptStreamsTest, CloseWhatWasReadWhenNobodyHasItsBytes) {
  start();
  Peer peer(*receiver_, 40'000, 7);
  auto connection = open(peer);
  send(peer, 0, 2000);
  peer.send(2000, 0, now_, packet::kTcpAck | packet::kTcpFin);
  turn();
  Bytes bytes = connection->take();
  EXPECT_FALSE(connection->take());
  EXPECT_EQ(connection->state(), ConnectionState::finished);
  EXPECT_FALSE(connection->closed());
  connection.reset();
  turn();
  EXPECT_FALSE(sends_fin());
  EXPECT_TRUE(is_pattern(*bytes));
  bytes.reset();
  turn();
  EXPECT_TRUE(sends_fin());
}

TEST_F(KeptStreamsTest, ResetWhatIsGivenUpWhenNobodyHasItsBytes) {
  start();
  Peer peer(*receiver_, 40'000, 7);
  auto connection = open(peer);
  send(peer, 0, 2000);
  Bytes bytes = connection->take();
  connection->close();
  EXPECT_TRUE(connection->closed());
  EXPECT_FALSE(connection->take());
  turn();
  EXPECT_EQ(receiver_->connections(), 1U);
  EXPECT_TRUE(is_pattern(*bytes));
  bytes.reset();
  turn();
  EXPECT_EQ(receiver_->connections(), 0U);
  EXPECT_EQ(receiver_->counters().aborted.get(), 1U);
}

TEST_F(KeptStreamsTest, TellOfAResetBehindTheBytesThatCame) {
  start();
  Peer peer(*receiver_, 40'000, 7);
  const auto connection = open(peer);
  send(peer, 0, kSegment);
  peer.send_raw(peer.sequence(kSegment), packet::kTcpRst, {}, now_);
  turn();
  EXPECT_EQ(connection->take()->bytes().size(), kSegment);
  EXPECT_FALSE(connection->take());
  EXPECT_EQ(connection->state(), ConnectionState::reset);
  turn();
  EXPECT_EQ(receiver_->connections(), 0U);
}

TEST_F(KeptStreamsTest, GiveAPlaceToOneConnectionAfterTheOther) {
  settings_.connections = 1;
  settings_.half_open = 1;
  start();
  for (std::uint16_t port = 40'000; port < 40'050; ++port) {
    Peer peer(*receiver_, port, port);
    const auto connection = open(peer);
    ASSERT_TRUE(connection) << port;
    send(peer, 0, 700);
    ASSERT_TRUE(is_pattern(*connection->take()));
    peer.send_raw(peer.sequence(700), packet::kTcpRst, {}, now_);
    turn();
    EXPECT_FALSE(connection->take());
    turn();
  }
}

TEST_F(KeptStreamsTest, LeaveBytesWhereTheyAreWhenTheRunIsOver) {
  start();
  Peer peer(*receiver_, 40'000, 7);
  auto connection = open(peer);
  send(peer, 0, 20 * kSegment);
  const Bytes bytes = connection->take();
  streams_->finish();
  EXPECT_FALSE(streams_->settled());
  EXPECT_FALSE(connection->take());
  EXPECT_EQ(streams_->abort_some(*receiver_, 8, now_), 1U);
  inbox_->end();
  streams_.reset();
  receiver_.reset();
  connection.reset();
  EXPECT_TRUE(is_pattern(*bytes));
}

TEST_F(KeptStreamsTest, GiveBytesOfALaneThatStayWhenItIsGone) {
  const stream::ReceiverSettings settings = stream::testing::lane_settings();
  receiver_.emplace(std::move(
      *stream::StreamReceiver::create(settings, now_, *stream::make_thread_lane(stream::lane_shape(settings)))));
  streams_ = std::make_unique<KeptStreams>(*receiver_, settings, 0, inbox_);
  const stream::testing::LanePeerFrames peer;
  stream::testing::Lender lender(*receiver_);
  lender.give(peer.make(0, 0, packet::kTcpSyn, 0));
  lender.settle(now_);
  const std::uint32_t acknowledgement = stream::testing::replies_of(*receiver_, now_).at(0).tcp().sequence + 1;
  for (std::uint32_t at = 0; at < 20 * kSegment; at += kSegment) {
    lender.give(peer.make(1 + at, acknowledgement, packet::kTcpAck, kSegment));
  }
  lender.settle(now_);
  turn();
  auto connection = accept();
  ASSERT_TRUE(connection);
  std::vector<Bytes> kept;
  while (Bytes bytes = connection->take()) kept.push_back(std::move(bytes));
  ASSERT_EQ(kept.size(), 2U) << "16 KiB, and 4";
  kept[0].reset();
  turn();
  streams_->finish();
  EXPECT_EQ(streams_->abort_some(*receiver_, 8, now_), 1U);
  receiver_->stop_lane();
  inbox_->end();
  streams_.reset();
  receiver_.reset();
  connection.reset();
  EXPECT_EQ(kept[1]->begin(), 16 * kSegment);
  EXPECT_TRUE(is_pattern(*kept[1]));
}

/// The lcore here, a thread that takes bytes, and one that drops them: no byte is wrong while somebody has it.
TEST_F(KeptStreamsTest, GoWithThreads) {
  constexpr std::uint64_t kAll = 1 << 20;
  start();
  Peer peer(*receiver_, 40'000, 7);
  ASSERT_TRUE(peer.open(now_));
  turn();
  const auto connection = accept();
  SpscRing<Bytes*> passed(64);
  std::atomic<std::uint64_t> back{0};
  std::atomic<bool> right{true};
  std::thread takes([&] {
    for (std::uint64_t taken = 0; taken != kAll;) {
      Bytes bytes = connection->take();
      if (!bytes) {
        std::this_thread::yield();
        continue;
      }
      taken += bytes->bytes().size();
      auto* const moved = new Bytes(std::move(bytes));
      while (!passed.push(moved)) std::this_thread::yield();
    }
  });
  std::thread drops([&] {
    std::vector<std::unique_ptr<Bytes>> held;  // two go back in the wrong order
    while (back.load() != kAll) {
      Bytes* moved = nullptr;
      if (passed.pop(moved)) {
        held.emplace_back(moved);
      } else {
        std::this_thread::yield();
      }
      if (held.size() < 2 && moved != nullptr) continue;
      while (!held.empty()) {
        if (!is_pattern(**held.back())) right = false;
        back += (*held.back())->bytes().size();
        held.pop_back();
      }
    }
  });
  std::uint64_t sent = 0;
  while (back.load() != kAll) {
    // What lies beyond the window is dropped, and sent again.
    const auto before = receiver_->counters().bytes.get();
    if (sent < kAll) {
      peer.send(sent, kSegment, now_);
      turn();
      sent += receiver_->counters().bytes.get() - before;
    } else {
      turn();
    }
  }
  takes.join();
  drops.join();
  EXPECT_TRUE(right);
}

}  // namespace
}  // namespace warpline::service
