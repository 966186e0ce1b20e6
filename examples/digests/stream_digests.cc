// SPDX-License-Identifier: Apache-2.0
// Receives TCP connections by a DPDK port into rings, in GPU memory where it is linked so, and has consumers there make
// the SHA-256 of each and count patterns in it, until SIGINT or SIGTERM. Prints a line for each:
// stream_digests PORT ADDRESS/LENGTH TCP-PORT PATTERN..., such as: stream_digests net_af_packet0,iface=eth1 10.0.0.2/24
// 5001 needle
#include "stream_digests.h"

#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "warpline/runtime/eal.h"
#include "warpline/runtime/stop.h"
#include "warpline/stream/lanes/thread_lane.h"
#include "warpline/stream_port/gpu_lane.h"
#include "warpline/stream_port/stream_port.h"
#include "warpline/transport/nano_clock.h"

using namespace warpline;

namespace {

/// When the consumer is through with a connection, says what it found, and has the connection end.
void take(stream::StreamReceiver& receiver, const stream::StreamEvent& event, const StreamDigests& digests,
          std::size_t patterns, Nanos now) {
  const auto view = receiver.view(event.connection);
  if (!event.consumed || !view) return;
  const StreamFindings& findings = digests.of(event.connection.index);
  std::printf("%s %s: %llu bytes, sha256 ", to_string(view->peer).c_str(), std::string(name(event.state)).c_str(),
              static_cast<unsigned long long>(findings.digest.length()));
  for (const std::uint8_t byte : findings.digest.digest()) std::printf("%02x", byte);
  for (std::size_t i = 0; i < patterns; ++i) std::printf(" %llu", findings.found[i]);
  std::printf("\n");
  std::fflush(stdout);
  receiver.close(event.connection, now);
}

Result<void> receive(char** arguments, const std::vector<std::string>& patterns) {
  port::PortSettings port;
  port.spec = arguments[0];
  WARPLINE_TRY(const InterfaceAddress here, parse_interface_address(arguments[1]));
  port.addresses = {here};
  stream::ReceiverSettings settings;
  settings.ports = {static_cast<std::uint16_t>(std::atoi(arguments[2]))};
  settings.connections = 64;  // each has a block of the GPU's, and all stay beside the lane's
  settings.ring_bytes = 2 << 20;
  settings.consumers = true;
  std::random_device random;
  for (std::uint8_t& byte : settings.secret) byte = static_cast<std::uint8_t>(random());

  WARPLINE_TRY(const inspect::PatternSet set, inspect::PatternSet::create(patterns));
  WARPLINE_TRY(const auto digests, StreamDigests::create(set, settings.connections));
  stream_port::LaneSetup lanes;
  lanes.gpu = digests->gpu();
  lanes.make = [&](const stream::LaneShape& shape, std::uint16_t) {
    return lanes.gpu < 0 ? stream::make_thread_lane(shape, {.yield = true})
                         : stream_port::make_gpu_stream_lane(shape, {.gpu = lanes.gpu});
  };
  // DPDK on this thread, with no other lcores: it polls the port's one queue.
  const runtime::StopOnSignal on_signal;
  const transport::NanoClock clock;
  WARPLINE_TRY(const runtime::Eal eal,
               runtime::Eal::start({}, {}, {port.spec}, stream_port::StreamPort::memory(port, {}, 1, lanes)));
  WARPLINE_TRY(const auto opened, stream_port::StreamPort::open(port, {}, settings, clock.now(), {}, 1, 0, lanes));
  stream_port::StreamQueue& queue = opened->queue();
  if (!digests->begin(queue.receiver().board())) {
    return environment_error("digests of streams", "their kernel does not start", "run `warpline doctor`");
  }
  std::printf("listening\n");
  std::fflush(stdout);
  while (!runtime::StopOnSignal::requested().load(std::memory_order_relaxed) && !queue.failure(clock.now())) {
    const Nanos now = clock.now();
    (void)queue.receive(now);
    while (const auto event = queue.receiver().poll()) take(queue.receiver(), *event, *digests, set.patterns(), now);
    (void)queue.send(now);
  }
  digests->end();
  if (const auto failure = queue.failure(clock.now())) return *failure;
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> patterns(argv + std::min(argc, 4), argv + argc);
  if (patterns.empty() || patterns.size() > StreamFindings::kPatterns) {
    return std::fprintf(stderr, "usage: %s PORT ADDRESS/LENGTH TCP-PORT PATTERN... (1 to 8)\n", argv[0]), 2;
  }
  const Result<void> received = receive(argv + 1, patterns);
  if (received) return 0;
  std::fprintf(stderr, "%s\n", received.error().message().c_str());
  return static_cast<int>(received.error().kind);
}
