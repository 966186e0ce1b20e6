// SPDX-License-Identifier: Apache-2.0
// Answers calls in pieces, on four threads: stream_server PORT
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "stream_service.h"
#include "warpline/rpc/message_host.h"

using namespace warpline;

static long long number_of(std::span<const std::uint8_t> bytes) {
  const std::string_view text = text_of(bytes);
  long long number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

/// Each line is answered when it comes.
static void sum_lines(rpc::CallStream& stream) {
  long long sum = 0;
  for (std::span<const std::uint8_t> line; stream.read(line);) {
    sum += number_of(line);
    if (!stream.write(bytes_of(std::to_string(sum)))) return;
  }
  (void)stream.finish(0);
}

/// Nobody knows how many bytes it will be. write() waits for the reader, and says when nobody reads any more.
static void find_primes(rpc::CallStream& stream) {
  const long long end = number_of(stream.request());
  std::string found;
  int count = 0;
  for (long long n = 2; n < end; ++n) {
    bool prime = true;
    for (long long d = 2; prime && d * d <= n; ++d) prime = n % d != 0;
    if (!prime) continue;
    ++count;
    found += std::to_string(n) + '\n';
    if (found.size() < 4096) continue;
    if (!stream.write(bytes_of(found))) return;
    found.clear();
  }
  if (!found.empty() && !stream.write(bytes_of(found))) return;
  (void)stream.finish(0, bytes_of(std::to_string(count) + " primes"));
}

static rpc::MessageHost* running = nullptr;

// NOLINTNEXTLINE(bugprone-exception-escape): what is thrown, for want of memory, ends it
int main(int argc, char** argv) {
  const int port = argc > 1 ? std::atoi(argv[1]) : 24240;
  auto host = rpc::MessageHost::open(
      {.local = {Ipv4Address{{127, 0, 0, 1}}, static_cast<std::uint16_t>(port)}, .streams = {.streams = 64}});
  if (!host) return std::fprintf(stderr, "%s\n", host.error().message().c_str()), 2;
  const auto taken = host->take_streams_on_threads(4, [](rpc::CallStream& stream, unsigned) {
    if (stream.code() == kSumLines) sum_lines(stream);
    if (stream.code() == kPrimes) find_primes(stream);
  });
  if (!taken) return std::fprintf(stderr, "%s\n", taken.error().message().c_str()), 2;
  running = &*host;
  for (const int signal : {SIGINT, SIGTERM}) std::signal(signal, [](int) { running->stop(); });
  std::printf("port %u\n", host->port());
  std::fflush(stdout);
  host->run();
}
