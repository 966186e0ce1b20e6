// SPDX-License-Identifier: Apache-2.0
// Frames of a StreamReceiver through a port: answered, received, replied to, kept while the device takes none, and
// every buffer given back; by the queue's own thread and by lanes.
#include "warpline/stream_port/stream_port.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <rte_ethdev.h>

#include "warpline/packet/headers/arp.h"
#include "warpline/packet/headers/ethernet.h"
#include "warpline/packet/headers/tcp.h"
#include "warpline/packet/parse.h"
#include "warpline/packet/tcp_frame.h"
#include "warpline/packet/verify.h"
#include "warpline/port/ring_pair.h"
#include "warpline/runtime/eal_environment.h"
#include "warpline/stream/lanes/thread_lane.h"

namespace warpline {
namespace {

const auto* const kEal = testing::AddGlobalTestEnvironment(new runtime::EalEnvironment(1));

using RawFrame = std::vector<std::uint8_t>;

constexpr MacAddress kPeer{{2, 0, 0, 0, 0, 9}};
constexpr Ipv4Address kPeerIp{{10, 0, 0, 9}};
constexpr Ipv4Address kOurIp{{10, 0, 0, 1}};

RawFrame arp_request() {
  packet::ArpPacket arp;
  arp.operation = packet::kArpRequest;
  arp.sender_mac = kPeer;
  arp.sender_ip = kPeerIp;
  arp.target_ip = kOurIp;
  RawFrame frame(60);
  std::memset(frame.data(), 0xff, 6);
  std::memcpy(frame.data() + 6, kPeer.bytes.data(), 6);
  packet::store_be16(frame.data() + 12, packet::kEtherTypeArp);
  packet::emit(arp, frame.data() + packet::EthernetView::kHeaderLength);
  return frame;
}

enum class TakenBy : std::uint8_t { queue, lanes, acknowledging_lanes, queues, acknowledging_queues };

bool acknowledges(TakenBy by) { return by == TakenBy::acknowledging_lanes || by == TakenBy::acknowledging_queues; }

class StreamPorts : public testing::TestWithParam<TakenBy> {
 protected:
  static constexpr std::uint16_t kRing = 64;
  static constexpr std::uint16_t kQueues = 2;

  void SetUp() override {
    const auto ids = *port::make_ring_pair(kQueues, kRing, runtime::kAnyNode);
    port::PortSettings settings;
    settings.rx_ring = settings.tx_ring = kRing;
    settings.addresses = {{kOurIp, 24}};
    stream::ReceiverSettings receiver;
    receiver.ports = {80};
    receiver.connections = receiver.half_open = 256;
    receiver.ring_bytes = 64 << 10;
    receiver.secret[1] = 5;
    stream_port::LaneSetup lanes{.burst = 32, .slots = 4};
    receiver.lane_acknowledges = acknowledges(GetParam());
    if (GetParam() >= TakenBy::queues) lanes.queue_slots = 64;
    if (GetParam() != TakenBy::queue) {
      lanes.make = [](const stream::LaneShape& shape, std::uint16_t) { return stream::make_thread_lane(shape); };
    }
    auto opened = stream_port::StreamPort::open(settings, {.cache = 32}, receiver, now_, ids.first, kQueues, 0, lanes);
    ASSERT_TRUE(opened.ok()) << opened.error().message();
    ours_ = std::move(opened).value();
    static unsigned made = 0;
    pool_.emplace(*memory::PacketPool::make("peer" + std::to_string(made++), 1023, 32, 2048, runtime::kAnyNode));
    theirs_.emplace(*port::Port::adopt(ids.second));
    ASSERT_TRUE(theirs_->configure(settings, {.rx = kQueues, .tx = kQueues}).ok());
    ASSERT_TRUE(theirs_->attach(pool_->get()).ok());
    ASSERT_TRUE(theirs_->start().ok());
  }

  void TearDown() override {
    for (std::uint16_t i = 0; i < kQueues; ++i) {
      const stream_port::StreamQueueCounters& frames = ours_->queue(i).counters();
      std::uint64_t accounted =
          frames.answered.get() + frames.not_answered.get() + frames.too_many_pieces.get() + frames.other_vlan.get();
      for (const Counter& count : ours_->queue(i).receiver().counters().dispositions) accounted += count.get();
      if (counted_) {
        EXPECT_EQ(frames.received.get(), accounted);
      }
      take(i);
    }
    ours_->close();
    theirs_.reset();
    EXPECT_EQ(ours_->leaked(), 0U);
    EXPECT_EQ(pool_->in_use(), 0U);
  }

