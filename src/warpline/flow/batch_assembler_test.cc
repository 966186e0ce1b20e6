// SPDX-License-Identifier: Apache-2.0
// Batches, taken by teams of threads in any order, against one packet after the other.
#include "warpline/flow/batch_assembler.h"

#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "warpline/flow/flow_testing.h"
#include "warpline/flow/frame_assembler.h"

namespace warpline::flow {
namespace {

/// One thread that does what a team does at the same time in an order drawn anew each time.
class ShuffledTeam {
 public:
  explicit ShuffledTeam(std::uint64_t seed) : random_(seed) {}

  template <typename F>
  void for_each(std::uint32_t n, F&& f) {
    order_.resize(n);
    std::iota(order_.begin(), order_.end(), 0U);
    for (std::uint32_t i = n; i > 1; --i) std::swap(order_[i - 1], order_[random_.below(i)]);
    for (const std::uint32_t i : order_) f(i);
  }
  template <typename F>
  void once(F&& f) {
    f();
  }
  template <typename F>
  void copy_each(std::uint32_t n, F&& f) {
    for_each(n, [&](std::uint32_t i) {
      const auto job = f(i);
      if (job.to != nullptr) copy_payload(job.to, job.from, job.offset, job.length);
    });
  }
  void min(std::uint32_t* word, std::uint32_t value) { *word = std::min(*word, value); }
  void max(std::uint32_t* word, std::uint32_t value) { *word = std::max(*word, value); }
  void store(std::uint32_t* word, std::uint32_t value) { *word = value; }
  std::uint32_t add(std::uint32_t* word, std::uint32_t value) {
    *word += value;
    return *word - value;
  }

 private:
  Random random_;
  std::vector<std::uint32_t> order_;
};

/// One of several threads of the host.
class ThreadTeam {
 public:
  ThreadTeam(std::barrier<>& barrier, std::uint32_t rank, std::uint32_t size)
      : barrier_(barrier), rank_(rank), size_(size) {}

  template <typename F>
  void for_each(std::uint32_t n, F&& f) {
    for (std::uint32_t i = rank_; i < n; i += size_) f(i);
    barrier_.arrive_and_wait();
  }
  template <typename F>
  void once(F&& f) {
    if (rank_ == 0) f();
    barrier_.arrive_and_wait();
  }
  template <typename F>
  void copy_each(std::uint32_t n, F&& f) {
    for_each(n, [&](std::uint32_t i) {
      const auto job = f(i);
      if (job.to != nullptr) copy_payload(job.to, job.from, job.offset, job.length);
    });
  }
  static void min(std::uint32_t* word, std::uint32_t value) {
    const std::atomic_ref<std::uint32_t> shared(*word);
    for (std::uint32_t seen = shared.load(); value < seen && !shared.compare_exchange_weak(seen, value);) {
    }
  }
  static void max(std::uint32_t* word, std::uint32_t value) {
    const std::atomic_ref<std::uint32_t> shared(*word);
    for (std::uint32_t seen = shared.load(); value > seen && !shared.compare_exchange_weak(seen, value);) {
    }
  }
  static void store(std::uint32_t* word, std::uint32_t value) { std::atomic_ref(*word).store(value); }
  static std::uint32_t add(std::uint32_t* word, std::uint32_t value) { return std::atomic_ref(*word).fetch_add(value); }

 private:
  std::barrier<>& barrier_;
  std::uint32_t rank_;
  std::uint32_t size_;
};

constexpr std::uint32_t kBatch = 96;

/// Memory of an assembler, zeroed, with its view.
struct LaidOut {
  explicit LaidOut(const FrameLayout& layout)
      : memory(layout.total(), std::byte{0}), parts(layout.parts_of(memory.bytes())), view(layout.view(parts)) {}

