// SPDX-License-Identifier: Apache-2.0
// A workload and an engine that are broken, each by one frame in a million, on a wire that leaves payload alone.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "warpline/datapath/path_stages.h"
#include "warpline/forward/static_wire_proof.h"
#include "warpline/handoff/inline_engine.h"
#include "warpline/handoff/thread_engine.h"
#include "warpline/runtime/eal.h"
#include "warpline/workload/mac_swap.h"

namespace warpline {
namespace {

/// The EAL can be started once a process: without hugepages, on the control lcore alone.
class EalEnvironment : public ::testing::Environment {
 public:
  void SetUp() override {
    runtime::LcorePlan plan;
    plan.control_cpus = {machine::Topology::of_machine()->cpus.front().id};
    runtime::RuntimeSettings config;
    config.hugepages = false;
    auto eal = runtime::Eal::start_planned(config, plan, {}, Bytes{std::uint64_t{1} << 30});
    ASSERT_TRUE(eal.ok()) << eal.error().message();
    eal_.emplace(*std::move(eal));
  }
  void TearDown() override { eal_.reset(); }

 private:
  std::optional<runtime::Eal> eal_;
};

const auto* const kEal = ::testing::AddGlobalTestEnvironment(new EalEnvironment);

constexpr std::uint64_t kMillion = 1'000'000;
constexpr std::uint16_t kBurst = 64;

/// What a broken MAC swap does to the frames whose turn has come.
enum class Fault : std::uint8_t { none, skip, twice, spoil };

/// Exchanges MAC addresses, but for one frame in a million.
struct BrokenSwap {
  static constexpr WorkloadKind kKind = WorkloadKind::mac_swap;
  [[maybe_unused]] static constexpr bool kStateless = true;

  Fault fault;
  std::atomic<std::uint64_t>* frames;

  Verdict operator()(FrameRef frame) const {
    const bool turn = frames->fetch_add(1, std::memory_order_relaxed) % kMillion == kMillion / 2;
    if (!turn || fault == Fault::none) return workload::MacSwap{}(frame);
    if (fault == Fault::spoil) frame.data()[3] ^= 1;
    if (fault == Fault::twice) static_cast<void>(workload::MacSwap{}(frame));
    if (fault == Fault::skip) return Verdict::forward;
    return workload::MacSwap{}(frame);
  }
};

/// A MAC swap whose lane passes over one frame in a million without calling it.
struct SkippedSwap : BrokenSwap {};

handoff::BurstCounts work_burst(handoff::BurstView burst, SkippedSwap& work) {
  handoff::BurstCounts counts;
  for (std::uint16_t i = 0; i < burst.count; ++i) {
    if (work.frames->fetch_add(1, std::memory_order_relaxed) % kMillion == kMillion / 2) continue;
    static_cast<void>(workload::MacSwap{}(FrameRef{burst.segments + i, 1, burst.segments[i].length}));
    ++counts.worked;
  }
  return counts;
}

/// Leaves frames alone, but for one.
struct Quiet {
  static constexpr WorkloadKind kKind = WorkloadKind::count;
  [[maybe_unused]] static constexpr bool kStateless = true;
  std::uint64_t* frames;
  Verdict operator()(FrameRef frame) const {
    return (*frames)++ == kMillion / 2 ? workload::MacSwap{}(frame) : Verdict::forward;
  }
};

/// Drops one frame in a thousand, and does not touch those.
struct Picky {
  static constexpr WorkloadKind kKind = WorkloadKind::mac_swap;
  [[maybe_unused]] static constexpr bool kStateless = true;
  std::uint64_t* frames;
  Verdict operator()(FrameRef frame) const {
    return (*frames)++ % 1000 == 0 ? Verdict::user_drop : workload::MacSwap{}(frame);
  }
};

/// A port that sends what it receives, and its pool.
class Bed {
 public:
  Bed() {
    static int made = 0;
    const std::string number = std::to_string(made++);
    ports_.push_back(*port::Port::open("net_vnic" + number + ",wire=static"));
    EXPECT_TRUE(ports_[0].configure({}, {.rx = 1, .tx = 1}).ok());
    memory::PortPoolsPlan plan;
    plan.name = "proof" + number;
    plan.size = 4095;
    plan.data_room = 2048;
    pools_.push_back(*memory::PortPools::make(plan));
    EXPECT_TRUE(ports_[0].attach(pools_[0].queues()).ok());
    EXPECT_TRUE(ports_[0].start().ok());
    paths_.push_back(std::make_unique<datapath::QueuePath>());
    path().rx = path().tx = path().reply = {ports_[0].id(), 0};
    path().burst = kBurst;
    path().deadline_ticks = 0;
    path().tx_retries = 64;
    proof_.emplace(ports_, pools_);
    EXPECT_TRUE(proof_->by_buffers());
  }

  [[nodiscard]] datapath::QueuePath& path() const { return *paths_.front(); }
  [[nodiscard]] forward::StaticWireProof::Outcome outcome(bool swaps) const { return proof_->outcome(swaps, paths_); }

