// SPDX-License-Identifier: Apache-2.0
// One buffer to many peers through a port: gathered for each, free after the last word about it.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "warpline/base/random.h"
#include "warpline/message/endpoint.h"
#include "warpline/port/vnic.h"
#include "warpline/transport/ethdev/message_port.h"

namespace warpline {
namespace {

/// A clock that shows what the test sets.
struct StoppedClock {
  Nanos time;
  [[nodiscard]] Nanos now() const { return time; }
};

constexpr std::uint16_t kWorkers = 3;  ///< of the receiving port, each with an endpoint
constexpr std::uint32_t kPeers = 24;
constexpr std::uint32_t kLength = 200'000;
constexpr std::uint16_t kPort = 7000;

std::unique_ptr<transport::MessagePort> open(unsigned side, std::uint16_t workers, const std::string& faults) {
  port::PortSettings port;
  port.spec = "net_vnic" + std::to_string(side) + ",wire=net_vnic" + std::to_string(1 - side) + faults;
  port.rx_ring = port.tx_ring = 256;
  port.tx_rs_thresh = 1;
  port.addresses = {{Ipv4Address{{10, 0, 0, static_cast<std::uint8_t>(side + 1)}}, 24}};
  transport::MessagePortConfig config;
  config.workers = workers;
  config.own_ports = true;
  config.udp_port = kPort;
  config.max_sessions = kPeers;
  config.pool.cache = 32;
  auto opened = transport::MessagePort::open(port, config);
  EXPECT_TRUE(opened.ok()) << opened.error().message();
  return std::move(opened).value();
}

class Broadcast : public testing::TestWithParam<const char*> {};

TEST_P(Broadcast, OfOneBufferIsGatheredForEveryPeerAndToldOfOnceForEach) {
  if (port::vnic_calls() == nullptr) GTEST_SKIP() << "built without net_vnic";
  const auto from = open(0, 1, GetParam());
  const auto to = open(1, kWorkers, "");
  Nanos now{1'000'000};
  const auto endpoint = [&](std::uint8_t number, bool accept) {
    message::EndpointConfig config;
    config.secret.emplace()[0] = number;
    config.accept = accept;
    config.max_sessions = kPeers;
    config.receive_bytes = 32 << 20;
    return std::move(message::Endpoint::create(config, now)).value();
  };
  message::Endpoint sender = endpoint(99, false);
  std::vector<message::Endpoint> peers;
  for (std::uint16_t i = 0; i < kWorkers; ++i) peers.push_back(endpoint(static_cast<std::uint8_t>(i + 1), true));

  auto allocated = from->allocate(kLength);
  ASSERT_TRUE(allocated.ok()) << allocated.error().message();
  const std::span<std::uint8_t> buffer = *allocated;
  for (std::uint32_t i = 0; i < kLength; ++i) buffer[i] = static_cast<std::uint8_t>(mix64(i));
  const std::vector<std::uint8_t> original(buffer.begin(), buffer.end());
  for (std::uint32_t i = 0; i < kPeers; ++i) {
    const message::PeerAddress peer =
        message::peer_address(to->addresses().front().address, static_cast<std::uint16_t>(kPort + i % kWorkers));
    const message::Opened opened = sender.connect(peer, {.context = i}, now);
    ASSERT_EQ(opened.status, message::CallStatus::ok);
    ASSERT_EQ(sender.send(opened.session, {buffer.data(), kLength}, {.context = i}, now).status,
              message::CallStatus::ok);
  }

  std::vector<unsigned> told(kPeers);
  std::uint32_t left = kPeers;
  std::uint32_t received = 0;
  for (int turn = 0; turn < 1'000'000 && (left != 0 || received != kPeers); ++turn) {
    now.value += 5000;
    message::MessageEvent events[16];
    transport::receive_into(sender, from->queue(0), now);
    for (const message::MessageEvent& event : std::span(events).first(sender.poll(events))) {
      if (event.kind != message::EventKind::sent) continue;
      EXPECT_EQ(event.status, message::MessageStatus::ok);
      ++told[event.context];
      // Nobody reads it any more.
      if (--left == 0) std::ranges::fill(buffer, std::uint8_t{0xee});
    }
    transport::transmit_from(sender, from->queue(0), StoppedClock{now});
    for (std::uint16_t i = 0; i < kWorkers; ++i) {
      transport::receive_into(peers[i], to->queue(i), now);
      for (const message::MessageEvent& event : std::span(events).first(peers[i].poll(events))) {
        if (event.kind != message::EventKind::message) continue;
        EXPECT_TRUE(std::ranges::equal(std::span(event.data, event.length), original));
        ++received;
        EXPECT_EQ(peers[i].release(event.id, now), message::CallStatus::ok);
      }
      transport::transmit_from(peers[i], to->queue(i), StoppedClock{now});
    }
  }
  EXPECT_EQ(left, 0U);
  EXPECT_EQ(received, kPeers);
  EXPECT_TRUE(std::ranges::all_of(told, [](unsigned times) { return times == 1; }));
  const transport::TransportCounters& counters = from->queue(0).counters();
  EXPECT_EQ(counters.copied.get(), 0U);
  EXPECT_GE(counters.gathered.get(), kPeers * (kLength / 1472));
  from->close();
  to->close();
  EXPECT_EQ(from->leaked(), 0U);
  EXPECT_EQ(to->leaked(), 0U);
}

INSTANTIATE_TEST_SUITE_P(Wires, Broadcast, testing::Values("", ",loss=0.01,seed=3"),
                         [](const auto& wire) { return *wire.param == 0 ? "clean" : "lossy"; });

}  // namespace
}  // namespace warpline
