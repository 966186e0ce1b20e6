// SPDX-License-Identifier: Apache-2.0
// A service at a daemon: greets whoever asks by a request with CODE, until the daemon ends.
//   greeter SOCKET CODE

#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "warpline/client/daemon_client.h"

using warpline::client::DaemonClient;

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: %s SOCKET CODE\n", argv[0]);
    return 2;
  }
  DaemonClient daemon;
  int code = daemon.attach(argv[1]);
  if (code == WARPLINE_CLIENT_OK) code = daemon.listen(static_cast<std::uint16_t>(std::atoi(argv[2])));
  std::array<warpline_client_event, 16> events;
  while (code >= 0) {
    daemon.wait();
    code = daemon.poll(events);
    for (int i = 0; i < code; ++i) {
      const warpline_client_event& event = events[static_cast<std::size_t>(i)];
      if (event.kind == WARPLINE_CLIENT_LISTENING) {
        std::puts(event.status == WARPLINE_CLIENT_STATUS_OK ? "listening" : "somebody else listens for that code");
        std::fflush(stdout);
        if (event.status != WARPLINE_CLIENT_STATUS_OK) return 1;
      } else if (event.kind == WARPLINE_CLIENT_REQUEST) {
        const std::string greeting = "hello, " + std::string(DaemonClient::text(event));
        const int given = daemon.answer(event.id, std::as_bytes(std::span(greeting)));
        if (given == WARPLINE_CLIENT_TOO_LONG) daemon.decline(event.id);
      }
    }
  }
  std::printf("%s\n", warpline_client_error(code));
  return code == WARPLINE_CLIENT_GONE ? 0 : 1;
}
