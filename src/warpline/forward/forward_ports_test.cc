// SPDX-License-Identifier: Apache-2.0
#include "warpline/forward/forward_ports.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

namespace warpline::forward {
namespace {

/// Returns the host memory of a loopback of four pipelines of jumbo frames.
std::uint64_t jumbo_memory(std::uint16_t burst, bool adaptive, std::uint16_t slots) {
  datapath::DatapathSettings settings;
  settings.loopback_port.mtu = 9000;
  settings.forward.loopback = true;
  settings.forward.pipelines = 4;
  settings.forward.ring_slots = slots;
  settings.forward.burst = burst;
  settings.forward.adaptive_burst = adaptive;
  const datapath::ForwardLayout layout = datapath::lay_out_forward(settings, {runtime::kAnyNode}, 8);
  return ForwardPorts(settings, layout, {.max_frame = 9014, .burst = 64}).host_memory().value;
}

/// With many slots a pool for a ring full of the largest bursts took gigabytes, and seconds to be made.
TEST(ForwardPorts, BurstsThatAdaptTakeTheMemoryOfDefaultOnes) {
  for (const std::uint16_t slots : {64, 256}) {
    EXPECT_LE(jumbo_memory(512, true, slots), jumbo_memory(64, false, slots)) << slots;
    EXPECT_LT(4 * jumbo_memory(512, true, slots), jumbo_memory(512, false, slots)) << slots;
  }
}

/// Returns the host memory of a loopback of seven pipelines of 1024 bursts of 512 packets.
std::uint64_t memory_of_large_bursts(bool closed_loop, const std::string& faults) {
  datapath::DatapathSettings settings;
  settings.forward.loopback = true;
  settings.forward.pipelines = 7;
  settings.forward.ring_slots = 1024;
  settings.forward.burst = 512;
  settings.loopback_faults = faults;
  const datapath::ForwardLayout layout = datapath::lay_out_forward(settings, {runtime::kAnyNode}, 8);
  return ForwardPorts(settings, layout, {.max_frame = 1514, .burst = 64, .closed_loop = closed_loop})
      .host_memory()
      .value;
}

/// A closed loop has a window of frames in flight, whatever the bursts could hold: the pool took 17 GB and a minute.
TEST(ForwardPorts, AClosedLoopTakesMemoryForItsWindow) {
  EXPECT_LT(memory_of_large_bursts(true, ""), std::uint64_t{1} << 30);
  EXPECT_GT(memory_of_large_bursts(false, ""), std::uint64_t{8} << 30);
  EXPECT_GT(memory_of_large_bursts(true, "duplicate=0.1"), std::uint64_t{8} << 30);
}

/// DPDK's rings have powers of two of descriptors, and devices of 4097 have 8192: memory was set aside for 4097.
TEST(ForwardPorts, MemoryIsSetAsideForRingsThatADeviceRoundsUp) {
  const auto memory_of = [](std::uint16_t ring) {
    datapath::DatapathSettings settings;
    settings.forward.loopback = true;
    settings.forward.pipelines = 3;
    settings.loopback_port.rx_ring = settings.loopback_port.tx_ring = ring;
    const datapath::ForwardLayout layout = datapath::lay_out_forward(settings, {runtime::kAnyNode}, 8);
    return ForwardPorts(settings, layout, {.max_frame = 64, .burst = 64, .closed_loop = true}).host_memory().value;
  };
  EXPECT_EQ(memory_of(4097), memory_of(8192));
  EXPECT_LT(memory_of(4096), memory_of(4097));
}

TEST(ForwardPorts, FewSlotsOfBurstsThatAdaptTakeNoMoreThanTheRingHolds) {
  for (const std::uint16_t slots : {1, 2, 4}) {
    EXPECT_EQ(jumbo_memory(512, true, slots), jumbo_memory(512, false, slots)) << slots;
  }
}

}  // namespace
}  // namespace warpline::forward
