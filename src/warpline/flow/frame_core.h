// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>

#include "warpline/base/device/shared_words.h"
#include "warpline/base/host_device.h"
#include "warpline/flow/frame.h"
#include "warpline/flow/frame_plan.h"
#include "warpline/flow/frame_window.h"
#include "warpline/flow/packet_reading.h"
#include "warpline/flow/placement.h"

namespace warpline::flow {

/// `AssemblerCounts` is what an assembler has counted since it was made.
struct AssemblerCounts {
  std::uint64_t placements[kPlacements];  ///< packets, by Placement; `no_frame` counts each time that one was refused
  std::uint64_t complete;                 ///< frames handed over with all packets
  std::uint64_t incomplete;               ///< frames handed over with packets missing
  std::uint64_t missing;                  ///< packets missing of those
  std::uint64_t skipped;                  ///< frames that are not handed over because none of their packets came
  std::uint64_t restarts;                 ///< of sources
  std::uint64_t streams;                  ///< streams that appeared
  std::uint64_t timed_out;                ///< frames of `incomplete` whose stream placed no packet for the time limit
};

/// `FrameQueueView` is what assembler and consumer share, in memory that both reach: two rings, each with room for all
/// frames.
struct FrameQueueView {
  Frame* handed;             ///< frames handed over
  std::uint32_t* freed;      ///< frames in memory that are free again
  std::uint64_t* handed_to;  ///< frames handed over since the beginning; the assembler writes
  std::uint64_t* freed_to;   ///< frames freed since the beginning; the consumer writes
  std::uint32_t mask;        ///< places of each ring, a power of two, less one
};

/// `AssemblerWords` is what an assembler alone reads and writes.
struct AssemblerWords {
  std::uint64_t handed;      ///< frames handed over, also those that are not published
  std::uint64_t taken;       ///< frames taken off the ring of free ones
  std::uint64_t freed_seen;  ///< frames freed, when last looked at
  std::uint64_t expiring;    ///< the stream that expire() looks at next
  AssemblerCounts counts;
};

/// `BatchEntry` is what a batch knows of one descriptor.
struct BatchEntry {
  enum class Kind : std::uint8_t {
    none,     ///< no packet of frames begins here
    settled,  ///< `placement` is final, whatever the others are
    claim,    ///< a place in an open frame: the first that claims it gets it
    event,    ///< changes more than its place, so that one thread decides
  };
  PacketReading reading;
  Kind kind;
  Placement placement;
  std::uint32_t stream;
  std::uint32_t cell;
  std::uint32_t buffer;
  std::uint32_t slot;
};

/// `BatchControl` is what the threads of a batch share.
struct BatchControl {
  std::uint32_t begin;      ///< the first descriptor that is not decided
  std::uint32_t event;      ///< the first event from there on
  std::uint32_t events;     ///< events so far
  std::uint32_t completed;  ///< frames completed in this round
  std::uint32_t decided;    ///< descriptors whose placement is known
  std::uint32_t opened;     ///< whether the event opened a frame, whose mask is to be cleared
  std::uint32_t placements[kPlacements];
};

/// `AssemblerView` is an assembler's state as addresses, for host and device. Trivially copyable; owns nothing.
struct AssemblerView {
  FramePlan plan;
  FrameQueueView queue;
  AssemblerWords* words;
  StreamState* streams;       ///< [plan.streams]
  WindowCell* cells;          ///< [plan.streams][plan.window]
  std::uint32_t* table;       ///< hash table of streams: number of the stream and 1; 0 where none is
  std::uint32_t table_mask;   ///< its size, a power of two, less one
  std::uint8_t* data;         ///< frames in memory
  std::uint8_t* masks;        ///< their masks
  std::uint64_t data_stride;  ///< bytes from frame to frame
  std::uint64_t mask_stride;  ///< bytes from mask to mask
  // What follows is for an assembler that takes batches.
  std::uint32_t batch;       ///< descriptors of a batch at most
  BatchControl* control;     ///< of the batch that is placed
  BatchEntry* entries;       ///< [batch]
  std::uint32_t* completed;  ///< [batch] descriptors that completed a frame
  std::uint32_t* claims;     ///< [plan.streams][plan.window][plan.packets], all 0 between batches
};

/// `PlaceStep` is what is done with one packet. `placed` says where its payload goes.
struct PlaceStep {
  Placement placement;
  bool opened = false;  ///< the frame has got memory: its mask is to be cleared before commit()
  std::uint32_t stream = 0;
  std::uint32_t cell = 0;    ///< of the stream's window
  std::uint32_t buffer = 0;  ///< frame in memory
  std::uint32_t slot = 0;    ///< packet of the frame
};

/// `FrameCore` places packets one after the other, by one thread at a time: every assembler does what it does.
/// decide() moves windows and hands frames over, commit() enters the packet, publish() lets the consumer see it all.
class FrameCore {
 public:
  WARPLINE_HD explicit FrameCore(const AssemblerView& view) : view_(view) {}

