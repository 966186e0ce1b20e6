// SPDX-License-Identifier: Apache-2.0
// message_turns BYTES SESSIONS OUTSTANDING: for every number that it reads, does so many requests of the protocol alone
// and prints how many they were and the nanoseconds of this thread's processor time that they took. bench/message/parts
// gives turns to several builds of it.
#include <fmt/format.h>
#include <time.h>

#include <array>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <iostream>

#include "warpline/message/request_loop_testing.h"

namespace warpline {
namespace {

std::int64_t cpu_nanoseconds() {
  timespec at{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &at);
  return at.tv_sec * 1'000'000'000 + at.tv_nsec;
}

/// A function of its own, for callgrind to count its instructions.
[[gnu::noinline]] std::uint64_t measured(message::RequestLoop& loop, std::uint64_t requests) {
  return loop.run(requests);
}

int take_turns(const message::RequestLoop::Shape& shape) {
  message::RequestLoop loop(shape);
  for (std::uint64_t requests = 0; std::cin >> requests;) {
    const std::int64_t begin = cpu_nanoseconds();
    const std::uint64_t done = measured(loop, requests);
    fmt::print("{} {}\n", done, cpu_nanoseconds() - begin);
    std::fflush(stdout);
  }
  return 0;
}

}  // namespace
}  // namespace warpline

int main(int argc, char** argv) {
  std::array<std::uint32_t, 3> shape{};
  bool good = argc == 4;
  for (int i = 0; good && i < 3; ++i) {
    const char* const end = argv[i + 1] + std::strlen(argv[i + 1]);
    const auto [read, failure] = std::from_chars(argv[i + 1], end, shape[i]);
    good = failure == std::errc{} && read == end && shape[i] != 0;
  }
  if (!good) {
    fmt::print(stderr, "usage: message_turns BYTES SESSIONS OUTSTANDING, all above 0; numbers of requests on stdin\n");
    return 2;
  }
  return warpline::take_turns({.bytes = shape[0], .sessions = shape[1], .outstanding = shape[2]});
}
