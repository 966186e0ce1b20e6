// SPDX-License-Identifier: Apache-2.0
// Receives TCP connections by a DPDK port instead of the kernel and counts their lines, until SIGINT or SIGTERM:
// stream_lines PORT ADDRESS/LENGTH TCP-PORT, such as: stream_lines net_af_packet0,iface=eth1 10.0.0.2/24 5001
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <random>

#include "warpline/runtime/eal.h"
#include "warpline/runtime/stop.h"
#include "warpline/stream_port/stream_port.h"
#include "warpline/transport/nano_clock.h"

using namespace warpline;

namespace {

std::map<stream::ConnectionId, std::ptrdiff_t> lines;

/// Counts what came and gives its place back, which opens the window again; says so when a connection has ended.
void take(stream::StreamReceiver& receiver, const stream::StreamEvent& event, Nanos now) {
  const auto view = receiver.view(event.connection);
  if (!view) return;
  lines[event.connection] += std::ranges::count(view->bytes, '\n');
  const std::uint64_t bytes = view->begin + view->bytes.size();
  (void)receiver.release(event.connection, view->bytes.size());
  if (event.state == stream::ConnectionState::open) return;
  std::printf("%s %s: %llu bytes, %td lines\n", to_string(view->peer).c_str(), std::string(name(event.state)).c_str(),
              static_cast<unsigned long long>(bytes), lines[event.connection]);
  std::fflush(stdout);
  receiver.close(event.connection, now);
  lines.erase(event.connection);
}

Result<void> receive(char** arguments) {
  port::PortSettings port;
  port.spec = arguments[0];
  WARPLINE_TRY(const InterfaceAddress here, parse_interface_address(arguments[1]));
  port.addresses = {here};
  stream::ReceiverSettings settings;
  settings.ports = {static_cast<std::uint16_t>(std::atoi(arguments[2]))};
  std::random_device random;
  for (std::uint8_t& byte : settings.secret) byte = static_cast<std::uint8_t>(random());

  // DPDK on this thread, with no other lcores: it polls the port's one queue.
  const runtime::StopOnSignal on_signal;
  const transport::NanoClock clock;
  WARPLINE_TRY(const runtime::Eal eal,
               runtime::Eal::start({}, {}, {port.spec}, stream_port::StreamPort::memory(port, {})));
  WARPLINE_TRY(const auto opened, stream_port::StreamPort::open(port, {}, settings, clock.now()));
  stream_port::StreamQueue& queue = opened->queue();
  std::printf("listening\n");
  std::fflush(stdout);
  while (!runtime::StopOnSignal::requested().load(std::memory_order_relaxed)) {
    const Nanos now = clock.now();
    (void)queue.receive(now);
    while (const auto event = queue.receiver().poll()) take(queue.receiver(), *event, now);
    (void)queue.send(now);
  }
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return std::fprintf(stderr, "usage: stream_lines PORT ADDRESS/LENGTH TCP-PORT\n"), 2;
  const Result<void> received = receive(argv + 1);
  if (received) return 0;
  std::fprintf(stderr, "%s\n", received.error().message().c_str());
  return static_cast<int>(received.error().kind);
}
