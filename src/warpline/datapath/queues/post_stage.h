// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include <rte_mbuf.h>

#include "warpline/datapath/batch.h"
#include "warpline/datapath/queue_path.h"
#include "warpline/datapath/stage.h"
#include "warpline/datapath/stage_loop.h"
#include "warpline/queues/packet_queues.h"

namespace warpline::datapath {

/// `PostStage` is the proxy's half that receives: packets go into the receive queue as they come, without a batch to
/// wait for and without a look at their bytes. Owner: the path's receiving lcore, the queues' poster.
class PostStage final : public Stage {
 public:
  /// `most`: slots in use at most.
  PostStage(QueuePath& path, PacketBudget& budget, queues::PacketQueues& queues, std::uint32_t most)
      : path_(path), budget_(budget), queues_(queues), most_(most) {}
  /// Before the packets' pool. What found no slots goes back unseen, as what waits in a receive ring does.
  ~PostStage() override;

  std::uint16_t poll() override;
  bool drain() override;

 private:
  /// Receives from `source`, as far as slots are free and the run's budget goes. Returns whether slots are free.
  template <typename Source>
  bool receive(Source&& source);
  /// Posts what was received as far as there is room. Returns how many packets.
  std::uint16_t post();
  [[nodiscard]] bool post(rte_mbuf* mbuf);

  QueuePath& path_;
  PacketBudget& budget_;
  queues::PacketQueues& queues_;
  std::uint32_t most_;
  StageSampler sampler_;
  std::uint64_t bytes_ = 0;  ///< of the packets being posted
  // Received and not posted: frames in pieces need more slots than there were packets to be received.
  std::uint16_t first_ = 0;
  std::uint16_t end_ = 0;
  std::array<rte_mbuf*, kMaxBurst> mbufs_;
};

}  // namespace warpline::datapath
