// SPDX-License-Identifier: Apache-2.0
// Handshakes of a sender with peers that open at the same time, and segments of addresses that no host has. Initial
// numbers lie on both sides of 2^31 and next to 2^32.
#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "warpline/stream/stream_sender_fixture_testing.h"

namespace warpline::stream {
namespace {

using testing::kOurMac;
using testing::kPeer;
using testing::kPort;
using testing::kSource;
using testing::milliseconds;
using testing::PeerOfSender;
using testing::sender_settings;
using testing::SenderFixture;
using testing::SenderTest;
using testing::SentFrame;

constexpr std::uint8_t kSynWithAck = packet::kTcpSyn | packet::kTcpAck;

class CrossedOpens : public SenderFixture, public ::testing::WithParamInterface<std::uint32_t> {
 protected:
  CrossedOpens() : other_(sender_, GetParam()) {}

  /// Takes the peer's SYN in SYN-SENT, and has the answer sent.
  ConnectionId cross() {
    const ConnectionId id = connect();
    other_.take_syn(frames().at(0));
    other_.answer_syn(now_, packet::kTcpSyn);
    const std::vector<SentFrame> answer = frames();
    EXPECT_EQ(answer.size(), 1U);
    EXPECT_EQ(answer.at(0).tcp().flags, kSynWithAck);
    EXPECT_EQ(answer.at(0).tcp().sequence, other_.first);
    EXPECT_EQ(answer.at(0).tcp().acknowledgement, GetParam() + 1);
    return id;
  }

