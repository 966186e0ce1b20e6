// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "warpline/base/address.h"
#include "warpline/stream/stream_events.h"

namespace warpline::stream {

// How a TCP connection travels as messages: each connection is an ordered session of its own, and what is heard of it
// are one-way messages, told apart by their code. The first is `begin`, then come the bytes, as they lay in the stream
// and without anything around them, in messages of any length, and `end` is the last. A session that is lost before its
// `end` was a connection that was aborted. Numbers are in network byte order.

/// The code of a message of a relayed connection.
enum class RelayCode : std::uint16_t {
  begin = 0x5301,  ///< RelayedBegin
  bytes = 0x5302,  ///< the next bytes of the stream
  end = 0x5303,    ///< RelayedEnd
};

/// The ends of a relayed connection.
struct RelayedBegin {
  static constexpr std::size_t kBytes = 36;  ///< of the encoded message
  SocketAddress peer;                        ///< who connected
  SocketAddress local;                       ///< to where
  bool operator==(const RelayedBegin&) const = default;
};

/// How a relayed connection ended.
struct RelayedEnd {
  static constexpr std::size_t kBytes = 9;            ///< of the encoded message
  ConnectionState state = ConnectionState::finished;  ///< anything but `open`
  std::uint64_t bytes = 0;                            ///< of the whole stream, as far as it came
  bool operator==(const RelayedEnd&) const = default;
};

/// Each address is 16 bytes, an IPv4 one mapped (RFC 4291, section 2.5.5.2), and 2 bytes of port; the peer's comes
/// first.
[[nodiscard]] std::array<std::uint8_t, RelayedBegin::kBytes> encode(const RelayedBegin& begin);
/// The state is one byte, the number of bytes eight.
[[nodiscard]] std::array<std::uint8_t, RelayedEnd::kBytes> encode(const RelayedEnd& end);
/// Returns nothing if `message` has another length.
[[nodiscard]] std::optional<RelayedBegin> decode_begin(std::span<const std::uint8_t> message);
/// Returns nothing if `message` has another length, or a state that no connection ends in.
[[nodiscard]] std::optional<RelayedEnd> decode_end(std::span<const std::uint8_t> message);

}  // namespace warpline::stream