  static constexpr std::uint32_t kNoStream = ~0U;
  static constexpr std::uint32_t kExpiryCells = 1024;

  /// Returns the stream of a key, or kNoStream.
  [[nodiscard]] WARPLINE_HD std::uint32_t find_stream(std::uint64_t key) const {
    if (view_.plan.stream == StreamKind::one) return view_.words->counts.streams == 0 ? kNoStream : 0;
    for (std::uint64_t i = mix64(key);; ++i) {
      const std::uint32_t entry = view_.table[i & view_.table_mask];
      if (entry == 0) return kNoStream;
      if (view_.streams[entry - 1].key == key) return entry - 1;
    }
  }

  /// Returns whether no further stream has a place.
  [[nodiscard]] WARPLINE_HD bool streams_full() const { return view_.words->counts.streams == view_.plan.streams; }

  [[nodiscard]] WARPLINE_HD WindowCell* cells_of(std::uint32_t stream) const {
    return view_.cells + std::uint64_t{stream} * view_.plan.window;
  }
  [[nodiscard]] WARPLINE_HD std::uint8_t* mask_of(std::uint32_t buffer) const {
    return view_.masks + buffer * view_.mask_stride;
  }
  /// Returns where the payload of a packet belongs.
  [[nodiscard]] WARPLINE_HD std::uint8_t* payload_at(std::uint32_t buffer, std::uint32_t slot) const {
    return view_.data + buffer * view_.data_stride + view_.plan.slot_offset(slot);
  }

  /// Looks for frames that the consumer has released.
  WARPLINE_HD void refresh() { view_.words->freed_seen = load_acquire(view_.queue.freed_to); }

  /// Returns whether a frame in memory is free, as far as refresh() has seen.
  [[nodiscard]] WARPLINE_HD bool has_free() const { return view_.words->taken != view_.words->freed_seen; }

  /// Decides what becomes of the packet. Changes nothing if the placement is `no_frame`.
  [[nodiscard]] WARPLINE_HD PlaceStep decide(const PacketReading& reading, std::uint64_t time) {
    if (reading.placement != Placement::placed) return {reading.placement};
    const std::uint32_t number = find_stream(reading.key);
    if (number == kNoStream) [[unlikely]]
      return decide_new_stream(reading, time);
    StreamState& stream = view_.streams[number];
    const WindowPlace place = locate(view_.plan, stream, reading.number, reading.part);
    switch (place.region) {
      case Region::window:
        return decide_in_window(number, cell_behind(view_.plan, stream, place.frames), place.slot, time);
      case Region::late:
        stream.run_length = 0;
        return {Placement::late};
      case Region::ahead:
        if (!has_free()) return {Placement::no_frame};
        stream.run_length = 0;
        advance(number, place.frames);
        return open(number, stream.head_cell, place.slot, time);
      case Region::far:
        break;
    }
    return decide_far(number, reading, time);
  }

  /// Enters a `placed` packet; hands its frame over if that is complete.
  WARPLINE_HD void commit(const PlaceStep& step) {
    mask_of(step.buffer)[step.slot] = 1;
    WindowCell& cell = cells_of(step.stream)[step.cell];
    if (++cell.present == view_.plan.packets) complete(step.stream, step.cell);
  }

  /// Hands a complete frame over.
  WARPLINE_HD void complete(std::uint32_t stream, std::uint32_t cell) {
    hand_over(stream, cell, behind(view_.streams[stream], cell));
    cells_of(stream)[cell].state = CellState::done;
  }

