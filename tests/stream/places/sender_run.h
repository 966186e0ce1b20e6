// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace warpline::stream {

/// How a run went.
struct SenderOutcome {
  std::string failure;              ///< empty: all was right
  std::uint64_t started = 0;        ///< connections
  std::uint64_t finished = 0;       ///< of these, how many ended in order
  std::uint64_t reset = 0;          ///< and how many the peer reset or refused
  std::uint64_t timed_out = 0;      ///< and how many ended by time
  std::uint64_t aborted = 0;        ///< and how many the application aborted
  std::uint64_t retransmitted = 0;  ///< segments
  std::uint64_t bytes = 0;          ///< acknowledged
};

/// Sends many short connections, one after the other, from the few places and ports of a sender, in virtual time. Drawn
/// are: settings, calls of the application (also with names that are void), wires that lose and hold frames back, and
/// what DrawnListener does. A model of each connection checks every frame, event and view. At the end all listeners
/// behave well, and the sender has to be as it was in the beginning: without connections and timers, and ready for a
/// new one. A function of `seed`.
[[nodiscard]] SenderOutcome run_sender(std::uint64_t seed);

}  // namespace warpline::stream
