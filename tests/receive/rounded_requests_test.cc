// SPDX-License-Identifier: Apache-2.0
// Forwarding from drivers that round a receive request down to whole groups, and bring nothing for less than one:
// bounded runs end, batches fill, and what was received beyond a batch is lost nowhere.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "warpline/datapath/stage_loop.h"
#include "warpline/forward/forwarder.h"
#include "warpline/memory/packet_pool.h"
#include "warpline/port/port.h"
#include "warpline/runtime/eal_environment.h"

namespace warpline {
namespace {

const auto* const kEal = testing::AddGlobalTestEnvironment(new runtime::EalEnvironment(1));

constexpr std::uint32_t kBuffers = 2047;
constexpr std::uint16_t kRing = 128;
constexpr std::uint32_t kFrame = 60;
constexpr unsigned kPatience = 20'000;  ///< polls

struct Case {
  datapath::ModelKind model;
  unsigned align;
};

std::string spec(const std::string& name, const std::string& arguments, unsigned align) {
  return name + "," + arguments + ",rx_align=" + std::to_string(align);
}

/// Stages of one path, turned by hand.
class Forwarding {
 public:
  Forwarding(datapath::DatapathSettings settings, const port::Port& port) : settings_(std::move(settings)) {
    settings_.ports.resize(1);
    settings_.forward.ring_slots = 2;
    layout_ = datapath::lay_out_forward(settings_, {runtime::kAnyNode}, 1);
    plan_ = *runtime::plan_lcores(*machine::Topology::of_machine(), layout_.requests, {.share_cores = true});
    forwarder_ = *forward::Forwarder::create(settings_, layout_, plan_, {{port.id(), 1500, port.mac(), std::nullopt}});
    EXPECT_TRUE(forwarder_->start().ok());
    stages_ = forwarder_->stages().front().get();
  }

  void poll() {
    stages_->receiving()->poll();
    if (stages_->transmitting() != nullptr) stages_->transmitting()->poll();
  }
  /// As all workers do at the end of a run.
  void end() {
    std::vector<datapath::Stage*> stages{stages_->receiving()};
    if (stages_->transmitting() != nullptr) stages.push_back(stages_->transmitting());
    const datapath::StageControl control{.stop = true, .abandon = false};
    TurnCount turns;
    datapath::run_stages(stages, control, true, turns);
    forwarder_->finish();
  }
  [[nodiscard]] std::uint64_t received() const { return forwarder_->received(); }
  [[nodiscard]] std::uint64_t sent() const { return forwarder_->paths().front()->sent.packets.get(); }
  [[nodiscard]] std::uint64_t batches() const { return forwarder_->paths().front()->received.bursts.get(); }

 private:
  datapath::DatapathSettings settings_;
  datapath::ForwardLayout layout_;
  runtime::LcorePlan plan_;
  std::unique_ptr<forward::Forwarder> forwarder_;
  datapath::PathStages* stages_ = nullptr;
};

class RoundedRequests : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override { pool_.emplace(*memory::PacketPool::make("frames", kBuffers, 0, 2048, runtime::kAnyNode)); }
  void TearDown() override {
    ports_.clear();
    EXPECT_EQ(pool_->in_use(), 0U);
  }

  port::Port& open(const std::string& name, const std::string& arguments) {
    port::PortSettings settings;
    settings.spec = spec(name, arguments, GetParam().align);
    settings.rx_ring = settings.tx_ring = kRing;
    ports_.push_back(*port::Port::open(settings.spec));
    EXPECT_TRUE(ports_.back().configure(settings, {.rx = 1, .tx = 1}).ok());
    EXPECT_TRUE(ports_.back().attach(pool_->get()).ok());
    EXPECT_TRUE(ports_.back().start().ok());
    return ports_.back();
  }

  /// From the far end of a wire; each frame says which it is.
  void send(const port::Port& far, std::uint32_t first, std::uint32_t count) {
    for (std::uint32_t number = first; number < first + count; ++number) {
      rte_mbuf* mbuf = rte_pktmbuf_alloc(pool_->get());
      char* const data = rte_pktmbuf_append(mbuf, kFrame);
      std::memset(data, 2, kFrame);
      std::memcpy(data + 14, &number, sizeof number);
      ASSERT_EQ(rte_eth_tx_burst(far.id(), 0, &mbuf, 1), 1);
    }
  }
  std::vector<std::uint32_t> receive(const port::Port& far) {
    std::vector<std::uint32_t> numbers;
    std::array<rte_mbuf*, 32> mbufs;
    while (const std::uint16_t count = rte_eth_rx_burst(far.id(), 0, mbufs.data(), mbufs.size())) {
      for (std::uint16_t i = 0; i < count; ++i) {
        std::uint32_t number = 0;
        std::memcpy(&number, rte_pktmbuf_mtod_offset(mbufs[i], const char*, 14), sizeof(number));
        numbers.push_back(number);
      }
      rte_pktmbuf_free_bulk(mbufs.data(), count);
    }
    return numbers;
  }

