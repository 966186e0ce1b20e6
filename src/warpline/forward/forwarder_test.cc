// SPDX-License-Identifier: Apache-2.0
#include "warpline/forward/forwarder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <thread>
#include <vector>

#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "warpline/memory/packet_pool.h"
#include "warpline/port/port.h"
#include "warpline/port/ring_pair.h"
#include "warpline/runtime/eal_environment.h"

namespace warpline::forward {
namespace {

const auto* const kEal =
    testing::AddGlobalTestEnvironment(new runtime::EalEnvironment(0, Bytes{std::uint64_t{1} << 30}));

constexpr std::uint16_t kRing = 1024;
constexpr std::uint32_t kBuffers = 8191;

/// A near port that the forwarder works on, and the far end of its wire, where the test sends and receives.
class Wire {
 public:
  Wire() {
    static int pools = 0;
    pool_.emplace(*memory::PacketPool::make("wire" + std::to_string(pools++), kBuffers, 0, 2048, runtime::kAnyNode));
    const auto ids = *port::make_ring_pair(2, kRing, runtime::kAnyNode);
    for (const std::uint16_t id : {ids.first, ids.second}) {
      ports_.push_back(*port::Port::adopt(id));
      EXPECT_TRUE(ports_.back().configure({}, {.rx = 1, .tx = 2}).ok());
      EXPECT_TRUE(ports_.back().attach(pool_->get()).ok());
      EXPECT_TRUE(ports_.back().start().ok());
    }
  }

  [[nodiscard]] ForwardPort near() const { return {ports_[0].id(), 1500, ports_[0].mac(), std::nullopt}; }

  /// A frame whose addresses and payload say which it is, in pieces of `piece` bytes.
  void send(std::uint32_t number, std::uint32_t length = 64, std::uint32_t piece = 2048) {
    rte_mbuf* frame = nullptr;
    for (std::uint32_t at = 0; at < length; at += piece) {
      rte_mbuf* mbuf = rte_pktmbuf_alloc(pool_->get());
      char* data = rte_pktmbuf_append(mbuf, static_cast<std::uint16_t>(std::min(piece, length - at)));
      for (std::uint32_t i = 0; i < mbuf->data_len; ++i) data[i] = byte_of(number, at + i);
      if (frame == nullptr) {
        frame = mbuf;
      } else {
        ASSERT_EQ(rte_pktmbuf_chain(frame, mbuf), 0);
      }
    }
    ASSERT_EQ(rte_eth_tx_burst(ports_[1].id(), 0, &frame, 1), 1);
  }

  /// Frees and describes all that came back, by number; the value is true if its addresses were swapped.
  std::vector<std::pair<std::uint32_t, bool>> receive(std::uint16_t queue = 0) {
    std::vector<std::pair<std::uint32_t, bool>> frames;
    std::array<rte_mbuf*, 64> mbufs;
    while (const std::uint16_t count = rte_eth_rx_burst(ports_[1].id(), queue, mbufs.data(), mbufs.size())) {
      for (std::uint16_t i = 0; i < count; ++i) frames.push_back(describe(mbufs[i]));
      rte_pktmbuf_free_bulk(mbufs.data(), count);
    }
    return frames;
  }

  [[nodiscard]] std::uint32_t in_use() const { return pool_->in_use(); }

 private:
  static char byte_of(std::uint32_t number, std::uint32_t at) {
    if (at < 6) return 'd';
    if (at < 12) return 's';
    if (at < 14) return '\x7f';  // an EtherType that nothing parses
    if (at < 18) return static_cast<char>(number >> (8 * (at - 14)));
    return static_cast<char>(number + at);
  }

  static std::pair<std::uint32_t, bool> describe(const rte_mbuf* mbuf) {
    std::array<char, 2048> copy;
    const std::uint32_t length = rte_pktmbuf_pkt_len(mbuf);
    const auto* bytes = static_cast<const char*>(rte_pktmbuf_read(mbuf, 0, length, copy.data()));
    std::uint32_t number = 0;
    std::memcpy(&number, bytes + 14, sizeof number);
    for (std::uint32_t i = 12; i < length; ++i) EXPECT_EQ(bytes[i], byte_of(number, i)) << number << " at " << i;
    const bool swapped = bytes[0] == 's' && bytes[6] == 'd' && bytes[5] == 's' && bytes[11] == 'd';
    EXPECT_TRUE(swapped || (bytes[0] == 'd' && bytes[6] == 's')) << number;
    return {number, swapped};
  }

