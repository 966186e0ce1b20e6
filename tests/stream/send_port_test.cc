// SPDX-License-Identifier: Apache-2.0
// A SendPort and a StreamPort with a wire between them: clean, and with everything that net_vnic does to frames.
#include "warpline/stream_port/send_port.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <rte_ethdev.h>

#include "warpline/gpu/device.h"
#include "warpline/port/ring_pair.h"
#include "warpline/port/vnic.h"
#include "warpline/stream/payload/thread_payload_lane.h"
#include "warpline/stream/seeded_payload.h"
#include "warpline/stream_port/payload/gpu_payload_lane.h"
#include "warpline/stream_port/stream_port.h"

namespace warpline {
namespace {

constexpr Ipv4Address kSender{{10, 0, 0, 1}};
constexpr Ipv4Address kReceiver{{10, 0, 0, 2}};
constexpr std::uint16_t kListener = 5001;
constexpr std::uint64_t kSeed = 3;

/// Bytes of connections by their places, each the stream of its port.
struct Source final : stream::PayloadSource {
  void read(stream::ConnectionId connection, std::uint64_t offset, std::uint32_t length, std::uint8_t* to,
            packet::ChecksumSum& sum) const override {
    payload.copy(ports.at(connection.index), offset, length, to, sum);
  }
  stream::SeededPayload payload{kSeed};
  std::map<std::uint32_t, std::uint16_t> ports;
};

struct WireCase {
  std::string name;
  bool vnic = false;
  std::string faults{};  ///< of net_vnic, each way
  std::uint32_t connections = 1;
  std::uint64_t bytes = 0;
  std::uint16_t mtu = 1500;
  std::uint16_t queues = 1;  ///< of the receiver
  std::uint16_t vlan = 0;
  stream_port::PayloadSetup filled{};  ///< by a lane
  std::uint16_t senders = 1;           ///< queues of the sender, each with so many connections
};

/// Payload by a thread of the host, or by the GPU of that ordinal.
stream_port::PayloadSetup filled_by(int gpu) {
  static const stream::SeededPayload payload(kSeed);
  stream_port::PayloadSetup setup;
  setup.ring_bytes = 2 << 20;
  setup.gpu = gpu;
  setup.make = [gpu](const stream::PayloadShape& shape, std::uint16_t) {
    return gpu < 0 ? stream::make_thread_payload_lane(shape, payload, {.yield = true})
                   : stream_port::make_gpu_payload_lane(shape, payload, gpu, memory::MemoryKind::device);
  };
  return setup;
}

class SendPorts : public testing::TestWithParam<WireCase> {
 protected:
  void SetUp() override {
    const WireCase& c = GetParam();
    if (c.vnic && port::vnic_calls() == nullptr) GTEST_SKIP() << "built without net_vnic";
    if (c.filled.gpu >= 0 && !gpu::list_gpus().ok()) GTEST_SKIP() << "no GPU";
    port::PortSettings settings[2];
    std::optional<std::uint16_t> adopted[2];
    for (int side = 0; side < 2; ++side) {
      settings[side].rx_ring = settings[side].tx_ring = 512;
      settings[side].mtu = c.mtu;
      settings[side].addresses = {{side == 0 ? kSender : kReceiver, 24}};
      settings[side].spec = "net_vnic" + std::to_string(side) + ",wire=net_vnic" + std::to_string(1 - side) + c.faults;
    }
    if (!c.vnic) {
      const auto ids = *port::make_ring_pair(1, 512, runtime::kAnyNode);
      adopted[0] = ids.first;
      adopted[1] = ids.second;
    }
    stream::SenderSettings sender;
    sender.connections = c.connections;
    sender.window_bytes = 256 << 10;
    sender.secret[0] = 1;
    sources_.resize(c.senders);
    std::vector<const stream::PayloadSource*> sources;
    for (const Source& source : sources_) sources.push_back(&source);
    auto near = stream_port::SendPort::open(settings[0], {.cache = 32}, sender, sources, kReceiver, now_, adopted[0],
                                            c.vlan, c.filled);
    ASSERT_TRUE(near.ok()) << near.error().message();
    near_ = std::move(near).value();
    stream::ReceiverSettings receiver;
    receiver.ports = {kListener};
    receiver.connections = receiver.half_open = 2 * c.connections * c.senders;
    receiver.ring_bytes = 256 << 10;
    receiver.secret[0] = 2;
    auto far = stream_port::StreamPort::open(settings[1], {.cache = 32}, receiver, now_, adopted[1], c.queues, c.vlan);
    ASSERT_TRUE(far.ok()) << far.error().message();
    far_ = std::move(far).value();
  }