  WARPLINE_HD void count(Placement placement, std::uint64_t n) {
    add_to(view_.words->counts.placements[static_cast<std::size_t>(placement)], n);
  }

  /// Lets all windows pass all frames that they have, as at the end of a run.
  WARPLINE_HD void flush() {
    for (std::uint32_t i = 0; i < view_.words->counts.streams; ++i) flush_stream(i);
  }

  /// Hands over the frames of each stream of which no packet was placed for `limit` at `now`, by a clock of the
  /// caller's own: a source that pauses keeps no frame. Silence is measured from the first call that observes it. Reads
  /// at most kExpiryCells frames of windows, or one stream, and goes on with the next stream in the next call.
  WARPLINE_HD void expire(std::uint64_t now, std::uint64_t limit) {
    const std::uint64_t streams = view_.words->counts.streams;
    const std::uint64_t most = kExpiryCells / view_.plan.window;
    for (std::uint64_t i = 0; i < streams && (i == 0 || i < most); ++i) {
      if (view_.words->expiring >= streams) view_.words->expiring = 0;
      expire_stream(static_cast<std::uint32_t>(view_.words->expiring++), now, limit);
    }
  }

  /// Lets the consumer see what was handed over. The caller is the thread that copied, or behind a barrier of all that
  /// did.
  WARPLINE_HD void publish() { store_release(view_.queue.handed_to, view_.words->handed); }

 private:
  [[nodiscard]] WARPLINE_HD PlaceStep decide_new_stream(const PacketReading& reading, std::uint64_t time) {
    if (streams_full()) return {Placement::no_stream};
    if (!has_free()) return {Placement::no_frame};
    const auto number = static_cast<std::uint32_t>(view_.words->counts.streams);
    add_to(view_.words->counts.streams, 1);
    StreamState& stream = view_.streams[number];
    stream.key = reading.key;
    stream.epoch = 0;
    if (view_.plan.stream != StreamKind::one) {
      std::uint64_t i = mix64(reading.key);
      while (view_.table[i & view_.table_mask] != 0) ++i;
      view_.table[i & view_.table_mask] = number + 1;
    }
    return start(number, reading, time);
  }

  [[nodiscard]] WARPLINE_HD PlaceStep decide_in_window(std::uint32_t number, std::uint32_t cell, std::uint32_t slot,
                                                       std::uint64_t time) {
    const WindowCell& found = cells_of(number)[cell];
    const bool unopened = found.state == CellState::before || found.state == CellState::awaited;
    if (unopened && !has_free()) return {Placement::no_frame};
    view_.streams[number].run_length = 0;
    if (unopened) return open(number, cell, slot, time);
    if (found.state == CellState::passed) return {Placement::late};
    if (found.state == CellState::done || mask_of(found.buffer)[slot] != 0) return {Placement::duplicate};
    return {Placement::placed, false, number, cell, found.buffer, slot};
  }

  /// A packet far from the window is dropped, but so many of them in sequence are a source that began anew.
  [[nodiscard]] WARPLINE_HD PlaceStep decide_far(std::uint32_t number, const PacketReading& reading,
                                                 std::uint64_t time) {
    StreamState& stream = view_.streams[number];
    const std::uint32_t length = follows_run(view_.plan, stream, reading) ? stream.run_length + 1 : 1;
    if (length < view_.plan.restart) {
      stream.run_length = length;
      stream.run_number = reading.number;
      stream.run_part = reading.part;
      return {Placement::out_of_window};
    }
    if (!has_free()) return {Placement::no_frame};
    flush_stream(number);
    ++stream.epoch;
    add_to(view_.words->counts.restarts, 1);
    return start(number, reading, time);
  }

  [[nodiscard]] WARPLINE_HD PlaceStep start(std::uint32_t number, const PacketReading& reading, std::uint64_t time) {
    StreamState& stream = view_.streams[number];
    start_window(view_.plan, stream, cells_of(number), reading);
    stream.seen_packets = ~std::uint64_t{0};
    const WindowPlace place = locate(view_.plan, stream, reading.number, reading.part);
    return open(number, stream.head_cell, place.slot, time);
  }

