// SPDX-License-Identifier: Apache-2.0
#include "warpline/datapath/transmit_stage.h"

#include "warpline/base/time/clock.h"
#include "warpline/datapath/transmit.h"
#include "warpline/gpu/trace.h"

namespace warpline::datapath {

std::uint16_t TransmitStage::poll() {
  send_announcements(path_);
  const handoff::Burst* burst = ring_.completed();
  if (burst == nullptr) return 0;
  const gpu::TraceRange range("complete");
  const std::uint64_t now = ticks_now();
  path_.sent.latency.record(static_cast<std::uint64_t>(ticks_to_nanos(now - burst->stamp())));
  const std::uint16_t packets = burst->packet_count();
  const bool timed = sampler_.due();
  if (timed) sampler_.start();
  if (burst->traced()) [[unlikely]] {
    send_traced(*burst, now);
  } else {
    send(*burst);
  }
  if (timed) sampler_.lap(path_.sent.transmit, packets);
  sampler_.count_burst();
  ring_.release();
  return packets;
}

void TransmitStage::send_traced(const handoff::Burst& burst, std::uint64_t collected) {
  const handoff::BurstRing::EngineTimes engine = ring_.engine_times();
  trace_.begin(path_, reinterpret_cast<rte_mbuf* const*>(burst.packets().data()), burst.packet_count());
  send(burst);
  trace_.end(path_, {.received = burst.stamp() - burst.waited(),
                     .closed = burst.stamp(),
                     .begun = engine.begun,
                     .done = engine.ended,
                     .collected = collected,
                     .left = ticks_now(),
                     .batch = burst.packet_count()});
}

bool TransmitStage::drain() {
  poll();
  // Read in this order: once receiving has ended, nothing more is published.
  return path_.receive_ended.load(std::memory_order_acquire) && ring_.in_flight() == 0;
}

void TransmitStage::reclaim() {
  while (const handoff::Burst* burst = ring_.reclaim()) {
    send(*burst);
    ring_.release();
  }
}

void TransmitStage::send(const handoff::Burst& burst) {
  const gpu::TraceRange range("tx");
  path_.sent.checked.add(burst.for_work());
  if (const std::uint16_t unworked = burst.unworked(); unworked != 0) [[unlikely]]
    path_.sent.unworked.add(unworked);
  const std::span<void* const> packets = burst.packets();
  if (burst.exceptions() == 0) [[likely]] {
    // The driver only reads the pointers.
    auto** const mbufs = reinterpret_cast<rte_mbuf**>(const_cast<void**>(packets.data()));
    const auto count = static_cast<std::uint16_t>(packets.size());
    transmit(path_, path_.tx, mbufs, count, burst.bytes());
    path_.recycle_later(count);
    return;
  }
  std::uint16_t kept = 0;
  std::uint64_t bytes = 0;
  burst.for_each([&](void* packet, Verdict verdict) {
    auto* const mbuf = static_cast<rte_mbuf*>(packet);
    if (verdict != Verdict::forward) return set_aside(path_, mbuf, verdict);
    bytes += rte_pktmbuf_pkt_len(mbuf);
    mbufs_[kept++] = mbuf;
  });
  if (kept == 0) return;
  transmit(path_, path_.tx, mbufs_.data(), kept, bytes);
  path_.recycle_later(kept);
}

}  // namespace warpline::datapath
