// SPDX-License-Identifier: Apache-2.0
// Asks hello_server: hello_client ADDRESS:PORT NAME...
#include <cstdio>

#include "warpline/rpc.h"

int main(int argc, char** argv) {
  if (argc < 3) return std::fprintf(stderr, "usage: hello_client ADDRESS:PORT NAME...\n"), 2;
  const auto server = warpline::parse_socket_address(argv[1]);
  if (!server) return std::fprintf(stderr, "%s\n", server.error().message().c_str()), 2;
  warpline::rpc::MessageHost::Settings settings;
  settings.endpoint.accept = false;
  auto host = warpline::rpc::MessageHost::open(settings);
  if (!host) return std::fprintf(stderr, "%s\n", host.error().message().c_str()), 3;
  const auto session = host->connect(*server);
  if (!session) return std::fprintf(stderr, "%s\n", session.error().message().c_str()), 3;
  for (int i = 2; i < argc; ++i) {
    const auto answer = host->ask(*session, argv[i]);
    if (!answer) return std::fprintf(stderr, "%s\n", answer.error().message().c_str()), 5;
    std::printf("%s\n", answer->c_str());
  }
}
