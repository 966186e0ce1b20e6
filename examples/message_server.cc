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
#include "warpline/transport/wake_up.h"

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
  auto wake = transport::WakeUp::make();
  if (!socket || !wake) return 1;
  (*socket)->wake_by((*wake)->descriptor());
  const transport::NanoClock clock;
  message::EndpointConfig config;
  config.max_message_bytes = kLongest;
  auto endpoint = message::Endpoint::create(config, clock.now());
  std::unique_ptr<rpc::HandlerThreads> threads;
  if (argc > 2) {
    const rpc::HandlerThreadsSetup setup{
        .threads = static_cast<unsigned>(std::atoi(argv[2])), .response_bytes = kLongest, .wake = wake->get()};
    auto started = rpc::HandlerThreads::start(setup, [](rpc::HandledRequest& request, unsigned) {
      request.answer = upper(request.data.data, request.data.length, request.room);
    });
    if (started) threads = std::move(started).value();
  }
  if (!endpoint || (argc > 2 && !threads)) return 1;

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
    // Threads whose answers are done wake this one, or keep it from sleeping.
    if (count != 0 || sent != 0 || !(*wake)->begin_sleep()) continue;
    (*socket)->wait(now, endpoint->next_deadline());
    (*wake)->end_sleep();
  }
}
