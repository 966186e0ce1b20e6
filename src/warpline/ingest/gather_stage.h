// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include <rte_mbuf.h>
#include <rte_memcpy.h>

#include "warpline/base/time/clock.h"
#include "warpline/datapath/batch.h"
#include "warpline/datapath/burst_allowance.h"
#include "warpline/datapath/queue_path.h"
#include "warpline/datapath/stage_loop.h"
#include "warpline/gpu/trace.h"
#include "warpline/handoff/burst_ring.h"
#include "warpline/handoff/engine.h"
#include "warpline/ingest/batch_rule.h"
#include "warpline/ingest/batch_slots.h"
#include "warpline/ingest/ingest_counters.h"

namespace warpline::ingest {

/// `GatherSettings` is what a GatherStage is set.
struct GatherSettings {
  std::uint32_t max_frame = 0;  ///< bytes; a longer frame is a giant
  bool keeps_mbufs = false;     ///< they are sent later; else they are freed as soon as they are copied
};

/// `GatherStage` is the beginning of an ingest path that copies: it receives, gathers the packets' bytes into the slot
/// of the open batch and has each batch copied, in one piece, to where the consumer reads it. No packet is received
/// while no slot is free, so the port drops and counts what then overflows. Its owner is the path's receiving lcore,
/// the ring's producer.
template <handoff::Engine E>
class GatherStage final : public datapath::Stage {
 public:
  GatherStage(datapath::QueuePath& path, datapath::PacketBudget& budget, handoff::BurstRing& ring, E& engine,
              BatchSlots& slots, GatherCounters& counters, const GatherSettings& settings, const SharedRule& rule)
      : path_(path),
        budget_(budget),
        ring_(ring),
        engine_(engine),
        slots_(slots),
        counters_(counters),
        settings_(settings),
        allowance_(ring, settings.keeps_mbufs ? path.most_held : 0),
        clock_(rule) {}

  std::uint16_t poll() override {
    if (failed_) [[unlikely]]
      return 0;
    const bool timed = sampler_.due();
    if (timed) sampler_.start();
    handoff::Burst* const burst = ring_.acquire();
    if (burst == nullptr) {
      path_.received.ring_full.add(1);
      return 0;
    }
    return clock_.adapts() ? hold(*burst, timed) : fill(*burst, timed);
  }

  bool drain() override {
    while (handoff::Burst* burst = failed_ ? nullptr : ring_.acquire()) {
      gather_held(*burst, std::min<std::uint16_t>(datapath::kMaxBurst, path_.burst - burst->packet_count()));
      if (burst->empty()) return end();
      submit(*burst, false);
    }
    return (failed_ || !path_.holds_any()) && end();
  }

  /// Drops what is left in a batch that could not be submitted. It is called after the lcores have ended.
  void reclaim() {
    if (!failed_) return;
    failed_ = false;
    handoff::Burst* const burst = ring_.acquire();
    for (void* const packet : burst->packets()) rte_pktmbuf_free(static_cast<rte_mbuf*>(packet));
    path_.sent.drops.add(Verdict::engine_stopped, burst->packet_count());
  }

 private:
  bool end() {
    path_.receive_ended.store(true, std::memory_order_release);
    return true;
  }

  std::uint16_t fill(handoff::Burst& burst, bool timed) {
    const std::uint16_t before = burst.packet_count();
    gather(burst, allowed_beside(before),
           [this](rte_mbuf** mbufs, std::uint16_t room) { return path_.receive(mbufs, room); });
    const std::uint16_t after = burst.packet_count();
    if (clock_.closes(before, after)) close(burst, timed);
    return after - before;
  }

  /// Gathers as many of the packets that wait as are a batch.
  std::uint16_t hold(handoff::Burst& burst, bool timed) {
    const std::uint16_t before = path_.held_count();
    path_.hold(allowed_beside(before));
    const std::uint16_t waiting = path_.held_count();
    if (const std::uint16_t count = clock_.due(before, std::min(waiting, path_.burst)); count != 0) {
      gather_held(burst, count);
      if (!burst.empty()) close(burst, timed);  // else the run's packets are used up
    }
    return waiting - before;
  }

