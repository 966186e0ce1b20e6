// SPDX-License-Identifier: Apache-2.0
// Receives TCP connections by a DPDK port into rings, in GPU memory where it is linked so, and has consumers there make
// the SHA-256 of each and count patterns in it, until SIGINT or SIGTERM. Prints a line for each:
// stream_digests PORT ADDRESS/LENGTH TCP-PORT PATTERN..., such as: stream_digests net_af_packet0,iface=eth1 10.0.0.2/24
// 5001 needle
#include "stream_digests.h"

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "warpline/base/secrets/draw_secret.h"
#include "warpline/runtime/stop.h"
#include "warpline/stream_port/run/stream_run.h"

using namespace warpline;

namespace {

/// Waits for the consumer of each connection, prints what it found, and closes the connection.
class FindingsPrinter final : public stream_port::StreamApplication {
 public:
  FindingsPrinter(const StreamDigests& digests, std::size_t patterns) : digests_(digests), patterns_(patterns) {}

  bool turn(stream::StreamReceiver& receiver, Nanos now) override {
    bool worked = false;
    while (const auto event = receiver.poll()) {
      take(receiver, *event, now);
      worked = true;
    }
    return worked;
  }

 private:
  void take(stream::StreamReceiver& receiver, const stream::StreamEvent& event, Nanos now) {
    const auto view = receiver.view(event.connection);
    if (!event.consumed || !view) return;
    const StreamFindings& findings = digests_.of(event.connection.index);
    std::printf("%s %s: %llu bytes, sha256 ", to_string(view->peer).c_str(), std::string(name(event.state)).c_str(),
                static_cast<unsigned long long>(findings.digest.length()));
    for (const std::uint8_t byte : findings.digest.digest()) std::printf("%02x", byte);
    for (std::size_t i = 0; i < patterns_; ++i) std::printf(" %llu", findings.found[i]);
    std::printf("\n");
    std::fflush(stdout);
    receiver.close(event.connection, now);
  }

  const StreamDigests& digests_;
  std::size_t patterns_;
};

Result<void> receive(char** arguments, const std::vector<std::string>& patterns) {
  stream_port::ReceiveSettings settings;
  settings.port.spec = arguments[0];
  WARPLINE_TRY(const InterfaceAddress here, parse_interface_address(arguments[1]));
  settings.port.addresses = {here};
  settings.receiver.ports = {static_cast<std::uint16_t>(std::atoi(arguments[2]))};
  settings.receiver.connections = 64;  // each has a block of the GPU's, and all stay beside the lane's
  settings.receiver.ring_bytes = 2 << 20;
  settings.receiver.consumers = true;
  WARPLINE_CHECK(draw_secret(settings.receiver.secret));

  WARPLINE_TRY(const inspect::PatternSet set, inspect::PatternSet::create(patterns));
  WARPLINE_TRY(const auto digests, StreamDigests::create(set, settings.receiver.connections));
  const int gpu = digests->gpu();
  settings.lanes = gpu < 0 ? stream_port::LaneChoice{.engine = EngineKind::thread}
                           : stream_port::LaneChoice{.engine = EngineKind::persistent, .gpu = gpu};

  const runtime::StopOnSignal on_signal;
  FindingsPrinter printer(*digests, set.patterns());
  WARPLINE_TRY(const auto run, stream_port::StreamRun::open({.runtime = {.share_cores = true}, .receive = settings}));
  WARPLINE_CHECK(run->launch({&printer}));
  if (!digests->begin(run->receiving().queue().receiver().board())) {
    return environment_error("digests of streams", "their kernel does not start", "run `warpline doctor`");
  }
  std::printf("listening\n");
  std::fflush(stdout);
  Result<void> received = run->run(runtime::StopOnSignal::requested());
  digests->end();
  return received;
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
