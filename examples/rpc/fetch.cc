// SPDX-License-Identifier: Apache-2.0
// Writes all primes below N, which stream_server finds meanwhile, to its output: fetch ADDRESS:PORT N
#include <cstdio>
#include <string>
#include <thread>

#include "stream_service.h"
#include "warpline/rpc/message_host.h"

using namespace warpline;

int main(int argc, char** argv) {
  if (argc != 3) return std::fprintf(stderr, "usage: fetch ADDRESS:PORT N\n"), 2;
  const auto server = parse_socket_address(argv[1]);
  auto host = rpc::MessageHost::open({.endpoint = {.accept = false}, .streams = {.streams = 1}});
  if (!server || !host) return 2;
  const auto session = host->connect(*server);
  if (!session) return 3;
  std::thread loop([&] { host->run(); });

  auto opened = host->open_stream({.session = *session, .request = bytes_of(argv[2]), .code = kPrimes});
  if (opened.status != message::CallStatus::ok) return 3;
  for (std::span<const std::uint8_t> piece; opened.stream.read(piece);)
    (void)!std::fwrite(piece.data(), 1, piece.size(), stdout);
  // All of it came only if the answer did.
  const rpc::CallResult& result = opened.stream.wait();
  const bool all = result.status == message::MessageStatus::ok;
  const std::string said =
      all ? std::string(text_of({result.data, result.length})) : std::string(message::name(result.status));
  std::fprintf(stderr, "%s\n", said.c_str());
  opened.stream.close();
  host->stop();
  loop.join();
  return all ? 0 : 1;
}
