// SPDX-License-Identifier: Apache-2.0
// Answers requests over UDP: what comes goes back in upper case. message_server PORT [THREADS]: handled on so many
// threads, or on the endpoint's own.
#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <span>

#include "warpline/message/endpoint.h"
#include "warpline/rpc/handler_threads.h"
#include "warpline/transport/nano_clock.h"
#include "warpline/transport/udp_socket.h"

using namespace warpline;

constexpr std::uint32_t kLongest = 1 << 16;  // of a request

/// Writes the answer to `room`.
message::ConstBuffer upper(const std::uint8_t* text, std::uint32_t length, std::span<std::uint8_t> room) {
  const auto count = std::min<std::uint32_t>(length, static_cast<std::uint32_t>(room.size()));
  std::transform(text, text + count, room.begin(), [](unsigned char c) { return std::toupper(c); });
  return {room.data(), count};
}

int main(int argc, char** argv) {
  const SocketAddress here{Ipv4Address{{127, 0, 0, 1}},
                           static_cast<std::uint16_t>(argc > 1 ? std::atoi(argv[1]) : 24240)};
  auto socket = transport::UdpSocket::open({.local = here});
  const transport::NanoClock clock;
  message::EndpointConfig config;
  config.max_message_bytes = kLongest;
  auto endpoint = message::Endpoint::create(config, clock.now());
  std::unique_ptr<rpc::HandlerThreads> threads;
  if (argc > 2) {
    rpc::HandlerThreadsSetup setup{.threads = static_cast<unsigned>(std::atoi(argv[2])), .response_bytes = kLongest};
    auto started = rpc::HandlerThreads::start(setup, [](rpc::HandledRequest& request, unsigned) {
      request.answer = upper(request.data.data, request.data.length, request.room);
    });
    if (started) threads = std::move(started).value();
  }
  if (!socket || !endpoint || (argc > 2 && !threads)) return 1;

  std::printf("listening on %s\n", to_string(here).c_str());
  std::fflush(stdout);
  std::array<std::uint8_t, kLongest> room;
  while (true) {
    const Nanos now = clock.now();
    transport::receive_into(*endpoint, **socket, now);
    message::MessageEvent events[32];
    const std::size_t count = threads ? threads->poll(*endpoint, events, now) : endpoint->poll(events);
    for (const message::MessageEvent& event : std::span(events).first(count)) {
      if (event.kind == message::EventKind::message) (void)endpoint->release(event.id, now);
      if (event.kind != message::EventKind::request) continue;
      // Copied, since `room` is used again before it has left. Without memory for that the client hears so.
      const message::ConstBuffer answer = upper(event.data, event.length, room);
      const message::CallStatus status = endpoint->respond(event.id, answer, {.copy = true}, now);
      if (status != message::CallStatus::ok) (void)endpoint->release(event.id, now);
    }
    const std::size_t sent = transport::transmit_from(*endpoint, **socket, clock);
    if (count != 0 || sent != 0) continue;
    // Threads cannot wake this one: it looks every 50 us for what they have done.
    const Nanos soon{now.value + 50'000};
    const bool awaits = threads && threads->in_hand() != 0;
    (*socket)->wait(now, awaits ? std::min(soon, endpoint->next_deadline()) : endpoint->next_deadline());
  }
}
