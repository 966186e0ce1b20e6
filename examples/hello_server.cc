// SPDX-License-Identifier: Apache-2.0
// Greets whoever asks: hello_server ADDRESS:PORT
#include <algorithm>
#include <cstdio>
#include <string>

#include "warpline/rpc.h"

int main(int argc, char** argv) {
  const auto here = warpline::parse_socket_address(argc > 1 ? argv[1] : "127.0.0.1:24240");
  if (!here) return std::fprintf(stderr, "%s\n", here.error().message().c_str()), 2;
  warpline::rpc::MessageHost::Settings settings;
  settings.local = *here;
  auto host = warpline::rpc::MessageHost::open(settings);
  if (!host) return std::fprintf(stderr, "%s\n", host.error().message().c_str()), 3;
  std::printf("listening on port %u\n", host->port());
  std::fflush(stdout);
  host->serve([](std::span<const std::uint8_t> request, std::span<std::uint8_t> room) {
    const std::string answer = "hello, " + std::string(request.begin(), request.end());
    const std::size_t length = std::min(answer.size(), room.size());
    std::copy_n(answer.begin(), length, room.begin());
    return std::optional(length);
  });
}
