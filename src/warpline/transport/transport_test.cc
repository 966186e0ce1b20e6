// SPDX-License-Identifier: Apache-2.0
#include "warpline/transport/transport.h"

#include <gtest/gtest.h>

#include <array>

namespace warpline::transport {
namespace {

/// A queue that is never empty: of datagrams that are nobody's.
class Flood final : public Transport {
 public:
  std::span<const message::Datagram> receive(Nanos) override {
    datagram_.head = bytes_.data();
    datagram_.head_length = bytes_.size();
    return {&datagram_, 1};
  }
  [[nodiscard]] bool more() const override { return flows; }
  std::span<message::Outgoing> room() override { return {}; }
  void send(std::size_t, Nanos) override {}
  std::span<const std::uint64_t> completed() override { return {}; }
  void wait(Nanos, Nanos) override {}

  bool flows = true;

 private:
  std::array<std::uint8_t, 16> bytes_{};
  message::Datagram datagram_;
};

/// Turns of the loop until an endpoint notices that nobody answers its hello, long after that was due.
int turns_until_due(bool flows) {
  message::EndpointConfig config;
  config.secret.emplace().fill(1);
  config.connect_timeout = Nanos{1'000'000};
  const Nanos begin{1'000'000'000};
  auto endpoint = message::Endpoint::create(config, begin);
  EXPECT_TRUE(endpoint.ok());
  (void)endpoint->connect(message::peer_address(Ipv4Address{{10, 0, 0, 1}}, 1), {}, begin);
  Flood flood;
  flood.flows = flows;
  for (int turn = 1; turn < 1000; ++turn) {
    receive_into(*endpoint, flood, Nanos{begin.value + 900'000 * turn});
    message::MessageEvent event;
    if (endpoint->poll({&event, 1}) != 0) return turn;
  }
  return 1000;
}

TEST(Transport, TimersWaitForTheQueueToBeReadButNotForEver) {
  EXPECT_EQ(turns_until_due(false), 2);
  EXPECT_EQ(turns_until_due(true), 64);
}

/// One that the kernel takes no more datagrams of.
class Blocked final : public Transport {
 public:
  std::span<const message::Datagram> receive(Nanos) override { return {}; }
  std::span<message::Outgoing> room() override { return {}; }
  void send(std::size_t, Nanos) override {}
  std::span<const std::uint64_t> completed() override { return {}; }
  void wait(Nanos, Nanos) override {}
  [[nodiscard]] bool blocked() const override { return full; }

  bool full = true;
};

TEST(Transport, ALoopRestsWhileItsDatagramsCannotBeSent) {
  Blocked transport;
  const Nanos now{5'000'000'000};
  EXPECT_GT(transport.rest_until(now, now), now) << "datagrams are due, and cannot be sent";
  EXPECT_LE(transport.rest_until(now, now).value - now.value, 1'000'000) << "timers go on";
  const Nanos later{now.value + 30'000'000};
  EXPECT_EQ(transport.rest_until(now, later), later);
  transport.full = false;
  EXPECT_EQ(transport.rest_until(now, now), now);
}

}  // namespace
}  // namespace warpline::transport
