// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "warpline/message/types.h"

namespace warpline::transport {

/// What was said of a datagram that a UDP socket sent (ip(7), IP_RECVERR).
struct SocketError {
  /// By whom, and what.
  enum class Kind : std::uint8_t {
    none,         ///< there is nothing more
    local,        ///< the kernel refused it, as its call has said
    unreachable,  ///< ICMP: nothing has the port that it was sent to
    other,        ///< ICMP: anything else
  };
  Kind kind = Kind::none;
  message::PeerAddress to;   ///< of ICMP: where it was sent
  std::size_t repeated = 0;  ///< bytes of its payload that came back
};

/// Says whether the kernel is to keep what ICMP says; if not, it throws away what waits.
void report_errors(int handle, bool v6, bool on);

/// Returns the next that the kernel keeps; `bytes` takes what came back of the payload, as far as there is room. By the
/// socket's owner. As long as some wait, calls about other datagrams fail with the errno of these.
[[nodiscard]] SocketError next_error(int handle, std::span<std::uint8_t> bytes);

}  // namespace warpline::transport
