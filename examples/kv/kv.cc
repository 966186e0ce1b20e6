// SPDX-License-Identifier: Apache-2.0
// One operation on a kv_server: kv ADDRESS:PORT get KEY | put KEY VALUE | remove KEY | scan KEY COUNT
// Exit codes: 1 there is no such key, 2 usage, 3 no socket, 5 the server does not answer.
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "protocol.h"
#include "warpline/rpc/message_host.h"

namespace {

std::optional<std::string> request_of(int argc, char** argv) {
  if (argc < 4) return std::nullopt;
  const std::string_view verb = argv[2];
  const std::string_view key = argv[3];
  if (key.empty() || key.size() > kv::kLongestKey) return std::nullopt;
  std::string request;
  if (verb == "get" && argc == 4) {
    kv::append_request(request, kv::Operation::read, key);
  } else if (verb == "put" && argc == 5 && std::string_view(argv[4]).size() <= kv::kLongestValue) {
    kv::append_request(request, kv::Operation::write, key, argv[4]);
  } else if (verb == "remove" && argc == 4) {
    kv::append_request(request, kv::Operation::remove, key);
  } else if (verb == "scan" && argc == 5) {
    kv::append_scan(request, key, static_cast<std::uint32_t>(std::strtoul(argv[4], nullptr, 10)));
  } else {
    return std::nullopt;
  }
  return request;
}

}  // namespace

int main(int argc, char** argv) {
  const std::optional<std::string> request = request_of(argc, argv);
  if (!request) {
    std::fprintf(stderr, "usage: kv ADDRESS:PORT get KEY | put KEY VALUE | remove KEY | scan KEY COUNT\n");
    return 2;
  }
  const auto server = warpline::parse_socket_address(argv[1]);
  if (!server) return std::fprintf(stderr, "%s\n", server.error().message().c_str()), 2;
  warpline::rpc::MessageHost::Settings settings;
  settings.endpoint.accept = false;
  settings.answer_bytes = 1 << 20;
  auto host = warpline::rpc::MessageHost::open(settings);
  if (!host) return std::fprintf(stderr, "%s\n", host.error().message().c_str()), 3;
  const auto session = host->connect(*server);
  if (!session) return std::fprintf(stderr, "%s\n", session.error().message().c_str()), 3;
  const auto answer = host->ask(*session, *request);
  if (!answer) return std::fprintf(stderr, "%s\n", answer.error().message().c_str()), 5;
  std::string_view body = *answer;
  if (body.empty() || body[0] != static_cast<char>(kv::Outcome::ok)) return 1;
  body.remove_prefix(1);
  const auto print = [](std::string_view text, char end) {
    std::fwrite(text.data(), 1, text.size(), stdout);
    std::fputc(end, stdout);
  };
  if ((*request)[0] == static_cast<char>(kv::Operation::scan)) {
    while (const auto record = kv::take_record(body)) print(record->key, ' '), print(record->value, '\n');
  } else if (!body.empty()) {
    print(body, '\n');
  }
}
