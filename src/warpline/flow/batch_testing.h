// SPDX-License-Identifier: Apache-2.0
#pragma once

// Batches of packets, and the comparison of who takes them with FrameAssembler, for the tests of host and GPU.

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "warpline/flow/batch_assembler.h"
#include "warpline/flow/flow_testing.h"
#include "warpline/flow/frame_assembler.h"

namespace warpline::flow {

inline constexpr std::uint32_t kBatch = 96;

/// Makes zeroed memory, aligned as assemblers want it, that whoever takes the batches reaches.
using MemorySource = std::function<std::shared_ptr<std::byte>(std::size_t)>;

[[nodiscard]] inline std::shared_ptr<std::byte> host_memory(std::size_t size) {
  auto memory = std::make_shared<AlignedMemory>(size, std::byte{0});
  return {memory, memory->bytes().data()};
}

/// Memory of an assembler with its view.
struct LaidOut {
  explicit LaidOut(const FrameLayout& layout, const MemorySource& source = host_memory)
      : memory(source(layout.total())),
        parts(layout.parts_of({memory.get(), layout.total()})),
        view(layout.view(parts)) {}

  std::shared_ptr<std::byte> memory;
  AssemblerMemory parts;
  AssemblerView view;
};

[[nodiscard]] inline std::vector<std::int64_t> arrivals(Random& random, std::size_t count, std::uint64_t faults) {
  std::vector<std::int64_t> positions;
  auto position = static_cast<std::int64_t>(random.below(100));
  while (positions.size() < count) {
    const std::uint64_t fate = random.below(faults);
    if (fate == 0) position += static_cast<std::int64_t>(random.below(30));
    if (fate == 1) position = static_cast<std::int64_t>(random.below(4000));
    if (fate == 2) positions.push_back(position);
    if (fate == 3) positions.push_back(static_cast<std::int64_t>(random.next() >> 30));
    if (fate == 4)
      positions.push_back(std::max<std::int64_t>(0, position - static_cast<std::int64_t>(random.below(60))));
    if (fate == 5 && !positions.empty()) {
      std::int64_t& other = positions[random.below(positions.size())];
      std::swap(other, position);
      position = std::max(position, other);
    }
    positions.push_back(position++);
  }
  return positions;
}

/// Packets one behind the other, without gaps, and their descriptors.
class Traffic {
 public:
  static constexpr std::size_t kBytes = 1 << 18;
  static constexpr std::size_t kDescriptors = 2048;

  explicit Traffic(const MemorySource& source)
      : memory_(source(kBytes + kDescriptors * sizeof(Segment))),
        segments_(reinterpret_cast<Segment*>(memory_.get() + kBytes)) {}

  /// Some packets are cut in two, some were dropped before.
  void add(std::span<const std::uint8_t> packet, Random& random) {
    const auto length = static_cast<std::uint32_t>(packet.size());
    ASSERT_LE(used_ + length, kBytes);
    ASSERT_LE(count_ + 2, kDescriptors);
    const std::uint32_t cut = random.below(4) == 0 ? static_cast<std::uint32_t>(random.below(length + 1)) : 0;
    const Verdict verdict = random.below(50) == 0 ? Verdict::runt : Verdict::forward;
    auto* const at = reinterpret_cast<std::uint8_t*>(memory_.get() + used_);
    std::ranges::copy(packet, at);
    used_ += length;
    if (cut != 0) segments_[count_++] = {at, cut, 1, verdict};
    segments_[count_++] = {at + cut, length - cut, 0, verdict};
  }

  [[nodiscard]] std::span<Segment> segments() const { return {segments_, count_}; }

