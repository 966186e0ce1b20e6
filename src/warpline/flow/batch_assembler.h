// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>

#include "warpline/base/frame.h"
#include "warpline/base/host_device.h"
#include "warpline/flow/frame_core.h"
#include "warpline/flow/packet_reading.h"

namespace warpline::flow {

/// `PacketBatch` is packets in the order of their arrival, as the burst ring has them: a descriptor per segment, in
/// memory that the assembling threads read. Packets with another verdict than `forward` are left alone.
struct PacketBatch {
  Segment* segments;
  std::uint32_t count;  ///< descriptors
  std::uint64_t time;   ///< when they arrived
};

/// `WhenFull` says what the assembler does when no frame is free for a packet.
enum class WhenFull : std::uint8_t {
  stop,   ///< It ends before that packet, which counts as `no_frame`: the caller gives the rest again.
  drop,   ///< The packet is dropped as `no_frame`.
  retry,  ///< As stop, but nothing is counted: the caller frees frames and gives the rest at once.
};

/// `BatchAssembler` assembles a batch by a team of threads: all of them call it with the same arguments. The result, to
/// the last byte and count, is that of FrameAssembler::place() for one packet after the other.
///
/// A round looks at all packets at the same time, up to the first that changes more than its own place (opens a frame,
/// moves a window, begins a stream, lies far away). Those before it claim their places, and of several that claim one
/// the first to arrive gets it; then one thread decides the event by FrameCore, as for a single packet, and the next
/// round goes on behind it. A stream in order has an event per frame. Payloads are copied when all is decided, and the
/// frames handed over are published last.
///
/// `Team` has, with a barrier of all threads at the end of each:
///   for_each(n, f)   f(i) for i in [0, n), each by one thread
///   once(f)          f() by one thread
///   copy_each(n, f)  f(i) is a CopyJob; each is copied
/// and without a barrier the atomics min(), max(), add() on 32-bit words, which return nothing, add() the old value,
/// and store(), which several threads may do at the same time.
template <typename Team>
class BatchAssembler {
 public:
  /// `CopyJob` is a payload that is to be copied.
  struct CopyJob {
    std::uint8_t* to;  ///< nullptr: there is none
    FrameRef from;
    std::uint32_t offset;  ///< of the packet's bytes
    std::uint32_t length;
  };

  WARPLINE_HD BatchAssembler(Team& team, const AssemblerView& view) : team_(team), view_(view), core_(view) {}

  /// Assembles at most `view.batch` descriptors. Returns, to each thread, how many were decided: all, or with
  /// WhenFull::stop or retry those before the first packet for which no frame is free.
  WARPLINE_HD std::uint32_t place(const PacketBatch& batch, WhenFull when_full) {
    BatchControl& control = *view_.control;
    team_.once([&] {
      core_.refresh();
      control = {};
    });
    team_.for_each(batch.count, [&](std::uint32_t i) { read(batch, i); });
    for (;;) {
      const std::uint32_t begin = control.begin;
      if (begin >= batch.count) break;
      team_.once([&] {
        control.event = batch.count;
        control.completed = 0;
      });
      round(batch, begin);
      team_.once([&] { decide_event(batch, when_full); });
      if (control.opened != 0) {
        clear_mask(view_.entries[control.event].buffer);
        team_.once([&] { core_.commit(step_of(view_.entries[control.event])); });
      }
    }
    const std::uint32_t decided = control.decided;
    team_.copy_each(decided, [&](std::uint32_t i) { return copy_of(batch, i); });
    team_.for_each(decided, [&](std::uint32_t i) {
      const BatchEntry& entry = view_.entries[i];
      if (entry.kind != Kind::none)
        team_.add_to_word(&control.placements[static_cast<std::size_t>(entry.placement)], 1);
    });
    team_.once([&] {
      for (std::size_t i = 0; i < kPlacements; ++i) {
        if (control.placements[i] != 0) core_.count(static_cast<Placement>(i), control.placements[i]);
      }
      core_.publish();
    });
    return decided;
  }

