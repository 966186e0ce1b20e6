// SPDX-License-Identifier: Apache-2.0
// A SendPort and a StreamPort on wires that are drawn: everything that net_vnic does to frames, and every way in which
// a StreamPort takes them. WARPLINE_WIRES=A..B has other seeds drawn than those of `make test`.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <rte_ethdev.h>

#include "warpline/base/random.h"
#include "warpline/port/vnic.h"
#include "warpline/stream/lanes/thread_lane.h"
#include "warpline/stream/seeded_payload.h"
#include "warpline/stream_port/send_port.h"
#include "warpline/stream_port/stream_port.h"

namespace warpline {
namespace {

constexpr Ipv4Address kNear{{10, 0, 0, 1}};
constexpr Ipv4Address kFar{{10, 0, 0, 2}};
constexpr std::uint16_t kService = 5001;
constexpr std::int64_t kTurn = 20'000;                          ///< ns that a turn takes
constexpr std::int64_t kLongest = 1'000'000 * 1'000'000'000LL;  ///< ns of a run
constexpr int kQuietTurns = 3000;     ///< in which nothing happened: then it is time for what is due next
constexpr int kForEver = 10'000'000;  ///< turns in which nothing happened, and nothing is due

/// What is between two ports, and how the one that receives takes frames.
struct DrawnWire {
  std::uint64_t seed = 0;
  std::string faults[2];  ///< of what the sender's port sends, and of what the receiver's does
  std::uint16_t mtu[2] = {1500, 1500};
  std::uint32_t connections = 1;
  std::uint64_t bytes = 0;  ///< of each
  std::uint16_t queues = 1;
  std::uint16_t rings = 512;               ///< descriptors
  memory::PoolSettings pool{.cache = 32};  ///< of the receiver
  stream::ReceiverSettings receiver;
  bool by_lanes = false;
  stream_port::LaneSetup lanes;
  stream::SenderSettings sender;
  bool in_parts = false;  ///< what was received is given back in parts
};

std::string describe(const DrawnWire& wire) {
  return fmt::format(
      "seed {}: {} connections of {} bytes, faults '{}' and '{}', MTU {} and {}, {} queues, {} descriptors, pool {} of "
      "{}, "
      "ring {}, half open {}, {}{}{}, window {}, {}",
      wire.seed, wire.connections, wire.bytes, wire.faults[0], wire.faults[1], wire.mtu[0], wire.mtu[1], wire.queues,
      wire.rings, wire.pool.size, wire.pool.data_room, wire.receiver.ring_bytes, wire.receiver.half_open,
      !wire.by_lanes                ? "no lanes"
      : wire.lanes.queue_slots == 0 ? fmt::format("bursts of {} in {} slots", wire.lanes.burst, wire.lanes.slots)
                                    : fmt::format("rounds of {} in {} slots, queues of {}", wire.lanes.burst,
                                                  wire.lanes.slots, wire.lanes.queue_slots),
      wire.receiver.lane_acknowledges ? " that acknowledge" : "", wire.receiver.discards ? ", bytes are discarded" : "",
      wire.sender.window_bytes, wire.in_parts ? "given back in parts" : "given back whole");
}

std::string draw_faults(Random& random, std::uint64_t seed) {
  std::string text = fmt::format(",seed={}", seed);
  const auto some = [&](std::string_view name, std::initializer_list<std::string_view> values) {
    if (random.below(4) != 0) return false;
    text += fmt::format(",{}={}", name, values.begin()[random.below(values.size())]);
    return true;
  };
  some("loss", {"0.001", "0.01", "0.05"});
  if (some("burst_loss_enter", {"0.001", "0.005"})) text += ",burst_loss_leave=0.2";
  some("duplicate", {"0.01", "0.2"});
  if (some("reorder", {"0.01", "0.2"})) some("reorder_depth", {"1", "20", "64"});
  some("corrupt", {"0.001", "0.02"});
  some("truncate", {"0.001", "0.02"});
  some("delay", {"5us", "50us"});
  some("jitter", {"5us", "50us"});
  some("rate", {"1gbit", "10gbit"});
  some("stall", {"0.1", "0.9"});
  some("rx_out", {"0.1", "0.9"});
  some("tx_full", {"0.1", "0.9"});
  some("flap_frames", {"500", "3000"});
  some("engine", {"thread"});
  some("rx_align", {"4", "16"});
  some("fast_free", {"0"});
  return text;
}

DrawnWire draw(std::uint64_t seed) {
  Random random(seed);
  const auto one_of = [&](auto first, auto... others) {
    const decltype(first) all[] = {first, others...};
    return all[random.below(1 + sizeof...(others))];
  };
  DrawnWire wire;
  wire.seed = seed;
  for (std::string& faults : wire.faults) faults = draw_faults(random, random.below(1000));
  for (std::uint16_t& mtu : wire.mtu) mtu = one_of(std::uint16_t{1500}, std::uint16_t{9000}, std::uint16_t{576});
  wire.connections = one_of(1U, 1U, 3U, 40U);
  wire.bytes = one_of(std::uint64_t{1}, std::uint64_t{40'000}, std::uint64_t{400'000}, std::uint64_t{1'000'000}) /
               (wire.connections > 3 ? 10 : 1);
  wire.queues = one_of(std::uint16_t{1}, std::uint16_t{2});
  wire.rings = one_of(std::uint16_t{64}, std::uint16_t{512});
  const std::uint32_t posted = std::uint32_t{wire.queues} * wire.rings;
  wire.pool.size = one_of(0U, 2 * posted + 300);
  wire.pool.data_room = one_of(0U, 1024U, 2048U);
  wire.receiver.ports = {kService};
  wire.receiver.connections = 2 * wire.connections;
  wire.receiver.half_open = one_of(1U, 2 * wire.connections);
  wire.receiver.ring_bytes = one_of(64U << 10, 256U << 10, 1U << 20);
  wire.receiver.secret[0] = 2;
  wire.receiver.keepalive_idle = one_of(Nanos{}, Nanos{1'000'000'000});
  // However much is lost, nobody gives up; and no cookie is too old when at last its segment comes.
  wire.receiver.retransmissions = wire.receiver.keepalive_probes = 255;
  wire.sender.connect_timeout = wire.sender.user_timeout = Nanos{kLongest};
  if (wire.faults[0].find("burst") != std::string::npos || wire.faults[0].find("flap") != std::string::npos) {
    wire.receiver.half_open = wire.receiver.connections;
  }
  wire.by_lanes = random.below(4) != 0;
  if (wire.by_lanes) {
    wire.lanes.burst = one_of(16U, 64U, 512U);
    wire.lanes.slots = one_of(2U, 8U);
    wire.lanes.queue_slots = one_of(0U, 16U, 64U, 2048U);
    wire.receiver.lane_acknowledges = random.below(2) != 0;
  }
  wire.receiver.discards = random.below(8) == 0;
  wire.sender.connections = wire.connections;
  wire.sender.window_bytes = one_of(9000U, 64U << 10, 1U << 20);
  wire.sender.congestion = one_of(stream::CongestionKind::cubic, stream::CongestionKind::fixed);
  wire.sender.nagle = random.below(8) == 0;
  wire.sender.secret[0] = 1;
  wire.in_parts = random.below(4) == 0;
  return wire;
}

/// Bytes of connections by their places, each the stream of its port.
struct DrawnPayload final : stream::PayloadSource {
  explicit DrawnPayload(std::uint64_t seed) : payload(seed) {}
  void read(stream::ConnectionId connection, std::uint64_t offset, std::uint32_t length, std::uint8_t* to,
            packet::ChecksumSum& sum) const override {
    payload.copy(ports.at(connection.index), offset, length, to, sum);
  }
  stream::SeededPayload payload;
  std::map<std::uint32_t, std::uint16_t> ports;
};

class WireRun {
 public:
  explicit WireRun(DrawnWire wire) : wire_(std::move(wire)), source_(wire_.seed), random_(wire_.seed + 1) {
    on_threads_ = (wire_.faults[0] + wire_.faults[1]).find("thread") != std::string::npos;
  }

  void run() {
    ASSERT_NO_FATAL_FAILURE(open());
    ASSERT_NO_FATAL_FAILURE(connect());
    while (finished_ < wire_.connections || receiving()) {
      now_.value += kTurn;
      ASSERT_NO_FATAL_FAILURE(turn());
      ASSERT_LT(now_.value, kLongest) << "it does not end";
    }
    ASSERT_NO_FATAL_FAILURE(close());
  }

 private:
  void open() {
    port::PortSettings settings[2];
    for (int side = 0; side < 2; ++side) {
      settings[side].rx_ring = settings[side].tx_ring = wire_.rings;
      settings[side].mtu = wire_.mtu[side];
      settings[side].addresses = {{side == 0 ? kNear : kFar, 24}};
      settings[side].spec = fmt::format("net_vnic{},wire=net_vnic{}{}", side, 1 - side, wire_.faults[side]);
    }
    auto near = stream_port::SendPort::open(settings[0], {.cache = 32}, wire_.sender, source_, kFar, now_);
    ASSERT_TRUE(near.ok()) << near.error().message();
    near_ = std::move(near).value();
    if (wire_.by_lanes) {
      wire_.lanes.make = [](const stream::LaneShape& shape, std::uint16_t) {
        return stream::make_thread_lane(shape, {.yield = true});
      };
    }
    auto far = stream_port::StreamPort::open(settings[1], wire_.pool, wire_.receiver, now_, std::nullopt, wire_.queues,
                                             0, wire_.lanes);
    ASSERT_TRUE(far.ok()) << far.error().message();
    far_ = std::move(far).value();
  }

  /// Where the receiver is nobody asks on the wire: what damages the answer, which has no checksum, would be believed.
  void connect() {
    rte_ether_addr address{};
    ASSERT_EQ(rte_eth_macaddr_get(far_->port().id(), &address), 0);
    MacAddress mac;
    std::copy_n(address.addr_bytes, mac.bytes.size(), mac.bytes.begin());
    stream::StreamSender& sender = near_->queue().sender();
    for (std::uint32_t i = 0; i < wire_.connections; ++i) {
      const auto id = sender.connect({kFar, kService}, mac, now_);
      ASSERT_TRUE(id);
      source_.ports[id->index] = sender.view(*id)->local_port;
      sender.offer(*id, wire_.bytes);
      sender.close(*id);
    }
  }

  void turn() {
    bool worked = near_->queue().receive(now_);
    while (const auto event = near_->queue().sender().poll()) {
      ASSERT_LE(event->state, stream::SendState::finished);
      if (event->state == stream::SendState::finished) ++finished_;
    }
    worked = near_->queue().send(now_) || worked;
    std::uint64_t in_flight = 0;
    Nanos due = near_->queue().sender().next_deadline();
    for (std::size_t i = 0; i < far_->queues(); ++i) {
      stream_port::StreamQueue& queue = far_->queue(i);
      worked = queue.receive(now_) || worked;
      ASSERT_NO_FATAL_FAILURE(consume(queue.receiver()));
      worked = queue.send(now_) || worked;
      if (wire_.by_lanes) in_flight += queue.receiver().in_flight();
      due = std::min(due, queue.receiver().next_deadline());
    }
    quiet_ = worked || in_flight != 0 ? 0 : quiet_ + 1;
    if (quiet_ >= kQuietTurns && due.value < kLongest) {
      quiet_ = 0;
      now_ = std::max(now_, due);
    }
    ASSERT_LT(quiet_, kForEver) << "nothing happens any more";
    if (!worked && (in_flight != 0 || on_threads_)) std::this_thread::yield();
  }

  [[nodiscard]] bool receiving() const {
    for (std::size_t i = 0; i < far_->queues(); ++i) {
      if (far_->queue(i).receiver().connections() != 0) return true;
    }
    return false;
  }

  void consume(stream::StreamReceiver& receiver) {
    while (const auto event = receiver.poll()) {
      if (!wire_.receiver.discards) {
        waiting_[&receiver].push_back(event->connection);
        continue;
      }
      ASSERT_TRUE(receiver.release(event->connection, event->readable));
      received_ += event->readable;
      if (event->state != stream::ConnectionState::open) receiver.close(event->connection, now_);
    }
    std::vector<stream::ConnectionId> left;
    for (const stream::ConnectionId id : std::exchange(waiting_[&receiver], {})) {
      const auto view = receiver.view(id);
      if (!view) continue;
      std::uint64_t some = view->bytes.size();
      ASSERT_EQ(source_.payload.matching(view->peer.port, view->begin, view->bytes), some);
      if (wire_.in_parts && some != 0) some = random_.below(some + 1);
      ASSERT_TRUE(receiver.release(id, some));
      received_ += some;
      if (some != view->bytes.size()) {
        left.push_back(id);
      } else if (view->state != stream::ConnectionState::open) {
        receiver.close(id, now_);
      }
    }
    waiting_[&receiver] = std::move(left);
  }

  void close() {
    std::uint64_t stored = 0;
    std::uint64_t ended = 0;
    for (std::size_t i = 0; i < far_->queues(); ++i) {
      while (!far_->queue(i).settle(now_)) std::this_thread::yield();
    }
    near_->close();
    far_->close();
    for (std::size_t i = 0; i < far_->queues(); ++i) {
      const stream_port::StreamQueueCounters& frames = far_->queue(i).counters();
      const stream::ReceiverCounters& counters = far_->queue(i).receiver().counters();
      std::uint64_t accounted =
          frames.answered.get() + frames.not_answered.get() + frames.too_many_pieces.get() + frames.other_vlan.get();
      for (const Counter& count : counters.dispositions) accounted += count.get();
      EXPECT_EQ(frames.received.get(), accounted);
      EXPECT_EQ(counters.get(stream::Disposition::lane_ended), 0U);
      stored += counters.bytes.get();
      ended += counters.finished.get();
    }
    EXPECT_EQ(stored, wire_.connections * wire_.bytes);
    EXPECT_EQ(received_, wire_.connections * wire_.bytes);
    EXPECT_EQ(ended, wire_.connections);
    EXPECT_EQ(near_->leaked(), 0U);
    EXPECT_EQ(far_->leaked(), 0U);
  }

  DrawnWire wire_;
  DrawnPayload source_;
  Random random_;
  Nanos now_{1};
  std::unique_ptr<stream_port::SendPort> near_;
  std::unique_ptr<stream_port::StreamPort> far_;
  std::map<stream::StreamReceiver*, std::vector<stream::ConnectionId>> waiting_;  ///< what is not read to its end
  bool on_threads_;                                                               ///< so are the devices
  std::uint32_t finished_ = 0;
  std::uint64_t received_ = 0;
  int quiet_ = 0;  ///< turns
};

/// Returns the seeds that were asked for, or so many as `make test` has time for.
std::pair<std::uint64_t, std::uint64_t> wanted_seeds() {
  std::pair<std::uint64_t, std::uint64_t> seeds{1, 60};
  if (const char* const wanted = std::getenv("WARPLINE_WIRES"); wanted != nullptr) {
    const char* const end = wanted + std::strlen(wanted);
    const char* const dots = std::from_chars(wanted, end, seeds.first).ptr;
    seeds.second = seeds.first;
    if (end - dots > 2) (void)std::from_chars(dots + 2, end, seeds.second);
  }
  return seeds;
}

TEST(DrawnWires, BringEveryByte) {
  if (port::vnic_calls() == nullptr) GTEST_SKIP() << "built without net_vnic";
  const auto [first, last] = wanted_seeds();
  for (std::uint64_t seed = first; seed <= last; ++seed) {
    const DrawnWire wire = draw(seed);
    SCOPED_TRACE(describe(wire));
    WireRun(wire).run();
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace warpline
