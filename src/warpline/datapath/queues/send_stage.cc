// SPDX-License-Identifier: Apache-2.0
#include "warpline/datapath/queues/send_stage.h"

#include "warpline/base/time/clock.h"
#include "warpline/datapath/transmit.h"
#include "warpline/gpu/trace.h"

namespace warpline::datapath {

std::uint16_t SendStage::poll() {
  send_announcements(path_);
  const bool timed = sampler_.due();
  if (timed) sampler_.start();
  const std::uint16_t sent = send();
  if (sent != 0) {
    if (timed) sampler_.lap(path_.sent.transmit, sent);
    sampler_.count_burst();
  }
  const std::uint32_t frames =
      queues_.take_released(kMaxBurst, [this](const queues::PacketQueues::Released& released) { end_frame(released); });
  const queues::PacketQueues::Checked checked = queues_.take_checked();
  path_.sent.checked.add(checked.frames);
  path_.sent.unworked.add(checked.bad);
  return static_cast<std::uint16_t>(sent + frames);
}

bool SendStage::drain() {
  poll();
  // Read in this order: once receiving has ended, nothing more is posted.
  return path_.receive_ended.load(std::memory_order_acquire) && queues_.in_flight() == 0;
}

void SendStage::reclaim() {
  while (poll() != 0) continue;
  queues_.reclaim([this](const queues::PacketQueues::Released& released) { end_frame(released); });
}

/// Returns how many packets were posted to be sent.
std::uint16_t SendStage::send() {
  const auto count = static_cast<std::uint16_t>(queues_.take_sent(reinterpret_cast<void**>(mbufs_.data()), kMaxBurst));
  if (count == 0) return 0;
  const gpu::TraceRange range("tx");
  std::uint64_t bytes = 0;
  if (path_.counts_bytes) {
    for (std::uint16_t i = 0; i < count; ++i) bytes += rte_pktmbuf_pkt_len(mbufs_[i]);
  }
  transmit(path_, path_.tx, mbufs_.data(), count, bytes);
  path_.recycle_later(count);
  queues_.complete();
  return count;
}

void SendStage::end_frame(const queues::PacketQueues::Released& released) {
  if (released.stamp != 0) {
    path_.sent.latency.record(static_cast<std::uint64_t>(ticks_to_nanos(ticks_now() - released.stamp)));
  }
  if (released.packet != nullptr) set_aside(path_, static_cast<rte_mbuf*>(released.packet), released.verdict);
}

}  // namespace warpline::datapath
