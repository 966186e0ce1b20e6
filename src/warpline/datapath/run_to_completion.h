// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <type_traits>

#include <rte_mbuf.h>

#include "warpline/base/kinds.h"
#include "warpline/datapath/batch.h"
#include "warpline/datapath/capture/packet_trace.h"
#include "warpline/datapath/queue_path.h"
#include "warpline/datapath/stage_loop.h"
#include "warpline/datapath/transmit.h"
#include "warpline/gpu/trace.h"
#include "warpline/memory/answer_mbuf.h"
#include "warpline/memory/mbuf_frame.h"
#include "warpline/workload/workload.h"

namespace warpline::datapath {

/// The whole way of a packet on one lcore: receive, work, transmit. One object a path, owned by that lcore.
template <typename Work>
class RunToCompletion final : public Stage {
 public:
  RunToCompletion(QueuePath& path, PacketBudget& budget, Work work)
      : path_(path), budget_(budget), work_(work), clock_(path.burst, path.deadline_ticks) {}

  /// Flat, because a call is dear where a burst costs sixty cycles.
  [[gnu::flatten]] std::uint16_t poll() override {
    send_announcements(path_);
    if (sampler_.due() || traced_ || path_.trace.load(std::memory_order_relaxed) != nullptr) [[unlikely]]
      return timed_step();
    return step<false>();
  }

  bool drain() override {
    do {
      const std::uint16_t room = budget_.claim(path_.burst - count_);
      const std::uint16_t taken = path_.take_held(&mbufs_[count_], room);
      budget_.give_back(room - taken);
      count_ = static_cast<std::uint16_t>(count_ + taken);
      if (count_ == 0) break;
      pass_on<false>();
    } while (path_.holds_any());
    return true;
  }

  [[nodiscard]] const Work& work() const { return work_; }

 private:
  struct NoRange {
    explicit NoRange(const char* /*name*/) {}
  };
  template <bool kTimed>
  using Range = std::conditional_t<kTimed, gpu::TraceRange, NoRange>;

  [[gnu::noinline]] std::uint16_t timed_step() { return step<true>(); }

  /// Receives once; a batch that this closes is worked on and sent. Returns how many packets were received.
  template <bool kTimed>
  std::uint16_t step() {
    if constexpr (kTimed) sampler_.start();
    const std::uint16_t before = count_;
    const std::uint16_t room = budget_.claim(path_.burst - before);
    [[maybe_unused]] const Range<kTimed> range("rx");
    const std::uint16_t received = path_.receive(&mbufs_[before], room);
    budget_.give_back(room - received);
    count_ = before + received;
    if (clock_.closes(before, count_)) pass_on<kTimed>();
    return received;
  }

  /// Works on the batch and sends what is to go on.
  template <bool kTimed>
  void pass_on() {
    const std::uint16_t closed = count_;
    count_ = 0;
    if constexpr (kTimed) sampler_.lap(path_.received.receive, closed);
    const std::uint64_t closed_at = sampler_.lap_start();
    if constexpr (kTimed) trace_.begin(path_, mbufs_.data(), closed);
    const Kept kept = [&] {
      [[maybe_unused]] const Range<kTimed> range("engine");
      return work_on(closed);
    }();
    if constexpr (kTimed) sampler_.lap(path_.sent.work, closed);
    [[maybe_unused]] const std::uint64_t done_at = sampler_.lap_start();
    [[maybe_unused]] const Range<kTimed> range("tx");
    if (kept.packets != 0) {
      transmit(path_, path_.tx, mbufs_.data(), kept.packets, kept.bytes);
      path_.recycle_later(kept.packets);
    }
    if constexpr (kTimed) {
      sampler_.lap(path_.sent.transmit, kept.packets);
      path_.sent.latency.record(static_cast<std::uint64_t>(ticks_to_nanos(sampler_.lap_start() - closed_at)));
      trace_.end(path_, {.received = closed_at - clock_.waited(closed_at),
                         .closed = closed_at,
                         .begun = closed_at,
                         .done = done_at,
                         .collected = done_at,
                         .left = sampler_.lap_start(),
                         .batch = closed});
    }
    sampler_.count_burst();
  }

  struct Kept {
    std::uint16_t packets = 0;
    std::uint64_t bytes = 0;
  };

  /// Does the work on the batch's `count` packets and moves those that go on to its front.
  Kept work_on(std::uint16_t count) {
    path_.received.packets.add(count);
    path_.received.bursts.add(1);
    const bool answers = path_.responder.has_value();
    if constexpr (workload::kTraitsOf<Work>.access == workload::FrameAccess::nothing) {
      if (!answers && !path_.counts_bytes) return {count, 0};
    }
    rte_mbuf** const mbufs = mbufs_.data();
    Kept kept;
    std::uint64_t bytes_aside = 0;
    for (std::uint16_t i = 0; i < count; ++i) {
      rte_mbuf* mbuf = mbufs[i];
      const std::uint32_t length = rte_pktmbuf_pkt_len(mbuf);
      const Verdict verdict = answers ? judge_slowly(mbuf) : judge(mbuf);
      if (verdict == Verdict::forward) [[likely]] {
        mbufs[kept.packets++] = mbuf;
        kept.bytes += length;
      } else {
        bytes_aside += length;
        set_aside(path_, mbuf, verdict);
      }
    }
    path_.received.bytes.add(kept.bytes + bytes_aside);
    return kept;
  }

  Verdict judge(rte_mbuf* mbuf) {
    Segment head{rte_pktmbuf_mtod(mbuf, std::uint8_t*), mbuf->data_len, 0, Verdict::forward};
    if (mbuf->nb_segs == 1) [[likely]]
      return work_(FrameRef{&head, 1, head.length});
    if (mbuf->nb_segs != 2) [[unlikely]]
      return judge_slowly(mbuf);
    const rte_mbuf* const rest = mbuf->next;  // of a split
    head.more = 1;
    Segment both[2] = {head, {rte_pktmbuf_mtod(rest, std::uint8_t*), rest->data_len, 0, Verdict::forward}};
    return work_(FrameRef{both, 2, rte_pktmbuf_pkt_len(mbuf)});
  }

  [[gnu::noinline]] Verdict judge_slowly(rte_mbuf* mbuf) {
    std::array<Segment, kMaxSegments> segments;
    const std::uint16_t pieces = memory::segments_of(mbuf, segments.data());
    if (pieces == 0) return Verdict::too_many_segments;
    const FrameRef frame{segments.data(), pieces, rte_pktmbuf_pkt_len(mbuf)};
    if (path_.responder && memory::answer(*path_.responder, frame, mbuf)) return Verdict::reply;
    return work_(frame);
  }

  QueuePath& path_;
  PacketBudget& budget_;
  Work work_;
  BatchClock clock_;
  StageSampler sampler_;
  PacketTrace trace_;
  bool traced_ = gpu::trace_enabled.load(std::memory_order_relaxed);
  std::uint16_t count_ = 0;
  std::array<rte_mbuf*, kMaxBurst> mbufs_;
};

}  // namespace warpline::datapath
