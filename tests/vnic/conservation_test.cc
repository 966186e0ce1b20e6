// SPDX-License-Identifier: Apache-2.0
// Whatever goes wrong on the wire, every frame is accounted for on both its sides: each fault and each two of them, at
// several rates and frame sizes.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "port.h"
#include "warpline/base/random.h"
#include "wire_frame.h"

namespace warpline::vnic {
namespace {

constexpr std::uint32_t kFramesOfCell = 192;
constexpr std::uint16_t kRoom = 2048;
constexpr std::size_t kFrameSizes[] = {60, 333, 1514, 9014};
constexpr unsigned kStrengths = 2;
constexpr unsigned kPolls = 2;  ///< of each side after each burst; too few to make a sender idle
constexpr std::uint32_t kConservationPatience = 50'000'000;

struct Fault {
  const char* name;
  const char* args[kStrengths];
  bool timed = false;    ///< when frames arrive depends on the clock
  bool limited = false;  ///< which ones do, too
};
constexpr Fault kFaults[] = {
    {"loss", {"loss=0.05", "loss=0.5"}},
    {"burst_loss",
     {"burst_loss_enter=0.02,burst_loss_leave=0.3", "burst_loss_enter=0.2,burst_loss_leave=0.2,burst_loss=0.7"}},
    {"duplicate", {"duplicate=0.05", "duplicate=0.5"}},
    {"reorder", {"reorder=0.05", "reorder=0.5,reorder_depth=64"}},
    {"corrupt", {"corrupt=0.05", "corrupt=0.5"}},
    {"truncate", {"truncate=0.05", "truncate=0.5"}},
    {"delay", {"delay=10us", "delay=200us"}, true},
    {"jitter", {"jitter=10us", "jitter=200us"}, true},
    {"rate", {"rate=10gbit,queue_bytes=64Ki", "rate=2gbit,queue_bytes=16Ki"}, true, true},
    {"ecn", {"rate=4gbit,queue_bytes=256Ki,ecn_bytes=2Ki", "rate=2gbit,queue_bytes=64Ki,ecn_bytes=4Ki"}, true, true},
    {"stall", {"stall=0.05", "stall=0.5"}},
    {"rx_out", {"rx_out=0.05", "rx_out=0.5"}},
    {"tx_full", {"tx_full=0.05", "tx_full=0.5"}},
    {"flap", {"flap_frames=50", "flap_frames=7,flap_lost=3"}},
};

struct Cell {
  const Fault* first;
  const Fault* second;  ///< the same for one fault alone
  unsigned strength;
  std::size_t size;

  [[nodiscard]] bool timed() const { return first->timed || second->timed; }
  [[nodiscard]] bool limited() const { return first->limited || second->limited; }
  [[nodiscard]] std::string faults() const {
    std::string args = first->args[strength];
    if (second != first) args += std::string(",") + second->args[strength];
    return args;
  }
  [[nodiscard]] std::string name() const { return faults() + ", " + std::to_string(size) + " bytes"; }
};

std::vector<Cell> cells_of(const Fault& first) {
  std::vector<Cell> cells;
  for (const Fault* second = &first; second != std::end(kFaults); ++second) {
    for (unsigned strength = 0; strength < kStrengths; ++strength) {
      for (const std::size_t size : kFrameSizes) cells.push_back({&first, second, strength, size});
    }
  }
  return cells;
}

/// What a cell draws at random, the same for the same cell.
struct Shape {
  std::uint16_t rx_ring, tx_ring, burst;
  bool small_buffer, fast_free;
  std::uint64_t seed;

