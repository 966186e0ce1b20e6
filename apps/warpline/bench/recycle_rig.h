// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bench/recycle_plan.h"
#include "bench/recycle_routes.h"
#include "warpline/base/result.h"
#include "warpline/datapath/batch.h"
#include "warpline/datapath/queue_path.h"
#include "warpline/datapath/stage_loop.h"
#include "warpline/memory/packet_pool.h"
#include "warpline/memory/recycle_setup.h"
#include "warpline/port/port.h"

namespace warpline::bench {

/// Bytes of all frames, without FCS.
inline constexpr std::uint32_t kRecycleFrameBytes = 64;

/// What DPDK is to have for any setting: for Eal::start.
[[nodiscard]] Bytes recycle_rig_memory();

/// Time of the inline engines of net_vnic so far, as their driver tells: one call in 16 was timed for all.
struct EngineTime {
  std::uint64_t ticks = 0;
  std::uint64_t calls = 0;
};

/// Ports, pools and loop of one setting, set up as `forward` and `l3forward` do. Used and destroyed by the lcore that
/// makes it, which then plays both control thread and worker.
class RecycleRig {
 public:
  [[nodiscard]] static Result<std::unique_ptr<RecycleRig>> make(const RecycleSetting& setting);
  RecycleRig(const RecycleRig&) = delete;
  RecycleRig& operator=(const RecycleRig&) = delete;
  ~RecycleRig();

  /// Polls all stages `rounds` times, as run_stages() does. Returns packets received.
  [[gnu::noinline]] std::uint64_t poll(std::uint32_t rounds);
  /// Polls until the next ones need neither refill a receive ring nor free sent buffers, and returns how many those
  /// are. For RecycleProbe::floor.
  [[nodiscard]] std::uint32_t make_room();
  [[nodiscard]] EngineTime engine() const;

  /// Packets that a round of poll() receives.
  [[nodiscard]] std::uint32_t packets_a_round() const { return setting_.burst * receivers_; }
  /// Packets that may be received in all, 0 for any number.
  [[nodiscard]] std::uint64_t most_packets() const;
  /// What was refused when recycling was set up, and what is used instead.
  [[nodiscard]] const std::vector<std::string>& notes() const { return recycling_.notes; }
  /// Some lcore may take buffers back directly.
  [[nodiscard]] bool may_recycle() const { return recycling_.recycled().has_value(); }

  /// What became of the packets, after finish().
  struct Totals {
    std::uint64_t received = 0;
    std::uint64_t dropped = 0;
    std::uint64_t recycled = 0;
    std::uint64_t gets = 0;  ///< by drivers that count them
    std::uint64_t puts = 0;
  };
  /// Sends what waits and stops the ports. A verification error if a buffer is missing from its pool then.
  [[nodiscard]] Result<Totals> finish();

 private:
  explicit RecycleRig(const RecycleSetting& setting) : setting_(setting), budget_(0) {}

  [[nodiscard]] Result<void> open_ports();
  [[nodiscard]] Result<void> make_pools();
  [[nodiscard]] Result<void> set_up();
  [[nodiscard]] Result<void> make_stages();
  [[nodiscard]] Result<void> circulate();
  [[nodiscard]] memory::RecyclePlan plan() const;
  datapath::QueuePath& add_path(port::PortQueue rx, port::PortQueue tx);
  void drain_rings();

  const RecycleSetting setting_;
  std::uint32_t receivers_ = 2;            ///< receive queues that are polled
  std::vector<memory::PacketPool> pools_;  ///< one for all ports of a mix, or one for each
  std::optional<memory::PacketPool> clones_;
  std::vector<port::Port> ports_;
  memory::Recycling recycling_;
  datapath::PacketBudget budget_;
  std::vector<std::unique_ptr<datapath::QueuePath>> paths_;
  std::unique_ptr<BenchRoutes> routes_;
  std::vector<std::unique_ptr<datapath::Stage>> own_stages_;
  std::vector<datapath::Stage*> stages_;
  /// Ids of the engine's xstats {engine_cycles, engine_calls}, by port; nullopt if the driver lacks them.
  std::vector<std::optional<std::pair<std::uint64_t, std::uint64_t>>> engine_counters_;
};

}  // namespace warpline::bench
