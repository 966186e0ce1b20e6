// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

#include <rte_mbuf.h>

#include "warpline/base/frame.h"
#include "warpline/base/verdict.h"
#include "warpline/datapath/batch.h"
#include "warpline/datapath/intake_stage.h"
#include "warpline/datapath/queue_path.h"
#include "warpline/gpu/trace.h"
#include "warpline/handoff/burst_ring.h"
#include "warpline/handoff/engine.h"
#include "warpline/ingest/batch_rule.h"
#include "warpline/ingest/batch_slots.h"
#include "warpline/ingest/ingest_counters.h"
#include "warpline/memory/answer_mbuf.h"
#include "warpline/memory/mbuf_frame.h"

namespace warpline::ingest {

/// `GatherSettings` is what a GatherStage is set.
struct GatherSettings {
  std::uint32_t max_frame = 0;  ///< bytes; a longer frame is a giant
  bool keeps_mbufs = false;     ///< they are sent later; else they are freed as soon as they are copied
};

/// `GatherStage` is the beginning of an ingest path that copies: it receives, gathers the packets' bytes into the slot
/// of the open batch and has each batch copied, in one piece, to where the consumer reads it; a packet that became an
/// answer (QueuePath::responder) stays as it is, to be sent. No packet is received
/// while no slot is free, so the port drops and counts what then overflows. Its owner is the path's receiving lcore,
/// the ring's producer.
template <handoff::Engine E>
class GatherStage final : public datapath::IntakeStage<GatherStage<E>, E, SharedRule> {
  using Intake = datapath::IntakeStage<GatherStage<E>, E, SharedRule>;
  friend Intake;

 public:
  GatherStage(datapath::QueuePath& path, datapath::PacketBudget& budget, handoff::BurstRing& ring, E& engine,
              BatchSlots& slots, GatherCounters& counters, const GatherSettings& settings, const SharedRule& rule)
      : Intake(path, budget, ring, engine, rule, settings.keeps_mbufs ? path.most_held : 0),
        slots_(slots),
        counters_(counters),
        settings_(settings) {}

  /// Drops what is left in a batch that could not be submitted. It is called after the lcores have ended.
  void reclaim() {
    if (!failed_) return;
    failed_ = false;
    handoff::Burst* const burst = ring_.acquire();
    for (void* const packet : burst->packets()) rte_pktmbuf_free(static_cast<rte_mbuf*>(packet));
    path_.sent.drops.add(Verdict::engine_stopped, burst->packet_count());
  }

 private:
  using Intake::path_;
  using Intake::ring_;
  using Intake::sampler_;

  [[nodiscard]] bool failed() const { return failed_; }

  /// Copies what it receives to the open batch's slot, behind what is there.
  template <typename Source>
  void add(handoff::Burst& burst, std::uint16_t most, Source&& source) {
    const gpu::TraceRange range("rx");
    const std::uint16_t received = this->receive(mbufs_.data(), most, source);
    if (received == 0) return;
    if (burst.empty()) filled_ = 0;
    const std::uint64_t slot = ring_.next_slot();
    std::byte* const staging = slots_.staging(slot);
    std::byte* const place = slots_.place(slot);
    std::uint64_t bytes = 0;
    for (std::uint16_t i = 0; i < received; ++i) {
      rte_mbuf* const mbuf = mbufs_[i];
      if (i + 1 < received) rte_prefetch0(rte_pktmbuf_mtod(mbufs_[i + 1], void*));
      const std::uint32_t length = rte_pktmbuf_pkt_len(mbuf);
      void* const kept = settings_.keeps_mbufs ? mbuf : nullptr;
      auto* const data = reinterpret_cast<std::uint8_t*>(place + filled_);
      bytes += length;
      if (path_.responder && is_reply(mbuf)) [[unlikely]] {
        burst.append(std::exchange(mbufs_[i], nullptr), data, 0, Verdict::reply);
        continue;
      }
      if (length > settings_.max_frame) [[unlikely]] {
        burst.append(kept, data, 0, Verdict::giant);
        continue;
      }
      memory::copy_frame(mbuf, staging + filled_);
      burst.append(kept, data, length);
      filled_ += slot_room(length);
    }
    burst.add_bytes(bytes);
    path_.received.packets.add(received);
    path_.received.bytes.add(bytes);
    if (!settings_.keeps_mbufs) rte_pktmbuf_free_bulk(mbufs_.data(), received);
  }

  /// Whether the packet asked for an answer of the port's address, and now is that.
  [[gnu::noinline]] bool is_reply(rte_mbuf* mbuf) const {
    std::array<Segment, kMaxSegments> pieces;
    const std::uint16_t count = memory::segments_of(mbuf, pieces.data());
    return count != 0 && memory::answer(*path_.responder, {pieces.data(), count, rte_pktmbuf_pkt_len(mbuf)}, mbuf);
  }

  void submit(handoff::Burst& burst, bool timed) {
    if (timed) sampler_.lap(path_.received.receive, burst.packet_count());
    const gpu::TraceRange range("copy");
    const std::uint64_t now = this->stamp(burst);
    counters_.batching.record(this->waited_nanos(now));
    const std::uint64_t word = pack_ring_word(ring_.next_sequence(), burst.segment_count());
    if (!slots_.submit(ring_.next_slot(), filled_, word)) [[unlikely]] {
      failed_ = true;
      return;
    }
    if (timed) sampler_.lap(counters_.submit, burst.packet_count());
    counters_.copies.add(1);
    counters_.copied_bytes.add(filled_);
    this->publish();
  }

  BatchSlots& slots_;
  GatherCounters& counters_;
  GatherSettings settings_;
  std::size_t filled_ = 0;  ///< bytes of the open batch, alignment included
  bool failed_ = false;     ///< the GPU takes no copies any more
  std::array<rte_mbuf*, datapath::kMaxBurst> mbufs_;
};

}  // namespace warpline::ingest
