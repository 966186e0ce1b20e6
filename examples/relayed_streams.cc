// SPDX-License-Identifier: Apache-2.0
// Takes the TCP connections that `warpline stream proxy --connect` hands on as messages, and prints a line for each:
// who sent, how it ended, how many bytes and their Adler-32. relayed_streams PORT
#include <cstdio>
#include <cstdlib>
#include <map>
#include <span>
#include <string>

#include "warpline/message/endpoint.h"
#include "warpline/stream/relay_messages.h"
#include "warpline/transport/nano_clock.h"
#include "warpline/transport/udp_socket.h"

using namespace warpline;

struct Stream {
  stream::RelayedBegin ends;
  std::uint32_t low = 1, high = 0;  // Adler-32 (RFC 1950, section 9)

  void add(std::span<const std::uint8_t> bytes) {
    for (const std::uint8_t byte : bytes) {
      low = (low + byte) % 65'521;
      high = (high + low) % 65'521;
    }
  }
};

std::map<message::SessionId, Stream> streams;

void take(message::SessionId session, stream::RelayCode code, std::span<const std::uint8_t> bytes) {
  Stream& stream = streams[session];
  if (code == stream::RelayCode::begin) stream.ends = stream::decode_begin(bytes).value_or(stream::RelayedBegin{});
  if (code == stream::RelayCode::bytes) stream.add(bytes);
  if (code != stream::RelayCode::end) return;
  if (const auto end = stream::decode_end(bytes)) {
    std::printf("%s %s %llu bytes %08x\n", to_string(stream.ends.peer).c_str(), std::string(name(end->state)).c_str(),
                static_cast<unsigned long long>(end->bytes), stream.high << 16 | stream.low);
    std::fflush(stdout);
  }
}

int main(int argc, char** argv) {
  const SocketAddress here{Ipv4Address{}, static_cast<std::uint16_t>(argc > 1 ? std::atoi(argv[1]) : 24240)};
  auto socket = transport::UdpSocket::open({.local = here});
  const transport::NanoClock clock;
  auto endpoint = message::Endpoint::create({}, clock.now());
  if (!socket || !endpoint) return 1;
  std::printf("listening on port %u\n", (*socket)->port());
  std::fflush(stdout);
  while (true) {
    const Nanos now = clock.now();
    transport::receive_into(*endpoint, **socket, now);
    message::MessageEvent events[32];
    const std::size_t count = endpoint->poll(events);
    for (const message::MessageEvent& event : std::span(events).first(count)) {
      if (event.kind == message::EventKind::lost) streams.erase(event.session);
      if (event.kind != message::EventKind::message) continue;
      take(event.session, static_cast<stream::RelayCode>(event.code), {event.data, event.length});
      (void)endpoint->release(event.id, now);
    }
    if (transport::transmit_from(*endpoint, **socket, clock) == 0 && count == 0)
      (*socket)->wait(now, endpoint->next_deadline());
  }
}