  /// Returns how many packets may come beside those that are in the open batch, or wait for one.
  std::uint16_t allowed_beside(std::uint16_t open) {
    const auto free = static_cast<std::uint16_t>(
        std::min<std::uint16_t>(datapath::kMaxBurst, path_.burst - std::min(path_.burst, open)));
    const std::uint16_t allowed = allowance_.room(free, open);
    if (allowed == 0 && free != 0) [[unlikely]]
      path_.received.ring_full.add(1);
    return allowed;
  }

  void close(handoff::Burst& burst, bool timed) {
    if (timed) sampler_.lap(path_.received.receive, burst.packet_count());
    submit(burst, timed);
    sampler_.count_burst();
  }

  void gather_held(handoff::Burst& burst, std::uint16_t most) {
    gather(burst, most, [this](rte_mbuf** mbufs, std::uint16_t room) { return path_.take_held(mbufs, room); });
  }

  template <typename F>
  void gather(handoff::Burst& burst, std::uint16_t most, F&& receive) {
    const gpu::TraceRange range("rx");
    const std::uint16_t room = budget_.claim(most);
    const std::uint16_t received = receive(mbufs_.data(), room);
    budget_.give_back(room - received);
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
      if (length > settings_.max_frame) [[unlikely]] {
        burst.append(kept, data, 0, Verdict::giant);
        continue;
      }
      copy_frame(mbuf, length, staging + filled_);
      burst.append(kept, data, length);
      filled_ += slot_room(length);
    }
    burst.add_bytes(bytes);
    path_.received.packets.add(received);
    path_.received.bytes.add(bytes);
    if (!settings_.keeps_mbufs) rte_pktmbuf_free_bulk(mbufs_.data(), received);
  }

  static void copy_frame(const rte_mbuf* mbuf, std::uint32_t length, std::byte* to) {
    if (mbuf->data_len == length) [[likely]] {
      rte_memcpy(to, rte_pktmbuf_mtod(mbuf, const void*), length);
      return;
    }
    for (const rte_mbuf* piece = mbuf; piece != nullptr; piece = piece->next) {
      rte_memcpy(to, rte_pktmbuf_mtod(piece, const void*), piece->data_len);
      to += piece->data_len;
    }
  }

  void submit(handoff::Burst& burst, bool timed) {
    const gpu::TraceRange range("copy");
    const std::uint64_t now = ticks_now();
    burst.set_stamp(now);
    clock_.submitted(now, burst.packet_count());
    allowance_.published(burst.packet_count());
    counters_.batching.record(static_cast<std::uint64_t>(ticks_to_nanos(clock_.waited(now))));
    const std::uint64_t word = handoff::pack_ring_word(ring_.next_sequence(), burst.segment_count());
    if (!slots_.submit(ring_.next_slot(), filled_, word)) [[unlikely]] {
      failed_ = true;
      return;
    }
    if (timed) sampler_.lap(counters_.submit, burst.packet_count());
    counters_.copies.add(1);
    counters_.copied_bytes.add(filled_);
    path_.received.bursts.add(1);
    ring_.publish();
    engine_.on_published();
  }

  datapath::QueuePath& path_;
  datapath::PacketBudget& budget_;
  handoff::BurstRing& ring_;
  E& engine_;
  BatchSlots& slots_;
  GatherCounters& counters_;
  GatherSettings settings_;
  datapath::BurstAllowance allowance_;
  SharedRule clock_;
  datapath::StageSampler sampler_;
  std::size_t filled_ = 0;  ///< bytes of the open batch, alignment included
  bool failed_ = false;     ///< the GPU takes no copies any more
  std::array<rte_mbuf*, datapath::kMaxBurst> mbufs_;
};

}  // namespace warpline::ingest
