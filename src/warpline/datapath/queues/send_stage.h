// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include <rte_mbuf.h>

#include "warpline/base/verdict.h"
#include "warpline/datapath/batch.h"
#include "warpline/datapath/queue_path.h"
#include "warpline/datapath/stage.h"
#include "warpline/datapath/stage_loop.h"
#include "warpline/queues/packet_queues.h"

namespace warpline::datapath {

/// `SendStage` is the proxy's half that sends: when the consumer has rung its doorbell, it hands the port what was
/// posted; slots that come back with another verdict it drops by that name. Owner: the path's transmitting lcore, the
/// queues' sender.
class SendStage final : public Stage {
 public:
  SendStage(QueuePath& path, queues::PacketQueues& queues) : path_(path), queues_(queues) {}

  std::uint16_t poll() override;
  bool drain() override;

  /// After the consumer has ended, by the control thread: sends what it has posted and drops what it has left.
  void reclaim();

 private:
  std::uint16_t send();
  void end_frame(const queues::PacketQueues::Released& released);

  QueuePath& path_;
  queues::PacketQueues& queues_;
  StageSampler sampler_;
  std::array<rte_mbuf*, kMaxBurst> mbufs_;
};

}  // namespace warpline::datapath
