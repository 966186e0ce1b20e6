// SPDX-License-Identifier: Apache-2.0
// Asks whichever of several hello_servers is there each line of its input: server_pool ADDRESS:PORT... <names
#include "warpline/rpc/pool/server_pool.h"

#include <cstdio>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include "warpline/rpc/pending_call.h"

using namespace warpline;

// NOLINTNEXTLINE(bugprone-exception-escape): what is thrown, for want of memory, ends it
int main(int argc, char** argv) {
  std::vector<SocketAddress> servers;
  for (int i = 1; i < argc; ++i) {
    const auto server = parse_socket_address(argv[i]);
    if (!server) return std::fprintf(stderr, "%s\n", server.error().message().c_str()), 2;
    servers.push_back(*server);
  }
  rpc::ServerPoolSettings settings;
  settings.hedge = {.on = true, .delay = Nanos{50'000'000}};  // a second server is asked after 50 ms
  settings.on_change = [&](const rpc::ServerChange& change) {
    std::fprintf(stderr, "%s: %s\n", to_string(servers[change.server]).c_str(), std::string(name(change.to)).c_str());
  };
  auto host = rpc::MessageHost::open({.endpoint = {.accept = false}});
  if (!host) return std::fprintf(stderr, "%s\n", host.error().message().c_str()), 3;
  auto pool = rpc::ServerPool::make(*host, servers, settings);
  if (!pool) return std::fprintf(stderr, "%s\n", pool.error().message().c_str()), 2;
  std::thread loop([&] { host->run(); });

  int unanswered = 0;
  for (std::string line; std::getline(std::cin, line);) {
    char room[256];
    rpc::Call call{.idempotent = true, .patience = Nanos{5'000'000'000}};  // a greeting may be given twice
    call.message = {reinterpret_cast<const std::uint8_t*>(line.data()), static_cast<std::uint32_t>(line.size())};
    call.response = {reinterpret_cast<std::uint8_t*>(room), sizeof(room)};
    rpc::PendingCall pending;
    if (pending.submit(**pool, call) != message::CallStatus::ok) return 1;
    const rpc::CallResult& result = pending.wait();
    const bool answered = result.status == message::MessageStatus::ok;
    unanswered += answered ? 0 : 1;
    std::printf("%.*s\n", answered ? static_cast<int>(result.length) : 0, room);
    std::fflush(stdout);
  }
  host->stop();
  loop.join();
  for (std::size_t i = 0; i < servers.size(); ++i) {
    const rpc::ServerFacts facts = (*pool)->server(i);
    std::printf("%s: %s, answered %llu\n", to_string(facts.address).c_str(), std::string(name(facts.state)).c_str(),
                static_cast<unsigned long long>(facts.answered));
  }
  return unanswered == 0 ? 0 : 5;
}
