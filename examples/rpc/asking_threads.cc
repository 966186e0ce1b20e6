// SPDX-License-Identifier: Apache-2.0
// Asks hello_server from several threads by one session: asking_threads ADDRESS:PORT NAME..., a thread for each name.
// What is asked for !NAME goes before what waits of the others.
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "warpline/rpc/message_host.h"
#include "warpline/rpc/pending_call.h"

using namespace warpline;

int main(int argc, char** argv) {
  if (argc < 3) return std::fprintf(stderr, "usage: asking_threads ADDRESS:PORT NAME...\n"), 2;
  const auto server = parse_socket_address(argv[1]);
  auto host = rpc::MessageHost::open({.endpoint = {.accept = false}});
  if (!server || !host) return 2;
  const auto session = host->connect(*server);
  if (!session) return 3;
  std::thread loop([&] { host->run(); });

  std::vector<std::thread> threads;
  for (int i = 2; i < argc; ++i) {
    threads.emplace_back([&, name = argv[i]]() mutable {
      char room[256];
      rpc::Call call{.session = *session, .patience = Nanos{5'000'000'000}};
      if (*name == '!') {
        call.priority = message::Priority::high;
        ++name;
      }
      call.message = {reinterpret_cast<const std::uint8_t*>(name), static_cast<std::uint32_t>(std::strlen(name))};
      call.response = {reinterpret_cast<std::uint8_t*>(room), sizeof(room)};
      rpc::PendingCall pending;
      if (pending.submit(*host, call) != message::CallStatus::ok) return;
      const rpc::CallResult& result = pending.wait();
      if (result.status == message::MessageStatus::ok) std::printf("%.*s\n", static_cast<int>(result.length), room);
    });
  }
  for (std::thread& thread : threads) thread.join();
  host->stop();
  loop.join();
}
