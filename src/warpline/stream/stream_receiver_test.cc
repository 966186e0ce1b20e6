// SPDX-License-Identifier: Apache-2.0
#include "warpline/stream/stream_receiver.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <deque>
#include <utility>
#include <vector>

#include "warpline/base/property_testing.h"
#include "warpline/stream/stream_receiver_fixture_testing.h"

namespace warpline::stream {
namespace {

using testing::consume;
using testing::milliseconds;
using testing::Peer;
using testing::receiver_with;
using testing::ReceiverTest;
using testing::replies_of;
using testing::Reply;
using testing::small_settings;
using testing::window_of;

constexpr std::uint8_t kFinAck = packet::kTcpFin | packet::kTcpAck;

TEST_F(ReceiverTest, OpensAndStores) {
  Peer peer(receiver_, 40000, 0xffff'fff0);
  const ConnectionId id = open(peer);
  peer.send(0, 100, now_);
  peer.send(100, 50, now_);
  receiver_.end_burst(now_);
  const auto event = receiver_.poll();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->connection, id);
  EXPECT_EQ(event->readable, 150U);
  const auto view = receiver_.view(id);
  ASSERT_TRUE(view);
  EXPECT_EQ(to_string(view->peer), "10.0.0.2:40000");
  EXPECT_EQ(to_string(view->local), "10.0.0.1:5001");
  EXPECT_EQ(consume(receiver_, id), 150U);
  EXPECT_EQ(receiver_.counters().opened.get(), 1U);
  EXPECT_EQ(receiver_.counters().bytes.get(), 150U);
}

TEST_F(ReceiverTest, AnswersASynWithWhatWasOfferedOnly) {
  Peer plain(receiver_, 40000, 5);
  plain.offers_options = false;
  plain.send_syn(now_);
  std::vector<Reply> replies = take_replies();
  ASSERT_EQ(replies.size(), 1U);
  EXPECT_EQ(replies[0].mss, 1460);
  EXPECT_FALSE(replies[0].scale);
  EXPECT_FALSE(replies[0].selective);
  EXPECT_FALSE(replies[0].has_timestamp);
  EXPECT_EQ(replies[0].tcp().acknowledgement, 6U);

  Peer full(receiver_, 40001, 5);
  full.send_syn(now_);
  replies = take_replies();
  ASSERT_EQ(replies.size(), 1U);
  EXPECT_EQ(replies[0].scale, 1);
  EXPECT_TRUE(replies[0].selective);
  EXPECT_TRUE(replies[0].has_timestamp);
  EXPECT_EQ(replies[0].timestamp_echo, 1001U);

  ReceiverSettings settings = small_settings();
  settings.address = *parse_ip("fd00::1");
  use(settings);
  Peer other(receiver_, 40000, 5);
  other.header().destination = settings.address;
  other.header().source = *parse_ip("2001:db8::7");
  other.send_syn(now_);
  replies = take_replies();
  ASSERT_EQ(replies.size(), 1U);
  EXPECT_EQ(replies[0].mss, 1440);  // RFC 9293, 3.7.1: the MTU less 60
}

TEST_F(ReceiverTest, AcknowledgesTwoSegmentsAtOnceAndOneLater) {
  open();
  peer_.send(0, 1000, now_);
  EXPECT_TRUE(finish_burst().empty());
  EXPECT_GT(receiver_.next_deadline(), now_);
  now_ = milliseconds(45);
  receiver_.advance(now_);
  std::vector<Reply> replies = take_replies();
  ASSERT_EQ(replies.size(), 1U);
  EXPECT_EQ(replies[0].tcp().acknowledgement, peer_.sequence(1000));
  peer_.send(1000, 1000, now_);
  peer_.send(2000, 1000, now_);
  replies = finish_burst();
  ASSERT_EQ(replies.size(), 1U);
  EXPECT_EQ(replies[0].tcp().acknowledgement, peer_.sequence(3000));
}

TEST_F(ReceiverTest, TellsHolesAndDuplicatesTheLatestFirst) {
  open();
  peer_.send(1000, 100, now_);
  peer_.send(3000, 100, now_);
  peer_.send(2000, 100, now_);
  peer_.send(3000, 50, now_);
  const std::vector<Reply> replies = finish_burst();
  ASSERT_EQ(replies.size(), 1U);
  const auto block = [&](std::uint64_t begin, std::uint64_t end) {
    return std::pair(peer_.sequence(begin), peer_.sequence(end));
  };
  EXPECT_EQ(replies[0].tcp().acknowledgement, peer_.sequence(0));
  // With timestamps three blocks find place: the duplicate and the range that it is a part of (RFC 2883, section 4),
  // then the range that grew last (RFC 2018, section 4).
  EXPECT_EQ(replies[0].blocks, (std::vector{block(3000, 3050), block(3000, 3100), block(2000, 2100)}));
}

TEST_F(ReceiverTest, OffersTheLargestScaleThatThereIs) {
  for (const std::uint64_t ring : {std::uint64_t{1} << 29, std::uint64_t{1} << 30}) {
    ReceiverSettings settings = small_settings();
    settings.ring_bytes = ring;
    settings.connections = 1;
    settings.discards = true;
    use(settings);
    Peer peer(receiver_, 40000, 7);
    peer.send_syn(now_);
    std::vector<Reply> replies = take_replies();
    ASSERT_EQ(replies.size(), 1U);
    EXPECT_EQ(replies[0].scale, 14) << "a peer uses 14 where more is offered (RFC 7323, 2.3)";
    peer.acknowledgement = replies[0].tcp().sequence + 1;
    peer.echo = replies[0].timestamp;
    peer.send(0, 1, now_, packet::kTcpAck | packet::kTcpFin);
    replies = finish_burst();
    ASSERT_EQ(replies.size(), 1U);
    EXPECT_EQ(window_of(replies[0], 14), std::min(ring - (1 << 14), std::uint64_t{0xffff} << 14));
  }
}

TEST_F(ReceiverTest, AcknowledgesEverySecondSegmentAlsoWithoutAScale) {
  ReceiverSettings settings = small_settings();
  settings.ring_bytes = 4 << 20;
  use(settings);
  peer_.offers_options = false;
  const ConnectionId id = open();
  constexpr std::uint32_t kSegments = 1000;
  std::size_t acknowledgements = 0;
  for (std::uint32_t i = 0; i < kSegments; ++i) {
    peer_.send(std::uint64_t{i} * 1460, 1460, now_);
    receiver_.end_burst(now_);
    EXPECT_EQ(consume(receiver_, id), 1460U);
    acknowledgements += take_replies().size();
  }
  EXPECT_EQ(acknowledgements, kSegments / 2);  // RFC 9293, SHLD-19
}

TEST_F(ReceiverTest, OpensAWindowWithoutAScaleThatWasClosed) {
  ReceiverSettings settings = small_settings();
  settings.ring_bytes = 256 << 10;
  use(settings);
  peer_.offers_options = false;
  const ConnectionId id = open();
  std::uint64_t sent = 0;
  for (std::uint64_t end = 65'535; sent < end;) {
    for (; sent < end; sent += std::min<std::uint64_t>(1024, end - sent)) {
      peer_.send(sent, static_cast<std::uint32_t>(std::min<std::uint64_t>(1024, end - sent)), now_);
    }
    const std::vector<Reply> replies = finish_burst();
    ASSERT_EQ(replies.size(), 1U);
    ASSERT_EQ(replies[0].tcp().acknowledgement, peer_.sequence(sent));
    end = sent + replies[0].tcp().window;
  }
  EXPECT_GT(sent + 1460, settings.ring_bytes);
  ASSERT_TRUE(receiver_.release(id, 1000));
  EXPECT_TRUE(take_replies().empty()) << "less than a segment";
  ASSERT_TRUE(receiver_.release(id, 99'000));
  const std::vector<Reply> replies = take_replies();
  ASSERT_EQ(replies.size(), 1U);
  EXPECT_EQ(replies[0].tcp().window, 65'535);
}

TEST_F(ReceiverTest, ClosesTheWindowAndOpensItAgain) {
  const ConnectionId id = open();
  const std::uint64_t ring = small_settings().ring_bytes;
  std::uint64_t sent = 0;
  while (sent < ring) {
    peer_.send(sent, 1024, now_);
    sent += 1024;
  }
  std::vector<Reply> replies = finish_burst();
  ASSERT_FALSE(replies.empty());
  EXPECT_EQ(window_of(replies.back(), 1), 0U);
  peer_.send(sent, 1, now_);  // a probe
  replies = finish_burst();
  ASSERT_EQ(replies.size(), 1U);
  EXPECT_EQ(replies[0].tcp().acknowledgement, peer_.sequence(ring));
  EXPECT_EQ(receiver_.counters().get(Disposition::outside_window), 1U);

  ASSERT_TRUE(receiver_.release(id, 100));
  EXPECT_TRUE(take_replies().empty()) << "a window too small for a segment was announced";
  ASSERT_TRUE(receiver_.release(id, 30000));
  replies = take_replies();
  ASSERT_EQ(replies.size(), 1U);
  EXPECT_EQ(window_of(replies[0], 1), 30100U);
  EXPECT_FALSE(receiver_.release(id, ring)) << "more than there is";
}

TEST_F(ReceiverTest, GoesAroundTheRingInOnePiece) {
  const ConnectionId id = open();
  std::uint64_t sent = 0;
  for (int round = 0; round < 40; ++round) {
    for (int i = 0; i < 7; ++i, sent += 1001) peer_.send(sent, 1001, now_);
    (void)finish_burst();
    ASSERT_EQ(consume(receiver_, id), 7007U);
  }
}

TEST_F(ReceiverTest, TakesTheMemoryOfItsRingsAtOnceIfAsked) {
  const auto pages = [](bool populate) {
    ReceiverSettings settings = small_settings();
    settings.ring_bytes = 1 << 20;
    settings.populate_rings = populate;
    StreamReceiver receiver = receiver_with(settings);
    Peer peer(receiver, 40000, 7);
    EXPECT_TRUE(peer.open(milliseconds(1)));
    peer.send(0, 1, milliseconds(1));
    receiver.end_burst(milliseconds(1));
    // The first byte of the stream lies at the beginning of the ring.
    const std::uint8_t* const ring = receiver.view(receiver.poll()->connection)->bytes.data();
    std::vector<unsigned char> there(settings.ring_bytes / static_cast<std::uint64_t>(getpagesize()));
    EXPECT_EQ(mincore(const_cast<std::uint8_t*>(ring), settings.ring_bytes, there.data()), 0);
    return std::pair(std::ranges::count_if(there, [](unsigned char page) { return (page & 1) != 0; }),
                     static_cast<std::ptrdiff_t>(there.size()));
  };
  const auto [taken, all] = pages(true);
  EXPECT_EQ(taken, all);
  EXPECT_EQ(pages(false).first, 1);
}

TEST_F(ReceiverTest, TellsHowFarUrgentBytesGo) {
  const ConnectionId id = open();
  peer_.header().tcp.urgent = 300;
  peer_.send(0, 100, now_, packet::kTcpAck | packet::kTcpUrg);
  const auto event = receiver_.poll();
  ASSERT_TRUE(event);
  EXPECT_EQ(receiver_.view(id)->urgent_end, 300U);
  peer_.header().tcp.urgent = 10;
  peer_.send(100, 100, now_, packet::kTcpAck | packet::kTcpUrg);
  peer_.send(200, 100, now_);
  EXPECT_EQ(receiver_.view(id)->urgent_end, 300U);
  EXPECT_EQ(consume(receiver_, id), 300U);  // in their place among the others
}

/// RFC 9293, 3.9.2.3 (MUST-57, MUST-63), with the addresses of RFC 1122, 3.2.1.3, and RFC 4291, 2.5 to 2.7.
TEST_F(ReceiverTest, AnswersNobodyWhoIsNoHost) {
  const std::pair<const char*, std::vector<const char*>> families[] = {
      {"10.0.0.1",
       {"0.0.0.0", "0.0.0.1", "127.0.0.1", "127.255.255.254", "224.0.0.1", "239.255.255.255", "240.0.0.1",
        "255.255.255.255", "10.0.0.1"}},
      {"fd00::1", {"::", "::1", "ff02::1", "ff0e::7", "fd00::1"}},
  };
  constexpr std::uint8_t kFlags[] = {packet::kTcpSyn, packet::kTcpAck, packet::kTcpSyn | packet::kTcpAck,
                                     packet::kTcpFin | packet::kTcpAck};
  for (const auto& [ours, nobodies] : families) {
    ReceiverSettings settings = small_settings();
    settings.address = *parse_ip(ours);
    use(settings);
    std::uint64_t sent = 0;
    const auto send = [&](const IpAddress& source, const IpAddress& destination) {
      Peer peer(receiver_, 40000, 7);
      peer.header().source = source;
      peer.header().destination = destination;
      for (const std::uint16_t port : {testing::kPort, std::uint16_t{9}}) {
        peer.header().tcp.destination_port = port;
        for (const std::uint8_t flags : kFlags) {
          peer.send_raw(7, flags, {}, now_);
          ++sent;
        }
      }
      EXPECT_TRUE(finish_burst().empty()) << to_string(source) << " to " << to_string(destination);
    };
    for (const char* const nobody : nobodies) send(*parse_ip(nobody), settings.address);
    const bool v4 = std::holds_alternative<Ipv4Address>(settings.address);
    for (const char* const group : {v4 ? "224.0.0.1" : "ff02::1", v4 ? "255.255.255.255" : "ff0e::7"}) {
      send(*parse_ip(v4 ? "10.0.0.2" : "fd00::2"), *parse_ip(group));
    }
    EXPECT_EQ(receiver_.counters().get(Disposition::unrelated), sent);
    EXPECT_EQ(receiver_.connections(), 0U);
  }
}

TEST_F(ReceiverTest, AnswersNobodyWithAnAddressOfTheOtherFamily) {
  ReceiverSettings settings = small_settings();
  settings.address = *parse_ip("fd00::1");
  use(settings);
  for (const char* source : {"::ffff:a00:2", "fd00::2"}) {
    Peer peer(receiver_, 40000, 7);
    peer.header().destination = settings.address;
    peer.header().source = *parse_ip(source);
    peer.send_syn(now_);
  }
  EXPECT_EQ(receiver_.counters().get(Disposition::unrelated), 1U);
  EXPECT_EQ(take_replies().size(), 1U);
}

TEST_F(ReceiverTest, ForgetsTimestampsOfLongAgo) {
  const ConnectionId id = open();
  now_ = Nanos{now_.value + 25LL * 24 * 3600 * 1'000'000'000};  // the peer's clock has gone half around
  peer_.send(0, 100, now_);
  EXPECT_EQ(consume(receiver_, id), 100U);
}

TEST_F(ReceiverTest, IsAbortedAlsoBehindItsEnd) {
  const ConnectionId id = open();
  peer_.send(0, 100, now_, packet::kTcpAck | packet::kTcpFin);
  (void)finish_burst();
  EXPECT_EQ(receiver_.view(id)->state, ConnectionState::finished);
  receiver_.abort(id, now_);
  const std::vector<Reply> replies = take_replies();
  ASSERT_EQ(replies.size(), 1U);
  EXPECT_TRUE(replies[0].has(packet::kTcpRst));
  EXPECT_EQ(replies[0].tcp().sequence, peer_.acknowledgement);
  EXPECT_EQ(replies[0].tcp().acknowledgement, peer_.sequence(101));
  EXPECT_FALSE(receiver_.view(id));
  EXPECT_EQ(receiver_.connections(), 0U);
  EXPECT_EQ(receiver_.counters().aborted.get(), 0U);
}

TEST_F(ReceiverTest, AcknowledgesTheBytesBeforeAnEndAtOnce) {
  open();
  peer_.send(100, 0, now_, kFinAck);
  EXPECT_EQ(finish_burst().size(), 1U);
  peer_.send(0, 100, now_);
  const std::vector<Reply> replies = finish_burst();
  ASSERT_EQ(replies.size(), 1U);
  EXPECT_EQ(replies[0].tcp().acknowledgement, peer_.sequence(101));
}

TEST_F(ReceiverTest, EndsInOrder) {
  const ConnectionId id = open();
  peer_.send(0, 10, now_, kFinAck);
  std::vector<Reply> replies = finish_burst();
  ASSERT_EQ(replies.size(), 1U);
  EXPECT_EQ(replies[0].tcp().acknowledgement, peer_.sequence(11));
  const auto event = receiver_.poll();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->state, ConnectionState::finished);
  EXPECT_EQ(consume(receiver_, id), 10U);
  receiver_.close(id, now_);
  EXPECT_FALSE(receiver_.view(id));
  replies = take_replies();
  ASSERT_EQ(replies.size(), 1U);
  EXPECT_TRUE(replies[0].has(kFinAck));
  EXPECT_EQ(replies[0].tcp().sequence, peer_.acknowledgement);
  // Lost: it is sent again, at 1 s and 2 s more.
  for (const int at : {1002, 3003}) {
    now_ = milliseconds(at);
    receiver_.advance(now_);
    replies = take_replies();
    ASSERT_EQ(replies.size(), 1U) << at;
    EXPECT_TRUE(replies[0].has(kFinAck));
  }
  peer_.acknowledgement += 1;
  peer_.send(11, 0, now_);
  EXPECT_EQ(receiver_.connections(), 0U);
}

TEST_F(ReceiverTest, GivesUpOnAPeerThatDoesNotAcknowledgeTheEnd) {
  const ConnectionId id = open();
  peer_.send(0, 0, now_, kFinAck);
  receiver_.close(id, now_);
  for (int second = 1; second < 300; ++second) {
    now_ = milliseconds(1000 * second);
    receiver_.advance(now_);
    (void)take_replies();
    if (second == 100) {
      EXPECT_EQ(receiver_.connections(), 1U) << "R2 is at least 100 s (RFC 9293, 3.8.3)";
    }
  }
  EXPECT_EQ(receiver_.connections(), 0U);
}

TEST_F(ReceiverTest, AbortsWhatIsClosedBeforeItsEnd) {
  const ConnectionId id = open();
  peer_.send(0, 10, now_);
  receiver_.close(id, now_);
  const std::vector<Reply> replies = take_replies();
  ASSERT_EQ(replies.size(), 1U);
  EXPECT_TRUE(replies[0].has(packet::kTcpRst));
  EXPECT_EQ(replies[0].tcp().sequence, peer_.acknowledgement);
  EXPECT_EQ(receiver_.connections(), 0U);
  EXPECT_EQ(receiver_.counters().aborted.get(), 1U);
}

TEST_F(ReceiverTest, TellsOfAPeerThatGivesNoSignOfLife) {
  ReceiverSettings settings = small_settings();
  settings.keepalive_idle = milliseconds(10'000);
  settings.keepalive_interval = milliseconds(1'000);
  settings.keepalive_probes = 3;
  use(settings);
  const ConnectionId id = open();
  std::size_t probes = 0;
  for (int second = 1; second < 20; ++second) {
    now_ = milliseconds(1000 * second + 5);
    receiver_.advance(now_);
    for (const Reply& reply : take_replies()) {
      ++probes;
      EXPECT_EQ(reply.tcp().sequence, peer_.acknowledgement - 1);
      if (second == 11) peer_.send(0, 0, now_);
    }
  }
  EXPECT_EQ(receiver_.view(id)->state, ConnectionState::open);
  for (int second = 20; second < 40; ++second) {
    now_ = milliseconds(1000 * second + 5);
    receiver_.advance(now_);
    probes += take_replies().size();
  }
  EXPECT_EQ(receiver_.view(id)->state, ConnectionState::timed_out);
  EXPECT_EQ(probes, 5U);  // at 10 and 11 s, answered, then three from 21 s on
  EXPECT_EQ(receiver_.counters().timed_out.get(), 1U);
}

TEST_F(ReceiverTest, GivesAPeerTimeToAnswerThoughItWasStoppedItself) {
  ReceiverSettings settings = small_settings();
  settings.keepalive_idle = milliseconds(10'000);
  settings.keepalive_interval = milliseconds(1'000);
  settings.keepalive_probes = 3;
  use(settings);
  const ConnectionId id = open();
  std::size_t probes = 0;
  for (int millisecond = 0; millisecond < 900; ++millisecond) {
    now_ = milliseconds(1'000'000 + millisecond);
    receiver_.advance(now_);
    probes += take_replies().size();
  }
  EXPECT_EQ(probes, 1U);
  EXPECT_EQ(receiver_.view(id)->state, ConnectionState::open);
}

/// A wire that loses, repeats and overtakes between several peers and a receiver whose application pauses: peers send
/// what was not acknowledged again until all of it is.
WARPLINE_PROPERTY(ReceiverProperty, DeliversEveryByteOnceOverAnyWire, (std::uint64_t seed)) {
  Random random(seed);
  StreamReceiver receiver = receiver_with(small_settings());
  Nanos now = milliseconds(1);
  constexpr std::uint64_t kBytes = 150'000;
  struct Sender {
    Peer peer;
    ConnectionId id;
    std::uint64_t acknowledged = 0;
    std::uint64_t allowed = 0;
    std::uint64_t read = 0;
    bool done = false;
  };
  std::deque<Sender> senders;
  for (std::uint16_t i = 0; i < 3; ++i) {
    Sender& sender = senders.emplace_back(
        Sender{Peer(receiver, static_cast<std::uint16_t>(40000 + i), static_cast<std::uint32_t>(random.next())), {}});
    sender.peer.offers_options = random.below(3) != 0;
    RC_ASSERT(sender.peer.open(now));
    sender.id = receiver.poll()->connection;
    sender.allowed = 65535;
  }
  for (int round = 0; round < 20000 && !std::ranges::all_of(senders, &Sender::done); ++round) {
    now = Nanos{now.value + 5'000'000};
    for (int i = 0; i < 16; ++i) {
      Sender& sender = senders[random.below(senders.size())];
      const std::uint64_t end = std::min(sender.allowed, kBytes);
      if (sender.acknowledged >= end && sender.acknowledged < kBytes) continue;
      const std::uint64_t ahead = std::min<std::uint64_t>(end - sender.acknowledged, 20000);
      const std::uint64_t at = sender.acknowledged + (ahead == 0 || random.below(2) == 0 ? 0 : random.below(ahead));
      const auto length = static_cast<std::uint32_t>(std::min<std::uint64_t>(random.below(1461), kBytes - at));
      const std::uint8_t flags = at + length == kBytes ? kFinAck : packet::kTcpAck;
      if (random.below(10) != 0) sender.peer.send(at, length, now, flags);
      if (random.below(10) == 0) sender.peer.send(at, length, now, flags);
    }
    receiver.end_burst(now);
    receiver.advance(now);
    for (const Reply& reply : replies_of(receiver, now)) {
      if (random.below(5) == 0) continue;
      Sender& sender = senders[reply.tcp().destination_port - 40000U];
      const std::uint64_t acknowledged = reply.tcp().acknowledgement - sender.peer.sequence(0);
      RC_ASSERT(acknowledged <= kBytes + 1);
      sender.acknowledged = std::max(sender.acknowledged, std::min(acknowledged, kBytes));
      const std::uint64_t window = std::uint64_t{reply.tcp().window} << (sender.peer.offers_options ? 1 : 0);
      RC_ASSERT(acknowledged + window <= sender.read + small_settings().ring_bytes + 1);
      sender.allowed = std::max(sender.allowed, acknowledged + window);
    }
    for (Sender& sender : senders) {
      if (sender.done || random.below(3) != 0) continue;
      const auto bytes = consume(receiver, sender.id);
      RC_ASSERT(bytes);
      sender.read += *bytes;
      sender.done = receiver.view(sender.id)->state == ConnectionState::finished && sender.read == kBytes;
    }
  }
  for (const Sender& sender : senders) RC_ASSERT(sender.read == kBytes);
  RC_ASSERT(receiver.counters().bytes.get() == 3 * kBytes);
}

}  // namespace
}  // namespace warpline::stream