 private:
  std::shared_ptr<std::byte> memory_;
  Segment* segments_;
  std::size_t used_ = 0;
  std::size_t count_ = 0;
};

[[nodiscard]] inline Traffic make_traffic(const FrameDescription& description, Random& random, std::uint64_t faults,
                                          const MemorySource& source) {
  Traffic traffic(source);
  std::vector<std::vector<std::int64_t>> sources;
  for (int i = 0; i < 3; ++i) sources.push_back(arrivals(random, 300, faults));
  std::vector<std::size_t> next(sources.size(), 0);
  for (int i = 0; i < 800; ++i) {
    const auto key = static_cast<std::uint32_t>(random.below(sources.size()));
    if (next[key] == sources[key].size()) continue;
    std::vector<std::uint8_t> packet = numbered_packet(description, key, sources[key][next[key]++]);
    if (random.below(40) == 0) packet.resize(random.below(packet.size()) + 1);
    traffic.add(packet, random);
  }
  return traffic;
}

/// Descriptors of whole packets from `begin` on, at most `most`.
[[nodiscard]] inline std::uint32_t batch_of(const Traffic& traffic, std::size_t begin, std::uint64_t most) {
  const std::span<const Segment> segments = traffic.segments();
  std::size_t end = std::min<std::size_t>(segments.size(), begin + most);
  while (end < segments.size() && end > begin && segments[end - 1].more != 0) ++end;
  return static_cast<std::uint32_t>(end - begin);
}

/// What FrameAssembler::place() makes of a batch; returns as BatchAssembler::place() does.
inline std::uint32_t place_in_order(FrameAssembler& assembler, const PacketBatch& batch, WhenFull when_full) {
  for (std::uint32_t i = 0; i < batch.count; ++i) {
    if ((i != 0 && batch.segments[i - 1].more != 0) || batch.segments[i].verdict != Verdict::forward) continue;
    const Placement placement = assembler.place(frame_at(batch.segments + i), batch.time);
    if (placement == Placement::no_frame && when_full == WhenFull::stop) return i;
  }
  return batch.count;
}

[[nodiscard]] inline bool equal(std::span<const std::byte> a, std::span<const std::byte> b) {
  return std::ranges::equal(a, b);
}

/// Places the same batches by `place` and in order; all bytes of frames, masks and handed-over frames are the same, and
/// all counts, but for those of `no_frame` where `place` is told to retry instead of stop.
template <typename Place>
void expect_same(std::uint64_t seed, Place&& place, const MemorySource& source = host_memory) {
  Random random(seed);
  const std::string text =
      "packets=" + std::to_string(1 + random.below(12)) +
      ",seq=4:64,payload=12:" + std::to_string(1 + random.below(100)) +
      ",stream=0:32,streams=" + std::to_string(1 + random.below(3)) + ",window=" + std::to_string(1 + random.below(5)) +
      ",jump=" + std::to_string(1 + random.below(6)) + ",restart=" + std::to_string(2 + random.below(4));
  const FrameDescription description = *parse_frame_description(text);
  const FramePlan plan = *make_frame_plan(description, PacketForm::datagram);
  std::uint64_t budget = 0;
  while (!FrameLayout::fit(plan, {budget}, kBatch).ok()) budget += 4096;
  const FrameLayout layout = *FrameLayout::fit(plan, {budget + random.below(3) * 4096}, kBatch);
  const LaidOut one(layout);
  const LaidOut other(layout, source);
  FrameAssembler in_order(layout, one.view);
  FrameQueue one_queue(one.view.queue);
  FrameQueue other_queue(other.view.queue);
  const WhenFull when_full = random.below(2) == 0 ? WhenFull::stop : WhenFull::drop;
  const bool retries = when_full == WhenFull::stop && random.below(2) == 0;
  const Traffic traffic = make_traffic(description, random, 7 + random.below(80), source);
  std::vector<std::uint32_t> held;
  for (std::size_t begin = 0; begin < traffic.segments().size();) {
    const PacketBatch batch{traffic.segments().data() + begin, batch_of(traffic, begin, 1 + random.below(kBatch - 16)),
                            begin};
    const std::uint32_t decided = place_in_order(in_order, batch, when_full);
    ASSERT_EQ(place(other.view, batch, retries ? WhenFull::retry : when_full), decided) << text;
    begin += decided;
    while (const Frame* frame = one_queue.next()) {
      const Frame* const same = other_queue.next();
      ASSERT_NE(same, nullptr) << text;
      ASSERT_EQ(frame->buffer, same->buffer) << text;
      ASSERT_EQ(frame->index, same->index) << text;
      ASSERT_EQ(frame->first_sequence, same->first_sequence);
      ASSERT_EQ(frame->key, same->key);
      ASSERT_EQ(frame->stream, same->stream);
      ASSERT_EQ(frame->epoch, same->epoch);
      ASSERT_EQ(frame->present, same->present);
      ASSERT_EQ(frame->missing, same->missing);
      ASSERT_EQ(frame->time, same->time);
      held.push_back(frame->buffer);
    }
    ASSERT_EQ(other_queue.next(), nullptr) << text;
    ASSERT_TRUE(equal(one.parts.frames, other.parts.frames)) << text;
    for (const std::size_t keep = decided == batch.count ? random.below(4) : 0; held.size() > keep; held.pop_back()) {
      one_queue.release(held.back());
      other_queue.release(held.back());
    }
  }
  AssemblerCounts counts = in_order.counts();
  if (retries) counts.placements[static_cast<std::size_t>(Placement::no_frame)] = 0;
  ASSERT_EQ(std::memcmp(&counts, &other.view.words->counts, sizeof(counts)), 0) << text;
  ASSERT_GT(counts.placements[0], 0U);
}

}  // namespace warpline::flow
