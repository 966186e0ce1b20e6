// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

#include <rte_mbuf.h>

#include "warpline/base/time/clock.h"
#include "warpline/datapath/batch.h"
#include "warpline/datapath/burst_allowance.h"
#include "warpline/datapath/queue_path.h"
#include "warpline/datapath/stage.h"
#include "warpline/datapath/stage_loop.h"
#include "warpline/handoff/burst_ring.h"
#include "warpline/handoff/engine.h"

namespace warpline::datapath {

/// `IntakeStage` is what the stages have in common that receive packets for an engine. Packets go into the open burst
/// of the ring as they come, until `Clock` says that it closes (BatchClock), or are held back until `Clock` says how
/// many of them are a burst (AdaptiveBursts). Its owner is the path's receiving lcore, the ring's producer.
///
/// `Derived`, whose friend this is, has
///   bool failed() const                        it receives nothing more: the open burst cannot be submitted
///   void add(burst, most, source)              receives up to `most` packets by receive() and puts them into the burst
///   void submit(burst, timed)                  hands the burst, which is not empty, to the engine
template <typename Derived, handoff::Engine E, typename Clock>
class IntakeStage : public Stage {
 public:
  std::uint16_t poll() final {
    const std::uint16_t received = take();
    if constexpr (requires(E& engine) { engine.on_idle(); }) {
      if (received == 0) engine_.on_idle();
    }
    return received;
  }

  bool drain() final {
    while (handoff::Burst* const burst = derived().failed() ? nullptr : ring_.acquire()) {
      add_held(*burst, free_beside(burst->packet_count()));
      if (burst->empty()) return end();
      derived().submit(*burst, false);
    }
    return (derived().failed() || !path_.holds_any()) && end();
  }

 protected:
  /// At most `most_held` packets are in bursts that were not released yet; 0: as many as the ring takes.
  IntakeStage(QueuePath& path, PacketBudget& budget, handoff::BurstRing& ring, E& engine, const Clock& clock,
              std::uint32_t most_held)
      : path_(path), ring_(ring), budget_(budget), engine_(engine), allowance_(ring, most_held), clock_(clock) {}

  /// Receives at most `most` packets, and no more than the run's budget has, to `mbufs` from `source`, which is called
  /// with `mbufs` and how many may come. Returns how many did.
  template <typename Source>
  std::uint16_t receive(rte_mbuf** mbufs, std::uint16_t most, Source&& source) {
    const std::uint16_t room = budget_.claim(most);
    const std::uint16_t received = source(mbufs, room);
    budget_.give_back(room - received);
    return received;
  }

  /// Stamps the burst that closes now. Returns the time.
  std::uint64_t stamp(handoff::Burst& burst) {
    const std::uint64_t now = ticks_now();
    burst.set_stamp(now);
    burst.set_waited(clock_.waited(now));
    clock_.submitted(now, burst.packet_count());
    allowance_.published(burst.packet_count());
    return now;
  }

  /// Returns how many nanoseconds the first packet of the burst that closed at `now` waited.
  [[nodiscard]] std::uint64_t waited_nanos(std::uint64_t now) const {
    return static_cast<std::uint64_t>(ticks_to_nanos(clock_.waited(now)));
  }

  /// Publishes the open burst.
  void publish() {
    path_.received.bursts.add(1);
    ring_.publish(path_.trace.load(std::memory_order_relaxed) != nullptr);
    engine_.on_published();
  }

  QueuePath& path_;
  handoff::BurstRing& ring_;
  StageSampler sampler_;

 private:
  Derived& derived() { return static_cast<Derived&>(*this); }

  /// Receives what there is, and hands a burst to the engine if one closes. Returns how many packets came.
  std::uint16_t take() {
    if (derived().failed()) [[unlikely]]
      return 0;
    const bool timed = sampler_.due();
    if (timed) sampler_.start();
    handoff::Burst* const burst = ring_.acquire();
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

  bool end() {
    path_.receive_ended.store(true, std::memory_order_release);
    return true;
  }

  std::uint16_t fill(handoff::Burst& burst, bool timed) {
    const std::uint16_t before = burst.packet_count();
    derived().add(burst, allowed_beside(before),
                  [this](rte_mbuf** mbufs, std::uint16_t room) { return path_.receive(mbufs, room); });
    const std::uint16_t after = burst.packet_count();
    if (clock_.closes(before, after)) close(burst, timed);
    return after - before;
  }

  /// Holds what came, and puts as many of the packets that wait into the burst as are one.
  std::uint16_t hold(handoff::Burst& burst, bool timed) {
    const std::uint16_t before = path_.held_count();
    path_.hold(allowed_beside(before));
    const std::uint16_t waiting = path_.held_count();
    if (const std::uint16_t count = clock_.due(before, std::min(waiting, path_.burst)); count != 0) {
      add_held(burst, count);
      if (!burst.empty()) close(burst, timed);  // else the run's packets are used up
    }
    return waiting - before;
  }

  /// Returns how many packets one poll may add to a burst that has `open`.
  [[nodiscard]] std::uint16_t free_beside(std::uint16_t open) const {
    return std::min<std::uint16_t>(kMaxBurst, path_.burst - std::min(path_.burst, open));
  }

  /// Returns how many packets may come beside those that are in the open burst, or wait for one.
  std::uint16_t allowed_beside(std::uint16_t open) {
    const std::uint16_t free = free_beside(open);
    const std::uint16_t allowed = allowance_.room(free, open);
    if (allowed == 0 && free != 0) [[unlikely]]
      path_.received.ring_full.add(1);
    return allowed;
  }

  void add_held(handoff::Burst& burst, std::uint16_t most) {
    derived().add(burst, most, [this](rte_mbuf** mbufs, std::uint16_t room) { return path_.take_held(mbufs, room); });
  }

  void close(handoff::Burst& burst, bool timed) {
    derived().submit(burst, timed);
    sampler_.count_burst();
  }

  PacketBudget& budget_;
  E& engine_;
  BurstAllowance allowance_;
  Clock clock_;
};

}  // namespace warpline::datapath
