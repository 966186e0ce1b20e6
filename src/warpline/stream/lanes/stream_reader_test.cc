// SPDX-License-Identifier: Apache-2.0
// Consumers beside the receiver's thread: what they read is what was sent, also when they stall, die or are late, and
// places go from one connection to the next only by their leave.
#include "warpline/stream/lanes/stream_reader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "warpline/base/random.h"
#include "warpline/stream/lanes/lane_peer_testing.h"
#include "warpline/stream/lanes/step_lane_testing.h"
#include "warpline/stream/lanes/thread_lane.h"

namespace warpline::stream::testing {
namespace {

constexpr std::uint16_t kFirstPeer = 40'000;
constexpr std::uint32_t kRing = 64 << 10;

/// A sender without options and without losses: its sequence numbers begin at 0.
struct PlainSender {
  std::uint16_t port = kFirstPeer;
  std::uint64_t bytes = 0;  ///< that it sends; its FIN, or its RST, is behind them
  bool resets = false;
  std::uint32_t acknowledgement = 0;
  std::uint64_t sent = 0;
  std::uint64_t window_end = 0;  ///< as the receiver last told
  bool opened = false;
  bool ended = false;  ///< its FIN or RST has left
  bool over = false;   ///< it has seen the other end's FIN or RST, or reset itself

  [[nodiscard]] LentFrame make(std::uint64_t offset, std::uint32_t length, std::uint8_t flags) const {
    return LanePeerFrames(port).make(static_cast<std::uint32_t>(offset + 1), acknowledgement, flags, length);
  }
  [[nodiscard]] LentFrame syn() const { return LanePeerFrames(port).make(0, 0, packet::kTcpSyn, 0); }
};

/// A receiver with a lane, by the slots of its queues (0: it has none), and senders.
class Consumers : public ::testing::TestWithParam<std::uint32_t> {
 protected:
  void begin(std::unique_ptr<SegmentLane> lane, const ReceiverSettings& settings) {
    auto made = StreamReceiver::create(settings, now_, std::move(lane));
    ASSERT_TRUE(made.ok()) << made.error().message();
    receiver_.emplace(std::move(made).value());
    lender_.emplace(*receiver_);
  }
  void begin_in_steps(ReceiverSettings settings = lane_settings()) {
    settings.consumers = true;
    auto lane = StepLane::create(lane_shape(settings, 16, 4, GetParam()));
    ASSERT_TRUE(lane.ok());
    steps_ = lane->get();
    begin(std::move(lane).value(), settings);
  }
  void TearDown() override {
    if (receiver_) receiver_->stop_lane();
  }

  /// All that is on its way arrives, and what of it is answered is sent.
  void settle() {
    do {
      lender_->turn(now_);
      while (steps_->step()) {
      }
    } while (lender_->turn(now_) || receiver_->in_flight() != 0);
    take_replies();
  }
  void take_replies() {
    for (const Reply& reply : replies_of(*receiver_, now_)) {
      for (PlainSender& sender : senders_) {
        if (sender.port == reply.tcp().destination_port) take_reply(sender, reply);
      }
    }
  }
  void take_reply(PlainSender& sender, const Reply& reply) {
    if (reply.has(packet::kTcpRst)) sender.over = true;
    if (sender.over || !reply.has(packet::kTcpAck)) return;
    if (reply.has(packet::kTcpSyn)) {
      sender.acknowledgement = reply.tcp().sequence + 1;
      sender.opened = true;
      lender_->give(sender.make(0, 0, packet::kTcpAck));
    } else if (reply.has(packet::kTcpFin)) {
      ++sender.acknowledgement;
      sender.over = true;
      lender_->give(sender.make(sender.bytes + 1, 0, packet::kTcpAck));
    }
    sender.window_end = std::max(sender.window_end, told_window(reply));
  }
  [[nodiscard]] static std::uint64_t told_window(const Reply& reply) {
    return std::uint64_t{reply.tcp().acknowledgement} - 1 + reply.tcp().window;
  }

