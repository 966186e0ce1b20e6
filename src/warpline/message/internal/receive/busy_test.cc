// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <tuple>

#include "warpline/message/loopback_testing.h"

namespace warpline::message {
namespace {

/// Memory that there is or is not, as the test says.
struct Store {
  bool open = false;
  std::map<std::uint8_t*, std::unique_ptr<std::uint8_t[]>> taken;

  [[nodiscard]] BufferSource source() {
    return {this,
            [](void* self, SessionId, std::uint16_t, std::uint32_t length) {
              auto& store = *static_cast<Store*>(self);
              if (!store.open) return MutableBuffer{};
              auto memory = std::make_unique<std::uint8_t[]>(length);
              std::uint8_t* data = memory.get();
              store.taken[data] = std::move(memory);
              return MutableBuffer{data, length, false};
            },
            [](void* self, MutableBuffer buffer) { static_cast<Store*>(self)->taken.erase(buffer.data); }};
  }
};

class Busy : public testing::TestWithParam<std::tuple<Reliability, bool>> {};

/// Each end has no memory for what the other sends first. What needs none, behind it, must not wait for that.
TEST_P(Busy, on_both_sides_at_once_stops_nobody) {
  const auto [reliability, lossy] = GetParam();
  Impairment faults;
  faults.loss = lossy ? 50'000 : 0;
  Loopback net(11, faults);
  Store stores[2];
  EndpointConfig config;
  config.reliability = reliability;
  config.credits = 4;
  Loopback::Host* ends[2];
  for (int i = 0; i < 2; ++i) {
    config.buffers = stores[i].source();
    ends[i] = &net.add(config);
  }
  const auto [client, server] = net.connect(*ends[0], *ends[1]);
  const SessionId sessions[] = {client, server};
  const auto big = pattern(20'000, 1);
  const auto small = pattern(30, 2);
  for (int i = 0; i < 2; ++i) {
    for (const auto& bytes : {&big, &big, &small}) {
      const ConstBuffer buffer{bytes->data(), static_cast<std::uint32_t>(bytes->size()), false};
      ASSERT_EQ(ends[i]->endpoint.send(sessions[i], buffer, {}, net.now).status, CallStatus::ok);
    }
  }
  const auto has = [&](int end, EventKind kind, std::size_t count, std::size_t length) {
    const auto& events = ends[end]->events;
    return std::count_if(events.begin(), events.end(), [&](const MessageEvent& e) {
             return e.kind == kind && e.length == length;
           }) == static_cast<std::ptrdiff_t>(count);
  };
  EXPECT_TRUE(net.run([&] { return has(0, EventKind::message, 1, 30) && has(1, EventKind::message, 1, 30); },
                      Nanos{2'000'000'000}));
  stores[0].open = stores[1].open = true;
  EXPECT_TRUE(net.run([&] { return has(0, EventKind::sent, 2, 20'000) && has(1, EventKind::sent, 2, 20'000); },
                      Nanos{2'000'000'000}));
  for (int i = 0; i < 2; ++i) {
    for (const MessageEvent& event : ends[i]->events) {
      if (event.kind != EventKind::message) continue;
      const auto& expected = event.length == 30 ? small : big;
      EXPECT_TRUE(std::equal(expected.begin(), expected.end(), event.data, event.data + event.length));
      EXPECT_EQ(ends[i]->endpoint.release(event.id, net.now), CallStatus::ok);
    }
    EXPECT_TRUE(stores[i].taken.empty());
    EXPECT_GT(ends[i]->endpoint.counters().dropped(MessageDrop::no_buffer), 0U);
  }
}

/// An end that has to say again and again that it is busy sends what it has lost nevertheless: those notices, which are
/// packets too, do not put its timeout off.
TEST(BusyNotices, put_no_timeout_off) {
  for (const Reliability reliability : {Reliability::go_back_n, Reliability::selective}) {
    Loopback net(3);
    Store store;
    EndpointConfig config;
    config.reliability = reliability;
    Loopback::Host& client = net.add(config);
    config.buffers = store.source();
    Loopback::Host& server = net.add(config);
    const auto [here, there] = net.connect(client, server);
    const auto bytes = pattern(1000, 1);
    const ConstBuffer message{bytes.data(), 1000, false};
    ASSERT_EQ(client.endpoint.send(here, message, {}, net.now).status, CallStatus::ok);
    // Until the timeout is longer than the time between two notices, which is 32 ms at most.
    const Nanos until{net.now.value + 200 * kMs};
    net.tap = [&](const Loopback::Host& from, const std::vector<std::uint8_t>& packet) {
      return &from == &server && net.now < until && packet.size() > 500;
    };
    ASSERT_EQ(server.endpoint.send(there, message, {}, net.now).status, CallStatus::ok);
    const auto arrived = [&] {
      return std::any_of(client.events.begin(), client.events.end(),
                         [](const MessageEvent& event) { return event.kind == EventKind::message; });
    };
    EXPECT_TRUE(net.run(arrived, Nanos{2000 * kMs})) << static_cast<int>(reliability);
    EXPECT_GT(server.endpoint.counters().drops[static_cast<std::size_t>(MessageDrop::no_buffer)].get(), 8U);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Ways, Busy, testing::Combine(testing::Values(Reliability::selective, Reliability::go_back_n), testing::Bool()),
    [](const auto& each) {
      return std::string(std::get<0>(each.param) == Reliability::selective ? "selective" : "go_back_n") +
             (std::get<1>(each.param) ? "_lossy" : "");
    });

}  // namespace
}  // namespace warpline::message
