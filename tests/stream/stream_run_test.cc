// SPDX-License-Identifier: Apache-2.0
// A run that sends connections to itself by a wire between two software NICs, and the ways in which runs end. All runs
// are in one process, which keeps DPDK.
#include "warpline/stream_port/run/stream_run.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <vector>

#include "warpline/port/vnic.h"
#include "warpline/stream/seeded_payload.h"

namespace warpline::stream_port {
namespace {

constexpr Ipv4Address kSender{{10, 0, 0, 1}};
constexpr Ipv4Address kReceiver{{10, 0, 0, 2}};
constexpr std::uint16_t kListener = 5001;
constexpr std::uint64_t kSeed = 3;
constexpr std::uint32_t kConnections = 3;
constexpr std::uint64_t kBytes = 300'000;
constexpr std::size_t kSendQueues = 2;

/// Bytes of connections: each has the stream of its port.
class NumberedSource final : public SendSource {
 public:
  void begin(stream::ConnectionId connection, std::uint16_t port) override { ports_[connection.index] = port; }
  void read(stream::ConnectionId connection, std::uint64_t offset, std::uint32_t length, std::uint8_t* to,
            packet::ChecksumSum& sum) const override {
    payload_.copy(ports_.at(connection.index), offset, length, to, sum);
  }

 private:
  stream::SeededPayload payload_{kSeed};
  std::map<std::uint32_t, std::uint16_t> ports_;
};

/// Compares the bytes of connections, releases them and closes connections that have ended.
class ComparedBytes final : public StreamApplication {
 public:
  bool turn(stream::StreamReceiver& receiver, Nanos now) override {
    bool worked = false;
    while (const auto event = receiver.poll()) {
      worked = true;
      const auto view = receiver.view(event->connection);
      if (!view) continue;
      const std::uint64_t length = view->bytes.size();
      right = right && payload_.matching(view->peer.port, view->begin, view->bytes) == length;
      bytes += length;
      (void)receiver.release(event->connection, length);
      if (event->state == stream::ConnectionState::open) continue;
      if (event->state == stream::ConnectionState::finished) ++finished;
      receiver.close(event->connection, now);
    }
    return worked;
  }
  [[nodiscard]] bool failed() const override { return fails; }

  // After the run.
  bool right = true;
  std::uint64_t bytes = 0;
  std::uint32_t finished = 0;
  bool fails = false;  ///< set before the run

 private:
  stream::SeededPayload payload_{kSeed};
};

class StreamRuns : public testing::Test {
 protected:
  void SetUp() override {
    if (port::vnic_calls() == nullptr) GTEST_SKIP() << "built without net_vnic";
    settings_.runtime = {.share_cores = true, .hugepages = false, .keep = true};
    settings_.pool.cache = 32;
    ReceiveSettings receive;
    receive.port.spec = "net_vnic0,wire=net_vnic1";
    receive.port.addresses = {{kReceiver, 24}};
    receive.port.rx_ring = receive.port.tx_ring = 512;
    receive.receiver.ports = {kListener};
    receive.receiver.connections = receive.receiver.half_open = 2 * kConnections;
    receive.receiver.ring_bytes = 256 << 10;
    receive.receiver.secret[0] = 1;
    settings_.receive = receive;
    SendSettings send;
    send.port = receive.port;
    send.port.spec = "net_vnic1,wire=net_vnic0";
    send.port.addresses = {{kSender, 24}};
    send.sender.connections = kConnections;
    send.sender.window_bytes = 256 << 10;
    send.sender.secret[0] = 2;
    send.plan = {
        .peer = {kReceiver, kListener}, .connections = kConnections, .bytes = kBytes, .ahead = 2 * (256 << 10)};
    for (NumberedSource& source : sources_) send.sources.push_back(&source);
    send.next_hop = kReceiver;
    settings_.send = send;
  }

