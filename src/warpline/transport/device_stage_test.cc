// SPDX-License-Identifier: Apache-2.0
#include "warpline/transport/device_stage.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <deque>
#include <memory>
#include <random>
#include <vector>

#include "warpline/base/random.h"
#include "warpline/message/endpoint.h"
#include "warpline/message/receive_memory.h"
#include "warpline/transport/device_memory_testing.h"
#include "warpline/transport/udp_socket.h"

namespace warpline::transport {
namespace {

constexpr std::uint32_t kRoom = 2048;

/// A clock that shows what the test sets.
struct StoppedClock {
  Nanos time;
  [[nodiscard]] Nanos now() const { return time; }
};

/// Keeps what is sent, and hands out what it is given; its bursts are of four.
class Wire final : public Transport {
 public:
  Wire() {
    for (std::size_t i = 0; i < out_.size(); ++i) {
      out_[i].head = heads_.data() + i * kRoom;
      out_[i].head_capacity = kRoom;
    }
  }
  std::span<const message::Datagram> receive(Nanos) override {
    ++receives;
    datagrams.clear();
    for (std::vector<std::uint8_t>& bytes : arriving) {
      message::Datagram datagram;
      datagram.head = bytes.data();
      datagram.head_length = static_cast<std::uint32_t>(bytes.size());
      datagrams.push_back(datagram);
    }
    return datagrams;
  }
  std::span<message::Outgoing> room() override { return out_; }
  void send(std::size_t count, Nanos) override {
    for (const message::Outgoing& out : std::span(out_).first(count)) {
      if (out.payload_device) {
        ++refused;
        continue;
      }
      sent.emplace_back(out.head, out.head + out.head_length);
      sent.back().insert(sent.back().end(), out.payload, out.payload + out.payload_length);
      if (out.token != 0) tokens.push_back(out.token);
    }
  }
  std::span<const std::uint64_t> completed() override {
    given_.swap(tokens);
    tokens.clear();
    return given_;
  }
  void wait(Nanos, Nanos) override { ++waits; }

  std::vector<std::vector<std::uint8_t>> sent;
  std::vector<std::vector<std::uint8_t>> arriving;
  std::vector<message::Datagram> datagrams;
  std::vector<std::uint64_t> tokens;
  int refused = 0;
  int receives = 0;
  int waits = 0;

 private:
  std::vector<std::uint8_t> heads_ = std::vector<std::uint8_t>(4 * kRoom);
  std::array<message::Outgoing, 4> out_;
  std::vector<std::uint64_t> given_;
};

class Stage : public ::testing::Test {
 protected:
  Stage() {
    for (std::size_t i = 0; i < memory.device().size(); ++i) {
      memory.reach(memory.device().data())[i] = static_cast<std::uint8_t>(mix64(i));
    }
  }

  /// One datagram of a byte and `length` from device memory at `offset`.
  static void fill(message::Outgoing& out, std::uint8_t first, const std::uint8_t* payload, std::uint32_t length,
                   std::uint64_t token) {
    out.head[0] = first;
    out.head_length = 1;
    out.payload = payload;
    out.payload_length = length;
    out.payload_device = true;
    out.token = token;
  }
  [[nodiscard]] std::vector<std::uint8_t> expected(std::uint8_t first, const std::uint8_t* payload,
                                                   std::uint32_t length) const {
    std::vector<std::uint8_t> bytes{first};
    const std::uint8_t* const at = memory.reach(payload);
    bytes.insert(bytes.end(), at, at + length);
    return bytes;
  }

