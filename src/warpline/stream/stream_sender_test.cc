// SPDX-License-Identifier: Apache-2.0
#include "warpline/stream/stream_sender.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "warpline/stream/stream_sender_fixture_testing.h"

namespace warpline::stream {
namespace {

using testing::kOurMac;
using testing::kPort;
using testing::kSource;
using testing::milliseconds;
using testing::pattern_at;
using testing::PeerOfSender;
using testing::sender_settings;
using testing::SenderTest;
using testing::SentFrame;

constexpr std::uint32_t kSegment = 1448;  // of 1500 bytes of MTU with timestamps
constexpr std::uint8_t kReset = packet::kTcpRst;
constexpr std::uint8_t kFinWithAck = packet::kTcpFin | packet::kTcpAck;

TEST_P(SenderTest, OffersAllOptionsInItsSyn) {
  connect();
  const std::vector<SentFrame> syn = frames();
  ASSERT_EQ(syn.size(), 1U);
  EXPECT_EQ(syn[0].tcp().flags, packet::kTcpSyn);
  EXPECT_EQ(syn[0].segment.mss, 1460);
  EXPECT_EQ(syn[0].segment.scale, 0);
  EXPECT_TRUE(syn[0].segment.selective);
  EXPECT_TRUE(syn[0].segment.has_timestamp);
  EXPECT_EQ(syn[0].tcp().destination_port, kPort);
  EXPECT_TRUE(frames().empty());
}

TEST_P(SenderTest, SendsBytesAndEnds) {
  const ConnectionId id = open();
  EXPECT_TRUE(sender_.offer(id, 2000));
  sender_.close(id);
  EXPECT_FALSE(sender_.offer(id, 1));
  const std::vector<SentFrame> sent = frames();
  ASSERT_EQ(sent.size(), 3U);
  EXPECT_EQ(offsets(sent), (std::vector<std::uint64_t>{0, kSegment}));
  for (std::uint32_t i = 0; i < 2000; ++i) {
    const auto& payload = sent[i / kSegment].payload;
    ASSERT_EQ(payload[i % kSegment], pattern_at(i));
  }
  EXPECT_FALSE(sent[0].has(packet::kTcpPsh));
  EXPECT_TRUE(sent[1].has(packet::kTcpPsh));
  EXPECT_TRUE(sent[2].has(kFinWithAck));
  now_.value += 1'000'000;
  peer_.acknowledge(2000, now_);
  auto event = sender_.poll();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->acknowledged, 2000U);
  EXPECT_EQ(event->state, SendState::open);
  peer_.acknowledge(2001, now_);
  event = sender_.poll();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->acknowledged, 2000U);
  EXPECT_EQ(event->state, SendState::finished);
  EXPECT_FALSE(sender_.view(id));
  // FIN-WAIT-2, then TIME-WAIT, which answers a FIN that comes again.
  for (int i = 0; i < 2; ++i) {
    peer_.send_plain(peer_.next(), peer_.number(2001), kFinWithAck, now_);
    const std::vector<SentFrame> answer = frames();
    ASSERT_EQ(answer.size(), 1U);
    EXPECT_EQ(answer[0].tcp().acknowledgement, peer_.next() + 1);
  }
  EXPECT_EQ(sender_.lingering(), 1U);
  wait(Nanos{sender_settings().time_wait.value - 1'000'000});
  EXPECT_EQ(sender_.connections(), 1U);
  wait(milliseconds(10));
  EXPECT_EQ(sender_.connections(), 0U);
  EXPECT_EQ(sender_.lingering(), 0U);
  EXPECT_EQ(sender_.counters().finished.get(), 1U);
  EXPECT_EQ(sender_.counters().acknowledged.get(), 2000U);
}

TEST_P(SenderTest, SendsNothingThatThePeerDidNotAgreeTo) {
  peer_.selective = peer_.timestamps = peer_.scaled = false;
  peer_.mss = 0;
  const ConnectionId id = open();
  sender_.offer(id, 2000);
  const std::vector<SentFrame> sent = frames();
  ASSERT_FALSE(sent.empty());
  EXPECT_EQ(sent[0].payload.size(), is_ipv4() ? 536U : 1220U);  // RFC 9293, 3.7.1
  EXPECT_FALSE(sent[0].segment.has_timestamp);
  EXPECT_EQ(sender_.view(id)->peer_window, 0xffffU);
}