  PeerOfSender other_;
};

/// The peer has 65,535 bytes of window in its SYN, so ten segments (RFC 6928) may be sent, whatever its number is.
TEST_P(CrossedOpens, SendIntoTheWindowOfThePeersSyn) {
  const ConnectionId id = cross();
  other_.acknowledge(0, now_);
  EXPECT_EQ(last_state(), SendState::open);
  EXPECT_TRUE(sender_.offer(id, 100'000));
  EXPECT_EQ(frames().size(), 10U);
}

/// RFC 9293, 3.5, figure 8: SYN-RECEIVED becomes ESTABLISHED by the SYN,ACK that the other end sent there.
TEST_P(CrossedOpens, EndByThePeersSynWithAcknowledgement) {
  const ConnectionId id = cross();
  other_.send_plain(GetParam(), other_.number(0), kSynWithAck, now_);
  EXPECT_EQ(last_state(), SendState::open);
  const std::vector<SentFrame> answer = frames();
  ASSERT_EQ(answer.size(), 1U);
  EXPECT_EQ(answer[0].tcp().flags, packet::kTcpAck);
  EXPECT_EQ(answer[0].tcp().acknowledgement, GetParam() + 1);
  EXPECT_TRUE(sender_.offer(id, 1000));
  const std::vector<SentFrame> sent = frames();
  ASSERT_EQ(sent.size(), 1U);
  EXPECT_EQ(sent[0].tcp().sequence, other_.number(0));
  EXPECT_EQ(sent[0].payload.size(), 1000U);
}

/// RFC 9293, 3.10.7.4, fifth: an acknowledgement that is not acceptable is answered by a reset of that number.
TEST_P(CrossedOpens, AnswerWrongAcknowledgementsByAReset) {
  cross();
  other_.acknowledge(77, now_);
  EXPECT_EQ(last_state(), std::nullopt);
  const std::vector<SentFrame> answer = frames();
  ASSERT_EQ(answer.size(), 1U);
  EXPECT_EQ(answer[0].tcp().flags, packet::kTcpRst);
  EXPECT_EQ(answer[0].tcp().sequence, other_.number(77));
}

TEST_P(CrossedOpens, DoNotEndByASynOfAnotherNumber) {
  cross();
  other_.send_plain(GetParam() + 5, other_.number(0), kSynWithAck, now_);
  EXPECT_EQ(last_state(), std::nullopt);
}

INSTANTIATE_TEST_SUITE_P(InitialNumbers, CrossedOpens,
                         ::testing::Values(0U, 7000U, 0x7fff'ffffU, 0x8000'0000U, 0xc000'0000U, 0xffff'fffeU,
                                           0xffff'ffffU));

/// Returns a copy of the sender's last frame as the other sender receives it.
void pass_frames(StreamSender& from, StreamSender& to, Nanos now, std::uint32_t& frames) {
  std::vector<std::uint8_t> bytes(from.frame_bytes());
  for (std::uint32_t length = 0; frames < 1000 && (length = from.next_frame(bytes, now)) != 0; ++frames) {
    Segment segment{bytes.data(), length, 0, Verdict::forward};
    to.receive(frame_at(&segment), false, now);
  }
}

TEST(CrossedSenders, BothOpen) {
  constexpr std::uint16_t kOurPort = 40'000;
  constexpr std::uint16_t kTheirPort = 40'001;
  Nanos now = milliseconds(1);
  for (std::uint8_t secret = 1; secret < 20; ++secret) {
    SenderSettings one = sender_settings();
    one.secret[0] = secret;
    SenderSettings two = one;
    two.secret[1] = secret;
    two.mac = kOurMac;
    two.address = kPeer.address;
    StreamSender a = std::move(StreamSender::create(one, kSource, now)).value();
    StreamSender b = std::move(StreamSender::create(two, kSource, now)).value();
    const auto from_a = a.connect({two.address, kTheirPort}, two.mac, now, kOurPort);
    const auto from_b = b.connect({one.address, kOurPort}, one.mac, now, kTheirPort);
    ASSERT_TRUE(from_a && from_b);
    // Both SYNs are in flight before either arrives.
    std::vector<std::uint8_t> syn(a.frame_bytes());
    Segment segment{syn.data(), a.next_frame(syn, now), 0, Verdict::forward};
    std::uint32_t frames = 0;
    pass_frames(b, a, now, frames);
    b.receive(frame_at(&segment), false, now);
    for (int i = 0; i < 5; ++i) {
      pass_frames(a, b, now, frames);
      pass_frames(b, a, now, frames);
    }
    EXPECT_LT(frames, 20U);
    EXPECT_EQ(a.view(*from_a)->state, SendState::open);
    EXPECT_EQ(b.view(*from_b)->state, SendState::open);
  }
}

/// MUST-63 of RFC 9293 and RFC 1122, 3.2.1.3: nothing is sent to what cannot be a host.
TEST_P(SenderTest, AnswersNobodyWhoIsNoHost) {
  std::vector<const char*> nobodies = {"::", "::1", "ff02::1", "ff0e::7"};
  if (is_ipv4()) {
    nobodies = {"0.0.0.0",   "0.0.0.1",         "127.0.0.1", "127.255.255.254",
                "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255"};
  }
  nobodies.push_back(ends_.address);
  for (const char* const nobody : nobodies) {
    peer_.header().source = *parse_ip(nobody);
    peer_.header().tcp.destination_port = 40'000;
    for (const std::uint8_t flags : {packet::kTcpSyn, packet::kTcpAck}) peer_.send_plain(1, 1, flags, now_);
    EXPECT_TRUE(frames().empty()) << nobody;
    EXPECT_FALSE(sender_.connect({*parse_ip(nobody), kPort}, kOurMac, now_)) << nobody;  // MUST-46
  }
  EXPECT_EQ(sender_.counters().get(Disposition::unrelated), 2 * nobodies.size());
  peer_.header().source = peer_address().address;
  peer_.send_plain(1, 1, packet::kTcpSyn, now_);
  EXPECT_EQ(frames().size(), 1U);
}

/// MUST-57: nothing that is sent to a group or a broadcast address is taken.
TEST_P(SenderTest, TakesNothingThatIsSentToGroups) {
  std::vector<const char*> groups = {"ff02::1", "ff0e::7", "ff02::1:ff00:2"};
  if (is_ipv4()) groups = {"224.0.0.1", "255.255.255.255", "10.0.0.255"};
  for (const char* const group : groups) {
    peer_.header().destination = *parse_ip(group);
    peer_.send_plain(1, 1, packet::kTcpSyn, now_);
  }
  peer_.header().destination = *parse_ip(ends_.address);
  peer_.header().destination_mac = MacAddress{{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}};
  peer_.send_plain(1, 1, packet::kTcpSyn, now_);
  EXPECT_TRUE(frames().empty());
  EXPECT_EQ(sender_.counters().get(Disposition::unrelated), 4U);
}

}  // namespace
}  // namespace warpline::stream
