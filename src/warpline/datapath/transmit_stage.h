// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include <rte_mbuf.h>

#include "warpline/datapath/batch.h"
#include "warpline/datapath/capture/packet_trace.h"
#include "warpline/datapath/queue_path.h"
#include "warpline/datapath/stage_loop.h"
#include "warpline/handoff/burst_ring.h"

namespace warpline::datapath {

/// The second half of a pipeline: sends the bursts that the engine is done with, in the order in which they came.
/// Owner: the path's transmitting lcore, the ring's consumer.
class TransmitStage final : public Stage {
 public:
  TransmitStage(QueuePath& path, handoff::BurstRing& ring) : path_(path), ring_(ring) {}

  std::uint16_t poll() override;
  bool drain() override;

  /// After the engine has stopped, by the control thread: drops what never came back from it.
  void reclaim();

 private:
  void send(const handoff::Burst& burst);
  void send_traced(const handoff::Burst& burst, std::uint64_t collected);

  QueuePath& path_;
  handoff::BurstRing& ring_;
  StageSampler sampler_;
  PacketTrace trace_;
  std::array<rte_mbuf*, kMaxBurst> mbufs_;
};

}  // namespace warpline::datapath
