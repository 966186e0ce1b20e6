// SPDX-License-Identifier: Apache-2.0
// Greets whoever asks, as hello_server, on several threads at one address: greeting_threads ADDRESS:PORT [THREADS]
#include <algorithm>
#include <cinttypes>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>

#include "warpline/rpc/multi_endpoint.h"

using namespace warpline;

rpc::MultiEndpoint* running = nullptr;

/// The handler of one thread: `greeted` is its alone, so there is no lock.
rpc::MessageHost::Handler make_handler(std::uint32_t thread) {
  return [thread, greeted = 0U](std::span<const std::uint8_t> request, std::span<std::uint8_t> room) mutable {
    const std::string answer = "hello, " + std::string(request.begin(), request.end()) + ", number " +
                               std::to_string(++greeted) + " of thread " + std::to_string(thread);
    const std::size_t length = std::min(answer.size(), room.size());
    std::copy_n(answer.begin(), length, room.begin());
    return std::optional(length);
  };
}

// NOLINTNEXTLINE(bugprone-exception-escape): what is thrown, for want of memory or threads, ends it
int main(int argc, char** argv) {
  const auto here = parse_socket_address(argc > 1 ? argv[1] : "127.0.0.1:24240");
  if (!here) return std::fprintf(stderr, "%s\n", here.error().message().c_str()), 2;
  rpc::MultiEndpoint::Settings settings;
  settings.host.local = *here;
  if (argc > 2) settings.threads = static_cast<std::uint32_t>(std::atoi(argv[2]));
  auto server = rpc::MultiEndpoint::open(settings);
  if (!server) return std::fprintf(stderr, "%s\n", server.error().message().c_str()), 3;
  std::printf("listening on port %u\n", server->port());
  std::fflush(stdout);

  running = &*server;
  for (const int number : {SIGINT, SIGTERM}) std::signal(number, [](int) { running->stop(); });
  const auto served = server->serve(make_handler);
  if (!served) return std::fprintf(stderr, "%s\n", served.error().message().c_str()), 3;
  std::printf("%" PRIu64 " greeted\n", server->total(&message::EndpointCounters::handled));
}
