// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <thread>
#include <vector>

#include "warpline/handoff/engine_testing.h"
#include "warpline/queues/packet_queues.h"

namespace warpline::handoff::testing {

// The streams of engine_testing.h through packet queues, with a poster and a sender on threads of their own.

inline std::unique_ptr<queues::PacketQueues> make_queues(std::uint32_t slots, std::uint64_t first = 1) {
  Result<std::unique_ptr<queues::PacketQueues>> queues =
      queues::PacketQueues::create({.slots = slots, .first_sequence = first});
  EXPECT_TRUE(queues.ok());
  return *std::move(queues);
}

/// Posts the packet, if there is room for it in `most` slots.
inline bool post(queues::PacketQueues& queues, Packet& packet, std::uint32_t most) {
  if (queues.room(packet.pieces, most) < packet.pieces) return false;
  std::array<Segment, kMaxPieces> pieces{};
  for (std::uint16_t i = 0; i < packet.pieces; ++i) pieces[i] = {&packet.bytes[i], 1, 0, Verdict::forward};
  queues.post(&packet, std::span(pieces).first(packet.pieces), packet.preset());
  return true;
}

/// Posts all packets of the stream, each of its bursts at once as far as there is room.
inline void post_stream(queues::PacketQueues& queues, PacketStream& stream) {
  Packet* next = stream.packets.data();
  for (const std::uint16_t size : stream.bursts) {
    for (std::uint16_t i = 0; i < size; ++i, ++next) {
      while (!post(queues, *next, queues.slots())) {
        queues.publish(next->number + 1);
        std::this_thread::yield();
      }
    }
    queues.publish(next->number);
  }
}

/// What came out: the packets that were to be sent, in that order, and those that were dropped.
struct Left {
  std::vector<std::uint32_t> sent;
  std::vector<Received> dropped;
  std::uint64_t released = 0;  ///< frames
  std::uint64_t bad = 0;
  std::uint64_t checked = 0;
};

/// Takes once what there is. Returns whether that was anything.
inline bool take(queues::PacketQueues& queues, Left& left, std::uint32_t most) {
  std::vector<void*> packets(most);
  const std::uint32_t sent = queues.take_sent(packets.data(), most);
  for (std::uint32_t i = 0; i < sent; ++i) left.sent.push_back(static_cast<Packet*>(packets[i])->number);
  if (sent != 0) queues.complete();
  const std::uint32_t frames = queues.take_released(most, [&left](const queues::PacketQueues::Released& released) {
    if (released.packet == nullptr) return;
    left.dropped.push_back({static_cast<Packet*>(released.packet)->number, released.verdict});
  });
  left.released += frames;
  const queues::PacketQueues::Checked checked = queues.take_checked();
  left.checked += checked.frames;
  left.bad += checked.bad;
  return sent != 0 || frames != 0;
}

/// Sends the stream through and says whether every packet came out once, in order, touched once and rightly judged.
template <typename E>
void expect_all_through(queues::PacketQueues& queues, E& engine, PacketStream& stream) {
  ASSERT_TRUE(engine.start().ok());
  std::thread poster([&] { post_stream(queues, stream); });
  Left left;
  while (left.released != stream.packets.size()) {
    if (!take(queues, left, 7)) std::this_thread::yield();
    ASSERT_FALSE(engine.failure());
  }
  poster.join();
  engine.stop(Nanos{1'000'000'000});
  EXPECT_EQ(queues.in_flight(), 0U);
  EXPECT_EQ(left.bad, 0U);

  std::size_t sent = 0;
  std::size_t dropped = 0;
  std::uint64_t worked = 0;
  for (const Packet& packet : stream.packets) {
    if (packet.expected() == Verdict::forward) {
      ASSERT_LT(sent, left.sent.size());
      ASSERT_EQ(left.sent[sent++], packet.number);
    } else {
      ASSERT_LT(dropped, left.dropped.size());
      ASSERT_EQ(left.dropped[dropped].number, packet.number);
      ASSERT_EQ(left.dropped[dropped++].verdict, packet.expected());
    }
    const bool touched = packet.preset() == Verdict::forward;
    worked += touched;
    for (std::uint16_t s = 0; s < kMaxPieces; ++s) ASSERT_EQ(packet.bytes[s], touched && s < packet.pieces ? 1 : 0);
  }
  EXPECT_EQ(sent, left.sent.size());
  EXPECT_EQ(dropped, left.dropped.size());
  EXPECT_EQ(left.checked, worked);
  std::uint64_t frames = 0;
  engine.for_each_worker_state([&](const Touch& touch) { frames += touch.frames; });
  EXPECT_EQ(frames, worked);
  EXPECT_EQ(engine.counters(0).packets.get(), worked);
}

}  // namespace warpline::handoff::testing