  UnreachableMemory memory{1 << 20};
  LazyLane lane{memory, 2};
  Wire wire;
  DeviceStage stage{wire, lane};
  const std::uint8_t* device = memory.device().data();
  const Nanos now{1};
};

TEST_F(Stage, HoldsABurstUntilItsPayloadHasComeThroughTheLane) {
  const std::span<message::Outgoing> room = stage.room();
  ASSERT_EQ(room.size(), 4U);
  for (std::uint32_t i = 0; i < 4; ++i) fill(room[i], static_cast<std::uint8_t>(i), device + 700 * i, 600 + i, 10 + i);
  stage.send(4, now);
  EXPECT_TRUE(wire.sent.empty());
  EXPECT_TRUE(stage.room().empty());
  (void)stage.receive(now);
  EXPECT_TRUE(wire.sent.empty());
  EXPECT_TRUE(stage.completed().empty());
  lane.land();
  (void)stage.receive(now);
  ASSERT_EQ(wire.sent.size(), 4U);
  for (std::uint32_t i = 0; i < 4; ++i) {
    EXPECT_EQ(wire.sent[i], expected(static_cast<std::uint8_t>(i), device + 700 * i, 600 + i));
  }
  const auto tokens = stage.completed();
  EXPECT_EQ(std::vector(tokens.begin(), tokens.end()), (std::vector<std::uint64_t>{10, 11, 12, 13}));
  EXPECT_TRUE(stage.completed().empty());
  EXPECT_EQ(stage.room().size(), 4U);
  EXPECT_EQ(stage.copies().fetched.get(), 4U);
  EXPECT_EQ(stage.copies().fetched_bytes.get(), 4U * 600 + 6);
}

TEST_F(Stage, LeavesToTheTransportWhatHasNoRoomBehindItsHead) {
  const std::span<message::Outgoing> room = stage.room();
  fill(room[0], 0, device, kRoom, 1);
  room[1].head_length = 5;
  room[1].payload_length = 0;
  stage.send(2, now);
  EXPECT_EQ(wire.refused, 1);
  EXPECT_EQ(wire.sent.size(), 1U);
  EXPECT_EQ(stage.copies().fetched.get(), 0U);
  EXPECT_EQ(stage.room().size(), 4U);
}

TEST_F(Stage, IsUnsettledUntilAllHasArrivedAndReceivesNothingBefore) {
  const message::Placer placer = stage.placer();
  constexpr std::uint32_t kPieces = 60;  // more than the lane takes at once
  for (std::uint32_t i = 0; i < kPieces; ++i) wire.arriving.emplace_back(50 + i, static_cast<std::uint8_t>(i));
  const auto datagrams = stage.receive(now);
  ASSERT_EQ(datagrams.size(), kPieces);
  EXPECT_TRUE(stage.settled());
  for (std::uint32_t i = 0; i < kPieces; ++i) {
    placer.copy(placer.context, const_cast<std::uint8_t*>(device) + 200 * i, datagrams[i].head,
                datagrams[i].head_length);
  }
  stage.read();
  int turns = 0;
  for (; !stage.settled(); ++turns) {
    EXPECT_TRUE(stage.receive(now).empty());
    stage.wait(now, Nanos{100});
    lane.land();
  }
  EXPECT_EQ(turns, 2);
  EXPECT_EQ(wire.receives, 1);
  EXPECT_EQ(wire.waits, 0);
  for (std::uint32_t i = 0; i < kPieces; ++i) {
    const std::uint8_t* const at = memory.reach(device + 200 * i);
    EXPECT_TRUE(std::all_of(at, at + 50 + i, [&](std::uint8_t byte) { return byte == i; })) << i;
  }
  EXPECT_EQ(stage.copies().placed.get(), kPieces);
  stage.wait(now, Nanos{100});
  EXPECT_EQ(wire.waits, 1);
}

TEST_F(Stage, DoesNotSleepOnWhatHasLandedUnseen) {
  wire.arriving.emplace_back(900, 0x5a);
  const auto datagrams = stage.receive(now);
  stage.placer().copy(&stage, const_cast<std::uint8_t*>(device), datagrams[0].head, 900);
  stage.read();
  EXPECT_FALSE(stage.settled());
  lane.land();  // between a loop's look for events and its sleep
  EXPECT_TRUE(stage.restless());
  stage.wait(now, Nanos{100});
  EXPECT_EQ(wire.waits, 0);
  EXPECT_TRUE(stage.settled());
  EXPECT_FALSE(stage.restless());
  stage.wait(now, Nanos{100});
  EXPECT_EQ(wire.waits, 1);
}

TEST_F(Stage, BothDirectionsAtOnceKeepTheirOrder) {
  wire.arriving.emplace_back(900, 0x5a);
  const auto datagrams = stage.receive(now);
  stage.placer().copy(&stage, const_cast<std::uint8_t*>(device) + 5000, datagrams[0].head, 900);
  stage.read();
  fill(stage.room()[0], 7, device, 100, 3);
  stage.send(1, now);
  EXPECT_FALSE(stage.settled());
  EXPECT_TRUE(wire.sent.empty());
  lane.land();
  EXPECT_TRUE(stage.settled());
  (void)stage.receive(now);
  ASSERT_EQ(wire.sent.size(), 1U);
  EXPECT_EQ(wire.sent[0], expected(7, device, 100));
  EXPECT_EQ(*memory.reach(device + 5899), 0x5a);
}

/// Two endpoints over sockets, all messages of both in memory that nobody but the lanes can touch.
TEST(DeviceMessages, GoFromDeviceMemoryToDeviceMemoryUnseenByTheCpu) {
  constexpr std::uint32_t kLengths[] = {1, 129, 1376, 100'000, 3'000'000};
  const IpAddress here = Ipv4Address{{127, 0, 0, 1}};
  struct End {
    UnreachableMemory memory{32 << 20};
    LazyLane lane{memory};
    std::unique_ptr<UdpSocket> socket;
    std::unique_ptr<DeviceStage> stage;
    std::unique_ptr<message::ReceiveMemory> room;
    std::optional<message::Endpoint> endpoint;
  };
  End ends[2];
  Nanos now{1'000'000};
  for (End& end : ends) {
    auto socket = UdpSocket::open({.local = {here, 0}});
    ASSERT_TRUE(socket.ok()) << socket.error().message();
    end.socket = std::move(socket).value();
    end.lane.eager = true;
    end.stage = std::make_unique<DeviceStage>(*end.socket, end.lane);
    end.room = std::make_unique<message::ReceiveMemory>(end.memory.device().subspan(16 << 20));
    message::EndpointConfig config;
    config.secret.emplace()[0] = static_cast<std::uint8_t>(&end - ends + 1);
    config.placer = end.stage->placer();
    config.buffers = {end.room.get(),
                      [](void* room, message::SessionId, std::uint16_t, std::uint32_t length) {
                        return message::MutableBuffer{static_cast<message::ReceiveMemory*>(room)->take(length), length,
                                                      true};
                      },
                      [](void* room, message::MutableBuffer buffer) {
                        static_cast<message::ReceiveMemory*>(room)->give(buffer.data);
                      }};
    auto endpoint = message::Endpoint::create(config, now);
    ASSERT_TRUE(endpoint.ok());
    end.endpoint.emplace(std::move(endpoint).value());
  }
  End& client = ends[0];
  End& server = ends[1];
  std::uint8_t* const from = client.memory.device().data();
  for (std::size_t i = 0; i < 8 << 20; ++i) client.memory.reach(from)[i] = static_cast<std::uint8_t>(mix64(i) >> 7);
  const message::SessionId session =
      client.endpoint->connect(message::peer_address(here, server.socket->port()), {}, now).session;
  std::uint8_t* to = from + (8 << 20);
  std::size_t left = std::size(kLengths);
  for (const std::uint32_t length : kLengths) {
    const message::Submitted submitted =
        client.endpoint->request(session, {from + length, length, true}, {to, length, true}, {.context = length}, now);
    ASSERT_EQ(submitted.status, message::CallStatus::ok);
    to += length;
  }
  const std::size_t free_before = server.room->free_bytes();
  const Nanos end_of_patience{60'000'000'000};
  while (left != 0 && now < end_of_patience) {
    now.value += 20'000;
    for (End& end : ends) {
      receive_into(*end.endpoint, *end.stage, now);
      message::MessageEvent events[8];
      const std::size_t count = end.stage->settled() ? end.endpoint->poll(events) : 0;
      for (const message::MessageEvent& event : std::span(events).first(count)) {
        if (event.kind == message::EventKind::request) {
          EXPECT_EQ(event.device, event.length > message::kInlineBytes);
          EXPECT_EQ(end.endpoint->respond(event.id, {event.data, event.length, event.device}, {}, now),
                    message::CallStatus::ok);
        }
        if (event.kind != message::EventKind::response) continue;
        EXPECT_EQ(event.status, message::MessageStatus::ok);
        EXPECT_TRUE(event.device);
        ASSERT_EQ(event.length, event.context);
        EXPECT_EQ(std::memcmp(client.memory.reach(event.data), client.memory.reach(from + event.length), event.length),
                  0)
            << event.length;
        --left;
      }
      transmit_from(*end.endpoint, *end.stage, StoppedClock{now});
    }
  }
  EXPECT_EQ(left, 0U);
  EXPECT_GE(client.stage->copies().placed_bytes.get(), 3'101'506U);
  EXPECT_GE(server.stage->copies().fetched_bytes.get(), 3'101'505U);  // what is short was answered from host memory
  (void)server.endpoint->close({}, now);
  for (int i = 0; i < 1000 && server.room->free_bytes() != free_before; ++i) {
    now.value += 100'000;
    for (End& end : ends) {
      receive_into(*end.endpoint, *end.stage, now);
      message::MessageEvent events[8];
      if (end.stage->settled()) (void)end.endpoint->poll(events);
      transmit_from(*end.endpoint, *end.stage, StoppedClock{now});
    }
  }
  EXPECT_EQ(server.room->free_bytes(), free_before);
}

}  // namespace
}  // namespace warpline::transport