  /// Opens a connection of a sender that is not of senders_ yet.
  void open(std::uint16_t port) {
    senders_.push_back({.port = port});
    lender_->give(senders_.back().syn());
    settle();
    settle();
    ASSERT_TRUE(senders_.back().opened);
  }
  std::optional<StreamEvent> last_event() {
    std::optional<StreamEvent> last;
    while (const auto event = receiver_->poll()) last = event;
    return last;
  }
  [[nodiscard]] StreamReader reader(std::uint32_t place) const { return {receiver_->board(), place}; }
  static bool is_right(const StreamReader& stream, std::uint16_t port, std::uint64_t from, std::uint64_t to) {
    for (std::uint64_t i = from; i < to; ++i) {
      if (stream.at(from)[i - from] != LanePeerFrames::byte_of(port, i)) return false;
    }
    return true;
  }

  Nanos now_{1'000'000'000};
  std::optional<StreamReceiver> receiver_;
  std::optional<Lender> lender_;
  StepLane* steps_ = nullptr;
  std::vector<PlainSender> senders_;
};

TEST_P(Consumers, OpenTheWindowByWhatTheyRelease) {
  begin_in_steps();
  ASSERT_NO_FATAL_FAILURE(open(kFirstPeer));
  StreamReader stream = reader(0);
  ASSERT_TRUE(stream);
  EXPECT_EQ(last_event()->connection, stream.connection());
  for (std::uint32_t at = 0; at < kRing; at += 1024) {
    lender_->give(senders_[0].make(at, 1024, packet::kTcpAck));
    settle();
  }
  EXPECT_EQ(stream.reach().committed, kRing);
  EXPECT_FALSE(stream.reach().ended());
  EXPECT_EQ(senders_[0].window_end, kRing);
  // The consumer stalls: nothing more is taken, and what it may read stays.
  lender_->give(senders_[0].make(kRing, 1024, packet::kTcpAck));
  settle();
  EXPECT_EQ(stream.reach().committed, kRing);
  EXPECT_EQ(receiver_->counters().get(Disposition::outside_window), 1U);
  EXPECT_TRUE(is_right(stream, kFirstPeer, 0, kRing));
  // It dies, having released something, and another one goes on.
  stream.release(40'000);
  settle();
  EXPECT_EQ(senders_[0].window_end, kRing + 40'000);
  const StreamReader next = reader(0);
  ASSERT_TRUE(next);
  EXPECT_EQ(next.released(), 40'000U);
  lender_->give(senders_[0].make(kRing, 1024, packet::kTcpAck));
  settle();
  EXPECT_EQ(next.reach().committed, kRing + 1024);
  EXPECT_TRUE(is_right(next, kFirstPeer, 40'000, kRing + 1024));
}

TEST_P(Consumers, MayBeAheadOfTheReceiver) {
  begin_in_steps();
  ASSERT_NO_FATAL_FAILURE(open(kFirstPeer));
  lender_->give(senders_[0].make(0, 1024, packet::kTcpAck));
  lender_->turn(now_);
  ASSERT_TRUE(steps_->step());
  // The lane has the bytes, the receiver does not know yet.
  StreamReader stream = reader(0);
  ASSERT_EQ(stream.reach().committed, 1024U);
  stream.release(1000);
  EXPECT_TRUE(lender_->turn(now_));
  const auto event = last_event();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->readable, 24U);
  // What was said before is taken in by the one that it was said to: nothing is lost in between.
  lender_->give(senders_[0].make(1024, 1024, packet::kTcpAck));
  lender_->turn(now_);
  ASSERT_TRUE(steps_->step());
  stream.release(1048);
  lender_->turn(now_);
  lender_->turn(now_);
  EXPECT_EQ(receiver_->view(event->connection)->bytes.size(), 0U);
}

/// A lane tells consumers first. An application that heard of theirs before the receiver's own news would reset the
/// peer.
TEST_P(Consumers, MaySeeTheEndBeforeTheReceiver) {
  begin_in_steps();
  ASSERT_NO_FATAL_FAILURE(open(kFirstPeer));
  const ConnectionId id = last_event()->connection;
  lender_->give(senders_[0].make(0, 1, packet::kTcpAck | packet::kTcpFin));
  lender_->turn(now_);
  receiver_->board().tell(id.index, {id.generation, 1, true, true});
  lender_->turn(now_);
  EXPECT_FALSE(last_event());
  settle();
  const auto event = last_event();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->state, ConnectionState::finished);
  EXPECT_TRUE(event->consumed);
  receiver_->close(id, now_);
  settle();
  settle();
  EXPECT_TRUE(senders_[0].over);
  EXPECT_EQ(receiver_->counters().finished.get(), 1U);
  EXPECT_EQ(receiver_->connections(), 0U);
}

TEST_P(Consumers, HoldAPlaceUntilTheyAreThroughWithIt) {
  ReceiverSettings settings = lane_settings();
  settings.connections = settings.half_open = 1;
  begin_in_steps(settings);
  ASSERT_NO_FATAL_FAILURE(open(kFirstPeer));
  lender_->give(senders_[0].make(0, 500, packet::kTcpAck | packet::kTcpFin));
  settle();
  StreamReader stream = reader(0);
  EXPECT_EQ(stream.reach().committed, 500U);
  EXPECT_EQ(stream.reach().state, ConnectionState::finished);
  const ConnectionId first = stream.connection();
  EXPECT_FALSE(last_event()->consumed);
  EXPECT_FALSE(receiver_->release(first, 1));  // that is for consumers
  receiver_->close(first, now_);               // and the peer hears of it at once
  settle();
  settle();
  EXPECT_TRUE(senders_[0].over);
  EXPECT_FALSE(receiver_->view(first));
  // The bytes are still there, and the place is nobody else's.
  EXPECT_EQ(receiver_->connections(), 1U);
  senders_.push_back({.port = kFirstPeer + 1});
  lender_->give(senders_[1].syn());
  settle();
  EXPECT_EQ(receiver_->counters().get(Disposition::no_place), 1U);
  EXPECT_TRUE(is_right(stream, kFirstPeer, 0, 500));
  stream.release(500);
  settle();
  EXPECT_EQ(receiver_->connections(), 1U);
  stream.finish();
  EXPECT_FALSE(stream);
  EXPECT_FALSE(reader(0));
  settle();
  settle();
  EXPECT_EQ(receiver_->connections(), 0U);
  EXPECT_FALSE(last_event());
  // The next one has it. What the one before says late is nothing to it.
  lender_->give(senders_[1].syn());
  settle();
  settle();
  stream = reader(0);
  ASSERT_TRUE(stream);
  EXPECT_EQ(stream.released(), 0U);
  EXPECT_NE(stream.connection(), first);
  lender_->give(senders_[1].make(0, 100, packet::kTcpAck));
  settle();
  const auto event = last_event();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->connection, stream.connection());
  receiver_->board().tell(0, {first.generation, 600, true});
  settle();
  EXPECT_EQ(receiver_->view(event->connection)->bytes.size(), 100U);
  EXPECT_FALSE(last_event());
  // Nor is a word that no consumer can mean; one of more than has come gives back what has.
  receiver_->board().tell(0, {event->connection.generation, 100 + kRing, false});
  settle();
  EXPECT_EQ(receiver_->view(event->connection)->bytes.size(), 100U);
  receiver_->board().tell(0, {event->connection.generation, 101, false});
  settle();
  EXPECT_EQ(receiver_->view(event->connection)->begin, 100U);
}

TEST_P(Consumers, AreToldOfEveryEndWithoutFurtherFrames) {
  ReceiverSettings settings = lane_settings();
  settings.keepalive_idle = Nanos{1'000'000'000};
  settings.keepalive_interval = Nanos{1'000'000'000};
  settings.keepalive_probes = 1;
  begin_in_steps(settings);
  for (std::uint16_t i = 0; i < 3; ++i) {
    ASSERT_NO_FATAL_FAILURE(open(kFirstPeer + i));
    lender_->give(senders_[i].make(0, 100, packet::kTcpAck));
  }
  settle();
  lender_->give(senders_[0].make(100, 0, packet::kTcpRst | packet::kTcpAck));
  settle();
  EXPECT_EQ(reader(0).reach().state, ConnectionState::reset);
  EXPECT_EQ(reader(0).reach().committed, 100U);
  receiver_->abort(reader(1).connection(), now_);
  settle();
  EXPECT_TRUE(senders_[1].over);
  EXPECT_EQ(reader(1).reach().state, ConnectionState::reset);
  EXPECT_TRUE(is_right(reader(1), kFirstPeer + 1, 0, 100));
  for (int i = 0; i < 3; ++i) {
    now_.value += 1'100'000'000;
    receiver_->advance(now_);
    settle();
  }
  EXPECT_EQ(reader(2).reach().state, ConnectionState::timed_out);
  EXPECT_EQ(receiver_->connections(), 3U);
  for (std::uint32_t i = 0; i < 3; ++i) reader(i).finish();
  settle();
  settle();
  while (const auto event = receiver_->poll()) {
    EXPECT_TRUE(event->consumed);
    receiver_->close(event->connection, now_);
  }
  EXPECT_EQ(receiver_->connections(), 0U);
}

TEST_P(Consumers, WhoHadEnoughEndTheConnectionByTheApplication) {
  begin_in_steps();
  ASSERT_NO_FATAL_FAILURE(open(kFirstPeer));
  lender_->give(senders_[0].make(0, 100, packet::kTcpAck));
  settle();
  EXPECT_FALSE(last_event()->consumed);
  reader(0).finish();
  settle();
  const auto event = last_event();
  ASSERT_TRUE(event);
  EXPECT_TRUE(event->consumed);
  EXPECT_EQ(event->state, ConnectionState::open);
  EXPECT_FALSE(reader(0));
  receiver_->close(event->connection, now_);
  settle();
  EXPECT_TRUE(senders_[0].over);
  EXPECT_EQ(receiver_->connections(), 0U);
}

/// What a consumer knows of a place beside the board.
struct PlaceLog {
  ConnectionId connection{};
  std::uint16_t port = 0;
  std::uint64_t released = 0;
  bool finished = true;
};

/// Connections that come and go, with consumers, lane and receiver taking turns in any order.
class ManyConnections : public Consumers {
 protected:
  void send_something() {
    if (senders_.size() < 6 && next_port_ < kFirstPeer + kSenders && random_.below(4) == 0) {
      const std::uint64_t bytes = random_.below(3) == 0 ? random_.below(100) : random_.below(4 * kRing);
      senders_.push_back({.port = next_port_, .bytes = bytes, .resets = random_.below(8) == 0});
      sent_[next_port_++ - kFirstPeer] = senders_.back();
      lender_->give(senders_.back().syn());
    }
    for (PlainSender& sender : senders_) {
      if (sender.over || receiver_->room() == 0 || random_.below(3) == 0) continue;
      if (!sender.opened) {
        // There was no place for it.
        if (random_.below(20) == 0) lender_->give(sender.syn());
        continue;
      }
      const std::uint64_t end = std::min(sender.bytes, sender.window_end);
      const auto length = static_cast<std::uint32_t>(std::min<std::uint64_t>(end - std::min(end, sender.sent), 1448));
      if (length != 0) {
        lender_->give(sender.make(sender.sent, length, packet::kTcpAck));
        sender.sent += length;
      } else if (sender.sent == sender.bytes && (!std::exchange(sender.ended, true) || random_.below(50) == 0)) {
        const unsigned flag = sender.resets ? packet::kTcpRst : packet::kTcpFin;
        lender_->give(sender.make(sender.sent, 0, static_cast<std::uint8_t>(packet::kTcpAck | flag)));
        sender.over = sender.resets;
      }
    }
    std::erase_if(senders_, [](const PlainSender& sender) { return sender.over; });
  }

  void consume(std::uint32_t place) {
    PlaceLog& log = logs_[place];
    StreamReader stream = reader(place);
    if (!stream) return;
    if (stream.connection() != log.connection) {
      ASSERT_TRUE(log.finished) << "the place was given away";
      const auto port = port_of_.find(stream.connection());
      if (port == port_of_.end()) return;  // the application has not heard of it yet
      log = {stream.connection(), port->second, 0, false};
    }
    ASSERT_EQ(stream.released(), log.released);
    const StreamReach reach = stream.reach();
    const std::uint64_t bytes = random_.below(reach.committed - log.released + 1);
    ASSERT_TRUE(is_right(stream, log.port, log.released, log.released + bytes)) << log.port;
    ASSERT_LE(reach.committed, log.released + kRing);
    if (bytes != 0) stream.release(bytes);
    log.released += bytes;
    const PlainSender& sender = sent_[log.port - kFirstPeer];
    const bool enough = random_.below(500) == 0;
    if (reach.ended() && log.released == reach.committed && !enough) {
      if (reach.state == ConnectionState::finished) {
        ASSERT_EQ(log.released, sender.bytes);
      }
      whole_ += reach.state == ConnectionState::finished ? 1 : 0;
    } else if (!enough) {
      return;
    }
    stream.finish();
    log.finished = true;
    ++finished_;
  }

  void be_application() {
    while (const auto event = receiver_->poll()) {
      const auto view = receiver_->view(event->connection);
      ASSERT_TRUE(view);
      port_of_[event->connection] = view->peer.port;
      // As a rule it waits for the consumer.
      const bool hasty = event->state != ConnectionState::open && random_.below(8) == 0;
      if (event->consumed || hasty) receiver_->close(event->connection, now_);
    }
  }

  static constexpr std::uint16_t kSenders = 60;
  Random random_{1};
  std::uint16_t next_port_ = kFirstPeer;
  std::array<PlainSender, kSenders> sent_;
  std::array<PlaceLog, 4> logs_;
  std::map<ConnectionId, std::uint16_t> port_of_;
  std::uint64_t finished_ = 0;
  std::uint64_t whole_ = 0;
};

TEST_P(ManyConnections, ComeAndGoWhileConsumersTakeTheirTime) {
  std::uint64_t finished = 0;
  std::uint64_t whole = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    if (receiver_) receiver_->stop_lane();
    lender_.reset();
    receiver_.reset();
    senders_.clear();
    port_of_.clear();
    logs_ = {};
    next_port_ = kFirstPeer;
    finished_ = whole_ = 0;
    random_ = Random(seed);
    ReceiverSettings settings = lane_settings();
    settings.lane_acknowledges = random_.below(2) == 0;
    ASSERT_NO_FATAL_FAILURE(begin_in_steps(settings));
    const std::uint64_t patience = 1 + random_.below(12);
    std::uint64_t idle = 0;
    while (next_port_ < kFirstPeer + kSenders || receiver_->connections() != 0 || idle < 10) {
      ASSERT_LT(++idle, 50'000U) << "nothing happens any more";
      now_.value += 100'000;
      receiver_->advance(now_);
      send_something();
      if (random_.below(2) == 0 && lender_->turn(now_)) idle = 0;
      if (random_.below(2) == 0) (void)steps_->step();
      for (std::uint32_t place = 0; place < 4; ++place) {
        if (random_.below(patience) == 0) consume(place);
        if (HasFatalFailure()) return;
      }
      ASSERT_NO_FATAL_FAILURE(be_application());
      take_replies();
    }
    finished += finished_;
    whole += whole_;
    ASSERT_EQ(finished_, receiver_->counters().opened.get());
  }
  EXPECT_GT(finished, 20U * 50);
  EXPECT_GT(whole, 20U * 20);
}

/// Threads that read, each its places, while another one receives and a third is the lane. A thread that dies leaves
/// its places to the next.
TEST_P(Consumers, OnThreadsOfTheirOwnReadWhatWasSent) {
  constexpr std::uint32_t kPlaces = 4;
  constexpr std::uint16_t kSenders = 24;
  ReceiverSettings settings = lane_settings();
  settings.consumers = true;
  settings.connections = settings.half_open = kPlaces;
  begin(std::move(make_thread_lane(lane_shape(settings, 16, 4, GetParam()), {.yield = true})).value(), settings);
  const StreamBoard board = receiver_->board();
  std::array<std::atomic<std::uint16_t>, kPlaces> ports{};  // of the senders that have the places
  std::atomic<bool> stop = false;
  std::atomic<std::uint64_t> wrong = 0;
  std::atomic<std::uint64_t> bytes = 0;
  const auto consume = [&](std::uint32_t mine, std::uint64_t turns) {
    Random random(mine);
    for (std::uint64_t turn = 0; turn < turns && !stop.load(std::memory_order_relaxed); ++turn) {
      for (std::uint32_t place = mine; place < kPlaces; place += 2) {
        StreamReader stream(board, place);
        if (!stream) continue;
        const StreamReach reach = stream.reach();
        const std::uint16_t port = ports[place].load(std::memory_order_acquire);
        const std::uint64_t length = random.below(reach.committed - stream.released() + 1);
        if (port == 0) continue;
        if (!is_right(stream, port, stream.released(), stream.released() + length)) wrong.fetch_add(1);
        if (length != 0) stream.release(length);
        bytes.fetch_add(length);
        if (reach.ended() && stream.released() == reach.committed) {
          ports[place].store(0, std::memory_order_relaxed);
          stream.finish();
        }
      }
      std::this_thread::yield();
    }
  };
  std::vector<std::thread> threads;
  threads.emplace_back(consume, 0, ~std::uint64_t{0});
  threads.emplace_back(consume, 1, 200);  // dies
  std::uint64_t all = 0;
  std::uint16_t begun = 0;
  std::uint16_t closed = 0;
  bool replaced = false;
  std::set<ConnectionId> known;
  while (closed < kSenders) {
    if (senders_.size() < kPlaces && begun < kSenders && receiver_->connections() < kPlaces) {
      senders_.push_back({.port = static_cast<std::uint16_t>(kFirstPeer + begun), .bytes = 1000 + 20'000U * begun});
      lender_->give(senders_.back().syn());
      all += senders_.back().bytes;
      ++begun;
    }
    for (PlainSender& sender : senders_) {
      const std::uint64_t end = std::min(sender.bytes, sender.window_end);
      while (sender.opened && sender.sent < end && receiver_->room() != 0) {
        const auto length = static_cast<std::uint32_t>(std::min<std::uint64_t>(end - sender.sent, 1448));
        lender_->give(sender.make(sender.sent, length, packet::kTcpAck));
        sender.sent += length;
      }
      if (sender.opened && sender.sent == sender.bytes && receiver_->room() != 0 &&
          !std::exchange(sender.ended, true)) {
        lender_->give(sender.make(sender.sent, 0, packet::kTcpAck | packet::kTcpFin));
      }
    }
    if (!lender_->turn(now_)) std::this_thread::yield();
    while (const auto event = receiver_->poll()) {
      const auto view = receiver_->view(event->connection);
      ASSERT_TRUE(view);
      if (event->consumed) {
        ASSERT_EQ(event->state, ConnectionState::finished);
        receiver_->close(event->connection, now_);
        ++closed;
      } else if (known.insert(event->connection).second) {
        ports[event->connection.index].store(view->peer.port, std::memory_order_release);
      }
    }
    take_replies();
    std::erase_if(senders_, [](const PlainSender& sender) { return sender.over; });
    if (closed >= kSenders / 2 && !std::exchange(replaced, true)) {
      threads[1].join();
      threads[1] = std::thread(consume, 1, ~std::uint64_t{0});
    }
  }
  stop.store(true);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong.load(), 0U);
  EXPECT_EQ(bytes.load(), all);
}

INSTANTIATE_TEST_SUITE_P(Slots, Consumers, ::testing::Values(0, 64));
INSTANTIATE_TEST_SUITE_P(Slots, ManyConnections, ::testing::Values(0, 64));

}  // namespace
}  // namespace warpline::stream::testing
