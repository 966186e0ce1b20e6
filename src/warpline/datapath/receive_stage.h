// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include <rte_mbuf.h>

#include "warpline/datapath/batch.h"
#include "warpline/datapath/intake_stage.h"
#include "warpline/datapath/queue_path.h"
#include "warpline/gpu/trace.h"
#include "warpline/handoff/burst_ring.h"
#include "warpline/handoff/engine.h"
#include "warpline/memory/answer_mbuf.h"
#include "warpline/memory/mbuf_frame.h"

namespace warpline::datapath {

/// The first half of a pipeline: receives into the open burst of the ring and publishes it when `Clock` says. Owner:
/// the path's receiving lcore, the ring's producer.
template <handoff::Engine E, typename Clock = BatchClock>
class ReceiveStage final : public IntakeStage<ReceiveStage<E, Clock>, E, Clock> {
  using Intake = IntakeStage<ReceiveStage<E, Clock>, E, Clock>;
  friend Intake;

 public:
  ReceiveStage(QueuePath& path, PacketBudget& budget, handoff::BurstRing& ring, E& engine)
      : ReceiveStage(path, budget, ring, engine, BatchClock(path.burst, path.deadline_ticks)) {}
  ReceiveStage(QueuePath& path, PacketBudget& budget, handoff::BurstRing& ring, E& engine, const Clock& clock)
      : Intake(path, budget, ring, engine, clock, path.most_held) {}

 private:
  using Intake::path_;
  using Intake::sampler_;

  [[nodiscard]] static constexpr bool failed() { return false; }

  void submit(handoff::Burst& burst, bool timed) {
    const std::uint16_t packets = burst.packet_count();
    const std::uint64_t now = this->stamp(burst);
    if (path_.batching != nullptr) path_.batching->record(this->waited_nanos(now));
    {
      const gpu::TraceRange range("publish");
      this->publish();
    }
    if (timed) sampler_.lap(path_.received.receive, packets);
  }

  /// Receives right into the burst, at its tail.
  template <typename Source>
  void add(handoff::Burst& burst, std::uint16_t most, Source&& source) {
    const gpu::TraceRange range("rx");
    auto** const mbufs = reinterpret_cast<rte_mbuf**>(burst.tail());
    const std::uint16_t received = this->receive(mbufs, most, source);
    if (received == 0) return;
    std::uint64_t bytes = 0;
    std::uint16_t appended = 0;
    if (!path_.responder) [[likely]]
      appended = append_runs(burst, received, bytes);
    for (; appended < received; ++appended) {
      bytes += rte_pktmbuf_pkt_len(mbufs[appended]);
      append_slowly(burst, mbufs[appended]);
    }
    burst.add_bytes(bytes);
    path_.received.packets.add(received);
    path_.received.bytes.add(bytes);
  }

  /// The first of `count` packets at the burst's tail, while they are in one or two pieces. Returns how many.
  static std::uint16_t append_runs(handoff::Burst& burst, std::uint16_t count, std::uint64_t& bytes) {
    const auto fill = [&bytes](const rte_mbuf* mbuf, Segment& segment) {
      segment.data = rte_pktmbuf_mtod(mbuf, std::uint8_t*);
      segment.length = mbuf->data_len;
      bytes += segment.length;
    };
    const auto single = [&fill](void* packet, Segment& segment) {
      const auto* const mbuf = static_cast<const rte_mbuf*>(packet);
      if (mbuf->nb_segs != 1) [[unlikely]]
        return false;
      fill(mbuf, segment);
      return true;
    };
    const auto pair = [&fill](void* packet, Segment& first, Segment& second) {
      const auto* const mbuf = static_cast<const rte_mbuf*>(packet);
      if (mbuf->nb_segs != 2 || mbuf->next == nullptr) return false;
      fill(mbuf, first);
      fill(mbuf->next, second);
      return true;
    };
    std::uint16_t appended = 0;
    while (appended < count) {
      const std::uint16_t before = appended;
      appended = static_cast<std::uint16_t>(appended + burst.append_run(count - appended, single));
      if (appended < count)
        appended = static_cast<std::uint16_t>(appended + burst.append_pairs(count - appended, pair));
      if (appended == before) break;
    }
    return appended;
  }

  [[gnu::noinline]] void append_slowly(handoff::Burst& burst, rte_mbuf* mbuf) {
    std::array<Segment, kMaxSegments> pieces;
    const std::uint16_t count = memory::segments_of(mbuf, pieces.data());
    if (count == 0) return burst.append(mbuf, rte_pktmbuf_mtod(mbuf, std::uint8_t*), 0, Verdict::too_many_segments);
    const FrameRef frame{pieces.data(), count, rte_pktmbuf_pkt_len(mbuf)};
    const bool answered = path_.responder && memory::answer(*path_.responder, frame, mbuf);
    Segment* segments = burst.append(mbuf, count, answered ? Verdict::reply : Verdict::forward);
    for (std::uint16_t i = 0; i < count; ++i) {
      segments[i].data = pieces[i].data;
      segments[i].length = pieces[i].length;
    }
  }
};

}  // namespace warpline::datapath
