// SPDX-License-Identifier: Apache-2.0
// Echoes of 32 bytes through `warpline message daemon`, for bench/message/daemon. message_daemon_echo server SOCKET;
// client SOCKET ADDRESS:PORT CONNECTIONS OUTSTANDING SECONDS POLL_US.
#include <array>
#include <cstdio>
#include <string_view>
#include <vector>

#include "load.h"
#include "warpline/client/daemon_client.h"

namespace warpline::echo {
namespace {

using client::DaemonClient;

constexpr std::uint16_t kCode = 1;
constexpr std::size_t kEvents = 64;

int serve(DaemonClient& daemon) {
  int code = daemon.listen(kCode);
  std::array<warpline_client_event, kEvents> events;
  while (code >= 0) {
    daemon.wait();
    code = daemon.poll(events);
    for (int i = 0; i < code; ++i) {
      const warpline_client_event& event = events[static_cast<std::size_t>(i)];
      if (event.kind == WARPLINE_CLIENT_LISTENING) {
        std::puts("listening on port of the daemon");
        std::fflush(stdout);
      } else if (event.kind == WARPLINE_CLIENT_REQUEST) {
        while (daemon.answer(event.id, DaemonClient::bytes(event)) == WARPLINE_CLIENT_AGAIN) {
        }
      }
    }
  }
  return code;
}

/// On one thread, until the load has ended.
void ask(DaemonClient& daemon, Load& load, const char* peer) {
  std::vector<std::uint32_t> sessions;
  for (std::size_t i = 0; i < load.plan().connections; ++i) {
    const auto session = daemon.connect(peer);
    if (session.code != WARPLINE_CLIENT_OK) Load::fail(warpline_client_error(session.code));
    sessions.push_back(session.number);
  }
  const auto submit = [&](std::size_t slot) {
    const auto call = daemon.request(sessions[slot / load.plan().outstanding], kCode,
                                     std::as_bytes(std::span(load.next(slot))), slot);
    if (call.code != WARPLINE_CLIENT_OK) Load::fail(warpline_client_error(call.code));
  };
  std::size_t open = load.plan().slots();
  for (std::size_t slot = 0; slot < open; ++slot) submit(slot);
  std::array<warpline_client_event, kEvents> events;
  while (open != 0) {
    daemon.wait();
    const int count = daemon.poll(events);
    if (count < 0) Load::fail(warpline_client_error(count));
    for (int i = 0; i < count; ++i) {
      const warpline_client_event& event = events[static_cast<std::size_t>(i)];
      if (event.kind != WARPLINE_CLIENT_RESPONSE) continue;
      if (event.status != WARPLINE_CLIENT_STATUS_OK) Load::fail("a call has failed");
      if (load.ended(event.tag, event.data, event.length)) {
        submit(event.tag);
      } else {
        --open;
      }
    }
  }
}

}  // namespace
}  // namespace warpline::echo

int main(int argc, char** argv) {
  using namespace warpline::echo;
  const std::string_view what = argc > 1 ? argv[1] : "";
  const bool serves = what == "server" && argc == 3;
  if (!serves && (what != "client" || argc != 8)) {
    std::fprintf(stderr, "server SOCKET | client SOCKET ADDRESS:PORT CONNECTIONS OUTSTANDING SECONDS POLL_US\n");
    return 2;
  }
  warpline::client::DaemonClient daemon;
  if (const int code = daemon.attach(argv[2]); code != WARPLINE_CLIENT_OK) Load::fail(warpline_client_error(code));
  if (serves) return serve(daemon) == WARPLINE_CLIENT_GONE ? 0 : 1;
  Load load(parse_plan(argv + 4));
  load.measure([&] { ask(daemon, load, argv[3]); });
  return 0;
}
