// SPDX-License-Identifier: Apache-2.0
// Sends numbers, a line each, to stream_server as they are read, and prints the sums so far as they come back:
// seq 5 | sum_lines ADDRESS:PORT
#include <cstdio>
#include <iostream>
#include <string>
#include <thread>

#include "stream_service.h"
#include "warpline/rpc/message_host.h"

using namespace warpline;

int main(int argc, char** argv) {
  const auto server = parse_socket_address(argc > 1 ? argv[1] : "127.0.0.1:24240");
  auto host = rpc::MessageHost::open({.endpoint = {.accept = false}, .streams = {.streams = 1}});
  if (!server || !host) return 2;
  const auto session = host->connect(*server);
  if (!session) return 3;
  std::thread loop([&] { host->run(); });

  auto opened = host->open_stream({.session = *session, .code = kSumLines});
  rpc::CallStream& stream = opened.stream;
  if (opened.status != message::CallStatus::ok) return 3;
  std::thread sums([&] {
    for (std::span<const std::uint8_t> sum; stream.read(sum);) {
      std::printf("%s\n", std::string(text_of(sum)).c_str());
      std::fflush(stdout);
    }
  });
  for (std::string line; std::getline(std::cin, line) && stream.write(bytes_of(line));) {
  }
  stream.end_writing();
  sums.join();
  const message::MessageStatus status = stream.wait().status;
  stream.close();
  host->stop();
  loop.join();
  if (status != message::MessageStatus::ok) std::fprintf(stderr, "%s\n", std::string(message::name(status)).c_str());
  return status == message::MessageStatus::ok ? 0 : 1;
}
