// SPDX-License-Identifier: Apache-2.0
// Sends each argument as a request over UDP, as many at once as a session takes, and prints the answers in the order of
// their arrival. message_client PORT TEXT...
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "warpline/message/endpoint.h"
#include "warpline/transport/nano_clock.h"
#include "warpline/transport/udp_socket.h"

using namespace warpline;

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: message_client PORT TEXT...\n");
    return 2;
  }
  const IpAddress here = Ipv4Address{{127, 0, 0, 1}};
  auto socket = transport::UdpSocket::open({.local = {here, 0}});
  const transport::NanoClock clock;
  message::EndpointConfig config;
  config.accept = false;
  auto endpoint = message::Endpoint::create(config, clock.now());
  if (!socket || !endpoint) return 1;

  const auto port = static_cast<std::uint16_t>(std::atoi(argv[1]));
  const message::SessionId session = endpoint->connect(message::peer_address(here, port), {}, clock.now()).session;
  std::vector<std::string> answers(static_cast<std::size_t>(argc) - 2);
  const auto ask = [&](std::size_t i, Nanos now) {
    const auto* text = reinterpret_cast<const std::uint8_t*>(argv[i + 2]);
    const auto length = static_cast<std::uint32_t>(std::strlen(argv[i + 2]));
    answers[i].resize(length);
    const message::MutableBuffer room{reinterpret_cast<std::uint8_t*>(answers[i].data()), length};
    const message::RequestOptions options{.context = i, .deadline = Nanos{now.value + 5'000'000'000}};
    return endpoint->request(session, {text, length}, room, options, now).status;
  };

  // Each request ends once: with its answer or with what went wrong.
  bool all_answered = true;
  for (std::size_t asked = 0, ended = 0; ended < answers.size();) {
    const Nanos now = clock.now();
    transport::receive_into(*endpoint, **socket, now);
    message::MessageEvent events[32];
    const std::size_t count = endpoint->poll(events);
    for (std::size_t i = 0; i < count; ++i) {
      if (events[i].kind != message::EventKind::response) continue;
      const bool ok = events[i].status == message::MessageStatus::ok;
      std::printf("%s\n",
                  ok ? answers[events[i].context].c_str() : std::string(message::name(events[i].status)).c_str());
      all_answered = all_answered && ok;
      ++ended;
    }
    while (asked < answers.size()) {
      const message::CallStatus status = ask(asked, now);
      if (status == message::CallStatus::no_slot) break;  // until one has ended
      if (status != message::CallStatus::ok) return 1;
      ++asked;
    }
    if (transport::transmit_from(*endpoint, **socket, clock) == 0 && count == 0)
      (*socket)->wait(now, endpoint->next_deadline());
  }
  (void)endpoint->close(session, clock.now());
  (void)transport::transmit_from(*endpoint, **socket, clock);
  return all_answered ? 0 : 1;
}
