// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include <rte_mbuf.h>

#include "warpline/datapath/batch.h"
#include "warpline/datapath/queue_path.h"
#include "warpline/datapath/stage_loop.h"
#include "warpline/handoff/burst_ring.h"
#include "warpline/ingest/batch_rule.h"
#include "warpline/ingest/ingest_counters.h"

namespace warpline::ingest {

/// `DeliverStage` is the end of an ingest path: it collects the batches that the consumer is done with, in their order,
/// counts them and gives their buffers back or, with `transmits`, sends what the consumer passed in bursts of
/// kSendBurst. The slot of a batch becomes free here and nowhere else, so nothing is overwritten before it was
/// consumed. Its owner is the path's receiving or transmitting lcore, the ring's consumer.
class DeliverStage final : public datapath::Stage {
 public:
  /// `kSendBurst` packets are sent at once, as in the study of 2020.
  static constexpr std::uint16_t kSendBurst = 32;

  DeliverStage(datapath::QueuePath& path, handoff::BurstRing& ring, DeliverCounters& counters, BatchRule& rule,
               bool transmits)
      : path_(path), ring_(ring), counters_(counters), rule_(rule), transmits_(transmits) {}

  std::uint16_t poll() override;
  bool drain() override;

  /// Accounts for what never came back from the engine. The control thread calls it after the engine has stopped.
  void reclaim();

 private:
  void settle(const handoff::Burst& burst);
  void set_exceptions_aside(const handoff::Burst& burst);
  /// Sends or frees mbufs[0 .. count), which the consumer passed; of a path that copies they may be freed already.
  void pass_on(rte_mbuf** mbufs, std::uint16_t count, std::uint64_t bytes);

  datapath::QueuePath& path_;
  handoff::BurstRing& ring_;
  DeliverCounters& counters_;
  BatchRule& rule_;
  bool transmits_;
  datapath::StageSampler sampler_;
  std::array<rte_mbuf*, datapath::kMaxBurst> mbufs_;
};

}  // namespace warpline::ingest
