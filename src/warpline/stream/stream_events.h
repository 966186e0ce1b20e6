// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <limits>
#include <string_view>

#include "warpline/base/address.h"
#include "warpline/base/enum_names.h"

namespace warpline::stream {

/// Names a connection of one StreamReceiver as long as it lives; a later one never has the same name.
struct ConnectionId {
  std::uint32_t index = std::numeric_limits<std::uint32_t>::max();  ///< its place: below ReceiverSettings::connections
  std::uint32_t generation = 0;                                     ///< how many had the place before it
  auto operator<=>(const ConnectionId&) const = default;
};

/// How a connection stands.
enum class ConnectionState : std::uint8_t {
  open,       ///< bytes may come
  finished,   ///< all bytes came, and the peer's FIN behind them
  reset,      ///< the peer aborted it: what had come can still be read
  timed_out,  ///< the peer gave no sign of life any more: what had come can still be read
};

/// What reports say of a connection's state.
constexpr auto names_of(ConnectionState) {
  return enum_names<ConnectionState>({"open", "finished", "reset", "timed_out"});
}

/// Tells that a connection has something new: bytes, an end, the end of what a consumer does with it, or itself.
struct StreamEvent {
  ConnectionId connection;                        ///< whose
  ConnectionState state = ConnectionState::open;  ///< how it stands now
  std::uint64_t readable = 0;                     ///< bytes that can be read
  bool consumed = false;                          ///< its consumer is through with it: StreamReader::finish()
};

}  // namespace warpline::stream