  void TearDown() override {
    if (!near_ || !far_) return;
    near_->close();
    far_->close();
    // What lies in a pair of rings belongs to neither any more.
    if (GetParam().vnic) {
      EXPECT_EQ(near_->leaked(), 0U);
      EXPECT_EQ(far_->leaked(), 0U);
    }
  }

  /// Opens what a queue is to open as soon as the receiver has said where it is.
  void open(std::uint16_t queue) {
    stream_port::SendQueue& sending = near_->queue(queue);
    Source& source = sources_[queue];
    while (source.ports.size() < GetParam().connections && sending.next_hop()) {
      const auto id = sending.sender().connect({kReceiver, kListener}, *sending.next_hop(), now_);
      ASSERT_TRUE(id);
      source.ports[id->index] = sending.sender().view(*id)->local_port;
      offer(queue, *id, 0);
    }
  }

  /// Offers all that is to be sent, or what a lane's ring has room for.
  void offer(std::uint16_t queue, stream::ConnectionId id, std::uint64_t acknowledged) {
    stream_port::SendQueue& sending = near_->queue(queue);
    stream_port::PayloadStage* const stage = sending.payload();
    const std::uint64_t bytes = GetParam().bytes;
    std::uint64_t& offered = offered_[{queue, id.index}];
    const std::uint64_t target = stage == nullptr ? bytes : std::min(bytes, acknowledged + stage->ring_bytes());
    if (target == offered) return;
    if (stage != nullptr) stage->make(id, sources_[queue].ports[id.index], offered, target - offered);
    sending.sender().offer(id, target - offered);
    offered = target;
    if (offered == bytes) sending.sender().close(id);
  }

  /// A turn of one of the sender's queues.
  void turn(std::uint16_t queue) {
    stream_port::SendQueue& sending = near_->queue(queue);
    sending.receive(now_);
    open(queue);
    while (const auto event = sending.sender().poll()) {
      ASSERT_LE(event->state, stream::SendState::finished);
      offer(queue, event->connection, event->acknowledged);
      if (event->state == stream::SendState::finished) ++finished_;
    }
    sending.send(now_);
  }

  void consume(stream::StreamReceiver& receiver) {
    while (const auto event = receiver.poll()) {
      const auto view = receiver.view(event->connection);
      ASSERT_EQ(sources_[0].payload.matching(view->peer.port, view->begin, view->bytes), view->bytes.size());
      received_ += view->bytes.size();
      receiver.release(event->connection, view->bytes.size());
      if (event->state != stream::ConnectionState::open) receiver.close(event->connection, now_);
    }
  }