  StreamRunSettings settings_;
  NumberedSource sources_[kSendQueues];
  ComparedBytes application_;
  std::atomic<bool> stop_{false};
};

TEST_F(StreamRuns, ReceivesAllBytesThatItSends) {
  for (const EngineKind engine : {EngineKind::inline_, EngineKind::thread}) {
    settings_.receive->lanes.engine = engine;
    ComparedBytes application;
    const auto run = StreamRun::open(settings_);
    ASSERT_TRUE(run.ok()) << run.error().message();
    StreamRun& streams = **run;
    EXPECT_EQ(streams.plan().workers.size(), 1 + kSendQueues + (engine == EngineKind::thread ? 1 : 0));
    ASSERT_TRUE(streams.launch({&application}).ok());
    const Result<void> done = streams.run(stop_);
    EXPECT_TRUE(done.ok()) << done.error().message();
    EXPECT_TRUE(application.right);
    EXPECT_EQ(application.bytes, kConnections * kBytes);
    EXPECT_EQ(application.finished, kConnections);
    EXPECT_GT(streams.receiving_s(), 0);
    EXPECT_GT(streams.sending_s(), 0);
    EXPECT_GE(streams.seconds(), streams.sending_s());
    streams.receiving().close();
    streams.sending().close();
    EXPECT_EQ(streams.receiving().leaked(), 0U);
    EXPECT_EQ(streams.sending().leaked(), 0U);
  }
}

TEST_F(StreamRuns, EndsWhenItIsToldTo) {
  settings_.send.reset();
  const auto run = StreamRun::open(settings_);
  ASSERT_TRUE(run.ok()) << run.error().message();
  ASSERT_TRUE((*run)->launch({&application_}).ok());
  EXPECT_FALSE((*run)->over());
  stop_ = true;
  EXPECT_TRUE((*run)->run(stop_).ok());
}

TEST_F(StreamRuns, EndsInItsDestructor) {
  const auto run = StreamRun::open(settings_);
  ASSERT_TRUE(run.ok()) << run.error().message();
  ASSERT_TRUE((*run)->launch({&application_}).ok());
}

TEST_F(StreamRuns, EndsWhenTheApplicationFails) {
  settings_.send.reset();
  application_.fails = true;
  const auto run = StreamRun::open(settings_);
  ASSERT_TRUE(run.ok()) << run.error().message();
  ASSERT_TRUE((*run)->launch({&application_}).ok());
  EXPECT_TRUE((*run)->run(stop_).ok());  // the application knows why
  EXPECT_TRUE((*run)->over());
}

TEST_F(StreamRuns, SaysThatTheNextHopDidNotAnswer) {
  settings_.receive.reset();
  settings_.send->port.spec = "net_vnic1";
  const auto run = StreamRun::open(settings_);
  ASSERT_TRUE(run.ok()) << run.error().message();
  ASSERT_TRUE((*run)->launch().ok());
  (*run)->finish_sending();
  const Result<void> done = (*run)->run(stop_);
  ASSERT_FALSE(done.ok());
  EXPECT_EQ(done.error().kind, ErrorKind::peer);
  EXPECT_EQ(done.error().what, "cannot reach 10.0.0.2");
}

TEST_F(StreamRuns, RefusesSettingsThatMakeNoSense) {
  EXPECT_EQ(StreamRun::open({}).error().kind, ErrorKind::usage);
  {
    const auto run = StreamRun::open(settings_);
    ASSERT_TRUE(run.ok()) << run.error().message();
    EXPECT_EQ((*run)->launch().error().kind, ErrorKind::usage);
  }
  settings_.send->plan.connections = 2 * kConnections + 1;
  EXPECT_EQ(StreamRun::open(settings_).error().kind, ErrorKind::usage);
  settings_.send->sources.clear();
  EXPECT_EQ(StreamRun::open(settings_).error().kind, ErrorKind::usage);
}

TEST(StreamRequests, PutLanesBehindTheQueuesAndNearThem) {
  const auto requests = stream_requests(1, 2, true);
  ASSERT_EQ(requests.size(), 4U);
  EXPECT_EQ(requests[1].name, "stream 1");
  EXPECT_EQ(requests[1].queues, "queue 1");
  EXPECT_EQ(requests[1].node, 1);
  EXPECT_EQ(requests[3].name, "lane 1");
  EXPECT_EQ(requests[3].near, 1);
  EXPECT_EQ(stream_requests(1, 2).size(), 2U);
}

}  // namespace
}  // namespace warpline::stream_port
