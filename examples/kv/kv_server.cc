// SPDX-License-Identifier: Apache-2.0
// Keys with values for whoever asks: kv_server ADDRESS:PORT
#include <csignal>
#include <cstdio>

#include "service.h"
#include "warpline/rpc/message_host.h"

namespace {
warpline::rpc::MessageHost* serving = nullptr;

/// At first clients get the answers that they wait for, and ask elsewhere from then on.
void end(int) {
  static volatile std::sig_atomic_t asked = 0;
  if (asked != 0) return serving->stop();
  asked = 1;
  serving->drain(warpline::Nanos{500'000'000});
}
}  // namespace

// NOLINTNEXTLINE(bugprone-exception-escape): what is thrown before it serves ends it
int main(int argc, char** argv) {
  const auto here = warpline::parse_socket_address(argc > 1 ? argv[1] : "127.0.0.1:24241");
  if (!here) return std::fprintf(stderr, "%s\n", here.error().message().c_str()), 2;
  warpline::rpc::MessageHost::Settings settings;
  settings.local = *here;
  settings.answer_bytes = 1 << 20;  // a hundred records of YCSB, and a value at least
  auto host = warpline::rpc::MessageHost::open(settings);
  if (!host) return std::fprintf(stderr, "%s\n", host.error().message().c_str()), 3;
  serving = &*host;
  for (const int number : {SIGINT, SIGTERM}) std::signal(number, end);
  std::printf("listening on port %u\n", host->port());
  std::fflush(stdout);
  kv::Store store;
  host->serve([&](auto request, auto room) { return std::optional(kv::serve(store, request, room)); });
}