  [[nodiscard]] static datapath::DatapathSettings settings(std::uint16_t burst, Nanos deadline = Nanos{0}) {
    datapath::DatapathSettings settings;
    settings.forward.model = GetParam().model;
    settings.forward.workload = WorkloadKind::mac_swap;
    settings.forward.burst = burst;
    settings.forward.deadline = deadline;
    return settings;
  }

  std::optional<memory::PacketPool> pool_;
  std::vector<port::Port> ports_;
};

constexpr Nanos kHour{3'600'000'000'000};

TEST_P(RoundedRequests, ABoundedRunReceivesWhatItWasAskedFor) {
  const port::Port& near = open("net_vnic0", "wire=source");
  for (const std::uint16_t burst : {1, 2, 3, 4, 5, 6, 7, 8, 9, 31, 32, 33, 63, 64}) {
    for (const std::uint64_t packets : {1, 7, 8, 33, 200}) {
      SCOPED_TRACE("burst " + std::to_string(burst) + ", packets " + std::to_string(packets));
      datapath::DatapathSettings bounded = settings(burst);
      bounded.packets = packets;
      Forwarding forwarding(bounded, near);
      for (unsigned i = 0; i < kPatience && forwarding.received() < packets; ++i) forwarding.poll();
      EXPECT_EQ(forwarding.received(), packets);
      forwarding.end();
      EXPECT_EQ(forwarding.received(), packets);
      EXPECT_EQ(forwarding.sent(), packets);
    }
  }
}

TEST_P(RoundedRequests, ABatchFillsToItsLastPacket) {
  ports_.reserve(2);
  const port::Port& near = open("net_vnic0", "wire=net_vnic1");
  const port::Port& far = open("net_vnic1", "wire=net_vnic0");
  for (const std::uint32_t there : {1, 32, 33, 57, 60, 63}) {
    SCOPED_TRACE(there);
    Forwarding forwarding(settings(64, kHour), near);
    send(far, 0, there);
    for (unsigned i = 0; i < 100; ++i) forwarding.poll();
    EXPECT_EQ(forwarding.sent(), 0U);
    // What comes beyond the batch waits for the next one.
    send(far, there, 64 - there + 5);
    for (unsigned i = 0; i < kPatience && forwarding.sent() < 64; ++i) forwarding.poll();
    EXPECT_EQ(forwarding.sent(), 64U);
    EXPECT_EQ(forwarding.batches(), 1U);
    forwarding.end();
    EXPECT_EQ(forwarding.sent(), forwarding.received());
    std::vector<std::uint32_t> numbers = receive(far);
    EXPECT_EQ(numbers.size(), forwarding.sent());
    for (std::uint32_t i = 0; i < numbers.size(); ++i) EXPECT_EQ(numbers[i], i);
    // What was still in the receive ring at the end is the next run's.
    Forwarding rest(settings(64), near);
    for (unsigned i = 0; i < kPatience && numbers.size() + rest.sent() < 69; ++i) rest.poll();
    EXPECT_EQ(numbers.size() + rest.sent(), 69U);
    rest.end();
    receive(far);
  }
}

/// A run that is stopped passes on what it holds, in batches, even if its ring has room for fewer.
TEST_P(RoundedRequests, WhatIsHeldAtTheEndIsPassedOn) {
  ports_.reserve(2);
  const port::Port& near = open("net_vnic0", "wire=net_vnic1");
  const port::Port& far = open("net_vnic1", "wire=net_vnic0");
  for (const std::uint16_t burst : {1, 3, 8}) {
    SCOPED_TRACE(burst);
    Forwarding forwarding(settings(burst), near);
    send(far, 0, 30);
    forwarding.poll();
    EXPECT_EQ(forwarding.received(), burst);
    forwarding.end();
    EXPECT_EQ(forwarding.received(), 30U);
    EXPECT_EQ(forwarding.sent(), 30U);
    EXPECT_EQ(forwarding.batches(), (30U + burst - 1) / burst);
    const std::vector<std::uint32_t> numbers = receive(far);
    ASSERT_EQ(numbers.size(), 30U);
    for (std::uint32_t i = 0; i < numbers.size(); ++i) EXPECT_EQ(numbers[i], i);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Drivers, RoundedRequests,
    testing::Values(Case{datapath::ModelKind::run_to_completion, 1}, Case{datapath::ModelKind::run_to_completion, 4},
                    Case{datapath::ModelKind::run_to_completion, 8}, Case{datapath::ModelKind::run_to_completion, 32},
                    Case{datapath::ModelKind::pipeline, 1}, Case{datapath::ModelKind::pipeline, 4},
                    Case{datapath::ModelKind::pipeline, 8}, Case{datapath::ModelKind::pipeline, 32}),
    [](const auto& drivers) {
      return std::string(drivers.param.model == datapath::ModelKind::pipeline ? "Pipeline" : "ToCompletion") + "By" +
             std::to_string(drivers.param.align);
    });

}  // namespace
}  // namespace warpline