  explicit Shape(const Cell& cell) {
    constexpr std::uint16_t kRings[] = {64, 65, 100, 256, 1000};
    std::uint64_t hash = cell.size;
    for (const char letter : cell.faults()) hash = mix64(hash ^ static_cast<std::uint8_t>(letter));
    Random random(hash);
    rx_ring = kRings[random.below(std::size(kRings))];
    tx_ring = kRings[random.below(std::size(kRings))];
    burst = static_cast<std::uint16_t>(1 + random.below(48));
    small_buffer = !cell.timed() && random.below(2) == 0;
    fast_free = cell.size <= kRoom && random.below(2) == 0;
    seed = random.next() >> 32;
  }
};

/// One end of the wire: what it sends, and what has come to it.
struct End {
  End(const char* name, const char* peer, const Cell& cell, const Shape& shape, const Pool& pool, std::uint64_t seed)
      : port(name, "wire=" + std::string(peer) + ",queues=1,seed=" + std::to_string(seed) +
                       (shape.small_buffer ? ",buffer=32Ki," : ",buffer=8Mi,") + cell.faults()),
        frames(kFramesOfCell, cell.size, seed),
        random(seed),
        uses_pool(pool),
        segments(cell.size > kRoom || !shape.fast_free),
        burst(shape.burst) {
    PortSetup setup;
    setup.pool = pool.get();
    setup.rx_ring = shape.rx_ring;
    setup.tx_ring = shape.tx_ring;
    setup.conf.rxmode.mtu = 9000;
    setup.conf.rxmode.offloads = RTE_ETH_RX_OFFLOAD_SCATTER;
    setup.conf.txmode.offloads = segments ? RTE_ETH_TX_OFFLOAD_MULTI_SEGS : RTE_ETH_TX_OFFLOAD_MBUF_FAST_FREE;
    port.bring_up(setup);
  }

  [[nodiscard]] bool done() const { return next == kFramesOfCell && pending.empty(); }

  /// Frames that a pool's buffers hold in several pieces, or in any number of them.
  rte_mbuf* make(std::uint32_t number) {
    std::vector<std::uint32_t> lengths;
    std::size_t left = frames[number].size();
    while (left > kRoom || (segments && left > 1 && random.below(4) == 0)) {
      const auto most = static_cast<std::uint32_t>(std::min<std::size_t>(left - 1, kRoom));
      const auto least = left > 4 * kRoom ? kRoom / 2 : 1;
      lengths.push_back(static_cast<std::uint32_t>(least + random.below(most - least + 1)));
      left -= lengths.back();
    }
    return uses_pool.chain(frames[number], lengths);
  }

  void send() {
    while (pending.size() < burst && next < kFramesOfCell) pending.push_back(make(next++));
    if (pending.empty()) return;
    const std::uint16_t went =
        rte_eth_tx_burst(port.id(), 0, pending.data(), static_cast<std::uint16_t>(pending.size()));
    sent += went;
    pending.erase(pending.begin(), pending.begin() + went);
  }

  void receive() {
    for (rte_mbuf* mbuf : port.receive()) received.push_back(taken(mbuf));
  }

