// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <numeric>
#include <span>
#include <thread>
#include <vector>

#include "warpline/base/host_device.h"
#include "warpline/handoff/burst_ring.h"
#include "warpline/handoff/engine.h"
#include "warpline/handoff/skipping_testing.h"

namespace warpline::handoff::testing {

// Streams of packets through any engine, with a producer and a consumer thread of their own, and what must come out.

inline constexpr std::uint16_t kMaxPieces = 3;

/// A frame of up to three pieces; what the work should find and leave is worked out from `number`.
struct Packet {
  std::uint32_t number = 0;
  std::uint16_t pieces = 1;
  std::array<std::uint8_t, kMaxPieces> bytes{};  ///< one a piece, each counts how often the work saw it

  [[nodiscard]] Verdict preset() const { return number % 5 == 0 ? Verdict::reply : Verdict::forward; }
  [[nodiscard]] Verdict expected() const {
    if (preset() != Verdict::forward) return preset();
    return pieces == 2 ? Verdict::giant : Verdict::forward;
  }
};

/// Touches every piece once, drops frames of two pieces.
struct Touch {
  std::uint64_t frames = 0;
  WARPLINE_HD Verdict operator()(FrameRef frame) {
    ++frames;
    for (std::uint16_t i = 0; i < frame.count; ++i) ++*frame.segments[i].data;
    return frame.length == 2 ? Verdict::giant : Verdict::forward;
  }
};

/// Gives each vector pages of its own, so that they can be opened to a GPU.
template <typename T>
struct PageAllocator {
  using value_type = T;
  static constexpr std::size_t kPage = 4096;
  T* allocate(std::size_t n) {
    return static_cast<T*>(std::aligned_alloc(kPage, (n * sizeof(T) + kPage - 1) / kPage * kPage));
  }
  void deallocate(T* memory, std::size_t) { std::free(memory); }
  bool operator==(const PageAllocator&) const = default;
};

struct PacketStream {
  std::vector<Packet, PageAllocator<Packet>> packets;
  std::vector<std::uint16_t> bursts;  ///< packets each; they add up to all packets
};

inline PacketStream make_stream(const std::vector<std::uint16_t>& bursts, std::uint64_t seed) {
  PacketStream stream{{}, bursts};
  stream.packets.resize(std::accumulate(bursts.begin(), bursts.end(), std::size_t{0}));
  std::uint32_t number = 0;
  for (Packet& packet : stream.packets) {
    packet.number = number++;
    packet.pieces = static_cast<std::uint16_t>(1 + (seed + std::uint64_t{packet.number} * 7U) % 11U % kMaxPieces);
  }
  return stream;
}

template <typename E>
void produce(BurstRing& ring, E& engine, PacketStream& stream) {
  Packet* next = stream.packets.data();
  for (const std::uint16_t size : stream.bursts) {
    Burst* burst = ring.acquire();
    while (burst == nullptr) {
      std::this_thread::yield();
      burst = ring.acquire();
    }
    for (std::uint16_t i = 0; i < size; ++i, ++next) {
      if (next->pieces == 1) {
        burst->append(next, next->bytes.data(), 1, next->preset());
        continue;
      }
      Segment* const segments = burst->append(next, next->pieces, next->preset());
      for (std::uint16_t s = 0; s < next->pieces; ++s) {
        segments[s].data = &next->bytes[s];
        segments[s].length = 1;
      }
    }
    ring.publish();
    engine.on_published();
  }
}

/// What came out, in order: packet number and verdict.
struct Received {
  std::uint32_t number;
  Verdict verdict;
};

inline std::vector<Received> consume(BurstRing& ring, std::size_t bursts) {
  std::vector<Received> received;
  for (std::size_t i = 0; i < bursts; ++i) {
    const Burst* burst = ring.completed();
    while (burst == nullptr) {
      std::this_thread::yield();
      burst = ring.completed();
    }
    std::uint16_t exceptions = 0;
    burst->for_each([&](void* packet, Verdict verdict) {
      received.push_back({static_cast<Packet*>(packet)->number, verdict});
      exceptions = static_cast<std::uint16_t>(exceptions + (verdict != Verdict::forward));
    });
    EXPECT_EQ(burst->exceptions(), exceptions);
    EXPECT_EQ(burst->unworked(), 0);
    ring.release();
  }
  return received;
}

/// Sends the stream through and says whether every packet came out once, in order, touched once and rightly judged.
template <typename E>
void expect_all_through(BurstRing& ring, E& engine, PacketStream& stream) {
  ASSERT_TRUE(engine.start().ok());
  std::thread producer([&] { produce(ring, engine, stream); });
  const std::vector<Received> received = consume(ring, stream.bursts.size());
  producer.join();
  EXPECT_EQ(engine.stop(Nanos{0}).bursts, 0U);

  ASSERT_EQ(received.size(), stream.packets.size());
  std::uint64_t worked = 0;
  for (std::size_t i = 0; i < received.size(); ++i) {
    const Packet& packet = stream.packets[i];
    ASSERT_EQ(received[i].number, packet.number);
    ASSERT_EQ(received[i].verdict, packet.expected());
    const bool touched = packet.preset() == Verdict::forward;
    worked += touched;
    for (std::uint16_t s = 0; s < kMaxPieces; ++s) ASSERT_EQ(packet.bytes[s], touched && s < packet.pieces ? 1 : 0);
  }

  std::uint64_t frames = 0;
  engine.for_each_worker_state([&](const Touch& touch) { frames += touch.frames; });
  EXPECT_EQ(frames, worked);
  std::uint64_t bursts = 0;
  std::uint64_t packets = 0;
  std::uint64_t sampled = 0;
  for (std::uint32_t lane = 0; lane < engine.lanes(); ++lane) {
    const LaneCounters& counters = engine.counters(lane);
    bursts += counters.bursts.get();
    packets += counters.packets.get();
    EXPECT_LE(counters.sampled_packets.get(), counters.packets.get());
    sampled += counters.sampled_packets.get();
    EXPECT_LE(counters.packets.get() > 0, counters.bursts.get() > 0);
  }
  EXPECT_EQ(bursts, stream.bursts.size());
  EXPECT_EQ(packets, worked);
  // A lane's first burst is timed, and packet 1 is for work.
  EXPECT_TRUE(stream.bursts.front() == 1 || sampled > 0);
}

/// A million frames, of which the engine's lane passes over one: that is seen, in the burst that it was in.
/// `make_engine(BurstRing&, SkipOne)` returns a pointer to the engine; `packets` are open to it.
template <typename F>
void expect_skip_is_seen(std::span<std::uint8_t> packets, F&& make_engine) {
  constexpr std::size_t kBurst = 64;
  const std::size_t bursts = packets.size() / kBurst;
  const std::size_t victim = packets.size() / 3;
  Result<std::unique_ptr<BurstRing>> ring = BurstRing::create({.slots = 16, .packets = kBurst, .segments = kBurst});
  ASSERT_TRUE(ring.ok());
  const auto engine = make_engine(**ring, SkipOne{&packets[victim]});
  ASSERT_TRUE(engine->start().ok());
  std::size_t published = 0;
  for (std::size_t done = 0; done < bursts;) {
    Burst* const open = published < bursts ? (*ring)->acquire() : nullptr;
    if (open != nullptr) {
      for (std::size_t i = 0; i < kBurst; ++i) open->append(nullptr, &packets[published * kBurst + i], 1);
      (*ring)->publish();
      engine->on_published();
      ++published;
    }
    for (; const Burst* const burst = (*ring)->completed(); ++done) {
      ASSERT_EQ(burst->for_work(), kBurst);
      ASSERT_EQ(burst->unworked(), done == victim / kBurst ? 1 : 0) << "burst " << done;
      (*ring)->release();
    }
    if (open == nullptr) std::this_thread::yield();
  }
  EXPECT_EQ(engine->stop(Nanos{1'000'000'000}).bursts, 0U);
  for (std::size_t i = 0; i < packets.size(); ++i) ASSERT_EQ(packets[i], i == victim ? 0 : 1) << i;
}

inline std::unique_ptr<BurstRing> make_ring(std::uint32_t slots, std::uint16_t packets, std::uint64_t first = 1) {
  const auto segments = static_cast<std::uint16_t>(packets * kMaxPieces);
  Result<std::unique_ptr<BurstRing>> ring = BurstRing::create({slots, packets, segments, first});
  EXPECT_TRUE(ring.ok());
  return *std::move(ring);
}

}  // namespace warpline::handoff::testing
