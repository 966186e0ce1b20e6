// SPDX-License-Identifier: Apache-2.0
#include "warpline/transport/transport.h"

#include "warpline/message/endpoint.h"

namespace warpline::transport {
namespace {

void give_back(message::Endpoint& endpoint, Transport& transport) {
  for (const std::uint64_t token : transport.completed()) endpoint.transmitted(token);
}

}  // namespace

bool bring(message::Endpoint& endpoint, Transport& transport, Nanos now) {
  give_back(endpoint, transport);
  const std::span<const message::Datagram> datagrams = transport.receive(now);
  if (!datagrams.empty()) {
    endpoint.receive(datagrams, now);
    transport.read();
  }
  endpoint.advance(now);
  return !datagrams.empty();
}

std::size_t take(message::Endpoint& endpoint, Transport& transport, Nanos now) {
  std::size_t total = 0;
  while (true) {
    const std::span<message::Outgoing> room = transport.room();
    if (room.empty()) break;
    const std::size_t count = endpoint.transmit(room, now);
    if (count != 0) {
      transport.send(count, now);
      give_back(endpoint, transport);
    }
    total += count;
    if (count < room.size()) break;
  }
  return total;
}

}  // namespace warpline::transport