  /// Gives a frame memory. Needs has_free().
  [[nodiscard]] WARPLINE_HD PlaceStep open(std::uint32_t number, std::uint32_t cell, std::uint32_t slot,
                                           std::uint64_t time) {
    const std::uint32_t buffer = view_.queue.freed[view_.words->taken & view_.queue.mask];
    ++view_.words->taken;
    cells_of(number)[cell] = {CellState::open, buffer, 0, 0, time};
    return {Placement::placed, true, number, cell, buffer, slot};
  }

  [[nodiscard]] WARPLINE_HD std::uint32_t behind(const StreamState& stream, std::uint32_t cell) const {
    return stream.head_cell >= cell ? stream.head_cell - cell : stream.head_cell + view_.plan.window - cell;
  }

  /// Moves the window so many frames on. The frames that it passes are handed over, the oldest first.
  WARPLINE_HD void advance(std::uint32_t number, std::uint32_t frames) {
    const FramePlan& plan = view_.plan;
    StreamState& stream = view_.streams[number];
    WindowCell* const cells = cells_of(number);
    const std::uint32_t passed = frames < plan.window ? frames : plan.window;
    for (std::uint32_t i = 1; i <= passed; ++i) {
      std::uint32_t cell = stream.head_cell + i;
      if (cell >= plan.window) cell -= plan.window;
      if (cells[cell].state == CellState::open) hand_over(number, cell, plan.window - i);
      if (cells[cell].state == CellState::awaited) add_to(view_.words->counts.skipped, 1);
      cells[cell].state = CellState::awaited;
    }
    if (frames > passed) add_to(view_.words->counts.skipped, frames - passed);
    stream.head_cell = (stream.head_cell + frames) % plan.window;
    stream.head_index += frames;
    stream.head_number = plan.wrapped(stream.head_number + frames * plan.frame_step);
  }

  WARPLINE_HD void flush_stream(std::uint32_t number) {
    const FramePlan& plan = view_.plan;
    WindowCell* const cells = cells_of(number);
    for (std::uint32_t back = plan.window; back-- > 0;) {
      const std::uint32_t cell = cell_behind(plan, view_.streams[number], back);
      if (cells[cell].state == CellState::open) hand_over(number, cell, back);
      if (cells[cell].state == CellState::awaited) add_to(view_.words->counts.skipped, 1);
      if (cells[cell].state != CellState::done) cells[cell].state = CellState::passed;
    }
  }

  WARPLINE_HD void expire_stream(std::uint32_t number, std::uint64_t now, std::uint64_t limit) {
    StreamState& stream = view_.streams[number];
    const WindowCell* const cells = cells_of(number);
    std::uint64_t open = 0;
    std::uint64_t packets = 0;
    for (std::uint32_t i = 0; i < view_.plan.window; ++i) {
      if (cells[i].state == CellState::open) {
        ++open;
        packets += cells[i].present;
      } else if (cells[i].state == CellState::done) {
        packets += view_.plan.packets;
      }
    }
    if (packets != stream.seen_packets || stream.head_index != stream.seen_index) {
      stream.seen_packets = packets;
      stream.seen_index = stream.head_index;
      stream.quiet_since = now;
    } else if (open != 0 && now - stream.quiet_since >= limit) {
      add_to(view_.words->counts.timed_out, open);
      flush_stream(number);
    }
  }

  /// Enters the open frame of a cell, so many behind the head, in the ring of those handed over. There is always room:
  /// the ring has a place for every frame in memory.
  WARPLINE_HD void hand_over(std::uint32_t number, std::uint32_t cell, std::uint32_t back) {
    const FramePlan& plan = view_.plan;
    const StreamState& stream = view_.streams[number];
    const WindowCell& from = cells_of(number)[cell];
    AssemblerWords& words = *view_.words;
    view_.queue.handed[words.handed & view_.queue.mask] = {
        .data = view_.data + from.buffer * view_.data_stride,
        .mask = mask_of(from.buffer),
        .key = stream.key,
        .index = stream.head_index - back,
        .first_sequence = plan.wrapped(stream.head_number - back * plan.frame_step),
        .time = from.time,
        .stream = number,
        .epoch = stream.epoch,
        .present = from.present,
        .missing = plan.packets - from.present,
        .buffer = from.buffer};
    ++words.handed;
    add_to(from.present == plan.packets ? words.counts.complete : words.counts.incomplete, 1);
    add_to(words.counts.missing, plan.packets - from.present);
  }

  AssemblerView view_;
};

}  // namespace warpline::flow
