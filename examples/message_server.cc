// SPDX-License-Identifier: Apache-2.0
// Answers requests over UDP: what comes goes back in upper case. message_server PORT
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>

#include "message/endpoint.h"
#include "transport/nano_clock.h"
#include "transport/udp_socket.h"

using namespace warpline;

int main(int argc, char** argv) {
  const SocketAddress here{Ipv4Address{{127, 0, 0, 1}},
                           static_cast<std::uint16_t>(argc > 1 ? std::atoi(argv[1]) : 24240)};
  auto socket = UdpSocket::open({.local = here});
  if (!socket) {
    std::fprintf(stderr, "%s\n", socket.error().message().c_str());
    return 1;
  }

  const NanoClock clock;
  EndpointConfig config;
  std::random_device random;
  for (std::uint8_t& byte : config.secret) byte = static_cast<std::uint8_t>(random());
  auto endpoint = Endpoint::create(config, clock.now());
  if (!endpoint) return 1;

  std::printf("listening on %s\n", to_string(here).c_str());
  std::fflush(stdout);
  while (true) {
    const Nanos now = clock.now();
    bring(*endpoint, **socket, now);
    MessageEvent events[32];
    const std::size_t count = endpoint->poll(events);
    for (std::size_t i = 0; i < count; ++i) {
      const MessageEvent& event = events[i];
      if (event.kind == EventKind::message) (void)endpoint->release(event.id, now);
      if (event.kind != EventKind::request) continue;
      std::string answer(reinterpret_cast<const char*>(event.data), event.length);
      for (char& c : answer) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
      const ConstBuffer bytes{reinterpret_cast<const std::uint8_t*>(answer.data()),
                              static_cast<std::uint32_t>(answer.size())};
      // Copied, since `answer` is gone before it has left. Without memory for that the client hears so.
      if (endpoint->respond(event.id, bytes, {.copy = true}, now) != CallStatus::ok) {
        (void)endpoint->release(event.id, now);
      }
    }
    const std::size_t sent = take(*endpoint, **socket, now);
    if (count == 0 && sent == 0) (*socket)->wait(now, endpoint->next_deadline());
  }
}
