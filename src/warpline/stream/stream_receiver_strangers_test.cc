// SPDX-License-Identifier: Apache-2.0
// What a receiver makes of strangers, floods and guesses, and of its peers' doubles.
#include <gtest/gtest.h>
#include <malloc.h>

#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "warpline/base/random.h"
#include "warpline/stream/known_connections.h"
#include "warpline/stream/stream_receiver_fixture_testing.h"

namespace warpline::stream {
namespace {

using testing::consume;
using testing::kPort;
using testing::milliseconds;
using testing::Peer;
using testing::receiver_with;
using testing::ReceiverTest;
using testing::replies_of;
using testing::Reply;
using testing::small_settings;

TEST_F(ReceiverTest, BelievesExactResetsOnly) {
  const ConnectionId id = open();
  peer_.send(0, 10, now_);
  receiver_.end_burst(now_);
  static_cast<void>(receiver_.poll());
  peer_.send_raw(peer_.sequence(11), packet::kTcpRst, {}, now_);  // in the window: challenged
  std::vector<Reply> replies = take_replies();
  ASSERT_EQ(replies.size(), 1U);
  EXPECT_EQ(replies[0].tcp().flags, packet::kTcpAck);
  peer_.send_raw(peer_.sequence(11), packet::kTcpRst, {}, now_);  // too soon after the other
  peer_.send_raw(peer_.sequence(0x7000'0000), packet::kTcpRst, {}, now_);
  peer_.send_raw(peer_.sequence(9), packet::kTcpRst, {}, now_);
  EXPECT_TRUE(take_replies().empty());
  EXPECT_EQ(receiver_.counters().get(Disposition::blind_reset), 4U);
  EXPECT_EQ(receiver_.view(id)->state, ConnectionState::open);
  peer_.send_raw(peer_.sequence(10), packet::kTcpRst, {}, now_);
  const auto event = receiver_.poll();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->state, ConnectionState::reset);
  EXPECT_EQ(consume(receiver_, id), 10U);  // what had come can still be read
  receiver_.close(id, now_);
  EXPECT_EQ(receiver_.connections(), 0U);
}

TEST_F(ReceiverTest, ChallengesASynInsideAConnection) {
  const ConnectionId id = open();
  peer_.send_raw(peer_.sequence(5), packet::kTcpSyn, {}, now_);
  const std::vector<Reply> replies = take_replies();
  ASSERT_EQ(replies.size(), 1U);
  EXPECT_EQ(replies[0].tcp().flags, packet::kTcpAck);
  EXPECT_EQ(receiver_.view(id)->state, ConnectionState::open);
}

/// RFC 9293, 3.10.7.4, first: what is not acceptable is answered by <SEQ=SND.NXT><ACK=RCV.NXT><CTL=ACK>.
TEST_F(ReceiverTest, ChallengesForgedSegmentsWhileOpening) {
  const std::pair<const char*, const char*> addresses[] = {{"10.0.0.1", "10.0.0.2"}, {"fd00::1", "2001:db8::7"}};
  constexpr std::uint32_t kOutside[] = {0xdead'beef, 0x8000'0000, 0x7fff'ffff, 65'536, 0xffff'fffe};
  constexpr std::uint8_t kFlags[] = {packet::kTcpSyn, packet::kTcpSyn | packet::kTcpAck, packet::kTcpAck};
  for (const auto& [ours, theirs] : addresses) {
    for (const std::uint32_t initial : {7U, 0x7fff'fff0U, 0x8000'0000U, 0xffff'ffffU}) {
      for (const std::uint8_t flags : kFlags) {
        ReceiverSettings settings = small_settings();
        settings.address = *parse_ip(ours);
        use(settings);
        Peer peer(receiver_, 40000, initial);
        peer.header().destination = settings.address;
        peer.header().source = *parse_ip(theirs);
        peer.send_syn(now_);
        const std::vector<Reply> first = take_replies();
        ASSERT_EQ(first.size(), 1U);
        peer.acknowledgement = first[0].tcp().sequence + 1;
        peer.echo = first[0].timestamp;
        for (const std::uint32_t offset : kOutside) {
          now_.value += 200'000'000;
          peer.send_raw(peer.sequence(offset), flags, {}, now_);
          const std::vector<Reply> replies = take_replies();
          ASSERT_EQ(replies.size(), 1U) << initial << ' ' << offset;
          EXPECT_EQ(replies[0].tcp().flags, packet::kTcpAck);
          EXPECT_EQ(replies[0].tcp().sequence, peer.acknowledgement);
          EXPECT_EQ(replies[0].tcp().acknowledgement, peer.sequence(0));
          peer.send_raw(peer.sequence(offset), flags, {}, now_);
          EXPECT_TRUE(take_replies().empty()) << "too soon after the other (RFC 5961, 7)";
        }
        peer.send(0, 100, now_);
        const auto event = receiver_.poll();
        ASSERT_TRUE(event) << "the handshake goes on";
        EXPECT_EQ(consume(receiver_, event->connection), 100U);
      }
    }
  }
}

TEST_F(ReceiverTest, ForgetsAHandshakeByAnExactResetOnly) {
  Peer peer(receiver_, 40000, 0xffff'fff0);
  peer.send_syn(now_);
  const std::vector<Reply> first = take_replies();
  ASSERT_EQ(first.size(), 1U);
  for (const std::uint32_t offset : {0xffff'ffffU, 65'535U, 0x8000'0000U}) {  // RFC 9293, 3.10.7.4, second: silently
    now_.value += 200'000'000;
    peer.send_raw(peer.sequence(offset), packet::kTcpRst, {}, now_);
    EXPECT_TRUE(take_replies().empty() || offset == 65'535) << offset;
    EXPECT_EQ(receiver_.connections(), 1U);
  }
  now_.value += 200'000'000;
  peer.send_raw(peer.sequence(1), packet::kTcpRst, {}, now_);  // in the window: challenged
  const std::vector<Reply> replies = take_replies();
  ASSERT_EQ(replies.size(), 1U);
  EXPECT_EQ(replies[0].tcp().flags, packet::kTcpAck);
  EXPECT_EQ(replies[0].tcp().acknowledgement, peer.sequence(0));
  EXPECT_EQ(receiver_.connections(), 1U);
  peer.send_raw(peer.sequence(0), packet::kTcpRst, {}, now_);
  EXPECT_EQ(receiver_.connections(), 0U);
}

TEST_F(ReceiverTest, ResetsStrangersSoOftenOnly) {
  ReceiverSettings settings = small_settings();
  settings.resets_per_second = 3;
  use(settings);
  peer_.header().tcp.destination_port = 9;
  for (int i = 0; i < 5; ++i) peer_.send_syn(now_);
  std::vector<Reply> replies = take_replies();
  ASSERT_EQ(replies.size(), 3U);
  EXPECT_TRUE(replies[0].has(packet::kTcpRst | packet::kTcpAck));
  EXPECT_EQ(replies[0].tcp().acknowledgement, 8U);
  EXPECT_EQ(receiver_.counters().get(Disposition::no_listener), 5U);
  EXPECT_EQ(receiver_.counters().refused_replies.get(), 2U);
  now_ = milliseconds(1002);
  peer_.header().tcp.destination_port = kPort;
  peer_.acknowledgement = 77;
  peer_.send(0, 10, now_);
  replies = take_replies();
  ASSERT_EQ(replies.size(), 1U);
  EXPECT_EQ(replies[0].tcp().flags, packet::kTcpRst);
  EXPECT_EQ(replies[0].tcp().sequence, 77U);
  EXPECT_EQ(receiver_.counters().get(Disposition::no_connection), 1U);
}

TEST_F(ReceiverTest, ForgetsHalfOpenConnections) {
  peer_.send_syn(now_);
  std::size_t syns = take_replies().size();
  for (int second = 1; second < 300; ++second) {
    now_ = milliseconds(1000 * second);
    receiver_.advance(now_);
    syns += take_replies().size();
    if (second == 180) {
      EXPECT_EQ(receiver_.connections(), 1U) << "a SYN has three minutes (RFC 9293, MUST-23)";
    }
  }
  EXPECT_EQ(syns, 1U + small_settings().retransmissions);
  EXPECT_EQ(receiver_.connections(), 0U);
}

TEST_F(ReceiverTest, AnswersWhereTheLatestSynCameFrom) {
  const auto answered_to = [&](std::uint8_t station) {
    peer_.header().source_mac.bytes[5] = station;
    peer_.send_syn(now_);
    std::uint8_t reply[StreamReceiver::kReplyBytes];
    EXPECT_NE(receiver_.next_reply(reply, now_), 0U);
    return reply[5];
  };
  EXPECT_EQ(answered_to(0x42), 0x42);  // such as by a frame that was damaged where no checksum of ours is
  EXPECT_EQ(answered_to(testing::kPeerMac.bytes[5]), testing::kPeerMac.bytes[5]);
}

TEST_F(ReceiverTest, ResetsNothingThatAnotherBehindItsAddressKnows) {
  ReceiverSettings settings = small_settings();
  settings.known = std::make_shared<KnownConnections>();
  use(settings);
  StreamReceiver other = receiver_with(settings);
  Peer astray(other, 40000, 7);
  const auto answers = [&] {
    astray.acknowledgement = peer_.acknowledgement;
    astray.send(0, 100, now_);
    other.end_burst(now_);
    return replies_of(other, now_);
  };
  const std::vector<Reply> before = answers();
  ASSERT_EQ(before.size(), 1U);
  EXPECT_TRUE(before[0].has(packet::kTcpRst));
  const ConnectionId id = open();
  EXPECT_TRUE(answers().empty());
  peer_.send(0, 100, now_);
  EXPECT_EQ(consume(receiver_, id), 100U);
  peer_.send_raw(peer_.sequence(100), packet::kTcpRst, {}, now_);
  EXPECT_EQ(answers().size(), 1U) << "it is nobody's any more";
  EXPECT_EQ(other.counters().get(Disposition::no_connection), 3U);
}

/// Two receivers behind one address, and a peer whose frames come to either.
class NeighboursTest : public ReceiverTest {
 protected:
  NeighboursTest() { receiver_ = receiver_with(settings_); }
  static ReceiverSettings shared_settings() {
    ReceiverSettings settings = small_settings();
    settings.known = std::make_shared<KnownConnections>();
    return settings;
  }
  /// The peer's SYN comes to receiver_, which answers it.
  void begin() {
    here_.send_syn(now_);
    const std::vector<Reply> replies = take_replies();
    ASSERT_EQ(replies.size(), 1U);
    here_.acknowledgement = there_.acknowledgement = replies[0].tcp().sequence + 1;
    here_.echo = there_.echo = replies[0].timestamp;
  }

  ReceiverSettings settings_ = shared_settings();
  StreamReceiver other_ = receiver_with(settings_);
  Peer here_{receiver_, 40000, 7};
  Peer there_{other_, 40000, 7};
};

TEST_F(NeighboursTest, FinishAHandshakeThatTheOtherHasBegun) {
  begin();
  there_.send(100, 100, now_);
  other_.end_burst(now_);
  EXPECT_EQ(other_.connections(), 0U) << "only what is right behind the SYN says where the stream begins";
  EXPECT_TRUE(replies_of(other_, now_).empty());
  there_.send(0, 100, now_);
  other_.end_burst(now_);
  const auto opened = other_.poll();
  ASSERT_TRUE(opened);
  EXPECT_EQ(consume(other_, opened->connection), 100U);
  const Nanos due = other_.next_deadline();  // of the acknowledgement
  other_.advance(due);
  const std::vector<Reply> replies = replies_of(other_, due);
  ASSERT_EQ(replies.size(), 1U);
  EXPECT_FALSE(replies[0].has(packet::kTcpRst));
  EXPECT_TRUE(replies[0].has_timestamp) << "as was agreed with the other";
  here_.send(0, 100, now_);
  receiver_.end_burst(now_);
  EXPECT_EQ(receiver_.connections(), 0U) << "each has one receiver";
  EXPECT_TRUE(take_replies().empty());
  EXPECT_EQ(receiver_.counters().opened.get(), 0U);
}

TEST_F(NeighboursTest, LeaveAConnectionWhereItsHandshakeWasFinished) {
  begin();
  here_.send(0, 0, now_);
  ASSERT_TRUE(receiver_.poll());
  there_.send(0, 100, now_);
  other_.end_burst(now_);
  EXPECT_EQ(other_.connections(), 0U);
  EXPECT_TRUE(replies_of(other_, now_).empty());
}

TEST_F(NeighboursTest, FinishWhicheverHandshakeThePeerAnswers) {
  begin();
  there_.send_syn(Nanos{now_.value + 1'000'000});  // again: its answer has another number
  const std::vector<Reply> replies = replies_of(other_, now_);
  ASSERT_EQ(replies.size(), 1U);
  ASSERT_NE(replies[0].tcp().sequence + 1, here_.acknowledgement);
  there_.send(0, 100, now_);
  other_.end_burst(now_);
  const auto opened = other_.poll();
  ASSERT_TRUE(opened);
  EXPECT_EQ(consume(other_, opened->connection), 100U);
  EXPECT_EQ(other_.connections(), 1U);
}

TEST_F(NeighboursTest, GiveUpAHandshakeThatNobodyFinishes) {
  begin();
  while (receiver_.connections() != 0) {
    now_ = receiver_.next_deadline();
    receiver_.advance(now_);
    (void)take_replies();
  }
  there_.send(0, 100, now_);
  other_.end_burst(now_);
  const std::vector<Reply> replies = replies_of(other_, now_);
  ASSERT_EQ(replies.size(), 1U);
  EXPECT_TRUE(replies[0].has(packet::kTcpRst));
}

TEST_F(NeighboursTest, LeaveAHandshakeToTheOneThatHasAPlace) {
  std::deque<Peer> others;
  for (std::uint16_t i = 0; other_.connections() < settings_.connections; ++i) {
    ASSERT_TRUE(others.emplace_back(other_, static_cast<std::uint16_t>(1000 + i), i).open(now_));
  }
  begin();
  there_.send(0, 0, now_);
  other_.end_burst(now_);
  EXPECT_TRUE(replies_of(other_, now_).empty());
  EXPECT_EQ(other_.connections(), settings_.connections);
  here_.send(0, 100, now_);
  const auto opened = receiver_.poll();
  ASSERT_TRUE(opened);
  EXPECT_EQ(consume(receiver_, opened->connection), 100U);
}

/// Both answer SYNs by cookies.
class NeighboursWithCookies : public NeighboursTest {
 protected:
  void SetUp() override {
    settings_.half_open = 1;
    for (StreamReceiver* const receiver : {&receiver_, &other_}) {
      *receiver = receiver_with(settings_);
      for (const std::uint16_t port : {1000, 1001}) {
        Peer peer(*receiver, static_cast<std::uint16_t>(port + (receiver == &other_ ? 10 : 0)), 7);
        peer.send_syn(now_);
      }
      (void)replies_of(*receiver, now_);
      ASSERT_EQ(receiver->counters().cookies.get(), 1U);
    }
  }
};

TEST_F(NeighboursWithCookies, OpenAConnectionOnce) {
  begin();
  here_.send(0, 0, now_);
  const auto opened = receiver_.poll();
  ASSERT_TRUE(opened);
  there_.send(0, 100, now_);  // its numbers fit the cookie, too
  other_.end_burst(now_);
  EXPECT_EQ(other_.counters().opened.get(), 0U);
  EXPECT_EQ(other_.counters().get(Disposition::no_connection), 1U);
  now_.value += 50'000'000;
  other_.advance(now_);
  EXPECT_TRUE(replies_of(other_, now_).empty()) << "neither acknowledged nor reset";
  here_.send(0, 100, now_);
  EXPECT_EQ(consume(receiver_, opened->connection), 100U);
}

TEST_F(NeighboursWithCookies, OpenAnotherConnectionOfTheSameNumbers) {
  begin();
  here_.send(0, 0, now_);
  ASSERT_TRUE(receiver_.poll());
  here_.send_raw(here_.sequence(0), packet::kTcpRst, {}, now_);
  ASSERT_TRUE(receiver_.poll());
  begin();  // the same cookie, within its 64 seconds
  there_.send(0, 100, now_);
  const auto opened = other_.poll();
  ASSERT_TRUE(opened);
  EXPECT_EQ(consume(other_, opened->connection), 100U);
}

TEST_F(NeighboursTest, SpareNobodyWhoAcknowledgesWhatWasNeverSent) {
  begin();
  here_.acknowledgement += 4;
  here_.send(0, 0, now_);
  const std::vector<Reply> answers = take_replies();
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_TRUE(answers[0].has(packet::kTcpRst));
}

TEST_F(ReceiverTest, NumbersOfTheSameEndsGrowWithTime) {
  Peer first(receiver_, 40000, 7);
  const ConnectionId id = open(first);
  first.send(0, 0, now_, packet::kTcpAck | packet::kTcpFin);
  receiver_.end_burst(now_);
  receiver_.close(id, now_);
  ASSERT_FALSE(take_replies().empty());
  ++first.acknowledgement;
  first.send(1, 0, now_);
  ASSERT_EQ(receiver_.connections(), 0U);
  now_ = Nanos{now_.value + 1'000'000'000};
  Peer second(receiver_, 40000, 7);
  ASSERT_TRUE(second.open(now_));
  EXPECT_EQ(second.acknowledgement - (first.acknowledgement - 1), 250'000U);
}

TEST_F(ReceiverTest, KeepsOpeningUnderAFloodOfSyns) {
  Peer settled(receiver_, 39999, 1);
  const ConnectionId id = open(settled);
  constexpr std::uint32_t kSyns = 1'000'000;
  std::uint64_t sent = 0;
  const std::size_t memory = ::mallinfo2().uordblks;
  for (std::uint32_t i = 0; i < kSyns; ++i) {
    Peer attacker(receiver_, static_cast<std::uint16_t>(i), i);
    attacker.header().source = Ipv4Address{{10, 9, 9, static_cast<std::uint8_t>(i >> 16)}};
    attacker.send_syn(now_);
    if (i % 1000 == 0) {
      settled.send(sent, 10, now_);
      sent += 10;
      EXPECT_EQ(consume(receiver_, id), 10U) << i;
    }
    receiver_.end_burst(now_);
    std::uint8_t reply[StreamReceiver::kReplyBytes];
    while (receiver_.next_reply(reply, now_) != 0) {
    }
  }
  EXPECT_EQ(::mallinfo2().uordblks, memory) << "none is taken for them";
  EXPECT_EQ(receiver_.connections(), 1 + small_settings().half_open);
  EXPECT_EQ(receiver_.counters().cookies.get(), kSyns - small_settings().half_open);
  Peer peer(receiver_, 40000, 99);
  ASSERT_TRUE(peer.open(now_));
  EXPECT_EQ(receiver_.counters().opened.get(), 2U);
  peer.send(1000, 10, now_);
  const std::vector<Reply> replies = finish_burst();
  ASSERT_EQ(replies.size(), 1U);
  EXPECT_EQ(replies[0].blocks.size(), 1U) << "the cookie forgot that SACK was offered";
  EXPECT_TRUE(replies[0].has_timestamp);
  settled.send(sent, 10, now_);
  EXPECT_EQ(consume(receiver_, id), 10U);
}

TEST_F(ReceiverTest, OpensByTheCookieWhatItRemembersSinceTheSynCameTwice) {
  ReceiverSettings settings = small_settings();
  settings.half_open = 1;
  use(settings);
  Peer first(receiver_, 39999, 1);
  Peer second(receiver_, 40000, 2);
  first.send_syn(now_);
  const std::vector<Reply> to_first = take_replies();
  ASSERT_EQ(to_first.size(), 1U);
  second.send_syn(now_);  // answered by a cookie
  const std::vector<Reply> to_second = take_replies();
  ASSERT_EQ(to_second.size(), 1U);
  first.acknowledgement = to_first[0].tcp().sequence + 1;
  first.send(0, 0, now_);
  second.send_syn(now_);  // remembered, with another number
  const std::vector<Reply> again = take_replies();
  ASSERT_EQ(again.size(), 1U);
  ASSERT_NE(again[0].tcp().sequence, to_second[0].tcp().sequence);
  second.acknowledgement = to_second[0].tcp().sequence + 1;
  second.echo = to_second[0].timestamp;
  second.send(10, 10, now_);  // the first segment is late: nothing proves the cookie yet
  EXPECT_TRUE(take_replies().empty()) << "no reset";
  second.send(0, 10, now_);
  second.send(10, 10, now_);
  receiver_.end_burst(now_);
  EXPECT_EQ(receiver_.counters().opened.get(), 2U);
  EXPECT_EQ(receiver_.connections(), 2U);
  const std::vector<Reply> replies = take_replies();
  ASSERT_EQ(replies.size(), 1U);
  EXPECT_EQ(replies[0].tcp().acknowledgement, second.sequence(20));
}

TEST_F(ReceiverTest, AnswersAcknowledgementsOutsideSeldom) {
  static_cast<void>(open());
  std::size_t answers = 0;
  for (int i = 0; i < 1000; ++i) {
    now_ = Nanos{now_.value + 1'000'000};
    peer_.send(10 * small_settings().ring_bytes, 0, now_);
    receiver_.end_burst(now_);
    answers += take_replies().size();
  }
  EXPECT_EQ(answers, 10U);
  EXPECT_EQ(receiver_.counters().get(Disposition::outside_window), 1000U);
}

TEST_F(ReceiverTest, OpensNothingForAGuessedCookie) {
  for (std::uint32_t i = 0; i < small_settings().half_open + 1; ++i) {
    Peer attacker(receiver_, static_cast<std::uint16_t>(1 + i), i);
    attacker.send_syn(now_);
  }
  (void)take_replies();
  const std::uint32_t before = receiver_.connections();
  Random random(3);
  Peer attacker(receiver_, 40000, 7);
  for (int i = 0; i < 100000; ++i) {
    attacker.acknowledgement = static_cast<std::uint32_t>(random.next());
    attacker.send(0, 1, now_);
  }
  EXPECT_EQ(receiver_.connections(), before);
  EXPECT_EQ(receiver_.counters().get(Disposition::wrong_cookie), 100000U);
  EXPECT_TRUE(take_replies().empty());
}

TEST_F(ReceiverTest, RefusesBlindSegments) {
  const ConnectionId id = open();
  Random random(5);
  for (int i = 0; i < 1'000'000; ++i) {
    constexpr std::uint8_t kKinds[] = {packet::kTcpRst, packet::kTcpSyn, packet::kTcpAck};
    // All numbers but the one that fits, which a stranger would meet once in 2^32.
    std::uint32_t sequence = static_cast<std::uint32_t>(random.next());
    if (sequence == peer_.sequence(0)) ++sequence;
    peer_.offers_options = true;
    const std::uint8_t kind = kKinds[random.below(3)];
    const std::uint32_t right = peer_.acknowledgement;
    peer_.acknowledgement = static_cast<std::uint32_t>(random.next());
    if (kind == packet::kTcpAck && peer_.acknowledgement == right) ++peer_.acknowledgement;
    const std::uint8_t byte = 0xbd;
    peer_.send_raw(sequence, kind, {&byte, kind == packet::kTcpAck ? 1U : 0U}, now_);
    peer_.acknowledgement = right;
  }
  ASSERT_TRUE(receiver_.view(id));
  EXPECT_EQ(receiver_.view(id)->state, ConnectionState::open);
  EXPECT_EQ(receiver_.counters().bytes.get(), 0U);
  peer_.send(0, 100, now_);
  EXPECT_EQ(consume(receiver_, id), 100U);
}

}  // namespace
}  // namespace warpline::stream
