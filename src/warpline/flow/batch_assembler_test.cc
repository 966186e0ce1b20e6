// SPDX-License-Identifier: Apache-2.0
// Batches, placed by teams of threads in any order, against one packet after the other.
#include "warpline/flow/batch_assembler.h"

#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "warpline/flow/batch_testing.h"

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
  void min_of(std::uint32_t* word, std::uint32_t value) { *word = std::min(*word, value); }
  void max_of(std::uint32_t* word, std::uint32_t value) { *word = std::max(*word, value); }
  void store(std::uint32_t* word, std::uint32_t value) { *word = value; }
  std::uint32_t add_to_word(std::uint32_t* word, std::uint32_t value) {
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
  static void min_of(std::uint32_t* word, std::uint32_t value) {
    const std::atomic_ref<std::uint32_t> shared(*word);
    for (std::uint32_t seen = shared.load(); value < seen && !shared.compare_exchange_weak(seen, value);) {
    }
  }
  static void max_of(std::uint32_t* word, std::uint32_t value) {
    const std::atomic_ref<std::uint32_t> shared(*word);
    for (std::uint32_t seen = shared.load(); value > seen && !shared.compare_exchange_weak(seen, value);) {
    }
  }
  static void store(std::uint32_t* word, std::uint32_t value) { std::atomic_ref(*word).store(value); }
  static std::uint32_t add_to_word(std::uint32_t* word, std::uint32_t value) {
    return std::atomic_ref(*word).fetch_add(value);
  }

 private:
  std::barrier<>& barrier_;
  std::uint32_t rank_;
  std::uint32_t size_;
};

TEST(BatchAssembler, AnyOrderIsAsOneAfterTheOther) {
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    SCOPED_TRACE(seed);
    ShuffledTeam team(seed);
    expect_same(seed, [&](const AssemblerView& view, const PacketBatch& batch, WhenFull when_full) {
      return BatchAssembler(team, view).place(batch, when_full);
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
      std::uint32_t decided[kThreads] = {};
      {
        std::vector<std::jthread> threads;
        for (std::uint32_t i = 0; i < kThreads; ++i) {
          threads.emplace_back([&, i] {
            ThreadTeam team(barrier, i, kThreads);
            decided[i] = BatchAssembler(team, view).place(batch, when_full);
          });
        }
      }
      EXPECT_EQ(decided[0], decided[1]);
      EXPECT_EQ(decided[0], decided[2]);
      return decided[0];
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
      std::vector<std::vector<std::uint8_t>> packets;
      std::vector<Segment> segments;
      for (const std::int64_t position : order) {
        packets.push_back(numbered_packet(description, 1, position));
        segments.push_back(
            {packets.back().data(), static_cast<std::uint32_t>(packets.back().size()), 0, Verdict::forward});
      }
      const LaidOut one(layout);
      const LaidOut other(layout);
      FrameAssembler in_order(layout, one.view);
      ShuffledTeam team(seed);
      const auto first = static_cast<std::uint32_t>(random.below(order.size() + 1));
      for (const PacketBatch& batch :
           {PacketBatch{segments.data(), first, 1},
            PacketBatch{segments.data() + first, static_cast<std::uint32_t>(order.size()) - first, 2}}) {
        place_in_order(in_order, batch, WhenFull::stop);
        BatchAssembler(team, other.view).place(batch, WhenFull::stop);
      }
      ASSERT_TRUE(equal(one.parts.frames, other.parts.frames));
      ASSERT_EQ(*one.view.queue.handed_to, *other.view.queue.handed_to);
      ASSERT_EQ(std::memcmp(&one.view.words->counts, &other.view.words->counts, sizeof(AssemblerCounts)), 0);
    } while (std::ranges::next_permutation(order).found);
  }
}

}  // namespace
}  // namespace warpline::flow
