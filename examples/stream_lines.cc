// SPDX-License-Identifier: Apache-2.0
// Receives TCP connections by a DPDK port instead of the kernel and counts their lines, until SIGINT or SIGTERM:
// stream_lines PORT ADDRESS/LENGTH TCP-PORT, such as: stream_lines net_af_packet0,iface=eth1 10.0.0.2/24 5001
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>

#include "warpline/stream.h"

using namespace warpline;

namespace {

class LineCounter final : public stream_port::StreamApplication {
 public:
  bool turn(stream::StreamReceiver& receiver, Nanos now) override {
    bool worked = false;
    while (const auto event = receiver.poll()) {
      take(receiver, *event, now);
      worked = true;
    }
    return worked;
  }

 private:
  /// Counts the lines and releases the bytes, which opens the window again. Prints a line when the connection has
  /// ended.
  void take(stream::StreamReceiver& receiver, const stream::StreamEvent& event, Nanos now) {
    const auto view = receiver.view(event.connection);
    if (!view) return;
    lines_[event.connection] += std::ranges::count(view->bytes, '\n');
    const std::uint64_t bytes = view->begin + view->bytes.size();
    (void)receiver.release(event.connection, view->bytes.size());
    if (event.state == stream::ConnectionState::open) return;
    std::printf("%s %s: %llu bytes, %td lines\n", to_string(view->peer).c_str(), std::string(name(event.state)).c_str(),
                static_cast<unsigned long long>(bytes), lines_[event.connection]);
    std::fflush(stdout);
    receiver.close(event.connection, now);
    lines_.erase(event.connection);
  }

  std::map<stream::ConnectionId, std::ptrdiff_t> lines_;
};

Result<void> receive(char** arguments) {
  stream_port::ReceiveSettings settings;
  settings.port.spec = arguments[0];
  WARPLINE_TRY(const InterfaceAddress here, parse_interface_address(arguments[1]));
  settings.port.addresses = {here};
  settings.receiver.ports = {static_cast<std::uint16_t>(std::atoi(arguments[2]))};
  WARPLINE_CHECK(draw_secret(settings.receiver.secret));

  const runtime::StopOnSignal on_signal;
  LineCounter lines;
  WARPLINE_TRY(const auto run, stream_port::StreamRun::open({.receive = settings}));
  WARPLINE_CHECK(run->launch({&lines}));
  std::printf("listening\n");
  std::fflush(stdout);
  return run->run(runtime::StopOnSignal::requested());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return std::fprintf(stderr, "usage: stream_lines PORT ADDRESS/LENGTH TCP-PORT\n"), 2;
  const Result<void> received = receive(argv + 1);
  if (received) return 0;
  std::fprintf(stderr, "%s\n", received.error().message().c_str());
  return static_cast<int>(received.error().kind);
}