 private:
  std::vector<memory::PortPools> pools_;  ///< gone after the port
  std::vector<port::Port> ports_;
  std::vector<std::unique_ptr<datapath::QueuePath>> paths_;
  std::optional<forward::StaticWireProof> proof_;
};

enum class How : std::uint8_t { direct, inline_ring, thread_ring };

class StaticWire : public ::testing::TestWithParam<How> {
 protected:
  static constexpr std::uint64_t kFrames = kMillion + 12'345;

  struct Outcome {
    std::uint64_t frames;
    std::uint64_t bad;       ///< by the buffers
    std::uint64_t unworked;  ///< by the engine's own count
  };

  /// Some more than a million frames through `work`, by one thread that receives and sends.
  template <typename Work>
  static Outcome run(How how, Work work, bool swaps = true) {
    const Bed bed;
    datapath::PacketBudget budget(kFrames);
    const std::unique_ptr<datapath::PathStages> stages = stages_of(how, bed.path(), budget, work);
    pass(*stages, bed.path());
    const forward::StaticWireProof::Outcome outcome = bed.outcome(swaps);
    EXPECT_EQ(outcome.checked, kFrames);
    return {outcome.checked, outcome.bad, bed.path().sent.unworked.get()};
  }

  static void pass(datapath::PathStages& stages, const datapath::QueuePath& path) {
    EXPECT_TRUE(stages.start().ok());
    while (path.received.packets.get() < kFrames) {
      unsigned moved = stages.receiving()->poll();
      if (stages.transmitting() != nullptr) moved += stages.transmitting()->poll();
      if (moved == 0) std::this_thread::yield();  // the lane's thread may have the same core
    }
    stages.receiving()->drain();
    while (stages.transmitting() != nullptr && !stages.transmitting()->drain()) {
      std::this_thread::yield();
    }
    stages.finish();
  }

  template <typename Work>
  static std::unique_ptr<datapath::PathStages> stages_of(How how, datapath::QueuePath& path,
                                                         datapath::PacketBudget& budget, const Work& work) {
    if (how == How::direct) return std::make_unique<datapath::DirectStages<Work>>(path, budget, work);
    auto ring = *handoff::BurstRing::create({.slots = 32, .packets = kBurst, .segments = kBurst});
    if (how == How::inline_ring) {
      return std::make_unique<datapath::RingStages<handoff::InlineEngine<Work>, Work>>(path, budget, std::move(ring),
                                                                                       work);
    }
    return std::make_unique<datapath::RingStages<handoff::ThreadEngine<Work>, Work>>(
        path, budget, std::move(ring), work, std::vector<handoff::LanePlacement>{{std::nullopt, true}}, "lane");
  }
};

TEST_P(StaticWire, AWorkloadThatDoesAllFramesIsProven) {
  std::atomic<std::uint64_t> frames{0};
  const Outcome outcome = run(GetParam(), BrokenSwap{Fault::none, &frames});
  EXPECT_EQ(frames.load(), outcome.frames);
  EXPECT_EQ(outcome.bad, 0U);
  EXPECT_EQ(outcome.unworked, 0U);
}

TEST_P(StaticWire, AFrameOfAMillionThatIsSkippedOrDoneTwiceOrSpoiledIsSeen) {
  for (const Fault fault : {Fault::skip, Fault::twice, Fault::spoil}) {
    std::atomic<std::uint64_t> frames{0};
    const Outcome outcome = run(GetParam(), BrokenSwap{fault, &frames});
    EXPECT_GT(outcome.bad, 0U) << static_cast<int>(fault);
    EXPECT_EQ(outcome.unworked, 0U) << "the lane called the work with every frame";
  }
}

TEST_P(StaticWire, AnEngineThatPassesOverAFrameIsSeenTwice) {
  if (GetParam() == How::direct) GTEST_SKIP() << "no engine";
  std::atomic<std::uint64_t> frames{0};
  const Outcome outcome = run(GetParam(), SkippedSwap{{Fault::none, &frames}});
  EXPECT_EQ(outcome.bad, 1U);
  EXPECT_EQ(outcome.unworked, 1U);
}

TEST_P(StaticWire, AWorkloadThatShouldLeaveFramesAloneIsHeldToIt) {
  std::uint64_t frames = 0;
  EXPECT_EQ(run(GetParam(), Quiet{&frames}, false).bad, 1U);
}

TEST_P(StaticWire, WhatAWorkloadDropsItNeedNotHaveDone) {
  std::uint64_t frames = 0;
  EXPECT_EQ(run(GetParam(), Picky{&frames}).bad, 0U);
}

std::string name_of(const ::testing::TestParamInfo<How>& how) {
  const std::array<const char*, 3> names = {"direct", "inline", "thread"};
  return names.at(static_cast<std::size_t>(how.param));
}

INSTANTIATE_TEST_SUITE_P(Ways, StaticWire, ::testing::Values(How::direct, How::inline_ring, How::thread_ring), name_of);

TEST(StaticWireProof, OnOtherWiresNothingIsChecked) {
  std::vector<port::Port> ports;
  ports.push_back(*port::Port::open("net_vnic90,wire=loopback"));
  const forward::StaticWireProof proof(ports, {});
  EXPECT_FALSE(proof.by_buffers());
  EXPECT_EQ(proof.outcome(true, {}).checked, 0U);
}

}  // namespace
}  // namespace warpline