  Port port;
  WireFrames frames;
  Random random;
  const Pool& uses_pool;
  bool segments;
  std::uint16_t burst;
  std::uint32_t next = 0;
  std::uint64_t sent = 0;
  std::vector<rte_mbuf*> pending;
  std::vector<packet::FrameBytes> received;
};

/// Frames that were lost for each reason but those that a sender's calls tell.
std::uint64_t lost(const Port& sender, const Port& receiver) {
  std::uint64_t sum = 0;
  for (const Count reason : {Count::fault_loss, Count::fault_flap, Count::tx_queue_full}) sum += sender.count(reason);
  for (const Count reason : {Count::rx_no_descriptor, Count::rx_runt, Count::rx_giant, Count::rx_filtered,
                             Count::rx_link_down, Count::rx_stopped, Count::rx_too_long, Count::rx_iommu_fault}) {
    sum += receiver.count(reason);
  }
  return sum;
}

/// sent + duplicated = received + lost by reason + held back + in the packet buffer
void expect_conserved(const End& from, const End& to) {
  EXPECT_EQ(from.port.count(Count::tx_packets), from.sent);
  const std::uint64_t held = from.port.device().egress.faults().held();
  const std::uint64_t buffered = to.port.device().ingress.buffer(0).frames();
  EXPECT_EQ(from.sent + from.port.count(Count::fault_duplicate),
            to.received.size() + lost(from.port, to.port) + held + buffered);
  EXPECT_EQ(to.port.count(Count::rx_packets), to.received.size());
}

[[nodiscard]] bool arrived(const End& from, const End& to) {
  return from.port.device().egress.faults().held() == 0 && to.port.device().ingress.buffer(0).frames() == 0;
}

/// Every frame received is one that was sent, whole but for what was done to it and counted.
void expect_bytes(const End& from, const End& to) {
  std::uint64_t truncated = 0;
  std::uint64_t corrupted = 0;
  std::uint64_t marked = 0;
  std::uint64_t bytes = 0;
  std::vector<unsigned> times(kFramesOfCell);
  for (const packet::FrameBytes& frame : to.received) {
    const WireFrames::Finding finding = from.frames.look_at(frame);
    ASSERT_FALSE(finding.foreign) << "a frame of " << frame.size() << " bytes that nobody sent";
    truncated += finding.truncated ? 1 : 0;
    corrupted += finding.corrupted ? 1 : 0;
    marked += finding.marked ? 1 : 0;
    bytes += frame.size();
    if (finding.number) ++times[*finding.number];
  }
  EXPECT_EQ(to.port.count(Count::rx_bytes), bytes);
  const std::uint64_t after = lost(from.port, to.port) - from.port.count(Count::fault_loss) -
                              from.port.count(Count::fault_flap);  // of those that may have been changed before
  const auto between = [&](std::uint64_t seen, Count counted) {
    EXPECT_LE(seen, from.port.count(counted)) << kCountNames[static_cast<unsigned>(counted)];
    EXPECT_GE(seen + after, from.port.count(counted)) << kCountNames[static_cast<unsigned>(counted)];
  };
  between(truncated, Count::fault_truncate);
  between(corrupted, Count::fault_corrupt);
  between(marked, Count::fault_ecn_marked);
  std::uint64_t twice = 0;
  for (const unsigned count : times) {
    EXPECT_LE(count, 2U);
    twice += count == 2 ? 1 : 0;
  }
  EXPECT_LE(twice, from.port.count(Count::fault_duplicate));
}

/// Counters that depend on nothing but the seed and the frames.
std::vector<std::uint64_t> counters_of(const Port& port) {
  std::vector<std::uint64_t> values;
  for (unsigned i = 0; i < kCounts; ++i) {
    const auto count = static_cast<Count>(i);
    const bool of_polls = count == Count::fault_stall_polls || count == Count::fault_rx_out_polls ||
                          count == Count::engine_cycles || count == Count::engine_calls ||
                          count == Count::mempool_gets || count == Count::mempool_puts;
    values.push_back(of_polls ? 0 : port.count(count));
  }
  return values;
}

struct Outcome {
  std::vector<packet::FrameBytes> received[2];
  std::vector<std::uint64_t> counters[2];
  bool operator==(const Outcome&) const = default;
};

Outcome run(const Cell& cell) {
  const Shape shape(cell);
  const Pool pool(8191, kRoom);
  Outcome outcome;
  {
    End a("net_vnic0", "net_vnic1", cell, shape, pool, shape.seed);
    End b("net_vnic1", "net_vnic0", cell, shape, pool, shape.seed + 1);
    while (!a.done() || !b.done()) {
      a.send();
      b.send();
      for (unsigned i = 0; i < kPolls; ++i) {
        a.receive();
        b.receive();
      }
    }
    expect_conserved(a, b);
    expect_conserved(b, a);
    expect_accounted(pool, {&a.port, &b.port});
    for (std::uint32_t polls = 0; !arrived(a, b) || !arrived(b, a); ++polls) {
      if (polls == kConservationPatience) {
        ADD_FAILURE() << "frames never arrive";
        break;
      }
      a.receive();
      b.receive();
    }
    expect_conserved(a, b);
    expect_conserved(b, a);
    expect_bytes(a, b);
    expect_bytes(b, a);
    expect_accounted(pool, {&a.port, &b.port});
    EXPECT_EQ(rte_eth_dev_stop(a.port.id()), 0);
    EXPECT_EQ(rte_eth_dev_stop(b.port.id()), 0);
    EXPECT_EQ(pool.in_use(), 0U);
    outcome = {{std::move(a.received), std::move(b.received)}, {counters_of(a.port), counters_of(b.port)}};
  }
  return outcome;
}

class Conservation : public testing::TestWithParam<std::size_t> {};

TEST_P(Conservation, HoldsOnBothSidesOfTheWire) {
  for (const Cell& cell : cells_of(kFaults[GetParam()])) {
    SCOPED_TRACE(cell.name());
    const Outcome once = run(cell);
    // Which frames a full queue takes is a matter of time.
    if (!cell.limited()) {
      EXPECT_TRUE(run(cell) == once) << "the same seed, another result";
    }
    if (HasFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Faults, Conservation, testing::Range(std::size_t{0}, std::size(kFaults)),
                         [](const auto& param) { return std::string(kFaults[param.param].name); });

TEST(ConservationCells, AreManyEnough) {
  std::size_t cells = 0;
  for (const Fault& fault : kFaults) cells += cells_of(fault).size();
  EXPECT_GE(cells, 600U);
}

}  // namespace
}  // namespace warpline::vnic