 private:
  using Kind = BatchEntry::Kind;

  /// A batch has so many rounds at most. One thread decides what is left after them, so garbage costs no more than
  /// that.
  static constexpr std::uint32_t kMaxEvents = 32;

  /// The places are numbered across cells and streams.
  [[nodiscard]] WARPLINE_HD std::uint32_t* claim_of(const BatchEntry& entry) const {
    const std::uint64_t cell = std::uint64_t{entry.stream} * view_.plan.window + entry.cell;
    return view_.claims + cell * view_.plan.packets + entry.slot;
  }
  [[nodiscard]] WARPLINE_HD WindowCell& cell_of(const BatchEntry& entry) const {
    return core_.cells_of(entry.stream)[entry.cell];
  }
  [[nodiscard]] WARPLINE_HD static PlaceStep step_of(const BatchEntry& entry) {
    return {Placement::placed, true, entry.stream, entry.cell, entry.buffer, entry.slot};
  }

  WARPLINE_HD void read(const PacketBatch& batch, std::uint32_t i) {
    BatchEntry& entry = view_.entries[i];
    entry = {};
    const bool begins = i == 0 || batch.segments[i - 1].more == 0;
    if (!begins || batch.segments[i].verdict != Verdict::forward) return;
    entry.reading = read_packet(view_.plan, frame_at(batch.segments + i));
    entry.kind = Kind::settled;
    entry.placement = entry.reading.placement;
  }

  /// Decides all packets from `begin` to the first event, which it leaves in the control block.
  WARPLINE_HD void round(const PacketBatch& batch, std::uint32_t begin) {
    BatchControl& control = *view_.control;
    const std::uint32_t all = batch.count;
    team_.for_each(all - begin, [&](std::uint32_t k) {
      if (classify(view_.entries[begin + k])) team_.min_of(&control.event, begin + k);
    });
    const std::uint32_t count = control.event - begin;
    // The earlier the packet, the greater its claim.
    team_.for_each(count, [&](std::uint32_t k) {
      const BatchEntry& entry = view_.entries[begin + k];
      if (entry.kind != Kind::claim) return;
      team_.store(&cell_of(entry).last, 0);
      if (core_.mask_of(entry.buffer)[entry.slot] == 0) team_.max_of(claim_of(entry), all - k);
    });
    team_.for_each(count, [&](std::uint32_t k) {
      BatchEntry& entry = view_.entries[begin + k];
      if (entry.kind == Kind::claim || entry.placement == Placement::late || entry.placement == Placement::duplicate) {
        team_.store(&view_.streams[entry.stream].run_length, 0);
      }
      if (entry.kind != Kind::claim) return;
      const bool first = *claim_of(entry) == all - k;
      entry.placement = first ? Placement::placed : Placement::duplicate;
      if (!first) return;
      core_.mask_of(entry.buffer)[entry.slot] = 1;
      team_.add_to_word(&cell_of(entry).present, 1);
      team_.max_of(&cell_of(entry).last, k + 1);
    });
    team_.for_each(count, [&](std::uint32_t k) {
      const BatchEntry& entry = view_.entries[begin + k];
      if (entry.kind != Kind::claim || entry.placement != Placement::placed) return;
      *claim_of(entry) = 0;
      const WindowCell& cell = cell_of(entry);
      if (cell.present == view_.plan.packets && cell.last == k + 1) {
        view_.completed[team_.add_to_word(&control.completed, 1)] = begin + k;
      }
    });
  }

