// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "warpline/base/device/shared_words.h"
#include "warpline/base/host_device.h"
#include "warpline/stream/lanes/stream_board.h"

namespace warpline::stream {

/// A consumer's end of one connection of a lane: reads bytes where they lie, in a ring that is mapped twice, so that
/// they are in one piece, and gives their place back, which opens the window. For threads of a GPU, where the lane is a
/// GPU's, and of the host, where it is a host's (ReceiverSettings::consumers). Whoever makes one goes on where the last
/// one at that place stopped; keeping it saves a GPU a look over the bus. One thread, or group of threads with barriers
/// between them, at a time.
///
///   for (std::uint32_t place = mine; place < board.count; place += all) {
///     StreamReader stream(board, place);
///     if (!stream) continue;
///     const StreamReach reach = stream.reach();
///     work(stream.at(stream.released()), reach.committed - stream.released());
///     stream.release(reach.committed - stream.released());
///     if (reach.ended()) stream.finish();
///   }
class StreamReader {
 public:
  /// Has none.
  StreamReader() = default;
  /// Takes up the connection that has the place now, if there is one that was not finished.
  WARPLINE_HD StreamReader(const StreamBoard& board, std::uint32_t place) : board_(board), place_(place) {
    const std::uint64_t name = load_acquire(&board.places[place].name);
    if (name == 0) return;
    // The receiver takes a word back when its connection's name is gone: this one is from before, if the name stands.
    const ReleaseWord word(load_acquire(&board.released[place]));
    if (load_acquire(&board.places[place].name) != name) return;
    generation_ = static_cast<std::uint32_t>(name);
    const bool begun = word.is_of(generation_);
    there_ = !(begun && word.finished());
    if (there_ && begun) {
      const std::uint64_t committed = reach().committed;
      released_ = committed - word.left(committed);
    }
  }

  /// Whether there is a connection. Nothing else is to be asked or done where there is none.
  [[nodiscard]] explicit WARPLINE_HD operator bool() const { return there_; }
  /// Returns the connection's name, as the receiver's events have it.
  [[nodiscard]] WARPLINE_HD ConnectionId connection() const { return {place_, generation_}; }
  /// Returns how far the stream has come. What is told is there to be read, from the first byte not yet released on.
  [[nodiscard]] WARPLINE_HD StreamReach reach() const {
    const StreamReach reach = StreamPlace::reach_of(load_acquire(&board_.places[place_].reach));
    fence_aliases();  // the lane may have written the bytes by the ring's other address
    return reach;
  }
  /// Returns how many bytes of the stream have been released.
  [[nodiscard]] WARPLINE_HD std::uint64_t released() const { return released_; }
  /// Returns the address of byte `offset` of the stream, which is not yet released; all up to reach() lie behind it.
  [[nodiscard]] WARPLINE_HD const std::uint8_t* at(std::uint64_t offset) const {
    return board_.rings + 2 * board_.ring_bytes * place_ + (offset & (board_.ring_bytes - 1));
  }
  /// Gives the next `bytes` back, which have come: they may be overwritten at once. Other threads that read them have
  /// passed a barrier. Costs a GPU three writes over the bus: better for many bytes than for few.
  WARPLINE_HD void release(std::uint64_t bytes) {
    released_ += bytes;
    board_.tell(place_, {generation_, released_, false});
  }
  /// Is through with the connection: reads nothing of it any more, also if more has come or will. The receiver tells by
  /// an event (StreamEvent::consumed), after a seen end not before it knows of it as well, and gives the place to
  /// another one when the application has closed this one.
  WARPLINE_HD void finish() {
    board_.tell(place_, {generation_, released_, true, reach().ended()});
    there_ = false;
  }

 private:
  StreamBoard board_;
  std::uint32_t place_ = 0;
  std::uint32_t generation_ = 0;
  std::uint64_t released_ = 0;
  bool there_ = false;
};

}  // namespace warpline::stream