  std::optional<memory::PacketPool> pool_;
  std::vector<port::Port> ports_;
};

/// A forwarder over the near ports of `wires`, each role on a thread of its own.
class ForwardRun {
 public:
  ForwardRun(datapath::DatapathSettings settings, const std::vector<const Wire*>& wires)
      : settings_(std::move(settings)) {
    settings_.ports.resize(wires.size());
    std::vector<ForwardPort> ports;
    for (std::size_t i = 0; i < wires.size(); ++i) {
      ports.push_back(wires[i]->near());
      if (!settings_.ports[i].addresses.empty()) ports.back().address = settings_.ports[i].addresses.front();
    }
    layout_ = datapath::lay_out_forward(settings_, std::vector<int>(wires.size(), runtime::kAnyNode), 2);
    plan_ = *runtime::plan_lcores(*machine::Topology::of_machine(), layout_.requests, {});
    forwarder_ = *Forwarder::create(settings_, layout_, plan_, ports);
  }

  /// Forwards until `packets` were received, then stops and drains.
  void forward(std::uint64_t packets) {
    ASSERT_TRUE(forwarder_->start().ok());
    std::vector<std::thread> threads;
    for (std::size_t role = 0; role < layout_.roles.size(); ++role) {
      threads.emplace_back([this, role] { forwarder_->run(role); });
    }
    while (forwarder_->received() < packets) std::this_thread::yield();
    forwarder_->stop();
    for (std::thread& thread : threads) thread.join();
    forwarder_->finish();
  }

  [[nodiscard]] const datapath::QueuePath& path(std::size_t i = 0) const { return *forwarder_->paths()[i]; }
  [[nodiscard]] std::optional<workload::FrameTally> tally() const { return forwarder_->stages().front()->tally(); }
  [[nodiscard]] bool conserved() const {
    std::uint64_t in = 0;
    std::uint64_t out = 0;
    for (const auto& path : forwarder_->paths()) {
      in += path->received.packets.get();
      out += path->sent.packets.get() + path->sent.drops.total();
    }
    return in == out;
  }

