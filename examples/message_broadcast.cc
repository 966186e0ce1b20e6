// SPDX-License-Identifier: Apache-2.0
// One file to many peers at once, sent from one buffer.
// message_broadcast send PORT PEERS FILE: waits for so many peers.  message_broadcast receive PORT: writes to stdout.
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "warpline/message/endpoint.h"
#include "warpline/transport/nano_clock.h"
#include "warpline/transport/udp_socket.h"

using namespace warpline;

/// The loop of both ends: `handle` sees each event, until it answers false.
template <typename F>
void run(message::Endpoint& endpoint, transport::Transport& transport, const transport::NanoClock& clock, F handle) {
  for (bool goes_on = true; goes_on;) {
    const Nanos now = clock.now();
    transport::receive_into(endpoint, transport, now);
    message::MessageEvent events[32];
    const std::size_t count = endpoint.poll(events);
    for (std::size_t i = 0; i < count; ++i) goes_on = handle(events[i], now) && goes_on;
    if (transport::transmit_from(endpoint, transport, clock) == 0 && count == 0)
      transport.wait(now, endpoint.next_deadline());
  }
}

int main(int argc, char** argv) {
  const bool sends = argc == 5 && std::string(argv[1]) == "send";
  if (!sends && !(argc == 3 && std::string(argv[1]) == "receive")) return 2;
  const IpAddress here = Ipv4Address{{127, 0, 0, 1}};
  const auto port = static_cast<std::uint16_t>(std::atoi(argv[2]));
  auto socket = transport::UdpSocket::open({.local = {here, sends ? port : std::uint16_t{0}}});
  const transport::NanoClock clock;
  const message::EndpointConfig config;
  auto endpoint = message::Endpoint::create(config, clock.now());
  if (!socket || !endpoint) return 1;

  if (!sends) {
    (void)endpoint->connect(message::peer_address(here, port), {}, clock.now());
    bool whole = false;
    run(*endpoint, **socket, clock, [&](const message::MessageEvent& event, Nanos now) {
      if (event.kind == message::EventKind::message) {
        whole = std::fwrite(event.data, 1, event.length, stdout) == event.length;
        (void)endpoint->release(event.id, now);
      }
      return event.kind != message::EventKind::lost;  // the sender says goodbye when all have it
    });
    return whole ? 0 : 1;
  }

  std::ifstream file(argv[4], std::ios::binary);
  std::ostringstream whole;
  if (!(whole << file.rdbuf())) {
    std::fprintf(stderr, "cannot read %s, or it is empty\n", argv[4]);
    return 1;
  }
  const std::string bytes = std::move(whole).str();
  const message::ConstBuffer all{reinterpret_cast<const std::uint8_t*>(bytes.data()),
                                 static_cast<std::uint32_t>(bytes.size())};
  std::vector<message::SessionId> peers;
  std::size_t left = static_cast<std::size_t>(std::atoi(argv[3]));
  std::size_t failed = 0;
  std::printf("waiting for peers\n");
  std::fflush(stdout);
  run(*endpoint, **socket, clock, [&](const message::MessageEvent& event, Nanos now) {
    if (event.kind == message::EventKind::accepted) {
      peers.push_back(event.session);
      if (peers.size() != left) return true;
      for (const message::SessionId& peer : peers) (void)endpoint->send(peer, all, {}, now);
    }
    // With the last of these the buffer is free again.
    if (event.kind == message::EventKind::sent && event.status != message::MessageStatus::ok) ++failed;
    return event.kind != message::EventKind::sent || --left != 0;
  });
  for (const message::SessionId& peer : peers) (void)endpoint->close(peer, clock.now());
  (void)transport::transmit_from(*endpoint, **socket, clock);
  return failed == 0 ? 0 : 1;
}
