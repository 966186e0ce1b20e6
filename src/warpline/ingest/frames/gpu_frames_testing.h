// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "warpline/base/random.h"
#include "warpline/flow/batch_testing.h"
#include "warpline/flow/frame_layout.h"
#include "warpline/handoff/burst_ring.h"
#include "warpline/ingest/batch_slots.h"
#include "warpline/ingest/frames/host_frames.h"
#include "warpline/packet/frame_testing.h"

namespace warpline::ingest {

// Packets for the tests of frames in GPU memory, and the way of such packets through a ring.

inline constexpr std::uint16_t kFrameBurst = 96;
inline constexpr std::uint32_t kFrameSlots = 4;
inline constexpr std::uint32_t kFrameStride = 256;

/// A description of small frames, with windows of a few, of up to three streams.
inline std::string random_frames(Random& random) {
  return "packets=" + std::to_string(1 + random.below(12)) +
         ",seq=4:64,payload=12:" + std::to_string(1 + random.below(100)) +
         ",stream=0:32,streams=" + std::to_string(1 + random.below(3)) +
         ",window=" + std::to_string(1 + random.below(5)) + ",jump=" + std::to_string(1 + random.below(6)) +
         ",restart=" + std::to_string(2 + random.below(4));
}

/// A packet as it arrives, cut in two pieces after `first` bytes or whole, and dropped before or not.
struct Arrived {
  packet::FrameBytes bytes;
  std::uint32_t first = 0;
  Verdict preset = Verdict::forward;
};

/// Packets of three streams that are lost, doubled, late, damaged and begin anew, with some that are none of theirs.
inline std::vector<Arrived> arrive(const flow::FrameDescription& description, Random& random) {
  std::vector<std::vector<std::int64_t>> sources;
  const std::uint64_t faults = 7 + random.below(80);
  for (int i = 0; i < 3; ++i) sources.push_back(flow::arrivals(random, 900, faults));
  std::vector<std::size_t> next(sources.size(), 0);
  std::vector<Arrived> packets;
  for (int i = 0; i < 2500; ++i) {
    const auto key = static_cast<std::uint32_t>(random.below(sources.size()));
    if (next[key] == sources[key].size()) continue;
    packet::FrameBytes datagram = flow::numbered_packet(description, key, sources[key][next[key]++]);
    if (random.below(60) == 0) datagram.resize(random.below(datagram.size()) + 1);
    Arrived arrived{.bytes = packet::ipv4_frame(17, packet::udp_datagram(datagram))};
    if (random.below(100) == 0) arrived.bytes = packet::ipv4_frame(6, packet::tcp_segment(datagram));
    if (random.below(5) == 0) arrived.first = static_cast<std::uint32_t>(1 + random.below(arrived.bytes.size() - 1));
    if (random.below(80) == 0) arrived.preset = Verdict::runt;
    packets.push_back(std::move(arrived));
  }
  return packets;
}

/// Little more than the frames of a description need: a batch then has to wait for its own frames.
inline Bytes least_memory(const flow::FrameDescription& description, std::uint32_t batch) {
  const flow::FramePlan plan = *flow::make_frame_plan(description, flow::PacketForm::ethernet);
  Bytes memory{4096};
  while (!flow::FrameLayout::fit(plan, memory, batch)) memory.value += 4096;
  return {memory.value + 2 * flow::FrameLayout::kAlignment};
}

inline FrameTotals frames_on_host(const flow::FrameDescription& description, const std::vector<Arrived>& packets) {
  const auto frames = *HostFrames::create(description, Bytes{4U << 20});
  for (const Arrived& arrived : packets) {
    packet::SegmentedFrame packet(arrived.bytes);
    if (arrived.preset == Verdict::forward) {
      EXPECT_TRUE(frames->assemble(packet.ref()));
    }
  }
  return *frames->end();
}

/// Publishes the packets in batches of random size and takes the batches back, until all are done or the engine failed.
/// Packets are copied into `slots`, or lie in `memory`, which has kFrameStride bytes for each of the ring, in one piece
/// or in two.
template <typename E>
void pass_packets(handoff::BurstRing& ring, E& engine, const std::vector<Arrived>& packets, BatchSlots* slots,
                  std::byte* memory, Random& random) {
  std::size_t published = 0;
  std::size_t done = 0;
  while (done < packets.size() && !engine.failure()) {
    if (handoff::Burst* const burst = published < packets.size() ? ring.acquire() : nullptr) {
      const std::uint64_t slot = ring.next_slot();
      std::size_t filled = 0;
      for (std::uint64_t left = 1 + random.below(kFrameBurst); left != 0 && published < packets.size(); --left) {
        const Arrived& arrived = packets[published++];
        const auto length = static_cast<std::uint32_t>(arrived.bytes.size());
        if (slots != nullptr) {
          std::memcpy(slots->staging(slot) + filled, arrived.bytes.data(), length);
          burst->append(nullptr, reinterpret_cast<std::uint8_t*>(slots->place(slot) + filled), length, arrived.preset);
          filled += slot_room(length);
          continue;
        }
        auto* const at =
            reinterpret_cast<std::uint8_t*>(memory) + (slot * kFrameBurst + burst->packet_count()) * kFrameStride;
        std::memcpy(at, arrived.bytes.data(), length);
        if (arrived.first == 0) {
          burst->append(nullptr, at, length, arrived.preset);
          continue;
        }
        Segment* const pieces = burst->append(nullptr, 2, arrived.preset);
        pieces[0].data = at;
        pieces[0].length = arrived.first;
        pieces[1].data = at + arrived.first;
        pieces[1].length = length - arrived.first;
      }
      const std::uint64_t word = pack_ring_word(ring.next_sequence(), burst->segment_count());
      if (slots != nullptr) {
        EXPECT_TRUE(slots->submit(slot, filled, word));
      }
      ring.publish();
      engine.on_published();
    }
    if (const handoff::Burst* const burst = ring.completed()) {
      EXPECT_EQ(burst->unworked(), 0U);
      EXPECT_EQ(burst->exceptions(), burst->packet_count() - burst->for_work());
      done += burst->packet_count();
      ring.release();
    }
  }
}

}  // namespace warpline::ingest