  AlignedMemory memory;
  AssemblerMemory parts;
  AssemblerView view;
};

std::vector<std::int64_t> arrivals(Random& random, std::size_t count, std::uint64_t faults) {
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

/// What a descriptor stands for, with its bytes.
struct Traffic {
  std::vector<std::vector<std::uint8_t>> bytes;
  std::vector<Segment> segments;

  void add(std::vector<std::uint8_t> packet, Random& random) {
    const auto length = static_cast<std::uint32_t>(packet.size());
    const std::uint32_t cut = random.below(4) == 0 ? static_cast<std::uint32_t>(random.below(length + 1)) : 0;
    const Verdict verdict = random.below(50) == 0 ? Verdict::runt : Verdict::forward;
    bytes.push_back(std::move(packet));
    std::uint8_t* const at = bytes.back().data();
    if (cut != 0) segments.push_back({at, cut, 1, verdict});
    segments.push_back({at + cut, length - cut, 0, verdict});
  }
};

Traffic make_traffic(const FrameDescription& description, Random& random, std::uint64_t faults) {
  Traffic traffic;
  std::vector<std::vector<std::int64_t>> sources;
  for (int i = 0; i < 3; ++i) sources.push_back(arrivals(random, 300, faults));
  std::vector<std::size_t> next(sources.size(), 0);
  for (int i = 0; i < 800; ++i) {
    const auto key = static_cast<std::uint32_t>(random.below(sources.size()));
    if (next[key] == sources[key].size()) continue;
    std::vector<std::uint8_t> packet = numbered_packet(description, key, sources[key][next[key]++]);
    if (random.below(40) == 0) packet.resize(random.below(packet.size()) + 1);
    traffic.add(std::move(packet), random);
  }
  return traffic;
}

/// Descriptors of whole packets from `begin` on, at most `most`.
std::uint32_t batch_of(const Traffic& traffic, std::size_t begin, std::uint64_t most) {
  std::size_t end = std::min<std::size_t>(traffic.segments.size(), begin + most);
  while (end < traffic.segments.size() && end > begin && traffic.segments[end - 1].more != 0) ++end;
  return static_cast<std::uint32_t>(end - begin);
}

/// What FrameAssembler::take() makes of a batch; returns as BatchAssembler::take() does.
std::uint32_t take_in_order(FrameAssembler& assembler, const PacketBatch& batch, WhenFull when_full) {
  for (std::uint32_t i = 0; i < batch.count; ++i) {
    if ((i != 0 && batch.segments[i - 1].more != 0) || batch.segments[i].verdict != Verdict::forward) continue;
    const Placement placement = assembler.take(frame_at(batch.segments + i), batch.time);
    if (placement == Placement::no_frame && when_full == WhenFull::stop) return i;
  }
  return batch.count;
}

bool equal(std::span<const std::byte> a, std::span<const std::byte> b) { return std::ranges::equal(a, b); }

/// Takes the same batches by `take` and in order; all bytes of frames, masks and handed-over frames are the same.
template <typename Take>
void expect_same(std::uint64_t seed, Take&& take) {
  Random random(seed);
  const std::string text = "packets=" + std::to_string(1 + random.below(12)) +
                           ",seq=4:64,payload=12:16,stream=0:32,streams=" + std::to_string(1 + random.below(3)) +
                           ",window=" + std::to_string(1 + random.below(5)) +
                           ",jump=" + std::to_string(1 + random.below(6)) +
                           ",restart=" + std::to_string(2 + random.below(4));
  const FrameDescription description = *parse_frame_description(text);
  const FramePlan plan = *make_frame_plan(description, PacketForm::datagram);
  std::uint64_t budget = 0;
  while (!FrameLayout::fit(plan, {budget}, kBatch).ok()) budget += 4096;
  const FrameLayout layout = *FrameLayout::fit(plan, {budget + random.below(3) * 4096}, kBatch);
  const LaidOut one(layout);
  const LaidOut other(layout);
  FrameAssembler in_order(layout, one.view);
  FrameQueue one_queue(one.view.queue);
  FrameQueue other_queue(other.view.queue);
  const WhenFull when_full = random.below(2) == 0 ? WhenFull::stop : WhenFull::drop;
  Traffic traffic = make_traffic(description, random, 7 + random.below(80));
  std::vector<std::uint32_t> held;
  for (std::size_t begin = 0; begin < traffic.segments.size();) {
    PacketBatch batch{traffic.segments.data() + begin, batch_of(traffic, begin, 1 + random.below(kBatch - 16)), begin};
    const std::uint32_t taken = take_in_order(in_order, batch, when_full);
    ASSERT_EQ(take(other.view, batch, when_full), taken) << text;
    begin += taken;
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
    for (const std::size_t keep = taken == batch.count ? random.below(4) : 0; held.size() > keep; held.pop_back()) {
      one_queue.release(held.back());
      other_queue.release(held.back());
    }
  }
  const AssemblerCounts counts = in_order.counts();
  ASSERT_EQ(std::memcmp(&counts, &other.view.words->counts, sizeof(counts)), 0) << text;
  ASSERT_GT(counts.placements[0], 0U);
}

TEST(BatchAssembler, AnyOrderIsAsOneAfterTheOther) {
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(seed);
    ShuffledTeam team(seed);
    expect_same(seed, [&](const AssemblerView& view, const PacketBatch& batch, WhenFull when_full) {
      return BatchAssembler(team, view).take(batch, when_full);
    });
    if (HasFatalFailure()) return;
  }
}

TEST(BatchAssembler, ThreadsAreAsOneAfterTheOther) {
  constexpr std::uint32_t kThreads = 3;
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    SCOPED_TRACE(seed);
    expect_same(seed, [](const AssemblerView& view, const PacketBatch& batch, WhenFull when_full) {
      std::barrier<> barrier(kThreads);
      std::uint32_t taken[kThreads] = {};
      {
        std::vector<std::jthread> threads;
        for (std::uint32_t i = 0; i < kThreads; ++i) {
          threads.emplace_back([&, i] {
            ThreadTeam team(barrier, i, kThreads);
            taken[i] = BatchAssembler(team, view).take(batch, when_full);
          });
        }
      }
      EXPECT_EQ(taken[0], taken[1]);
      EXPECT_EQ(taken[0], taken[2]);
      return taken[0];
    });
    if (HasFatalFailure()) return;
  }
}

/// Every order of arrival of a few packets, some of them twice, in every cut into two batches.
TEST(BatchAssembler, EveryOrderOfAFewPackets) {
  const FrameDescription description =
      *parse_frame_description("packets=2,seq=4:64,payload=12:8,stream=0:32,streams=1,window=1,jump=1,restart=2");
  const FramePlan plan = *make_frame_plan(description, PacketForm::datagram);
  const FrameLayout layout = *FrameLayout::fit(plan, {16384}, kBatch);
  for (const std::vector<std::int64_t>& set :
       {std::vector<std::int64_t>{10, 11, 11, 12, 13, 14}, {2, 3, 4, 20, 21, 22}, {4, 4, 5, 5, 0, 1}}) {
    std::vector<std::int64_t> order = set;
    std::ranges::sort(order);
    std::uint64_t seed = 0;
    do {
      Random random(++seed);
      Traffic traffic;
      for (const std::int64_t position : order) {
        std::vector<std::uint8_t> packet = numbered_packet(description, 1, position);
        const auto length = static_cast<std::uint32_t>(packet.size());
        traffic.bytes.push_back(std::move(packet));
        traffic.segments.push_back({traffic.bytes.back().data(), length, 0, Verdict::forward});
      }
      const LaidOut one(layout);
      const LaidOut other(layout);
      FrameAssembler in_order(layout, one.view);
      ShuffledTeam team(seed);
      const auto first = static_cast<std::uint32_t>(random.below(order.size() + 1));
      for (const PacketBatch& batch :
           {PacketBatch{traffic.segments.data(), first, 1},
            PacketBatch{traffic.segments.data() + first, static_cast<std::uint32_t>(order.size()) - first, 2}}) {
        take_in_order(in_order, batch, WhenFull::stop);
        BatchAssembler(team, other.view).take(batch, WhenFull::stop);
      }
      ASSERT_TRUE(equal(one.parts.frames, other.parts.frames));
      ASSERT_EQ(*one.view.queue.handed_to, *other.view.queue.handed_to);
      ASSERT_EQ(std::memcmp(&one.view.words->counts, &other.view.words->counts, sizeof(AssemblerCounts)), 0);
    } while (std::ranges::next_permutation(order).found);
  }
}

}  // namespace
}  // namespace warpline::flow