  void give(std::span<const std::uint8_t> bytes, std::uint16_t queue = 0) {
    rte_mbuf* mbuf = rte_pktmbuf_alloc(pool_->get());
    ASSERT_NE(mbuf, nullptr);
    std::memcpy(rte_pktmbuf_append(mbuf, static_cast<std::uint16_t>(bytes.size())), bytes.data(), bytes.size());
    ASSERT_EQ(rte_eth_tx_burst(theirs_->id(), queue, &mbuf, 1), 1);
  }

  std::vector<RawFrame> take(std::uint16_t queue = 0) {
    std::vector<RawFrame> frames;
    rte_mbuf* burst[kRing];
    while (const std::uint16_t count = rte_eth_rx_burst(theirs_->id(), queue, burst, kRing)) {
      for (std::uint16_t i = 0; i < count; ++i) {
        const auto* const bytes = rte_pktmbuf_mtod(burst[i], const std::uint8_t*);
        frames.emplace_back(bytes, bytes + burst[i]->data_len);
        rte_pktmbuf_free(burst[i]);
      }
    }
    return frames;
  }

  void turn() {
    now_.value += 1000;
    for (std::uint16_t i = 0; i < kQueues; ++i) {
      (void)ours_->queue(i).receive(now_);
      while (!ours_->queue(i).settle(now_)) std::this_thread::yield();
      EXPECT_FALSE(ours_->queue(i).failure(now_));
      (void)ours_->queue(i).send(now_);
    }
  }

  /// Asks for the port's MAC address, as a neighbour does.
  void resolve() {
    give(arp_request());
    turn();
    const std::vector<RawFrame> answers = take();
    ASSERT_EQ(answers.size(), 1U);
    std::memcpy(mac_.bytes.data(), answers[0].data() + 6, 6);
  }

  void give_segment(std::uint16_t port, std::uint8_t flags, std::uint32_t sequence, std::uint32_t acknowledgement,
                    std::span<const std::uint8_t> payload = {}, std::uint16_t queue = 0) {
    packet::TcpFrame frame;
    frame.destination_mac = mac_;
    frame.source_mac = kPeer;
    frame.source = kPeerIp;
    frame.destination = kOurIp;
    frame.tcp.source_port = port;
    frame.tcp.destination_port = 80;
    frame.tcp.flags = flags;
    frame.tcp.sequence = sequence;
    frame.tcp.acknowledgement = acknowledgement;
    RawFrame bytes(packet::tcp_headers_length(frame) + payload.size());
    packet::ChecksumSum sum;
    const auto length = static_cast<std::uint32_t>(payload.size());
    sum.add(payload.data(), length);
    const std::uint32_t headers = packet::emit(frame, bytes, length, sum);
    std::copy(payload.begin(), payload.end(), bytes.begin() + headers);
    give(bytes, queue);
  }

  static packet::TcpHeader tcp_of(RawFrame& frame) {
    Segment segment{frame.data(), static_cast<std::uint32_t>(frame.size()), 0, Verdict::forward};
    const packet::ParsedFrame parsed = packet::parse(frame_at(&segment));
    EXPECT_EQ(packet::verify_checksums(frame_at(&segment), parsed), Verdict::forward);
    packet::TcpHeader tcp;
    EXPECT_EQ(packet::parse(frame.data() + parsed.l4_offset, packet::l4_total(parsed), tcp), Verdict::forward);
    return tcp;
  }

