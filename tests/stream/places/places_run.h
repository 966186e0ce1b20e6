// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace warpline::stream {

/// How frames reach a receiver, and what reads the bytes of its streams.
enum class ReceiverPath : std::uint8_t { direct, bursts, queues, bursts_to_consumers, queues_to_consumers };

/// All paths.
inline constexpr ReceiverPath kReceiverPaths[] = {ReceiverPath::direct, ReceiverPath::bursts, ReceiverPath::queues,
                                                  ReceiverPath::bursts_to_consumers, ReceiverPath::queues_to_consumers};

/// Returns the path's name, as the command line has it.
[[nodiscard]] constexpr std::string_view name_of(ReceiverPath path) {
  constexpr std::string_view kNames[] = {"direct", "bursts", "queues", "bursts_to_consumers", "queues_to_consumers"};
  return kNames[static_cast<unsigned>(path)];
}

/// How a run went.
struct PlacesOutcome {
  std::string failure;        ///< empty: all was right
  std::uint64_t opened = 0;   ///< connections
  std::uint64_t ended = 0;    ///< of these, how many the peer ended in order
  std::uint64_t reset = 0;    ///< and how many it reset
  std::uint64_t aborted = 0;  ///< and how many the application aborted
  std::uint64_t bytes = 0;    ///< compared with those that were sent
};

/// Runs many short connections, one after the other, through the few places of a receiver, in virtual time. Drawn are:
/// frames that are lost, repeated, forged and late, bytes and a reset in one burst, applications that release in part,
/// close late and abort at any event, and pauses of up to minutes. At the end peers are silent, and the receiver has to
/// be as it was in the beginning: without connections, timers and frames, and ready for a new connection. A function of
/// `seed` and `path`.
[[nodiscard]] PlacesOutcome run_places(std::uint64_t seed, ReceiverPath path);

}  // namespace warpline::stream