  /// Finds what a packet is as the windows are now. Returns whether it is an event.
  [[nodiscard]] WARPLINE_HD bool classify(BatchEntry& entry) const {
    if (entry.kind == Kind::none || entry.reading.placement != Placement::placed) return false;
    entry.kind = Kind::settled;
    const std::uint32_t number = core_.find_stream(entry.reading.key);
    if (number == FrameCore::kNoStream) {
      entry.placement = Placement::no_stream;
      return !core_.streams_full();
    }
    entry.stream = number;
    const StreamState& stream = view_.streams[number];
    const WindowPlace place = locate(view_.plan, stream, entry.reading.number, entry.reading.part);
    if (place.region == Region::late) {
      entry.placement = Placement::late;
      return false;
    }
    if (place.region != Region::window) return true;
    entry.cell = cell_behind(view_.plan, stream, place.frames);
    entry.slot = place.slot;
    const WindowCell& cell = cell_of(entry);
    if (cell.state == CellState::done) entry.placement = Placement::duplicate;
    if (cell.state == CellState::passed) entry.placement = Placement::late;
    if (cell.state == CellState::open) {
      entry.kind = Kind::claim;
      entry.buffer = cell.buffer;
    }
    return cell.state == CellState::before || cell.state == CellState::awaited;
  }

  /// Hands over what the round completed, in the order of the packets that did it, and decides the event. One thread.
  WARPLINE_HD void decide_event(const PacketBatch& batch, WhenFull when_full) {
    BatchControl& control = *view_.control;
    control.opened = 0;
    for (std::uint32_t i = 1; i < control.completed; ++i) {
      const std::uint32_t moved = view_.completed[i];
      std::uint32_t to = i;
      for (; to > 0 && view_.completed[to - 1] > moved; --to) view_.completed[to] = view_.completed[to - 1];
      view_.completed[to] = moved;
    }
    for (std::uint32_t i = 0; i < control.completed; ++i) {
      const BatchEntry& entry = view_.entries[view_.completed[i]];
      core_.complete(entry.stream, entry.cell);
    }
    control.begin = control.decided = control.event;
    if (control.event == batch.count) return;
    const bool alone = ++control.events > kMaxEvents;
    for (;;) {
      const PlaceStep step = decide_one(batch, control.begin);
      if (step.placement == Placement::no_frame && when_full != WhenFull::drop) {
        if (when_full == WhenFull::stop) ++control.placements[static_cast<std::size_t>(step.placement)];
        control.begin = batch.count;
        return;
      }
      control.decided = ++control.begin;
      if (!alone) {
        if (step.placement == Placement::placed) {
          control.opened = step.opened ? 1 : 0;
          if (!step.opened) core_.commit(step);
        }
        return;
      }
      if (step.placement == Placement::placed) {
        if (step.opened) std::memset(core_.mask_of(step.buffer), 0, view_.plan.packets);
        core_.commit(step);
      }
      if (control.begin == batch.count) return;
    }
  }

  WARPLINE_HD PlaceStep decide_one(const PacketBatch& batch, std::uint32_t i) {
    BatchEntry& entry = view_.entries[i];
    if (entry.kind == Kind::none) return {Placement::unrelated};
    const PlaceStep step = core_.decide(entry.reading, batch.time);
    entry.kind = Kind::settled;
    entry.placement = step.placement;
    entry.stream = step.stream;
    entry.cell = step.cell;
    entry.buffer = step.buffer;
    entry.slot = step.slot;
    return step;
  }

  WARPLINE_HD void clear_mask(std::uint32_t buffer) {
    // The stride is a multiple of 256 bytes, and masks are aligned.
    auto* const words = reinterpret_cast<std::uint64_t*>(core_.mask_of(buffer));
    team_.for_each(static_cast<std::uint32_t>(view_.mask_stride / sizeof(std::uint64_t)),
                   [&](std::uint32_t i) { words[i] = 0; });
  }

  [[nodiscard]] WARPLINE_HD CopyJob copy_of(const PacketBatch& batch, std::uint32_t i) const {
    const BatchEntry& entry = view_.entries[i];
    if (entry.kind == Kind::none || entry.placement != Placement::placed) return {};
    return {core_.payload_at(entry.buffer, entry.slot), frame_at(batch.segments + i), entry.reading.payload_offset,
            view_.plan.part_bytes(entry.reading.part)};
  }

  Team& team_;
  AssemblerView view_;
  FrameCore core_;
};

}  // namespace warpline::flow
