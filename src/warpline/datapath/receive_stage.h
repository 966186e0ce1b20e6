// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <type_traits>

#include <rte_mbuf.h>

#include "warpline/datapath/adaptive_bursts.h"
#include "warpline/datapath/batch.h"
#include "warpline/datapath/burst_allowance.h"
#include "warpline/datapath/queue_path.h"
#include "warpline/datapath/stage_loop.h"
#include "warpline/gpu/trace.h"
#include "warpline/handoff/burst_ring.h"
#include "warpline/handoff/engine.h"
#include "warpline/memory/mbuf_frame.h"

namespace warpline::datapath {

/// The first half of a pipeline: receives into the open burst of the ring and publishes it when `Clock` says, full or
/// due (BatchClock), or keeps packets back until it says how many are a burst, by what the engine makes of it
/// (AdaptiveBursts). Owner: the path's receiving lcore, the ring's producer.
template <handoff::Engine E, typename Clock = BatchClock>
class ReceiveStage final : public Stage {
 public:
  ReceiveStage(QueuePath& path, PacketBudget& budget, handoff::BurstRing& ring, E& engine)
      : ReceiveStage(path, budget, ring, engine, BatchClock(path.burst, path.deadline_ticks)) {}
  ReceiveStage(QueuePath& path, PacketBudget& budget, handoff::BurstRing& ring, E& engine, const Clock& clock)
      : path_(path), budget_(budget), ring_(ring), engine_(engine), allowance_(ring, path.most_held), clock_(clock) {}

  std::uint16_t poll() override {
    const bool timed = sampler_.due();
    if (timed) sampler_.start();
    handoff::Burst* burst = ring_.acquire();
    if (burst == nullptr) {
      path_.received.ring_full.add(1);
      return 0;
    }
    if constexpr (!Clock::kHolds) {
      return fill(*burst, timed);
    } else if constexpr (!Clock::kFills) {
      return hold(*burst, timed);
    } else {
      return clock_.adapts() ? hold(*burst, timed) : fill(*burst, timed);
    }
  }

  bool drain() override {
    while (handoff::Burst* burst = ring_.acquire()) {
      receive_held(*burst, path_.burst - burst->packet_count());
      if (burst->empty()) return end();
      publish(*burst);
    }
    return !path_.holds_any() && end();
  }

 private:
  bool end() {
    path_.receive_ended.store(true, std::memory_order_release);
    return true;
  }

  std::uint16_t fill(handoff::Burst& burst, bool timed) {
    const std::uint16_t before = burst.packet_count();
    const std::uint16_t allowed = allowed_beside(before);
    receive_into(burst, allowed, [this](rte_mbuf** mbufs, std::uint16_t room) { return path_.receive(mbufs, room); });
    const std::uint16_t after = burst.packet_count();
    if (clock_.closes(before, after)) publish(burst, timed);
    return after - before;
  }

  std::uint16_t hold(handoff::Burst& burst, bool timed) {
    const std::uint16_t before = path_.held_count();
    path_.hold(allowed_beside(before));
    const std::uint16_t waiting = path_.held_count();
    if (const std::uint16_t count = clock_.due(before, std::min(waiting, path_.burst)); count != 0) {
      receive_held(burst, count);
      if (!burst.empty()) publish(burst, timed);  // else the run's packets are used up
    }
    return waiting - before;
  }

  /// Returns how many packets may come beside those that are in the open burst, or wait for one.
  std::uint16_t allowed_beside(std::uint16_t open) {
    const auto free = static_cast<std::uint16_t>(path_.burst - std::min(path_.burst, open));
    const std::uint16_t allowed = allowance_.room(free, open);
    if (allowed == 0 && free != 0) [[unlikely]]
      path_.received.ring_full.add(1);
    return allowed;
  }

  void receive_held(handoff::Burst& burst, std::uint16_t most) {
    receive_into(burst, most, [this](rte_mbuf** mbufs, std::uint16_t room) { return path_.take_held(mbufs, room); });
  }

  void publish(handoff::Burst& burst, bool timed) {
    const std::uint16_t packets = burst.packet_count();
    publish(burst);
    if (timed) sampler_.lap(path_.received.receive, packets);
    sampler_.count_burst();
  }

  void publish(handoff::Burst& burst) {
    const std::uint64_t now = ticks_now();
    burst.set_stamp(now);
    clock_.submitted(now, burst.packet_count());
    allowance_.published(burst.packet_count());
    if (path_.batching != nullptr) {
      path_.batching->record(static_cast<std::uint64_t>(ticks_to_nanos(clock_.waited(now))));
    }
    path_.received.bursts.add(1);
    const gpu::TraceRange range("publish");
    ring_.publish();
    engine_.on_published();
  }

  /// Receives `most` packets at most right into the burst: `receive` puts up to so many at its tail and returns how
  /// many.
  template <typename F>
  void receive_into(handoff::Burst& burst, std::uint16_t most, F&& receive) {
    const gpu::TraceRange range("rx");
    const std::uint16_t room = budget_.claim(most);
    auto** const mbufs = reinterpret_cast<rte_mbuf**>(burst.tail());
    const std::uint16_t received = receive(mbufs, room);
    budget_.give_back(room - received);
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
    const bool answered = path_.responder && path_.responder->answer(frame);
    Segment* segments = burst.append(mbuf, count, answered ? Verdict::reply : Verdict::forward);
    for (std::uint16_t i = 0; i < count; ++i) {
      segments[i].data = pieces[i].data;
      segments[i].length = pieces[i].length;
    }
  }

  QueuePath& path_;
  PacketBudget& budget_;
  handoff::BurstRing& ring_;
  E& engine_;
  BurstAllowance allowance_;
  Clock clock_;
  StageSampler sampler_;
};

}  // namespace warpline::datapath
