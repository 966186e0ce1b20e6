// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "warpline/base/host_device.h"
#include "warpline/flow/frame_plan.h"
#include "warpline/flow/packet_reading.h"

namespace warpline::flow {

/// `CellState` is what a window knows of a frame.
enum class CellState : std::uint32_t {
  before,   ///< No packet came, and none has to: the frame is older than the stream's first packet.
  awaited,  ///< No packet came so far.
  open,     ///< Some packets came: the frame has memory.
  done,     ///< All packets came: the frame was handed over.
  passed,   ///< The window was flushed: the frame, if there was one, was handed over with packets missing.
};

/// `WindowCell` is one frame of a stream's window.
struct WindowCell {
  CellState state;
  std::uint32_t buffer;   ///< CellState::open: which of the frames in memory
  std::uint32_t present;  ///< CellState::open: packets that arrived
  std::uint32_t last;     ///< batches: index of the last packet that was placed
  std::uint64_t time;     ///< CellState::open: when the first packet to arrive did
};

/// `StreamState` is a stream's window: the head, which is the newest frame, and those before it.
struct StreamState {
  std::uint64_t key;
  std::uint64_t head_number;  ///< sequence number of the head's first unit
  std::int64_t head_index;    ///< which frame the head is
  std::uint32_t head_cell;    ///< of the head in the window's ring of cells
  std::uint32_t epoch;
  std::uint64_t run_number;  ///< of the last packet too far from the window
  std::uint32_t run_part;
  std::uint32_t run_length;  ///< packets too far from the window that followed each other
  // What expire() saw when packets had last been placed.
  std::uint64_t quiet_since;   ///< by expire()'s clock
  std::uint64_t seen_packets;  ///< packets in the frames of the window; all ones: not seen
  std::int64_t seen_index;     ///< head_index
};

/// `Region` says where a packet lies, seen from the head of its stream's window.
enum class Region : std::uint8_t {
  window,  ///< in a frame of the window
  ahead,   ///< in a newer frame, near enough for a packet alone: the window moves
  late,    ///< in an older frame
  far,     ///< too far for a packet alone
};

struct WindowPlace {
  Region region;
  std::uint32_t frames;  ///< Region::window: frames behind the head. Region::ahead: frames in front of it
  std::uint32_t slot;    ///< packet of its frame
};

/// Divides towards minus infinity. `by` is positive.
[[nodiscard]] WARPLINE_HD inline std::int64_t floor_divide(std::int64_t value, std::int64_t by) {
  const std::int64_t quotient = value / by;
  return value % by < 0 ? quotient - 1 : quotient;
}

/// Finds a packet's place. Depends on the head alone, so that it stays true until the window moves.
[[nodiscard]] WARPLINE_HD inline WindowPlace locate(const FramePlan& plan, const StreamState& stream,
                                                    std::uint64_t number, std::uint32_t part) {
  std::int64_t units = plan.ahead(number, stream.head_number);
  if (plan.step != 1) units = floor_divide(units, static_cast<std::int64_t>(plan.step));
  const auto per_frame = static_cast<std::int64_t>(plan.units);
  std::int64_t frames = 0;
  if (units < 0 || units >= per_frame) [[unlikely]] {
    frames = units >= -per_frame && units < 0 ? -1 : floor_divide(units, per_frame);
    units -= frames * per_frame;
  }
  const std::uint32_t slot = static_cast<std::uint32_t>(units) * plan.packets_per_unit + part;
  const std::int64_t jump = plan.jump;
  const std::int64_t window = plan.window;
  if (frames > 0) return {frames <= jump ? Region::ahead : Region::far, static_cast<std::uint32_t>(frames), slot};
  if (frames > -window) return {Region::window, static_cast<std::uint32_t>(-frames), slot};
  return {frames > -window - jump ? Region::late : Region::far, static_cast<std::uint32_t>(-frames), slot};
}

/// Returns the cell of the frame so many behind the head.
[[nodiscard]] WARPLINE_HD inline std::uint32_t cell_behind(const FramePlan& plan, const StreamState& stream,
                                                           std::uint32_t frames) {
  return stream.head_cell >= frames ? stream.head_cell - frames : stream.head_cell + plan.window - frames;
}

/// Returns whether a packet too far from the window goes on where the last such packet was: one of the next few.
[[nodiscard]] WARPLINE_HD inline bool follows_run(const FramePlan& plan, const StreamState& stream,
                                                  const PacketReading& reading) {
  if (stream.run_length == 0) return false;
  const std::int64_t numbers = plan.ahead(reading.number, stream.run_number);
  const std::int64_t units = floor_divide(numbers, static_cast<std::int64_t>(plan.step));
  if (units < 0 || units > plan.restart) return false;
  const std::int64_t packets = units * plan.packets_per_unit + reading.part - stream.run_part;
  return packets > 0 && packets <= plan.restart;
}

/// Makes the frame of a packet the head of a window without any other.
WARPLINE_HD inline void start_window(const FramePlan& plan, StreamState& stream, WindowCell* cells,
                                     const PacketReading& reading) {
  const std::uint64_t index = reading.number / plan.frame_step;
  stream.head_number = index * plan.frame_step;
  stream.head_index = static_cast<std::int64_t>(index);
  stream.head_cell = 0;
  stream.run_length = 0;
  for (std::uint32_t i = 0; i < plan.window; ++i) cells[i].state = CellState::before;
  cells[0].state = CellState::awaited;
}

}  // namespace warpline::flow
