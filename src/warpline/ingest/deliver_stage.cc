// SPDX-License-Identifier: Apache-2.0
#include "warpline/ingest/deliver_stage.h"

#include <algorithm>
#include <utility>

#include "warpline/base/time/clock.h"
#include "warpline/datapath/transmit.h"
#include "warpline/gpu/trace.h"

namespace warpline::ingest {

std::uint16_t DeliverStage::poll() {
  datapath::send_announcements(path_);
  const handoff::Burst* burst = ring_.completed();
  if (burst == nullptr) return 0;
  const gpu::TraceRange range("complete");
  const std::uint64_t seen = ticks_now();
  path_.sent.latency.record(static_cast<std::uint64_t>(ticks_to_nanos(seen - burst->stamp())));
  rule_.finished(seen);
  const std::uint16_t packets = burst->packet_count();
  const bool timed = sampler_.due();
  if (timed) sampler_.start();
  settle(*burst);
  if (transmits_) counters_.sending.record(static_cast<std::uint64_t>(ticks_to_nanos(ticks_now() - seen)));
  if (timed) sampler_.lap(path_.sent.transmit, packets);
  sampler_.count_burst();
  ring_.release();
  return packets;
}

bool DeliverStage::drain() {
  poll();
  // Read in this order: once receiving has ended, nothing more is published.
  return path_.receive_ended.load(std::memory_order_acquire) && ring_.in_flight() == 0;
}

void DeliverStage::reclaim() {
  while (const handoff::Burst* burst = ring_.reclaim()) {
    settle(*burst);
    ring_.release();
  }
}

void DeliverStage::settle(const handoff::Burst& burst) {
  path_.sent.checked.add(burst.for_work());
  if (const std::uint16_t unworked = burst.unworked(); unworked != 0) [[unlikely]]
    path_.sent.unworked.add(unworked);
  if (burst.exceptions() != 0) [[unlikely]]
    return set_exceptions_aside(burst);
  // What becomes of the pointers is read only.
  auto** const mbufs = reinterpret_cast<rte_mbuf**>(const_cast<void**>(burst.packets().data()));
  pass_on(mbufs, burst.packet_count(), burst.bytes());
}

void DeliverStage::set_exceptions_aside(const handoff::Burst& burst) {
  std::uint16_t kept = 0;
  std::uint64_t bytes = 0;
  burst.for_each([&](void* packet, Verdict verdict, std::uint32_t length) {
    auto* const mbuf = static_cast<rte_mbuf*>(packet);
    if (verdict == Verdict::forward) {
      mbufs_[kept++] = mbuf;
      bytes += length;
      if (kept == mbufs_.size()) pass_on(mbufs_.data(), std::exchange(kept, 0), std::exchange(bytes, 0));
    } else if (mbuf != nullptr) {
      datapath::set_aside(path_, mbuf, verdict);
    } else {
      path_.sent.drops.add(verdict);
    }
  });
  if (kept != 0) pass_on(mbufs_.data(), kept, bytes);
}

void DeliverStage::pass_on(rte_mbuf** mbufs, std::uint16_t count, std::uint64_t bytes) {
  counters_.packets.add(count);
  counters_.bytes.add(bytes);
  if (!transmits_) {
    if (mbufs[0] != nullptr) rte_pktmbuf_free_bulk(mbufs, count);
    return;
  }
  for (std::uint16_t first = 0; first < count; first = static_cast<std::uint16_t>(first + kSendBurst)) {
    const auto part = std::min<std::uint16_t>(kSendBurst, count - first);
    std::uint64_t part_bytes = 0;
    for (std::uint16_t i = first; i < first + part; ++i) part_bytes += rte_pktmbuf_pkt_len(mbufs[i]);
    datapath::transmit(path_, path_.tx, mbufs + first, part, part_bytes);
  }
  path_.recycle_later(count);
}

}  // namespace warpline::ingest
