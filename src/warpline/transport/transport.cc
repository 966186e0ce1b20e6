// SPDX-License-Identifier: Apache-2.0
#include "warpline/transport/transport.h"

namespace warpline::transport {

bool receive_into(message::Endpoint& endpoint, Transport& transport, Nanos now) {
  for (const std::uint64_t token : transport.completed()) endpoint.transmitted(token);
  const std::span<const message::Datagram> datagrams = transport.receive(now);
  if (!datagrams.empty()) {
    endpoint.receive(datagrams, now);
    transport.read();
  }
  if (!transport.unreachable().empty()) [[unlikely]]
    endpoint.unreachable(transport.unreachable(), now);
  if (transport.drained()) endpoint.advance(now);
  return !datagrams.empty();
}

}  // namespace warpline::transport