  Nanos now_{1};
  std::vector<Source> sources_;                                               ///< by queue
  std::map<std::pair<std::uint16_t, std::uint32_t>, std::uint64_t> offered_;  ///< bytes, by queue and connection
  std::uint32_t finished_ = 0;
  std::unique_ptr<stream_port::SendPort> near_;
  std::unique_ptr<stream_port::StreamPort> far_;
  std::uint64_t received_ = 0;
};

TEST_P(SendPorts, BringEveryByteOverTheWire) {
  const WireCase& c = GetParam();
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::minutes(2);
  const std::uint32_t connections = c.connections * c.senders;
  const auto receiving = [&] {
    for (std::size_t i = 0; i < far_->queues(); ++i) {
      if (far_->queue(i).receiver().connections() != 0) return true;
    }
    return false;
  };
  while (finished_ < connections || receiving()) {
    // Time passes faster than it does, so that timers do not keep the test waiting.
    now_.value += 20'000;
    for (std::uint16_t i = 0; i < near_->queues(); ++i) {
      turn(i);
      if (HasFatalFailure()) return;
    }
    for (std::size_t i = 0; i < far_->queues(); ++i) {
      far_->queue(i).receive(now_);
      consume(far_->queue(i).receiver());
      if (HasFatalFailure()) return;
      far_->queue(i).send(now_);
    }
    ASSERT_LT(std::chrono::steady_clock::now(), give_up);
  }
  EXPECT_EQ(received_, connections * c.bytes);
  std::uint64_t received = 0, accounted = 0, handed_over = 0, retransmitted = 0;
  for (std::uint16_t i = 0; i < near_->queues(); ++i) {
    const stream_port::SendQueue& queue = near_->queue(i);
    const stream_port::SendQueueCounters& frames = queue.counters();
    const stream::SenderCounters& sent = queue.sender().counters();
    received += frames.received.get();
    handed_over += frames.handed_over.get();
    retransmitted += sent.retransmitted.get();
    accounted += frames.answered.get() + frames.not_answered.get() + frames.neighbours.get() +
                 frames.too_many_pieces.get() + frames.not_taken_over.get();
    for (const Counter& count : sent.dispositions) accounted += count.get();
    EXPECT_EQ(sent.finished.get(), c.connections) << "queue " << i;
    if (const stream_port::PayloadStage* const stage = queue.payload(); stage != nullptr) {
      EXPECT_FALSE(stage->failure());
      EXPECT_EQ(stage->counters().made_bytes.get(), c.connections * c.bytes);
      EXPECT_EQ(stage->counters().filled_bytes.get(), sent.sent.get() + sent.retransmitted_bytes.get());
    }
  }
  EXPECT_EQ(received, accounted);
  EXPECT_EQ(handed_over != 0, c.senders > 1);
  for (std::size_t i = 0; i < far_->queues(); ++i) {
    EXPECT_GT(far_->queue(i).receiver().counters().opened.get(), 0U) << "queue " << i;
  }
  if (!c.faults.empty()) {
    EXPECT_GT(retransmitted, 0U);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Wires, SendPorts,
    testing::Values(
        WireCase{.name = "Rings", .bytes = 5'000'000},
        WireCase{.name = "RingsAndManyConnections", .connections = 300, .bytes = 50'000},
        WireCase{.name = "Vnic", .vnic = true, .bytes = 5'000'000},
        WireCase{.name = "VnicWithLongFrames", .vnic = true, .bytes = 5'000'000, .mtu = 9000},
        WireCase{.name = "Loss", .vnic = true, .faults = ",loss=0.02,seed=1", .connections = 10, .bytes = 300'000},
        WireCase{.name = "Everything",
                 .vnic = true,
                 .faults = ",loss=0.01,reorder=0.02,duplicate=0.01,corrupt=0.01,seed=2",
                 .connections = 10,
                 .bytes = 300'000},
        WireCase{.name = "EverythingAndTwoQueues",
                 .vnic = true,
                 .faults = ",loss=0.01,reorder=0.02,duplicate=0.01,corrupt=0.01,seed=3",
                 .connections = 40,
                 .bytes = 100'000,
                 .queues = 2},
        WireCase{.name = "RingsInAVlan", .bytes = 500'000, .vlan = 7},
        WireCase{.name = "VnicInAVlanWithLongFrames", .vnic = true, .bytes = 500'000, .mtu = 9000, .vlan = 4094},
        WireCase{.name = "Filled", .vnic = true, .bytes = 5'000'000, .filled = filled_by(-1)},
        WireCase{.name = "FilledLongFramesInAVlan",
                 .vnic = true,
                 .bytes = 5'000'000,
                 .mtu = 9000,
                 .vlan = 7,
                 .filled = filled_by(-1)},
        WireCase{.name = "FilledManyConnections", .connections = 300, .bytes = 50'000, .filled = filled_by(-1)},
        WireCase{.name = "FilledEverything",
                 .vnic = true,
                 .faults = ",loss=0.01,reorder=0.02,duplicate=0.01,corrupt=0.01,seed=4",
                 .connections = 10,
                 .bytes = 300'001,
                 .filled = filled_by(-1)},
        WireCase{.name = "ThreeQueues", .vnic = true, .connections = 10, .bytes = 300'000, .senders = 3},
        WireCase{.name = "ThreeQueuesFilledEverything",
                 .vnic = true,
                 .faults = ",loss=0.01,reorder=0.02,duplicate=0.01,corrupt=0.01,seed=6",
                 .connections = 8,
                 .bytes = 100'001,
                 .queues = 2,
                 .filled = filled_by(-1),
                 .senders = 3},
        WireCase{.name = "FilledByGpu", .vnic = true, .bytes = 5'000'000, .mtu = 9000, .filled = filled_by(0)},
        WireCase{.name = "FilledByGpuEverything",
                 .vnic = true,
                 .faults = ",loss=0.01,reorder=0.02,duplicate=0.01,corrupt=0.01,seed=5",
                 .connections = 10,
                 .bytes = 300'001,
                 .filled = filled_by(0)}),
    [](const auto& wire) { return wire.param.name; });

/// Nobody here looks at links. A virtio queue of 256 refuses the threshold that is for a ring of 512, and keeps its
/// own.
std::vector<WireCase> as_other_nics() {
  std::vector<WireCase> cases;
  for (const char* const persona :
       {"mlx5", "ice", "i40e", "ixgbe", "iavf", "ena", "bnxt", "virtio", "vmxnet3", "gve"}) {
    WireCase wire{.name = persona, .vnic = true, .connections = 4, .bytes = 100'000, .queues = 2, .senders = 2};
    wire.faults = ",link_up_after=0,loss=0.01,reorder=0.02,seed=8,persona=" + wire.name;
    if (wire.name == "gve") wire.mtu = 1460;
    cases.push_back(wire);
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Personas, SendPorts, testing::ValuesIn(as_other_nics()),
                         [](const auto& wire) { return wire.param.name; });

TEST(SendPort, HasSentBuffersCollectedEarlyUnlessToldOtherwise) {
  if (port::vnic_calls() == nullptr) GTEST_SKIP() << "built without net_vnic";
  const Source source;
  const auto threshold = [&](std::uint16_t ring, std::optional<std::uint16_t> asked) -> std::uint16_t {
    port::PortSettings settings;
    settings.spec = "net_vnic7";
    settings.tx_ring = ring;
    settings.tx_free_thresh = asked;
    settings.addresses = {{kSender, 24}};
    stream::SenderSettings sender;
    sender.connections = 1;
    sender.secret[0] = 1;
    const auto opened = stream_port::SendPort::open(settings, {.cache = 32}, sender, source, kReceiver, Nanos{1});
    if (!opened.ok()) return 0;
    rte_eth_txq_info queue{};
    return rte_eth_tx_queue_info_get((*opened)->port().id(), 0, &queue) == 0 ? queue.conf.tx_free_thresh : 0;
  };
  EXPECT_EQ(threshold(1024, {}), 896);
  EXPECT_EQ(threshold(1024, 48), 48);
  EXPECT_EQ(threshold(256, {}), 32);  // the driver's own: an eighth is less than a burst
}

TEST(SendNextHop, FollowsOneThatMovesButNotAtOnce) {
  const MacAddress first{{2, 0, 0, 0, 0, 1}};
  const MacAddress second{{2, 0, 0, 0, 0, 2}};
  stream_port::SharedNextHop hop;
  std::uint64_t seen = 0;
  EXPECT_FALSE(hop.get());
  EXPECT_FALSE(hop.news(seen));
  hop.heard(first, false, Nanos{5});
  EXPECT_EQ(hop.get(), first);
  EXPECT_EQ(hop.news(seen), first);
  EXPECT_FALSE(hop.news(seen));
  hop.heard(second, true, Nanos{900'000'000});
  EXPECT_EQ(hop.get(), first);
  hop.heard(second, false, Nanos{1'100'000'000});  // an advertisement that does not override
  EXPECT_EQ(hop.get(), first);
  hop.heard(second, true, Nanos{1'100'000'000});
  EXPECT_EQ(hop.news(seen), second);
  hop.heard(first, true, Nanos{1'200'000'000});
  EXPECT_FALSE(hop.news(seen));
}

/// A lane that takes batches and does none.
class HungPayloadLane final : public stream::PayloadLane {
 public:
  explicit HungPayloadLane(const stream::PayloadShape& shape) : shape_(shape) {}
  [[nodiscard]] const stream::PayloadShape& shape() const override { return shape_; }
  [[nodiscard]] std::uint8_t* ring(std::uint32_t) const override { return nullptr; }
  [[nodiscard]] bool submit(std::span<const stream::MakeOrder>, std::span<const stream::FillOrder>) override {
    return ++submitted_ <= kSlots;
  }
  [[nodiscard]] std::uint64_t landed() override { return 0; }
  [[nodiscard]] std::optional<Error> failure() const override { return std::nullopt; }
  void stop() override {}

 private:
  stream::PayloadShape shape_;
  std::uint32_t submitted_ = 0;
};

TEST(SendPort, FindsThatNoPayloadComes) {
  const auto ids = *port::make_ring_pair(1, 512, runtime::kAnyNode);
  port::PortSettings settings;
  settings.addresses = {{kSender, 24}};
  stream::SenderSettings sender;
  sender.connections = 1;
  sender.secret[0] = 1;
  const Source source;
  stream_port::PayloadSetup hung;
  hung.patience = Nanos{1'000'000'000};
  hung.make = [](const stream::PayloadShape& shape, std::uint16_t) -> Result<std::unique_ptr<stream::PayloadLane>> {
    return std::unique_ptr<stream::PayloadLane>(std::make_unique<HungPayloadLane>(shape));
  };
  auto near =
      stream_port::SendPort::open(settings, {.cache = 32}, sender, source, kReceiver, Nanos{1}, ids.first, 0, hung);
  ASSERT_TRUE(near.ok()) << near.error().message();
  stream_port::SendQueue& queue = (*near)->queue();
  const auto id = queue.sender().connect({kReceiver, kListener}, {{2, 0, 0, 0, 0, 9}}, Nanos{1});
  queue.payload()->make(*id, 1, 0, 1000);
  Nanos now{2};
  for (int turn = 0; turn < 999; ++turn) {
    now.value += 1'000'000;
    queue.send(now);
    ASSERT_FALSE(queue.payload()->failure()) << turn;
  }
  for (int turn = 0; turn < 100 && !queue.payload()->failure(); ++turn) {
    now.value += 1'000'000;
    queue.send(now);
  }
  ASSERT_TRUE(queue.payload()->failure());
  EXPECT_EQ(queue.payload()->failure()->kind, ErrorKind::environment);
  queue.sender().abort(*id, now);
  queue.send(now);
  (*near)->close();
}

TEST(SendPort, RefusesWhatItCannotSendBy) {
  port::PortSettings settings;
  settings.spec = "net_null0";
  const Source source;
  const auto kind = [&](const IpAddress& to, const memory::PoolSettings& pool) {
    return stream_port::SendPort::open(settings, pool, {}, source, to, Nanos{1}).error().kind;
  };
  EXPECT_EQ(kind(kReceiver, {}), ErrorKind::usage);
  settings.addresses = {{kSender, 24}};
  EXPECT_EQ(kind(kSender, {}), ErrorKind::usage);
  EXPECT_EQ(kind(Ipv4Address{{10, 0, 1, 1}}, {}), ErrorKind::usage);
  EXPECT_EQ(kind(kReceiver, {.data_room = 64}), ErrorKind::usage);
}

}  // namespace
}  // namespace warpline