TEST_P(SenderTest, SegmentsAreNoLargerThanThePeersMssAndTheMtu) {
  SenderSettings settings = sender_settings();
  settings.mtu = 9000;
  use(settings);
  peer_.mss = 1000;
  const ConnectionId id = open();
  sender_.offer(id, 5000);
  EXPECT_EQ(frames()[0].payload.size(), 988U);
  peer_.mss = 0xffff;
  PeerOfSender other = another_peer();
  other.mss = 0xffff;
  const ConnectionId second = connect();
  other.take_syn(frames().at(0));
  other.answer_syn(now_);
  sender_.offer(second, 20'000);
  const std::vector<SentFrame> sent = frames();
  EXPECT_EQ(sent[0].payload.size(), is_ipv4() ? 8948U : 8928U);
}

/// MUST-44 of RFC 9293.
TEST_P(SenderTest, SendsFromItsOwnAddressAlone) {
  const ConnectionId id = connect();
  std::vector<std::uint8_t> frame(sender_.frame_bytes());
  const auto expect_from_us = [&] {
    ASSERT_NE(sender_.next_frame(frame, now_), 0U);
    Segment segment{frame.data(), static_cast<std::uint32_t>(frame.size()), 0, Verdict::forward};
    ASSERT_EQ(packet::parse(frame_at(&segment)).l3, is_ipv4() ? packet::L3Kind::ipv4 : packet::L3Kind::ipv6);
    const auto own = sender_settings().address;
    const std::uint8_t* const source = frame.data() + (is_ipv4() ? 26 : 22);
    const IpAddress sent = is_ipv4() ? IpAddress(packet::load_address<Ipv4Address>(source))
                                     : IpAddress(packet::load_address<Ipv6Address>(source));
    EXPECT_EQ(to_string(sent), to_string(own));
  };
  {
    std::vector<std::uint8_t> syn(sender_.frame_bytes());
    const std::vector<SentFrame> first = frames();
    ASSERT_EQ(first.size(), 1U);
    peer_.take_syn(first[0]);
  }
  peer_.answer_syn(now_);
  expect_from_us();  // the third segment of the handshake
  sender_.offer(id, 100);
  expect_from_us();
  sender_.abort(id, now_);
  expect_from_us();
}

TEST_P(SenderTest, BeginsWithTenSegmentsAndDoubles) {
  const ConnectionId id = open();
  sender_.offer(id, 1 << 20);
  EXPECT_EQ(frames().size(), 10U);
  now_.value += 10'000'000;
  peer_.acknowledge(10 * kSegment, now_);
  EXPECT_EQ(frames().size(), 20U);
}

TEST_P(SenderTest, AFixedWindowStaysWhatItIs) {
  SenderSettings settings = sender_settings();
  settings.congestion = CongestionKind::fixed;
  settings.window_bytes = 30 * kSegment;
  use(settings);
  const ConnectionId id = open();
  sender_.offer(id, 1 << 20);
  EXPECT_EQ(frames().size(), 30U);
  wait(milliseconds(1500));
  EXPECT_GT(sender_.counters().timeouts.get(), 0U);
  EXPECT_EQ(sender_.view(id)->window, 30 * kSegment);
}

TEST_P(SenderTest, SendsAgainWhatSelectiveAcknowledgementsMiss) {
  const ConnectionId id = open();
  sender_.offer(id, 10 * kSegment);
  const std::vector<SentFrame> sent = frames();
  ASSERT_EQ(sent.size(), 10U);
  now_.value += 10'000'000;
  peer_.acknowledge(kSegment, now_, {{3 * kSegment, 4 * kSegment}});
  EXPECT_TRUE(offsets(frames()).empty());  // it may come late
  peer_.acknowledge(kSegment, now_, {{3 * kSegment, 6 * kSegment}});
  const std::vector<SentFrame> again = frames();
  EXPECT_EQ(offsets(again), (std::vector<std::uint64_t>{kSegment, 2 * kSegment}));
  EXPECT_EQ(again[0].payload, sent[1].payload);
  EXPECT_EQ(sender_.counters().recoveries.get(), 1U);
  EXPECT_NEAR(static_cast<double>(sender_.view(id)->window), 7.0 * kSegment, 1);  // RFC 9438, 4.6: 0.7
  peer_.acknowledge(10 * kSegment, now_);
  EXPECT_EQ(sender_.view(id)->acknowledged, 10 * kSegment);
  EXPECT_EQ(sender_.counters().retransmitted.get(), 2U);
  EXPECT_EQ(sender_.counters().timeouts.get(), 0U);
}

TEST_P(SenderTest, WaitsForWhatComesLateOnceItHasSeenThat) {
  const ConnectionId id = open();
  sender_.offer(id, 10 * kSegment);
  (void)frames();
  now_.value += 40'000'000;
  peer_.acknowledge(0, now_, {{kSegment, 2 * kSegment}});
  peer_.acknowledge(2 * kSegment, now_);  // the first came behind the second
  (void)frames();
  peer_.acknowledge(2 * kSegment, now_, {{4 * kSegment, 8 * kSegment}});
  EXPECT_TRUE(offsets(frames()).empty());
  wait(milliseconds(15));  // a quarter of a round trip
  EXPECT_EQ(offsets(frames()), (std::vector<std::uint64_t>{2 * kSegment, 3 * kSegment}));
}

TEST_P(SenderTest, ProbesTheTail) {
  const ConnectionId id = open();
  sender_.offer(id, 3 * kSegment);
  (void)frames();
  now_.value += 10'000'000;
  peer_.acknowledge(kSegment, now_);
  wait(milliseconds(100));
  const std::vector<SentFrame> probe = frames();
  ASSERT_EQ(offsets(probe), (std::vector<std::uint64_t>{2 * kSegment}));
  peer_.echo = probe[0].segment.timestamp;  // it is this one that arrives
  EXPECT_EQ(sender_.counters().tail_probes.get(), 1U);
  EXPECT_EQ(sender_.counters().timeouts.get(), 0U);
  now_.value += 10'000'000;
  peer_.acknowledge(kSegment, now_, {{2 * kSegment, 3 * kSegment}});
  EXPECT_EQ(offsets(frames()), (std::vector<std::uint64_t>{kSegment}));
}

TEST_P(SenderTest, TimesOutAndBacksOff) {
  const ConnectionId id = open();
  sender_.offer(id, 5 * kSegment);
  (void)frames();
  std::vector<std::int64_t> times;
  const Nanos begin = now_;
  while (times.size() < 4) {
    wait(milliseconds(1));
    const std::uint64_t timeouts = sender_.counters().timeouts.get();
    if (timeouts > times.size()) {
      times.push_back(now_.value - begin.value);
      EXPECT_EQ(offsets(frames()), (std::vector<std::uint64_t>{0}));  // one segment, the oldest
    } else {
      (void)frames();
    }
  }
  EXPECT_GE(times[0], 200'000'000);
  for (int i = 2; i < 4; ++i) {
    const double ratio =
        static_cast<double>(times[i] - times[i - 1]) / static_cast<double>(times[i - 1] - times[i - 2]);
    EXPECT_NEAR(ratio, 2, 0.1);
  }
  EXPECT_EQ(sender_.view(id)->window, kSegment);
  peer_.acknowledge(kSegment, now_);
  EXPECT_EQ(offsets(frames()), (std::vector<std::uint64_t>{kSegment, 2 * kSegment}));  // slow start
}

TEST_P(SenderTest, FindsLossesWithoutSelectiveAcknowledgements) {
  peer_.selective = false;
  const ConnectionId id = open();
  peer_.acknowledge(0, now_);  // with a window that is scaled
  sender_.offer(id, 10 * kSegment);
  (void)frames();
  now_.value += 10'000'000;
  for (int i = 0; i < 2; ++i) peer_.acknowledge(0, now_);
  EXPECT_TRUE(offsets(frames()).empty());
  peer_.acknowledge(0, now_);
  EXPECT_EQ(offsets(frames()), (std::vector<std::uint64_t>{0}));
  peer_.acknowledge(4 * kSegment, now_);  // another hole (RFC 6582)
  EXPECT_EQ(offsets(frames()), (std::vector<std::uint64_t>{4 * kSegment}));
  peer_.acknowledge(10 * kSegment, now_);
  EXPECT_EQ(sender_.counters().timeouts.get(), 0U);
  EXPECT_EQ(sender_.counters().recoveries.get(), 1U);
}

TEST_P(SenderTest, SendsAgainWhatThePeerSaidToHaveAndThrewAway) {
  const ConnectionId id = open();
  sender_.offer(id, 3 * kSegment);
  (void)frames();
  now_.value += 10'000'000;
  peer_.acknowledge(0, now_, {{kSegment, 3 * kSegment}});
  wait(milliseconds(5));
  (void)frames();
  peer_.acknowledge(kSegment, now_);  // and not three
  std::set<std::uint64_t> again;
  for (int i = 0; i < 5; ++i) {
    wait(milliseconds(1000));
    for (const std::uint64_t offset : offsets(frames())) again.insert(offset);
    if (again.contains(kSegment)) peer_.acknowledge(2 * kSegment, now_);
  }
  EXPECT_TRUE(again.contains(kSegment));
  EXPECT_TRUE(again.contains(2 * kSegment));
}

TEST_P(SenderTest, IsRefused) {
  connect();
  peer_.take_syn(frames().at(0));
  peer_.send_plain(0, peer_.number(5), kReset | packet::kTcpAck, now_);  // acknowledges another SYN
  peer_.send_plain(0, 0, kReset, now_);                                  // nothing says whose
  EXPECT_EQ(last_state(), std::nullopt);
  peer_.send_plain(0, peer_.number(0), kReset | packet::kTcpAck, now_);
  EXPECT_EQ(last_state(), SendState::refused);
  EXPECT_EQ(sender_.connections(), 0U);
}

/// RFC 5961, 3.2, of a window of 65,535.
TEST_P(SenderTest, ChallengesResetsInItsWindowAlone) {
  open();
  for (const auto& [ahead, answers] : {std::pair{1U, 1U}, {65'534U, 1U}, {65'535U, 0U}, {0x8000'0000U, 0U}}) {
    now_.value += 200'000'000;
    peer_.send_plain(peer_.next() + ahead, peer_.number(0), kReset, now_);
    EXPECT_EQ(frames().size(), answers) << ahead;
  }
  EXPECT_EQ(last_state(), std::nullopt);
}

/// RFC 5961, 5.2: SND.UNA - MAX.SND.WND <= SEG.ACK <= SND.NXT. The window is that of the SYN.
TEST_P(SenderTest, BelievesNoAcknowledgementsOfLongAgo) {
  const ConnectionId id = open();
  peer_.send_plain(peer_.next(), peer_.number(0) - 65'535, packet::kTcpAck, now_);
  EXPECT_TRUE(frames().empty());
  peer_.send_plain(peer_.next(), peer_.number(0) - 65'536, packet::kTcpAck, now_);
  const std::vector<SentFrame> challenge = frames();
  ASSERT_EQ(challenge.size(), 1U);
  EXPECT_EQ(challenge[0].tcp().flags, packet::kTcpAck);
  EXPECT_EQ(sender_.view(id)->acknowledged, 0U);
}

TEST_P(SenderTest, BelievesExactResets) {
  open();
  peer_.send_plain(peer_.next() + 1, peer_.number(0), kReset, now_);
  std::vector<SentFrame> answer = frames();
  ASSERT_EQ(answer.size(), 1U);  // RFC 5961: a challenge
  EXPECT_EQ(answer[0].tcp().flags, packet::kTcpAck);
  peer_.send_plain(peer_.next() - 1, peer_.number(0), kReset, now_);
  EXPECT_TRUE(frames().empty());
  EXPECT_EQ(last_state(), std::nullopt);
  peer_.send_plain(peer_.next(), peer_.number(0), kReset, now_);
  EXPECT_EQ(last_state(), SendState::reset);
}

TEST_P(SenderTest, ChallengesSynsAndStrangeAcknowledgements) {
  const ConnectionId id = open();
  peer_.send_plain(peer_.next(), peer_.number(0), packet::kTcpSyn, now_);
  EXPECT_EQ(frames().size(), 1U);
  now_.value += 200'000'000;
  peer_.acknowledge(1000, now_);  // never sent
  EXPECT_EQ(frames().size(), 1U);
  EXPECT_EQ(sender_.counters().get(Disposition::wrong_acknowledgement), 1U);
  EXPECT_EQ(sender_.view(id)->state, SendState::open);
}

TEST_P(SenderTest, RefusesOldTimestamps) {
  const ConnectionId id = open();
  sender_.offer(id, 1000);
  (void)frames();
  peer_.clock = 99;
  peer_.acknowledge(1000, now_);
  EXPECT_EQ(sender_.view(id)->acknowledged, 0U);
  EXPECT_EQ(sender_.counters().get(Disposition::old_timestamp), 1U);
  peer_.timestamps = false;
  peer_.acknowledge(1000, now_);
  EXPECT_EQ(sender_.counters().get(Disposition::no_timestamp), 1U);
  peer_.timestamps = true;
  peer_.clock = 100;
  peer_.acknowledge(1000, now_);
  EXPECT_EQ(sender_.view(id)->acknowledged, 1000U);
}

/// RFC 7323, 5.5: timestamps of more than 24 days ago say nothing.
TEST_P(SenderTest, ForgetsTimestampsOfLongAgo) {
  constexpr std::int64_t kDay = 24LL * 3600 * 1'000'000'000;
  const ConnectionId id = open();
  peer_.acknowledge(0, now_);
  sender_.set_user_timeout(id, StreamSender::kNeverGivesUp, now_);
  peer_.clock -= 5;
  now_.value += 23 * kDay;
  peer_.acknowledge(0, now_);
  EXPECT_EQ(sender_.counters().get(Disposition::old_timestamp), 1U);
  now_.value += 2 * kDay;
  peer_.acknowledge(0, now_);
  EXPECT_EQ(sender_.counters().get(Disposition::old_timestamp), 1U);
}

TEST_P(SenderTest, OpensFromBothSides) {
  const ConnectionId id = connect();
  peer_.take_syn(frames().at(0));
  peer_.answer_syn(now_, packet::kTcpSyn);
  const std::vector<SentFrame> answer = frames();
  ASSERT_EQ(answer.size(), 1U);
  EXPECT_EQ(answer[0].tcp().flags, packet::kTcpSyn | packet::kTcpAck);
  EXPECT_EQ(answer[0].tcp().sequence + 1, peer_.number(0));
  peer_.acknowledge(0, now_);
  EXPECT_EQ(last_state(), SendState::open);
  sender_.offer(id, 100);
  EXPECT_EQ(offsets(frames()), (std::vector<std::uint64_t>{0}));
}

TEST_P(SenderTest, ClosesFromBothSidesAtOnce) {
  const ConnectionId id = open();
  sender_.close(id);
  EXPECT_TRUE(frames().at(0).has(kFinWithAck));
  peer_.send_plain(peer_.next(), peer_.number(0), kFinWithAck, now_);
  EXPECT_EQ(frames().at(0).tcp().acknowledgement, peer_.next() + 1);
  peer_.send_plain(peer_.next() + 1, peer_.number(1), packet::kTcpAck, now_);
  EXPECT_EQ(last_state(), SendState::finished);
  EXPECT_EQ(sender_.connections(), 1U);  // TIME-WAIT
}

/// RFC 1337: a reset, which may be an old one, does not end TIME-WAIT.
TEST_P(SenderTest, WaitsAlsoBehindAReset) {
  const ConnectionId id = open();
  sender_.close(id);
  (void)frames();
  peer_.send_plain(peer_.next(), peer_.number(1), kFinWithAck, now_);
  EXPECT_EQ(last_state(), SendState::finished);
  (void)frames();
  peer_.send_plain(peer_.next() + 1, peer_.number(1), kReset, now_);
  EXPECT_EQ(sender_.connections(), 1U);
  wait(Nanos{sender_settings().time_wait.value - 1'000'000});
  EXPECT_EQ(sender_.connections(), 1U);
  wait(milliseconds(10));
  EXPECT_EQ(sender_.connections(), 0U);
}

TEST_P(SenderTest, SendsOnWhenThePeerHasEnded) {
  const ConnectionId id = open();
  peer_.send_plain(peer_.next(), peer_.number(0), kFinWithAck, now_);
  (void)frames();
  sender_.offer(id, 100);
  sender_.close(id);
  EXPECT_EQ(frames().size(), 2U);
  peer_.send_plain(peer_.next() + 1, peer_.number(101), packet::kTcpAck, now_);
  EXPECT_EQ(last_state(), SendState::finished);
  wait(milliseconds(5));
  EXPECT_EQ(sender_.connections(), 0U);  // LAST-ACK needs no TIME-WAIT
}

TEST_P(SenderTest, AcknowledgesAndThrowsAwayWhatPeersSend) {
  open();
  const std::uint8_t bytes[10] = {};
  peer_.send_plain(peer_.next() + 5, peer_.number(0), packet::kTcpAck, now_, bytes);
  EXPECT_EQ(frames().at(0).tcp().acknowledgement, peer_.next());
  peer_.send_plain(peer_.next(), peer_.number(0), packet::kTcpAck, now_, bytes);
  peer_.send_plain(peer_.next() + 5, peer_.number(0), packet::kTcpAck, now_, bytes);
  EXPECT_EQ(frames().at(0).tcp().acknowledgement, peer_.next() + 15);
  EXPECT_EQ(sender_.counters().ignored_bytes.get(), 15U);
  EXPECT_EQ(sender_.counters().get(Disposition::too_many_holes), 1U);
}

TEST_P(SenderTest, AbortsByAReset) {
  const ConnectionId id = open();
  sender_.offer(id, 100);
  (void)frames();
  sender_.abort(id, now_);
  const std::vector<SentFrame> sent = frames();
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_TRUE(sent[0].has(kReset));
  EXPECT_EQ(sent[0].tcp().sequence, peer_.number(100));
  EXPECT_FALSE(sender_.view(id));
  EXPECT_EQ(sender_.connections(), 0U);
  peer_.acknowledge(100, now_);  // to nobody: a reset (RFC 9293, 3.5.2)
  EXPECT_TRUE(frames().at(0).has(kReset));
}

TEST_P(SenderTest, ResetsEachPeerHoweverManyAreAbortedAtOnce) {
  SenderSettings settings = sender_settings();
  settings.connections = 600;
  settings.window_bytes = 9000;
  use(settings);
  std::vector<ConnectionId> opened;
  std::set<std::uint32_t> numbers;  // SND.NXT of each
  for (std::uint32_t i = 0; i < settings.connections; ++i) {
    PeerOfSender peer = another_peer(i);
    opened.push_back(connect());
    peer.take_syn(frames().at(0));
    peer.answer_syn(now_);
    EXPECT_EQ(frames().size(), 1U);
    numbers.insert(peer.number(0));
  }
  EXPECT_EQ(sender_.counters().opened.get(), opened.size());
  peer_.header().tcp.destination_port = 9;
  for (int i = 0; i < 400; ++i) peer_.send_plain(1, 1, packet::kTcpSyn, now_);  // of no connection
  for (const ConnectionId id : opened) sender_.abort(id, now_);
  std::size_t resets = 0;
  for (const SentFrame& frame : frames()) {
    if (!frame.has(packet::kTcpRst) || frame.tcp().source_port == 9) continue;
    EXPECT_TRUE(numbers.contains(frame.tcp().sequence));
    ++resets;
  }
  EXPECT_EQ(resets, opened.size());
  EXPECT_EQ(sender_.counters().aborted.get(), opened.size());
}

TEST_P(SenderTest, GivesEachConnectionAPortAndANumberOfItsOwn) {
  SenderSettings settings = sender_settings();
  settings.connections = 4096;
  settings.first_port = 61'000;  // 4,536 ports
  settings.window_bytes = 9000;
  use(settings);
  std::set<std::uint16_t> ports;
  std::set<std::uint32_t> numbers;
  for (int i = 0; i < 4096; ++i) connect();
  EXPECT_FALSE(sender_.connect(peer_address(), kOurMac, now_));
  for (const SentFrame& syn : frames()) {
    ports.insert(syn.tcp().source_port);
    numbers.insert(syn.tcp().sequence);
  }
  EXPECT_EQ(ports.size(), 4096U);
  EXPECT_GE(*ports.begin(), 61'000);
  EXPECT_GT(numbers.size(), 4090U);
}

TEST_P(SenderTest, HasPortsOfItsOwnPartAlone) {
  SenderSettings settings = sender_settings();
  settings.first_port = 40'000;
  settings.last_port = 40'002;
  use(settings);
  std::set<std::uint16_t> ports;
  for (int i = 0; i < 3; ++i) ports.insert(sender_.view(connect())->local_port);
  EXPECT_EQ(ports, (std::set<std::uint16_t>{40'000, 40'001, 40'002}));
  EXPECT_FALSE(sender_.connect(peer_address(), kOurMac, now_));
}

TEST_P(SenderTest, FollowsTheNextHop) {
  const ConnectionId id = open();
  const MacAddress moved{{2, 0, 0, 0, 0, 0x77}};
  sender_.set_next_hop(moved);
  sender_.offer(id, 100);
  std::vector<std::uint8_t> frame(sender_.frame_bytes());
  ASSERT_NE(sender_.next_frame(frame, now_), 0U);
  EXPECT_TRUE(std::equal(moved.bytes.begin(), moved.bytes.end(), frame.begin()));
}

TEST_P(SenderTest, NumbersOfTheSameEndsGrowWithTime) {
  const auto id = sender_.connect(peer_address(), kOurMac, now_, 40'000);
  ASSERT_TRUE(id);
  EXPECT_FALSE(sender_.connect(peer_address(), kOurMac, now_, 40'000));
  const std::uint32_t first = frames().at(0).tcp().sequence;
  sender_.abort(*id, now_);
  now_.value += 4'000'000;
  ASSERT_TRUE(sender_.connect(peer_address(), kOurMac, now_, 40'000));
  EXPECT_EQ(frames().at(0).tcp().sequence - first, 1000U);  // RFC 9293, 3.4.1: every 4 us
}

/// RFC 6528: a keyed hash of all ends.
TEST_P(SenderTest, NumbersAreThoseOfTheirEndsAndSecretAlone) {
  const auto number = [&](std::uint8_t secret, const SocketAddress& peer, std::uint16_t port) {
    SenderSettings settings = sender_settings();
    settings.secret[5] = secret;
    use(settings);
    EXPECT_TRUE(sender_.connect(peer, kOurMac, now_, port));
    return frames().at(0).tcp().sequence;
  };
  const SocketAddress peer = peer_address();
  SocketAddress other = peer;
  other.address = *parse_ip(is_ipv4() ? "203.0.113.9" : "2001:db8:1::9");
  const std::uint32_t first = number(1, peer, 40'000);
  EXPECT_EQ(first, number(1, peer, 40'000));
  EXPECT_NE(first, number(2, peer, 40'000));
  EXPECT_NE(first, number(1, peer, 40'001));
  EXPECT_NE(first, number(1, other, 40'000));
  EXPECT_NE(first, number(1, {peer.address, 80}, 40'000));
}

INSTANTIATE_TEST_SUITE_P(Ends, SenderTest, ::testing::ValuesIn(testing::kSenderEnds),
                         [](const auto& ends) { return std::string(ends.param.name); });

TEST(SenderSettingsTest, AreRefusedWhereTheyMakeNoSense) {
  const auto refused = [](auto change) {
    SenderSettings settings = sender_settings();
    change(settings);
    const auto made = StreamSender::create(settings, kSource, Nanos{1});
    if (made.ok()) return false;
    const Error& error = made.error();
    return error.kind == ErrorKind::usage && !error.what.empty() && !error.why.empty() && !error.fix.empty();
  };
  EXPECT_FALSE(refused([](SenderSettings&) {}));
  EXPECT_TRUE(refused([](SenderSettings& s) { s.connections = 0; }));
  EXPECT_TRUE(refused([](SenderSettings& s) { s.first_port = 0; }));
  EXPECT_TRUE(refused([](SenderSettings& s) { s.mtu = 500; }));
  EXPECT_TRUE(refused([](SenderSettings& s) { s.window_bytes = 1000; }));
  EXPECT_TRUE(refused([](SenderSettings& s) { s.secret = {}; }));
  EXPECT_TRUE(refused([](SenderSettings& s) { s.smallest_timeout = Nanos{0}; }));
  EXPECT_TRUE(refused([](SenderSettings& s) { s.connect_timeout = Nanos{0}; }));
}

}  // namespace
}  // namespace warpline::stream
