// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "warpline/base/enum_names.h"
#include "warpline/base/units.h"
#include "warpline/stream/stream_events.h"

namespace warpline::stream {

/// How a connection of a StreamSender stands.
enum class SendState : std::uint8_t {
  opening,    ///< the peer has not answered yet
  open,       ///< bytes may go
  finished,   ///< the peer has acknowledged all bytes and the FIN behind them
  refused,    ///< the peer answered with a reset: nobody listens there
  reset,      ///< the peer aborted it: what it acknowledged it may never have read
  timed_out,  ///< the peer did not answer, or does no more
};

/// What reports say of a connection's state.
constexpr auto names_of(SendState) {
  return enum_names<SendState>({"opening", "open", "finished", "refused", "reset", "timed_out"});
}

/// Tells that a connection has something new: it opened, bytes were acknowledged, or it ended. Who was told of an end
/// will not hear of the connection again: its name is void.
struct SendEvent {
  ConnectionId connection;               ///< whose
  SendState state = SendState::opening;  ///< how it stands now
  std::uint64_t acknowledged = 0;        ///< bytes of the stream that have arrived
};

/// What is known of a connection.
struct SendView {
  std::uint16_t local_port = 0;          ///< that it sends from
  SendState state = SendState::opening;  ///< how it stands
  std::uint64_t offered = 0;             ///< bytes that offer() gave
  std::uint64_t sent = 0;                ///< of these, bytes that have been sent at least once
  std::uint64_t acknowledged = 0;        ///< of these, bytes that the peer acknowledged
  std::uint64_t in_flight = 0;           ///< bytes that are believed to be on their way
  std::uint64_t window = 0;              ///< bytes that congestion control lets be on their way
  std::uint64_t peer_window = 0;         ///< bytes behind `acknowledged` that the peer has room for
  Nanos round_trip{};                    ///< smoothed; 0: not known yet
};

}  // namespace warpline::stream