 private:
  datapath::DatapathSettings settings_;
  datapath::ForwardLayout layout_;
  runtime::LcorePlan plan_;
  std::unique_ptr<Forwarder> forwarder_;
};

struct Way {
  EngineKind engine;
  datapath::ModelKind model;
  std::uint16_t lanes;
  std::uint16_t burst;
  bool adaptive = false;
  ProcessorKind io = ProcessorKind::cpu;
};

constexpr Way gpu_io(datapath::ModelKind model, std::uint16_t burst) {
  return {EngineKind::thread, model, 1, burst, false, ProcessorKind::gpu};
}

class EveryWay : public ::testing::TestWithParam<Way> {
 protected:
  [[nodiscard]] datapath::DatapathSettings settings(WorkloadKind workload) const {
    datapath::DatapathSettings settings;
    settings.forward.engine = GetParam().engine;
    settings.forward.model = GetParam().model;
    settings.forward.ctas = GetParam().lanes;
    settings.forward.burst = GetParam().burst;
    settings.forward.adaptive_burst = GetParam().adaptive;
    settings.forward.io = GetParam().io;
    settings.forward.workload = workload;
    settings.forward.ring_slots = 4;
    return settings;
  }
};

TEST_P(EveryWay, WorksOnEachPacketOnceInOrder) {
  constexpr std::uint32_t kPackets = 1000;
  Wire wire;
  for (std::uint32_t number = 0; number < kPackets; ++number) wire.send(number, 60 + number % 900, 512);
  ForwardRun run(settings(WorkloadKind::mac_swap), {&wire});
  run.forward(kPackets);
  const auto frames = wire.receive();
  ASSERT_EQ(frames.size(), kPackets);
  for (std::uint32_t number = 0; number < kPackets; ++number) {
    EXPECT_EQ(frames[number].first, number);
    EXPECT_TRUE(frames[number].second) << number;
  }
  EXPECT_TRUE(run.conserved());
  EXPECT_EQ(wire.in_use(), 0U);
}

TEST_P(EveryWay, NoWorkLeavesFramesAlone) {
  Wire wire;
  for (std::uint32_t number = 0; number < 100; ++number) wire.send(number);
  ForwardRun run(settings(WorkloadKind::none), {&wire});
  run.forward(100);
  const auto frames = wire.receive();
  ASSERT_EQ(frames.size(), 100U);
  for (const auto& [number, swapped] : frames) EXPECT_FALSE(swapped) << number;
}

TEST_P(EveryWay, CountsWhatItSees) {
  Wire wire;
  for (std::uint32_t number = 0; number < 100; ++number) wire.send(number);
  ForwardRun run(settings(WorkloadKind::count), {&wire});
  run.forward(100);
  ASSERT_TRUE(run.tally().has_value());
  EXPECT_EQ(run.tally()->packets, 100U);
  EXPECT_EQ(run.tally()->bytes, 6400U);
  wire.receive();
}

TEST_P(EveryWay, DropsByReasonAndGoesOn) {
  Wire wire;
  for (std::uint32_t number = 0; number < 10; ++number) wire.send(number);
  for (std::uint32_t number = 10; number < 13; ++number) wire.send(number, 13);
  for (std::uint32_t number = 13; number < 15; ++number) wire.send(number, 1515, 512);
  for (std::uint32_t number = 15; number < 19; ++number) wire.send(number, 64, 3);
  for (std::uint32_t number = 19; number < 30; ++number) wire.send(number, 64, 5);
  ForwardRun run(settings(WorkloadKind::mac_swap), {&wire});
  run.forward(30);
  EXPECT_EQ(wire.receive().size(), 21U);
  EXPECT_EQ(run.path().sent.drops.get(Verdict::runt), 3U);
  EXPECT_EQ(run.path().sent.drops.get(Verdict::giant), 2U);
  EXPECT_EQ(run.path().sent.drops.get(Verdict::too_many_segments), 4U);
  EXPECT_EQ(run.path().sent.drops.total(), 9U);
  EXPECT_TRUE(run.conserved());
  EXPECT_EQ(wire.in_use(), 0U);
}

TEST_P(EveryWay, AFullTransmitQueueIsADropByName) {
  Wire from;
  Wire to;  // nobody receives at its far end
  for (std::uint32_t number = 0; number < 1000; ++number) to.send(number);
  datapath::DatapathSettings both = settings(WorkloadKind::none);
  both.forward.tx_retries = 2;
  {
    ForwardRun run(both, {&from, &to});
    run.forward(1000);
    EXPECT_EQ(run.path(1).sent.packets.get(), 1000U);
  }
  for (std::uint32_t number = 0; number < 1000; ++number) to.send(number);
  ForwardRun run(both, {&from, &to});
  run.forward(1000);
  const std::uint64_t full = run.path(1).sent.drops.get(Verdict::tx_full);
  EXPECT_GT(full, 0U);
  EXPECT_EQ(run.path(1).sent.packets.get() + full, 1000U);
  if (run.path(1).counts_bytes || run.path(1).sent.bytes.get() != 0) {
    EXPECT_EQ(run.path(1).sent.bytes.get(), 64 * run.path(1).sent.packets.get());
  }
  EXPECT_GT(run.path(1).sent.retries.get(), 0U);
  EXPECT_TRUE(run.conserved());
  EXPECT_EQ(from.receive().size() + full, 2000U);
  EXPECT_EQ(from.in_use() + to.in_use(), 0U);
}

INSTANTIATE_TEST_SUITE_P(
    Forwarder, EveryWay,
    ::testing::Values(Way{EngineKind::inline_, datapath::ModelKind::run_to_completion, 1, 64},
                      Way{EngineKind::inline_, datapath::ModelKind::run_to_completion, 1, 1},
                      Way{EngineKind::inline_, datapath::ModelKind::pipeline, 1, 32},
                      Way{EngineKind::thread, datapath::ModelKind::pipeline, 1, 64},
                      Way{EngineKind::thread, datapath::ModelKind::pipeline, 3, 7},
                      Way{EngineKind::thread, datapath::ModelKind::run_to_completion, 2, 512},
                      Way{EngineKind::inline_, datapath::ModelKind::run_to_completion, 1, 512, true},
                      Way{EngineKind::inline_, datapath::ModelKind::pipeline, 1, 512, true},
                      Way{EngineKind::thread, datapath::ModelKind::pipeline, 1, 512, true},
                      Way{EngineKind::thread, datapath::ModelKind::pipeline, 3, 512, true},
                      Way{EngineKind::thread, datapath::ModelKind::run_to_completion, 2, 7, true},
                      gpu_io(datapath::ModelKind::pipeline, 64), gpu_io(datapath::ModelKind::pipeline, 1),
                      gpu_io(datapath::ModelKind::run_to_completion, 7),
                      gpu_io(datapath::ModelKind::run_to_completion, 512)),
    [](const auto& how) {
      return std::string(how.param.engine == EngineKind::thread ? "thread" : "inline") +
             (how.param.model == datapath::ModelKind::pipeline ? "Pipeline" : "ToCompletion") +
             std::to_string(how.param.lanes) + "x" + std::to_string(how.param.burst) +
             (how.param.adaptive ? "Adaptive" : "") + (how.param.io == ProcessorKind::gpu ? "GpuIo" : "");
    });

TEST(Forwarder, APacketBudgetIsNeverExceeded) {
  Wire wire;
  for (std::uint32_t number = 0; number < 200; ++number) wire.send(number);
  datapath::DatapathSettings settings;
  settings.packets = 77;
  ForwardRun run(settings, {&wire});
  run.forward(77);
  EXPECT_EQ(run.path().received.packets.get(), 77U);
  EXPECT_EQ(wire.receive().size(), 77U);
}

}  // namespace
}  // namespace warpline::forward