  Nanos now_{1};
  bool counted_ = true;  ///< whether all frames are to be accounted for: not those that a lane had in hand at the end
  MacAddress mac_;
  std::unique_ptr<stream_port::StreamPort> ours_;
  std::optional<memory::PacketPool> pool_;
  std::optional<port::Port> theirs_;
};

TEST_P(StreamPorts, AnswersNeighboursAndReceivesAConnection) {
  resolve();
  give_segment(1, packet::kTcpSyn, 100, 0);
  turn();
  std::vector<RawFrame> replies = take();
  ASSERT_EQ(replies.size(), 1U);
  EXPECT_GE(replies[0].size(), 60U);  // the shortest frame of Ethernet
  const packet::TcpHeader answer = tcp_of(replies[0]);
  EXPECT_EQ(answer.flags, packet::kTcpSyn | packet::kTcpAck);
  const RawFrame payload = {1, 2, 3, 4, 5};
  give_segment(1, packet::kTcpAck, 101, answer.sequence + 1, payload);
  turn();
  const auto event = ours_->queue().receiver().poll();
  ASSERT_TRUE(event);
  const auto view = ours_->queue().receiver().view(event->connection);
  EXPECT_EQ(RawFrame(view->bytes.begin(), view->bytes.end()), payload);
  now_.value += 1'000'000'000;  // the acknowledgement was delayed
  turn();
  replies = take();
  ASSERT_EQ(replies.size(), 1U);
  EXPECT_EQ(tcp_of(replies[0]).acknowledgement, 106U);
  EXPECT_EQ(ours_->queue().counters().answered.get(), 1U);
  EXPECT_EQ(ours_->queue().counters().sent.get(), 3U);
}

TEST_P(StreamPorts, AcknowledgesTwoSegmentsAtOnce) {
  resolve();
  give_segment(1, packet::kTcpSyn, 100, 0);
  turn();
  std::vector<RawFrame> replies = take();
  ASSERT_EQ(replies.size(), 1U);
  const std::uint32_t ours = tcp_of(replies[0]).sequence + 1;
  give_segment(1, packet::kTcpAck, 101, ours);
  turn();
  const RawFrame payload(5, 7);
  give_segment(1, packet::kTcpAck, 101, ours, payload);
  give_segment(1, packet::kTcpAck, 106, ours, payload);
  turn();
  replies = take();
  ASSERT_EQ(replies.size(), 1U);
  EXPECT_EQ(replies[0].size(), 60U);
  EXPECT_EQ(tcp_of(replies[0]).acknowledgement, 111U);
  EXPECT_EQ(tcp_of(replies[0]).sequence, ours);
  const stream::ReceiverCounters& counters = ours_->queue().receiver().counters();
  EXPECT_EQ(counters.acknowledgements.get(), 1U);
  EXPECT_EQ(counters.lane_acknowledgements.get(), acknowledges(GetParam()) ? 1U : 0U);
}

TEST_P(StreamPorts, GoesOnForMinutesBehindBytesAndAResetInOneBurst) {
  resolve();
  stream::StreamReceiver& receiver = ours_->queue().receiver();
  give_segment(1, packet::kTcpSyn, 100, 0);
  turn();
  std::vector<RawFrame> replies = take();
  ASSERT_EQ(replies.size(), 1U);
  const std::uint32_t ours = tcp_of(replies[0]).sequence + 1;
  give_segment(1, packet::kTcpAck, 101, ours);
  turn();
  const RawFrame payload(100, 7);
  give_segment(1, packet::kTcpAck, 101, ours, payload);
  give_segment(1, packet::kTcpRst, 201, 0);
  turn();
  std::optional<stream::StreamEvent> last;
  while (const auto event = receiver.poll()) last = event;
  ASSERT_TRUE(last);
  EXPECT_EQ(last->state, stream::ConnectionState::reset);
  EXPECT_EQ(last->readable, payload.size());
  receiver.close(last->connection, now_);
  turn();
  ASSERT_EQ(receiver.next_deadline().value, std::numeric_limits<std::int64_t>::max()) << "no connection is left";
  give_segment(2, packet::kTcpSyn, 100, 0);  // its handshake is never finished: it is given up after 255 s
  turn();
  for (int second = 0; second < 300; ++second) {
    now_.value += 1'000'000'000;  // a lane's thread has far less: it is not asked whether it hangs
    (void)ours_->queue().receive(now_);
    (void)ours_->queue().send(now_);
    (void)take();
  }
  EXPECT_EQ(receiver.connections(), 0U);
  give(arp_request());
  turn();
  EXPECT_EQ(take().size(), 1U) << "neighbours are answered";
}

TEST_P(StreamPorts, DropsFramesOfOtherVlansByName) {
  const auto tagged = [](std::uint16_t control, std::uint16_t type = packet::kEtherTypeVlan) {
    RawFrame frame = arp_request();
    const RawFrame tag = {static_cast<std::uint8_t>(type >> 8), static_cast<std::uint8_t>(type),
                          static_cast<std::uint8_t>(control >> 8), static_cast<std::uint8_t>(control)};
    frame.insert(frame.begin() + 12, tag.begin(), tag.end());
    return frame;
  };
  give(tagged(7));
  give(tagged(0x6007));
  give(tagged(0, packet::kEtherTypeService));
  RawFrame nested = tagged(0);
  nested.insert(nested.begin() + 12, {0x81, 0, 0, 0});
  give(nested);
  RawFrame cut = tagged(0);
  cut.resize(15);
  give(cut);
  turn();
  EXPECT_EQ(ours_->queue().counters().other_vlan.get(), 5U);
  EXPECT_TRUE(take().empty());
  // Of priority alone: it is in no VLAN, and neither is the answer.
  give(tagged(0x6000));
  turn();
  const std::vector<RawFrame> answers = take();
  ASSERT_EQ(answers.size(), 1U);
  EXPECT_EQ(packet::EthernetView(answers[0].data()).ether_type(), packet::kEtherTypeArp);
}

TEST_P(StreamPorts, EachQueueHasConnectionsOfItsOwn) {
  resolve();
  for (std::uint16_t queue = 0; queue < kQueues; ++queue) {
    give_segment(7, packet::kTcpSyn, 100, 0, {}, queue);
    turn();
    std::vector<RawFrame> replies = take(queue);
    ASSERT_EQ(replies.size(), 1U);
    const RawFrame payload(10 + queue, 1);
    give_segment(7, packet::kTcpAck, 101, tcp_of(replies[0]).sequence + 1, payload, queue);
    turn();
    EXPECT_EQ(ours_->queue(queue).receiver().connections(), 1U);
    EXPECT_EQ(ours_->queue(queue).receiver().counters().bytes.get(), payload.size());
    give(arp_request(), queue);  // whom the neighbour asks is up to the device
    turn();
    EXPECT_EQ(take(queue).size(), 1U);
  }
}

TEST_P(StreamPorts, KeepsRepliesUntilTheDeviceTakesThem) {
  resolve();
  constexpr std::uint16_t kOpenings = 200;
  for (std::uint16_t i = 0; i < kOpenings; ++i) {
    give_segment(static_cast<std::uint16_t>(1000 + i), packet::kTcpSyn, 100, 0);
    if (i % 50 == 49) turn();
  }
  turn();
  // The peer has read nothing so far: its ring is full, and the rest waits here.
  EXPECT_LE(ours_->queue().counters().sent.get(), std::uint64_t{kRing} + 1);
  std::vector<bool> answered(kOpenings);
  for (int i = 0; i < 10; ++i) {
    for (RawFrame& frame : take()) {
      const packet::TcpHeader tcp = tcp_of(frame);
      ASSERT_GE(tcp.destination_port, 1000);
      ASSERT_LT(tcp.destination_port, 1000 + kOpenings);
      EXPECT_FALSE(answered[tcp.destination_port - 1000U]) << "twice";
      answered[tcp.destination_port - 1000U] = true;
    }
    turn();
  }
  EXPECT_EQ(std::count(answered.begin(), answered.end(), true), kOpenings);
}

TEST_P(StreamPorts, DropsAnswersForWhichThereIsNoRoom) {
  resolve();
  for (int i = 0; i < 200; ++i) {
    give_segment(static_cast<std::uint16_t>(1000 + i), packet::kTcpSyn, 100, 0);
    if (i % 50 == 49) turn();
  }
  for (int i = 0; i < 100; ++i) {
    give(arp_request());
    if (i % 50 == 49) turn();
  }
  EXPECT_GT(ours_->queue().counters().not_answered.get(), 0U);
  EXPECT_EQ(ours_->queue().counters().answered.get() + ours_->queue().counters().not_answered.get(), 101U);
}

TEST_P(StreamPorts, GivesBuffersBackThatALaneHasInHand) {
  resolve();
  for (std::uint16_t i = 0; i < 40; ++i) give_segment(static_cast<std::uint16_t>(1000 + i), packet::kTcpSyn, 100, 0);
  now_.value += 1000;
  (void)ours_->queue().receive(now_);  // TearDown() looks for those that are left
  if (GetParam() != TakenBy::queue) {
    while (!ours_->queue().settle(now_)) std::this_thread::yield();
    for (std::uint16_t i = 0; i < 40; ++i) give_segment(static_cast<std::uint16_t>(2000 + i), packet::kTcpSyn, 100, 0);
    (void)ours_->queue().receive(now_);
    ours_->queue().close();
    EXPECT_EQ(ours_->queue().receiver().in_flight(), 0U);
    counted_ = false;
  }
}

std::string name_of(const testing::TestParamInfo<TakenBy>& test) {
  const char* const names[] = {"Queue", "Lanes", "AcknowledgingLanes", "Queues", "AcknowledgingQueues"};
  return names[static_cast<std::size_t>(test.param)];
}

INSTANTIATE_TEST_SUITE_P(By, StreamPorts,
                         testing::Values(TakenBy::queue, TakenBy::lanes, TakenBy::acknowledging_lanes, TakenBy::queues,
                                         TakenBy::acknowledging_queues),
                         name_of);

TEST(StreamPort, RefusesWhatItCannotListenWith) {
  port::PortSettings settings;
  settings.spec = "net_null0";
  EXPECT_EQ(stream_port::StreamPort::open(settings, {}, {}, Nanos{1}).error().kind, ErrorKind::usage);
  settings.addresses = {{kOurIp, 24}};
  EXPECT_EQ(stream_port::StreamPort::open(settings, {.data_room = 64}, {}, Nanos{1}).error().kind, ErrorKind::usage);
  const auto open = [&](std::uint16_t queues, std::uint16_t vlan) {
    const auto opened = stream_port::StreamPort::open(settings, {}, {}, Nanos{1}, std::nullopt, queues, vlan);
    return opened.ok() ? std::string() : opened.error().message();
  };
  EXPECT_EQ(open(0, 0), "cannot use port net_null0 without queues: frames come and go by them; use one or more");
  EXPECT_EQ(open(1, 4095), "cannot use VLAN 4095: there is none; use 1 to 4094, or 0 for untagged frames");
}

}  // namespace
}  // namespace warpline
